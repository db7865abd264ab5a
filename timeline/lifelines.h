// What every process of the job did over time, and how the job went: failed or not, since when, how it ended. Told once,
// here; detectors, judge and reports ask it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/timeline.h"

namespace inquest {

/// What the rules read in a line about its process. The timeline's own events (time-outs, exits, exceptions) are not told
/// again.
struct Told {
  enum class What : std::uint8_t { kWork, kEnding, kComplaint, kGrumble, kStart, kRestart };  ///< a grumble: words of trouble that no rule knows
  EventIndex event = 0;
  What what = What::kWork;
  std::string_view kind;        ///< of work: a phase's; of an ending: whose word it is, `scheduler`, `launcher`, `worker`, `leaving`, `shell`; else the rule
  std::optional<int> percent = {};
  bool heavy = true;            ///< of a complaint: more than a hint
};

/// One kind of work of one process: from the line that tells of it to the line that tells of the next, or to its last.
struct Interval {
  std::string kind;
  EventIndex begin = 0, last = 0;
  std::optional<EventIndex> end;  ///< nullopt: still open when the process was last heard
  std::uint64_t times = 1;        ///< lines that told of it
  std::optional<int> percent;     ///< the last that was printed
};

/// Something that befell a process.
struct LifeMark {
  EventIndex event = 0;
  std::string_view kind;  ///< `timed-out`, `exception`, `exit`, `signal`, `stopped`, `complaint`, `device`
};

/// How a process or the job ended, and whose word that is.
struct LifeEnd {
  enum class How : std::uint8_t { kUnknown, kWell, kExitCode, kSignal, kRaised, kTimedOut, kStopped };
  How how = How::kUnknown;
  std::optional<EventIndex> event;
  std::string said_by;  ///< `itself`, a launcher, `scheduler`, `kernel`; empty: unknown
};
std::string_view Name(LifeEnd::How how);

/// What one process did. Lines that name neither rank nor pid are of their input's nameless writer.
struct Lifeline {
  std::optional<GlobalRank> rank;
  std::optional<std::string> host;
  std::optional<std::int64_t> pid;
  std::uint32_t input = 0;  ///< where it was first heard
  std::string writer;       ///< the launcher's tag of a process without rank and pid
  EventIndex first = 0, last = 0;
  std::vector<Interval> intervals;  ///< in order
  std::vector<LifeMark> marks;      ///< in order; at most kMostMarks, the first and the last
  std::uint64_t marks_left_out = 0;
  LifeEnd end;
};

// The course of a job. A sign of failure is what does not happen to a job that is well: an operation that timed out, a
// process that ended badly, a stop from outside, an exception, a line that names a cause. A death, an exit code and a
// time-out cannot be undone. Anything else is undone by the work that went on: a job whose steps are counted on, twice or
// more, after a complaint did not die of it, whoever complained, since ranks that train together stop together. An ending
// is the word of one process about itself. It acquits the job where nothing is left that was not undone, where the input
// it stands in shows that a job was at work there, and where no work follows it; a shell's echo, `all done`, proves the
// shell, and counts only behind counted work, where nobody grumbled since.
class Course {
 public:
  Course(const Timeline& timeline, std::span<const Told> told);

  /// Something went wrong for certain and was not undone.
  bool failed() const { return since_.has_value(); }
  /// The first sign of failure that was not undone.
  std::optional<EventIndex> since() const { return since_; }
  /// The first operation that somebody gave up waiting in.
  std::optional<EventIndex> first_time_out() const { return first_time_out_; }
  /// The endings that count, in order; empty: nobody said that it ended well.
  const std::vector<EventIndex>& endings() const { return endings_; }
  bool ended_well() const { return !endings_.empty() && !failed(); }
  /// Steps were counted on after this, twice or more, or its writer said at once that it got over it, or that it ignored it.
  bool WentOn(EventIndex event, std::size_t steps = kStepsThatUndo) const;
  /// One may be printed late by another process.
  static constexpr std::size_t kStepsThatUndo = 2;
  /// Steps were counted before this.
  bool WorkedBefore(EventIndex event) const;
  /// Something was done beyond setting up.
  bool worked() const { return !work_.empty() || bars_; }

 private:
  bool SteppedOn(EventIndex event, std::size_t steps) const;

  const Timeline* timeline_;
  std::vector<EventIndex> work_;  ///< lines that tell of steps or evaluation, in order
  bool bars_ = false;  ///< some progress bar moved, of a download perhaps
  std::map<std::uint32_t, std::vector<EventIndex>> counted_;  ///< by input: steps, bars, rows of numbers
  std::vector<EventIndex> recovered_, endings_, said_;         ///< said: endings in a program's own words
  std::vector<SourcePos> ignored_;  ///< lines of exceptions that Python ignored
  std::optional<EventIndex> since_, first_time_out_;
};

/// One of every process that was heard of, by rank, then by input and line. `told` in order of events.
std::vector<Lifeline> DrawLifelines(const Timeline& timeline, std::span<const Told> told);

/// A process that ended by a signal, or with a status that is not 0.
bool IsBadExit(const What& what);

/// Whether the event itself says that a process of the job is past help: a time-out, a bad end, a stop from outside.
bool IsDeath(const What& what);

}  // namespace inquest
