// How the job went: failed or not, since when, how it ended. Told once, here; detectors, judge and reports ask it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "timeline/bars.h"
#include "timeline/chatter.h"
#include "timeline/logged.h"
#include "timeline/timeline.h"

namespace inquest {

/// Whose word an ending is, or what it tells of.
enum class EndingKind : std::uint8_t {
  kWorker,  ///< the program's, about itself
  kWork,    ///< the program's, about its work
  kLeaving,
  kLauncher,
  kScheduler,
  kInFront,  ///< a scheduler's report on what follows it
  kShell,
  kFigures,
  kSavedOnce,
  kScores,
  kGoal,     ///< a counter came to where it was to end
  kFarewell  ///< last lines that are weighed
};

/// `scheduler`, `saved-once`.
std::string_view Name(EndingKind ending);

/// A number that a job's configuration gives of its steps.
enum class Goal : std::uint8_t { kEpochs, kSteps, kFrom };

/// What the rules read in a line about its process. The timeline's own events (time-outs, exits, exceptions) are not
/// told again.
struct Told {
  enum class What : std::uint8_t {
    kWork,
    kEnding,
    kComplaint,
    kGrumble,
    kStart,
    kRestart,
    kGoal,
    kBegins,
    kOver,
    kEpilog
  };  ///< a grumble: words of trouble that no rule knows; a goal: a number at which the program is to end; begins: it
      ///< says what it does next; over: its program left with this line; epilog: a scheduler's report on the job that
      ///< has ended begins here
  EventIndex event = 0;
  What what = What::kWork;
  std::string_view rule = {};               ///< of a start: which
  Activity at = Activity::kNone;            ///< of work
  EndingKind ending = EndingKind::kWorker;  ///< of an ending
  Goal goal = Goal::kEpochs;                ///< of a goal
  std::uint64_t number = 0;                 ///< of a goal
  std::optional<int> percent = {};          ///< of work
  bool heavy = true;                        ///< of a complaint: more than a hint
  bool decisive = false;                    ///< of a complaint: it suffices alone
};

/// An ending in the program's own format.
inline bool IsPrograms(EndingKind ending) { return ending == EndingKind::kWorker || ending == EndingKind::kWork; }

// The course of a job. A sign of failure is what does not happen to a job that is well: an operation that timed out, a
// process that ended badly, a stop from outside, an exception, a line that names a cause. A death, an exit code and a
// time-out cannot be undone. Anything else is undone by the work that went on: a job whose steps are counted on, twice
// or more, after a complaint did not die of it, whoever complained, since ranks that train together stop together. An
// ending is the word of one process about itself. It acquits the job where nothing is left that was not undone, where
// the input it stands in shows that a job was at work there, and where no work follows it; a shell's echo, `all done`,
// proves the shell, and counts only behind counted work, where nobody grumbled since, and is less sure there. So does a
// last row that counts what the configuration gave as the end. Where nobody tells how it ended, the last lines of its
// logs are weighed by whoever tells (rules/farewell.h): such a farewell is an ending where nothing known speaks
// against.
class Course {
 public:
  Course(const Timeline& timeline, std::span<const Told> told);

  /// Something went wrong for certain and was not undone.
  bool failed() const { return since_.has_value(); }
  /// The first sign of failure that was not undone.
  std::optional<EventIndex> since() const { return since_; }
  /// The first operation that somebody gave up waiting in.
  std::optional<EventIndex> first_time_out() const { return first_time_out_; }
  /// From here on, at the latest, the job stood still or had failed, by the clocks of those who say so; nullopt: nobody
  /// dates it.
  std::optional<Timestamp> onset() const { return onset_; }
  /// The first dated sign that it was given up.
  std::optional<Timestamp> given_up() const { return given_up_; }
  /// The endings that count, in order; empty: nobody said that it ended well.
  const std::vector<EventIndex>& endings() const { return endings_; }
  bool ended_well() const { return !endings_.empty() && !failed(); }
  /// All that speaks for a good end are scores, a counter at its goal, or last words without counted work, with nothing
  /// behind.
  bool only_scores() const { return only_scores_; }
  /// Nobody says that it ended well: its last lines were weighed.
  bool only_weighed() const { return only_weighed_; }
  /// Steps were counted on after this, twice or more, or its writer said at once that it got over it, or that it
  /// ignored it, or a thread died of it, or it was caught and logged, and its process printed on.
  bool WentOn(EventIndex event, std::size_t steps = kStepsThatUndo) const;
  /// A server came up behind it in its input, or answered.
  bool ServedAfter(EventIndex event, std::size_t times = 1) const;
  /// Nobody died, and a bar behind it in its input counted for minutes by its own clock: what it warned of did
  /// not come.
  bool LoopRanBehind(EventIndex event) const;
  /// So much was done behind it, by those who had complained or for lack of anybody who died, that it cannot have been
  /// the end, whatever it says.
  bool LongOutlived(EventIndex event) const;
  /// Python caught it where nothing can be done about it, and said so.
  bool WasIgnored(EventIndex event) const;
  /// Behind it in its input steps or rows of results were counted on, twice or more: whatever it began was over.
  bool CountedOn(EventIndex event) const;
  /// A shell saw one of its processes end that somebody, perhaps its script, told to, and steps are counted on.
  bool StoppedAHelper(EventIndex event) const;
  /// One may be printed late by another process.
  static constexpr std::size_t kStepsThatUndo = 2;
  /// Its program had said behind counted work that it reached its end, and counted nothing since.
  bool IsBehindEnd(EventIndex event) const;
  /// Of a log in which nobody complains what is chatter is not known before it is asked for.
  void LookForChatter(std::span<const Told> told) {
    if (!chatter_.was_looked_for()) chatter_ = Chatter(*timeline_, told, Chatter::Asked::kAlways);
  }
  bool IsChatter(EventIndex event) const { return chatter_.Holds(timeline_->events[event].where); }
  /// A rule reads words of an end in it, whatever they count for there.
  bool SaysItEnds(EventIndex event) const { return std::ranges::binary_search(closing_, event); }
  /// The line tells of a step or an evaluation, and its numbers are those of a counter.
  bool CountsSteps(EventIndex event) const;
  /// A line of the same words stood in front of steps that were counted before this.
  bool IsOneOfMany(EventIndex event) const;
  /// Steps were counted before this.
  bool WorkedBefore(EventIndex event) const;
  /// Steps were counted in another input, and no clock says whether before this.
  bool WorkedApart(EventIndex event) const;
  /// Something was done beyond setting up.
  bool worked() const { return !work_.empty() || bars_; }

 private:
  /// An exception that no frame of its program caught.
  struct Fatal {
    LineSpan lines;
    EventIndex closed = 0;  ///< the last of the bars that stand behind it at once, or itself
  };
  /// Its line is a scheduler's word that it ends the job. Who is told to end may count on until he is killed, half a
  /// minute later or where sites give more time; so only work long after it is another job's.
  bool StandsWithAStop(EventIndex event) const;
  bool OutlivedStop(EventIndex event) const;
  /// A great many rows behind it in its input, by their own clock for longer than who leaves takes to leave.
  bool CountedOnForLong(EventIndex event) const;
  /// So many lines follow in its input.
  bool ManyLinesFollow(EventIndex event, std::uint64_t many) const;
  /// Standard output may be printed by the block, and the last one as its program leaves, behind the words that it died
  /// with: more follows in its input than that.
  bool MoreFollowsThanIsBuffered(EventIndex event) const;
  /// No frame of its program caught it, one process wrote, and it wrote on: it was another start of it.
  bool IsOfEarlierProgram(EventIndex event) const;
  /// A bar that stood in front of it, or began behind it, moved on for minutes by its own clock, a server answered, or
  /// a great many rows were counted; and nobody died, or who did had no part in it.
  bool LoopWentOn(EventIndex event) const;
  /// Bars of one loop came to their ends, twice or more, and for minutes in all.
  bool RoundsWereFull(std::span<const Bar> bars, std::uint32_t input) const;
  const Fatal* FatalOf(EventIndex event) const;  ///< whose lines hold it; nullptr: none
  /// Of an exception that left its program, the last of the bars that are drawn once more behind it; else the event.
  EventIndex LastClosedBar(EventIndex event) const;
  EventIndex LastBarAtOnceBehind(EventIndex event) const;
  /// Of one loop and input, it counts more, by steps and by its own clock.
  bool IsFurther(const Bar& after, const Bar& before, std::chrono::minutes least) const;
  std::span<const Bar> BarsBehind(EventIndex event) const;  ///< of all inputs
  /// A bar of the same loop and input was drawn in front of the event.
  bool WasDrawn(const Bar& bar, EventIndex before) const;
  /// A bar that stood in front of it, in the one input in which somebody died, counted on for long behind all who did.
  bool CountedOnBehindDeaths(EventIndex event) const;
  /// The bar had counted for minutes since it was first drawn behind the event.
  bool MovedFor(const Bar& bar, EventIndex since) const;
  /// Behind it, or in another input: which is earlier, nothing tells.
  bool DiedSince(EventIndex event) const;
  bool SteppedOn(EventIndex event, std::size_t steps) const { return AreBehind(work_, event, steps); }
  bool AreBehind(const std::vector<EventIndex>& lines, EventIndex event, std::size_t many) const;
  std::span<const EventIndex> CountedIn(std::uint32_t input) const;
  std::span<const EventIndex> CountedBehind(EventIndex event) const;  ///< in its input
  bool HasManySteps(EventIndex event) const;                          ///< behind it, in its input
  void ReadWork(std::span<const Told> told);
  void ReadSigns(std::span<const Told> told);
  void DateTrouble();
  const Bar* LastBar(std::uint32_t input) const;  ///< nullptr: none
  /// Its last bar is not full: who leaves then may have been made to.
  bool StoppedShort(std::uint32_t input) const;
  /// The last thing that is printed, behind it, is a step that says itself how many follow: `step 00000/00050`.
  bool EndsWithin(EventIndex event) const;
  /// What is printed next in its input has a clock an hour and more later: somebody started something there anew.
  bool WasStartedLater(EventIndex event) const;
  /// The last thing that is printed, behind it, is a bar that was full before and counts anew.
  bool BeganAnother(EventIndex event) const;
  /// The bar that counted longest in the input is full, for the first time, and the last thing that is printed.
  std::optional<EventIndex> LongestBarIsFull(std::uint32_t input, std::span<const Told> told) const;
  /// The last words of its input, behind the ending, complain: whatever ended well was not all.
  bool EndsInComplaint(std::span<const EventIndex> grumbles, EventIndex ending) const;
  /// No line behind it in its input says anything.
  bool IsLastWord(EventIndex event) const;
  /// The last words of its input, behind the ending, say what is done next.
  bool EndsInBeginning(std::optional<EventIndex> begins, EventIndex ending) const;
  /// Lines like it stand in front of it again and again, with others between them, whether or not steps are seen there:
  /// the rounds may go on.
  bool StandsBehindEachRound(EventIndex event) const;
  /// Nothing that is known of the job speaks against its last line, as it is weighed, being that of a good end.
  bool IsRoutine(std::span<const EventIndex> grumbles) const;
  bool MayBeFarewell(EventIndex last, std::span<const Told> told, std::span<const EventIndex> grumbles) const;
  /// Beside states of hosts, plain lines of one input, of which none tells of anything but work and its end, or of what
  /// was `settled`.
  bool NothingElseIsTold(std::span<const Told> told, const std::set<EventIndex>& settled) const;
  void ReadEndings(std::span<const Told> told);

  const Timeline* timeline_;
  Chatter chatter_;
  std::vector<EventIndex> work_;     ///< lines that tell of steps or evaluation, in order
  std::vector<EventIndex> trained_;  ///< those of steps: what was trained is evaluated behind its end
  bool only_scores_ = true, only_weighed_ = true;
  bool short_of_goal_ = false;  ///< what is counted did not come to where the configuration says that it ends
  bool bars_ = false;           ///< some progress bar moved, of a download perhaps
  std::map<std::uint32_t, std::vector<EventIndex>> counted_;  ///< by input: steps, bars, rows of numbers
  std::map<std::uint32_t, std::vector<EventIndex>> rows_;     ///< those of them that are no bars
  std::vector<EventIndex> recovered_, served_;                ///< served: a server came up
  std::vector<Bar> loops_;                                    ///< bars that count, in order
  std::vector<EventIndex> deaths_;          ///< some process ended badly, gave up waiting, or was stopped; in order
  bool deaths_elsewhere_ = false;           ///< they stand in several inputs
  std::vector<EventIndex> endings_, said_;  ///< said: endings in a program's own words
  std::vector<EventIndex> closing_;         ///< words of an end, whosever and whatever they count for
  std::vector<SourcePos> ignored_;          ///< lines of exceptions that Python ignored
  std::vector<LineSpan> outlived_;  ///< tracebacks that ended a thread, or were logged, and their process printed on
  std::vector<Fatal> fatal_;
  std::optional<EventIndex> since_, first_time_out_;
  std::optional<Timestamp> onset_, given_up_;
};

/// Small pids say little of which process it is: those of containers begin anew with each.
bool TellsApart(std::int64_t pid);

/// An exception that ended a thread, or a process that another one waits for, and not the program.
bool EndsAThread(const ExceptionRaised& raised);
bool EndsAChild(const ExceptionRaised& raised);

/// A process that ended by a signal, or with a status that is not 0, or badly in a way that is not said.
bool IsBadExit(const ProcessExit& exit);
bool IsBadExit(const What& what);

/// The scheduler's word that it ends the whole job, or one of its steps.
bool IsSchedulersStop(const What& what);
/// Somebody pressed Ctrl-C.
bool IsStopByHand(const What& what);

/// One of several tasks ended, by a launcher that tells of each as it ends.
bool EndsATask(const What& what);

/// Whether the event itself says that a process of the job is past help: a time-out, a bad end, a stop from outside.
bool IsDeath(const What& what);

}  // namespace inquest
