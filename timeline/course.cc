// How the job went: its work, its signs of failure, its endings.
#include "timeline/course.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "core/ascii.h"
#include "core/names.h"
#include "core/pattern.h"
#include "timeline/broken_off.h"
#include "timeline/goal.h"
#include "timeline/last_round.h"
#include "timeline/row_counters.h"
#include "timeline/series.h"
#include "timeline/shape.h"
#include "timeline/streams.h"

namespace inquest {
namespace {

/// Lines behind a complaint within which its writer says that it got over it.
constexpr std::uint64_t kSoon = 4;
/// Lines behind the end of a thread, or a grumble, after which its process lived on.
constexpr std::uint64_t kLongAfter = 100;
/// Behind what can have been no end: steps, and rows of numbers of any kind.
constexpr std::ptrdiff_t kManySteps = 16, kManyRows = 64;
constexpr std::uint64_t kManyLines = 1000;
constexpr std::chrono::minutes kLongLoop(2);      ///< what another process draws ends soon after
constexpr std::chrono::minutes kUndisturbed(30);  ///< a launcher kills within seconds, and watchdogs within 10 minutes
constexpr std::chrono::minutes kGrace(2);         ///< within which who leaves has left
constexpr std::size_t kMostBars = 4096;
constexpr std::size_t kMostThreads = 1024;  ///< whose ends are remembered
/// Fewer lines in front of an ending, none of which shows work, are no log of a job: a sentence, a title, an echo.
constexpr std::uint64_t kLinesOfAJob = 12;
/// From words of anybody's that close to the end: figures, lists of files, a look at the machine may follow.
constexpr std::uint64_t kClosingLines = 64;
/// The end of a log, as it is looked at.
constexpr std::uint64_t kLastLines = 24;

bool IsStep(Activity at) {
  return at == Activity::kTraining || at == Activity::kEvaluation || at == Activity::kProgress;
}

/// What comes before the work, and is no end of it.
bool IsPreparation(Activity at) {
  return at == Activity::kLoading || at == Activity::kDataPreparation || at == Activity::kCompile ||
         at == Activity::kJoining;
}

/// A process of the job wrote it, or spoke of itself: not a tool that shows a host's state, nor a plain line.
bool ShowsAJob(const Event& event) {
  return !std::holds_alternative<LogMessage>(event.what) && !IsOfHost(event.what) && !IsOfKernel(event.what) &&
         !std::holds_alternative<NotCollected>(event.what) && !std::holds_alternative<WorldSize>(event.what);
}

/// Its own word that it fails: an exception, or one that was cut off behind its stack.
bool Raises(const What& what) {
  const auto* stack = std::get_if<StackSeen>(&what);
  return std::holds_alternative<ExceptionRaised>(what) || (stack != nullptr && stack->raised);
}

void Earlier(std::optional<Timestamp>& first, Timestamp time) {
  if (!first || (first->date == time.date && time.at < first->at) ||
      (first->date != Timestamp::Date::kFull && time.date == Timestamp::Date::kFull))
    first = time;
}

/// An exception that a stop from outside raises.
bool IsStop(const ExceptionRaised& raised) {
  return raised.type == "KeyboardInterrupt" || raised.type == "SystemExit" ||
         raised.type.find("SignalException") != std::string::npos;
}

/// A process that ended because somebody told it to.
bool IsToldTo(const ProcessExit& exit) {
  return exit.signal && (*exit.signal == 15 || *exit.signal == 2 || *exit.signal == 1);
}

/// The program that complained said later by its own words that it reached its end; of NCCL's communicators that is no
/// word.
bool SaysSoItself(const Event& complaint, const Event& end) {
  const auto* message = std::get_if<LogMessage>(&end.what);
  const auto& pid = complaint.origin.pid;
  return message != nullptr && message->component != Component::kNccl && pid && TellsApart(*pid) &&
         end.origin.pid == pid && end.where.input == complaint.where.input &&
         end.origin.host == complaint.origin.host && end.origin.rank == complaint.origin.rank;
}

/// The first of a list of which there may be none.
void First(std::optional<EventIndex>& known, EventIndex event) {
  if (!known || event < *known) known = event;
}

/// Endings behind which the same begins as behind one of the same words: each closes a round, and another was begun.
std::set<EventIndex> EndsOfRounds(const Timeline& timeline, std::span<const Told> told) {
  constexpr std::size_t kSame = 12;  ///< bytes; names of what is begun stand behind
  std::map<std::pair<std::string, std::string>, std::vector<EventIndex>> rounds;
  for (const Told& line : told) {
    if (line.what != Told::What::kEnding) continue;
    const Event& ending = timeline.events[line.event];
    EventIndex next = line.event + 1;
    const auto is_next = [&](const Event& event) {
      return event.where.input == ending.where.input && event.where != ending.where && SaysAnything(event.text);
    };
    while (next < timeline.events.size() && !is_next(timeline.events[next])) ++next;
    if (next == timeline.events.size()) continue;
    std::vector<EventIndex>& same =
        rounds[{ShapeOf(ending.text), ShapeOf(timeline.events[next].text).substr(0, kSame)}];
    if (same.empty() || same.back() != line.event) same.push_back(line.event);
  }
  std::set<EventIndex> out;
  for (const auto& [words, endings] : rounds)
    if (endings.size() > 1) out.insert(endings.begin(), endings.end());
  return out;
}

}  // namespace

bool TellsApart(std::int64_t pid) {
  constexpr std::int64_t kSmall = 1024;
  return pid >= kSmall;
}

// The outermost frame says who called: threading.py's or multiprocessing/process.py's `_bootstrap`.
bool EndsAThread(const ExceptionRaised& raised) {
  return std::ranges::any_of(raised.stack, [](const std::string& frame) {
    return frame.find("threading.py:") != std::string::npos && frame.find(" in _bootstrap") != std::string::npos;
  });
}

bool EndsAChild(const ExceptionRaised& raised) {
  return std::ranges::any_of(raised.stack, [](const std::string& frame) {
    return frame.find("multiprocessing/process.py:") != std::string::npos &&
           frame.find(" in _bootstrap") != std::string::npos;
  });
}

// A launcher that does not say how a process ended says that it ended badly: `aborted`, `exiting improperly`.
bool IsBadExit(const ProcessExit& exit) { return exit.signal || exit.exit_code != 0; }

std::string_view Name(EndingKind ending) {
  static constexpr std::string_view kNames[] = {"worker", "work",    "leaving",    "launcher", "scheduler", "heading",
                                                "shell",  "figures", "saved-once", "scores",   "goal",      "farewell"};
  return NameIn<EndingKind::kFarewell>(kNames, ending);
}

bool IsBadExit(const What& what) {
  const auto* exit = std::get_if<ProcessExit>(&what);
  return exit != nullptr && IsBadExit(*exit);
}

bool IsSchedulersStop(const What& what) {
  const auto* stopped = std::get_if<JobStopped>(&what);
  return stopped != nullptr && stopped->by == JobStopped::By::kSlurm;
}

bool IsStopByHand(const What& what) {
  const auto* stopped = std::get_if<JobStopped>(&what);
  return stopped != nullptr && stopped->by == JobStopped::By::kKeyboard;
}

bool EndsATask(const What& what) {
  const auto* exit = std::get_if<ProcessExit>(&what);
  return exit != nullptr && (exit->reporter == Reporter::kSrun || exit->reporter == Reporter::kPals);
}

bool IsDeath(const What& what) {
  return std::holds_alternative<WorkTimedOut>(what) || std::holds_alternative<HeartbeatLost>(what) ||
         std::holds_alternative<JobStopped>(what) || IsBadExit(what);
}

bool Course::StandsWithAStop(EventIndex event) const {
  const std::vector<Event>& events = timeline_->events;
  const auto stops = [&](EventIndex i) {
    return events[i].where == events[event].where && IsSchedulersStop(events[i].what);
  };
  return stops(event) || (event > 0 && stops(event - 1)) || (event + 1 < events.size() && stops(event + 1));
}

bool Course::CountedOnForLong(EventIndex event) const {
  const std::span<const EventIndex> counted = CountedBehind(event);
  if (static_cast<std::ptrdiff_t>(counted.size()) < kManyRows) return false;
  const auto& said = timeline_->events[event].at;
  const auto last = std::find_if(counted.rbegin(), counted.rend(), [&](EventIndex row) {
    return said && timeline_->events[row].at && timeline_->events[row].at->date == said->date;
  });
  return last == counted.rend() || timeline_->events[*last].at->at > said->at + kGrace;
}

bool Course::OutlivedStop(EventIndex event) const {
  const std::span<const EventIndex> counted = CountedBehind(event);
  if (counted.empty()) return false;
  if (ManyLinesFollow(event, kManyLines)) return true;
  // By the program's own clock: the scheduler's may be of another zone.
  const auto &first = timeline_->events[counted.front()].at, &last = timeline_->events[counted.back()].at;
  if (first && last && first->date == last->date) return last->at > first->at + kGrace;
  return HasManySteps(event) || static_cast<std::ptrdiff_t>(counted.size()) >= kManyRows;
}

bool Course::ManyLinesFollow(EventIndex event, std::uint64_t many) const {
  const SourcePos where = timeline_->events[event].where;
  return where.InputLine() + many < timeline_->inputs[where.input].lines;
}

bool Course::MoreFollowsThanIsBuffered(EventIndex event) const {
  constexpr std::uint64_t kBlock = 8192;  ///< Python's; the C library holds 4 KiB
  const SourcePos where = timeline_->events[event].where;
  return timeline_->inputs[where.input].bytes > where.offset + kBlock;
}

bool Course::IsOfEarlierProgram(EventIndex event) const {
  return ManyLinesFollow(event, kLongAfter) && MoreFollowsThanIsBuffered(event) && FatalOf(event) != nullptr &&
         !DiedSince(event) && timeline_->KnownRanks() <= 1;
}

bool Course::WentOn(EventIndex event, std::size_t steps) const {
  const SourcePos where = timeline_->events[event].where;
  if (StandsWithAStop(event)) return OutlivedStop(event);
  if (WasIgnored(event)) return true;
  if (std::ranges::any_of(outlived_, [&](const LineSpan& span) { return span.Holds(where); })) return true;
  const auto soon = std::ranges::find_if(recovered_, [&](EventIndex other) {
    const SourcePos there = timeline_->events[other].where;
    return there.input == where.input && there.line > where.line &&
           chatter_.Apart(where.input, where.line, there.line) <= kSoon;
  });
  if (soon != recovered_.end()) return true;
  // A program that says by its own words that it reached its end, behind work of any kind, is another that went on.
  const std::span<const EventIndex> counted = CountedIn(where.input);
  const EventIndex closed = LastClosedBar(event);
  for (const EventIndex said : said_) {
    if (said > event && SaysSoItself(timeline_->events[event], timeline_->events[said])) return true;
    if (said <= event || counted.empty() || timeline_->events[said].where.input != where.input) continue;
    const auto first = std::ranges::upper_bound(counted, closed), last = std::ranges::lower_bound(counted, said);
    if (last - first < static_cast<std::ptrdiff_t>(steps)) continue;
    const auto counts_on = [&](EventIndex row) {
      return std::ranges::binary_search(loops_, row, {}, &Bar::event) || CountsSteps(row);
    };
    if (MoreFollowsThanIsBuffered(event) || std::any_of(first, last, counts_on)) return true;
  }
  return SteppedOn(closed, steps) || IsOfEarlierProgram(event) || LoopWentOn(event);
}

bool Course::ServedAfter(EventIndex event, std::size_t times) const {
  return static_cast<std::size_t>(std::ranges::count_if(served_, [&](EventIndex served) {
           return served > event && timeline_->events[served].where.input == timeline_->events[event].where.input;
         })) >= times;
}

bool Course::IsFurther(const Bar& after, const Bar& before, std::chrono::minutes least) const {
  return after.loop == before.loop && after.count >= before.count + kStepsThatUndo &&
         after.elapsed >= before.elapsed + least &&
         timeline_->events[after.event].where.input == timeline_->events[before.event].where.input;
}

std::span<const Bar> Course::BarsBehind(EventIndex event) const {
  return {std::ranges::upper_bound(loops_, event, {}, &Bar::event), loops_.end()};
}

bool Course::WasDrawn(const Bar& bar, EventIndex before) const {
  return std::any_of(loops_.begin(), std::ranges::lower_bound(loops_, before, {}, &Bar::event), [&](const Bar& front) {
    return front.loop == bar.loop &&
           timeline_->events[front.event].where.input == timeline_->events[bar.event].where.input;
  });
}

bool Course::LoopWentOn(EventIndex event) const {
  const std::uint32_t input = timeline_->events[event].where.input;
  const EventIndex closed = LastClosedBar(event);
  const std::span<const Bar> behind = BarsBehind(closed);
  const std::span<const Bar> front = std::span(loops_).first(loops_.size() - behind.size());
  const auto is_here = [&](const Bar& bar) { return timeline_->events[bar.event].where.input == input; };
  const auto went_on = [&](const Bar& before) {
    return is_here(before) &&
           std::ranges::any_of(behind, [&](const Bar& after) { return IsFurther(after, before, kLongLoop); });
  };
  // A bar is drawn once more where it is closed.
  const auto drawn_later = [&](const Bar& bar) {
    return std::ranges::any_of(
        front, [&](const Bar& other) { return other.event > bar.event && other.loop == bar.loop && is_here(other); });
  };
  if (!deaths_.empty()) {
    if (CountedOnBehindDeaths(event)) return true;
  } else if (ServedAfter(event, kStepsThatUndo) || RoundsWereFull(behind, input) ||
             (static_cast<std::ptrdiff_t>(CountedBehind(event).size()) >= kManyRows &&
              MoreFollowsThanIsBuffered(event)) ||
             std::ranges::any_of(front, [&](const Bar& before) { return went_on(before) && !drawn_later(before); })) {
    return true;
  }
  // A program that was started anew counts from nothing; what had died by then, died earlier.
  // Of a bar that is drawn over itself the last picture is kept: one that nobody drew in front began behind.
  return std::ranges::any_of(behind, [&](const Bar& bar) {
    if (!is_here(bar) || DiedSince(bar.event)) return false;
    return bar.count == 0 ? bar.elapsed < kLongLoop && went_on(bar)
                          : bar.elapsed >= kUndisturbed && !WasDrawn(bar, closed + 1);
  });
}

// Rounds may be shorter, each, than what others count on while they are told to leave.
bool Course::RoundsWereFull(std::span<const Bar> bars, std::uint32_t input) const {
  // By loop: how often, and for how long.
  std::map<std::string_view, std::pair<std::size_t, std::chrono::seconds>> full;
  for (const Bar& bar : bars) {
    if (bar.count < bar.of || timeline_->events[bar.event].where.input != input) continue;
    auto& [times, elapsed] = full[bar.loop];
    ++times;
    elapsed += bar.elapsed;
    if (times >= kStepsThatUndo && elapsed >= kLongLoop) return true;
  }
  return false;
}

// Who counts on for long behind all that died had no part in it: another launch died that wrote into the same log.
bool Course::CountedOnBehindDeaths(EventIndex event) const {
  const std::uint32_t input = timeline_->events[event].where.input;
  const EventIndex last_death = std::max(event, deaths_.back());
  if (timeline_->events[last_death].where.input != input || DiedSince(last_death)) return false;
  const std::span<const Bar> front = std::span(loops_).first(loops_.size() - BarsBehind(event).size());
  return std::ranges::any_of(BarsBehind(LastClosedBar(last_death)), [&](const Bar& after) {
    return timeline_->events[after.event].where.input == input &&
           std::ranges::any_of(front, [&](const Bar& before) { return IsFurther(after, before, kUndisturbed); });
  });
}

EventIndex Course::LastClosedBar(EventIndex event) const {
  const Fatal* fatal = FatalOf(event);
  return fatal == nullptr ? event : std::max(event, fatal->closed);
}

const Course::Fatal* Course::FatalOf(EventIndex event) const {
  const SourcePos where = timeline_->events[event].where;
  const auto fatal = std::ranges::find_if(fatal_, [&](const Fatal& each) { return each.lines.Holds(where); });
  return fatal == fatal_.end() ? nullptr : &*fatal;
}

EventIndex Course::LastBarAtOnceBehind(EventIndex event) const {
  const SourcePos where = timeline_->events[event].where;
  EventIndex last = event;
  for (EventIndex i = event + 1; i < timeline_->events.size(); ++i) {
    if (timeline_->events[i].where.input != where.input) continue;
    const auto bar = std::ranges::lower_bound(loops_, i, {}, &Bar::event);
    const bool is_bar = bar != loops_.end() && bar->event == i;
    if (is_bar && MovedFor(*bar, event)) return event;  // one that is closed is not drawn for minutes
    if (!is_bar && SaysAnything(timeline_->events[i].text) && timeline_->events[i].where != where) break;
    last = i;
  }
  return last;
}

bool Course::MovedFor(const Bar& bar, EventIndex since) const {
  const std::span<const Bar> behind = BarsBehind(since);
  const auto first = std::ranges::find_if(behind, [&](const Bar& other) {
    return other.loop == bar.loop &&
           timeline_->events[other.event].where.input == timeline_->events[bar.event].where.input;
  });
  return first != behind.end() && IsFurther(bar, *first, kLongLoop);
}

bool Course::DiedSince(EventIndex event) const {
  // Asked of each bar in a log of thousands of deaths.
  if (deaths_.empty()) return false;
  return deaths_.back() > event || deaths_elsewhere_ ||
         timeline_->events[deaths_.back()].where.input != timeline_->events[event].where.input;
}

bool Course::LoopRanBehind(EventIndex event) const {
  return deaths_.empty() && std::ranges::any_of(BarsBehind(event), [&](const Bar& bar) {
           return bar.count >= kStepsThatUndo && bar.elapsed >= kLongLoop &&
                  timeline_->events[bar.event].where.input == timeline_->events[event].where.input;
         });
}

std::span<const EventIndex> Course::CountedBehind(EventIndex event) const {
  const std::span<const EventIndex> counted = CountedIn(timeline_->events[event].where.input);
  return {std::ranges::upper_bound(counted, event), counted.end()};
}

bool Course::HasManySteps(EventIndex event) const {
  return std::count_if(std::ranges::upper_bound(work_, event), work_.end(), [&](EventIndex step) {
           return timeline_->events[step].where.input == timeline_->events[event].where.input;
         }) >= kManySteps;
}

bool Course::LongOutlived(EventIndex event) const { return LoopWentOn(event) || HasManySteps(event); }

bool Course::WasIgnored(EventIndex event) const {
  return std::ranges::binary_search(ignored_, timeline_->events[event].where);
}

bool Course::CountedOn(EventIndex event) const {
  const auto own = rows_.find(timeline_->events[event].where.input);
  if (own == rows_.end()) return false;
  const auto behind = std::ranges::upper_bound(own->second, event);
  return own->second.end() - behind >= static_cast<std::ptrdiff_t>(kStepsThatUndo);
}

std::span<const EventIndex> Course::CountedIn(std::uint32_t input) const {
  const auto own = counted_.find(input);
  return own == counted_.end() ? std::span<const EventIndex>() : std::span<const EventIndex>(own->second);
}

bool Course::StoppedAHelper(EventIndex event) const {
  constexpr int kTerm = 15;
  const auto* exit = std::get_if<ProcessExit>(&timeline_->events[event].what);
  return exit != nullptr && exit->reporter == Reporter::kShell && exit->pid && exit->signal == kTerm &&
         AreBehind(trained_, event, kStepsThatUndo);
}

bool Course::CountsSteps(EventIndex event) const { return std::ranges::binary_search(work_, event); }

bool Course::IsBehindEnd(EventIndex event) const {
  const SourcePos where = timeline_->events[event].where;
  const std::span<const EventIndex> counted = CountedIn(where.input);
  if (counted.empty()) return false;
  return std::ranges::any_of(said_, [&](EventIndex said) {
    const SourcePos there = timeline_->events[said].where;
    return there.input == where.input && there.line < where.line && counted.front() < said && counted.back() <= said;
  });
}

bool Course::AreBehind(const std::vector<EventIndex>& lines, EventIndex event, std::size_t many) const {
  const SourcePos where = timeline_->events[event].where;
  std::size_t after = 0;
  for (auto it = lines.rbegin(); it != lines.rend() && after < many; ++it)
    after +=
        timeline_->Order(event, *it) == std::partial_ordering::less && timeline_->events[*it].where != where ? 1 : 0;
  return after >= many;
}

bool Course::WorkedBefore(EventIndex event) const {
  return std::ranges::any_of(
      work_, [&](EventIndex step) { return timeline_->Order(step, event) == std::partial_ordering::less; });
}

bool Course::WorkedApart(EventIndex event) const {
  return std::ranges::any_of(work_, [&](EventIndex step) {
    return timeline_->events[step].where.input != timeline_->events[event].where.input &&
           timeline_->Order(step, event) == std::partial_ordering::unordered;
  });
}

// When the job's trouble was, for logs of other clocks: what timed out stood still for as long as it waited; a process
// that was told to end says only that the job was given up. Exceptions that the work outlived count for nothing.
void Course::DateTrouble() {
  using std::chrono::milliseconds;
  using std::chrono::nanoseconds;
  using std::chrono::seconds;
  constexpr seconds kHeartbeat(600);  ///< PyTorch's default
  std::optional<Timestamp> raised_at;
  for (EventIndex i = 0; i < timeline_->events.size(); ++i) {
    const Event& event = timeline_->events[i];
    if (!event.at || event.at->date == Timestamp::Date::kNone || IsOfKernel(event.what)) continue;
    const auto began = [&](nanoseconds before) {
      Timestamp time = *event.at;
      time.at -= before;
      Earlier(onset_, time);
    };
    if (const auto* work = std::get_if<WorkTimedOut>(&event.what)) {
      began(milliseconds(std::max(work->ran_ms.value_or(0), work->work.timeout_ms.value_or(0))));
      Earlier(given_up_, *event.at);
    } else if (const auto* lost = std::get_if<HeartbeatLost>(&event.what)) {
      began(lost->seconds ? seconds(*lost->seconds) : kHeartbeat);
      Earlier(given_up_, *event.at);
    } else if (IsBadExit(event.what)) {
      if (!IsToldTo(std::get<ProcessExit>(event.what))) began(nanoseconds(0));
      Earlier(given_up_, *event.at);
    } else if (std::holds_alternative<JobStopped>(event.what)) {
      Earlier(given_up_, *event.at);
    } else if (const auto* raised = std::get_if<ExceptionRaised>(&event.what);
               raised != nullptr && !IsStop(*raised) && !WentOn(i)) {
      began(nanoseconds(0));
      raised_at = *event.at;  // the last one: those before it may have been caught
    }
  }
  if (!given_up_) given_up_ = raised_at;
}

void Course::ReadWork(std::span<const Told> told) {
  RowCounters counters;
  struct Counted {
    const Told* line = nullptr;
    const RowCounters::Row* row = nullptr;
  };
  std::vector<Counted> lines;  // a bar, which has no row, moves whatever it counts
  for (const Told& line : told) {
    if (line.what == Told::What::kEnding && IsPrograms(line.ending)) said_.push_back(line.event);
    if (line.what == Told::What::kEnding && line.ending != EndingKind::kFarewell) closing_.push_back(line.event);
    if (line.what != Told::What::kWork) continue;
    bars_ = bars_ || line.at == Activity::kBar || line.at == Activity::kRows;
    if (line.at == Activity::kRecovered) recovered_.push_back(line.event);
    if (line.at == Activity::kServing) served_.push_back(line.event);
    if (line.at == Activity::kBar) lines.push_back({&line, nullptr});
    // What is loaded or compiled is counted by a bar, too.
    if (line.at == Activity::kBar || line.percent) {
      auto bar = ReadBar(line.event, MessageOf(timeline_->events[line.event]));
      if (bar && loops_.size() < kMostBars && (loops_.empty() || loops_.back().event != line.event))
        loops_.push_back(*std::move(bar));
    }
    if (IsStep(line.at) || line.at == Activity::kRows)
      lines.push_back({&line, counters.Take(timeline_->events[line.event])});
  }
  for (const auto& [line, row] : lines) {
    if (row != nullptr && !row->GoesOn()) continue;
    if (IsStep(line->at) && line->at != Activity::kEvaluation && (trained_.empty() || trained_.back() != line->event))
      trained_.push_back(line->event);
    if (IsStep(line->at) && (work_.empty() || work_.back() != line->event)) work_.push_back(line->event);
    const std::uint32_t input = timeline_->events[line->event].where.input;
    counted_[input].push_back(line->event);
    if (row != nullptr) rows_[input].push_back(line->event);
  }
}

void Course::ReadSigns(std::span<const Told> told) {
  outlived_ = LoggedAndOutlived(*timeline_, chatter_);
  for (EventIndex i = 0; i < timeline_->events.size(); ++i) {
    const Event& event = timeline_->events[i];
    if (IsDeath(event.what)) {
      deaths_elsewhere_ =
          deaths_elsewhere_ || (!deaths_.empty() && timeline_->events[deaths_.back()].where.input != event.where.input);
      deaths_.push_back(i);
    }
    const auto* raised = std::get_if<ExceptionRaised>(&event.what);
    if (raised == nullptr) continue;
    const LineSpan lines{event.where.input, raised->begin.line, event.where.line};
    if (raised->ignored) ignored_.push_back(event.where);
    const bool never_ran = raised->stack.empty() && raised->type == "SyntaxError";
    const bool of_program = never_ran || (!raised->stack.empty() && raised->stack.front().ends_with(" in <module>"));
    if (of_program && !raised->ignored && fatal_.size() < kMostThreads)
      fatal_.push_back({lines, LastBarAtOnceBehind(i)});
    if (EndsAThread(*raised) && outlived_.size() < kMostThreads &&
        event.where.line + kLongAfter < timeline_->inputs[event.where.input].lines)
      outlived_.push_back(lines);
  }
  std::ranges::sort(ignored_);
  for (EventIndex i = 0; i < timeline_->events.size(); ++i) {
    const What& what = timeline_->events[i].what;
    if (std::holds_alternative<WorkTimedOut>(what)) First(first_time_out_, i);
    // A task of an earlier step of the script may fail, or be stopped by hand, and the job is not ended by it.
    const bool of_one = std::holds_alternative<ProcessExit>(what) || IsStopByHand(what);
    const bool of_earlier = (of_one && LongOutlived(i)) || (IsSchedulersStop(what) && OutlivedStop(i));
    const bool of_helper = StoppedAHelper(i);
    if ((IsDeath(what) && !of_earlier && !of_helper) || (Raises(what) && !WentOn(i))) First(since_, i);
  }
  for (const Told& line : told) {
    if (line.what != Told::What::kComplaint || !line.heavy || WentOn(line.event) ||
        (!line.decisive && IsBehindEnd(line.event)))
      continue;
    // Trouble of a host that no line of the job complains of did the job no harm.
    if (!IsOfKernel(timeline_->events[line.event].what)) First(since_, line.event);
  }
}

namespace {

/// Other words of a program are like these where only numbers differ.
bool IsLike(const Event& other, const Event& line, const std::string& shape) {
  return other.where.input == line.where.input && other.text.size() < 2 * line.text.size() &&
         std::holds_alternative<LogMessage>(other.what) && ShapeOf(other.text) == shape;
}

}  // namespace

bool Course::IsOneOfMany(EventIndex event) const {
  const Event& line = timeline_->events[event];
  const std::span<const EventIndex> counted = CountedIn(line.where.input);
  const auto next_step = std::ranges::lower_bound(counted, event);
  if (next_step == counted.begin()) return false;
  const std::string shape = ShapeOf(line.text);
  return std::any_of(timeline_->events.begin(),
                     timeline_->events.begin() + static_cast<std::ptrdiff_t>(*std::prev(next_step)),
                     [&](const Event& other) { return IsLike(other, line, shape); });
}

const Bar* Course::LastBar(std::uint32_t input) const {
  const auto last = std::find_if(loops_.rbegin(), loops_.rend(),
                                 [&](const Bar& bar) { return timeline_->events[bar.event].where.input == input; });
  return last == loops_.rend() ? nullptr : &*last;
}

bool Course::StoppedShort(std::uint32_t input) const {
  const Bar* last = LastBar(input);
  return last != nullptr && last->count < last->of;
}

bool Course::EndsWithin(EventIndex event) const {
  static const Pattern kStep(R"((?i)\b(?:step|iter|iteration|epoch|batch|round)\b\W{0,3}(\d{1,9})/(\d{1,9})\b)");
  for (EventIndex i = timeline_->EventsOf(timeline_->events[event].where.input).second; i-- > event + 1;) {
    const Event& last = timeline_->events[i];
    if (!SaysAnything(last.text) || chatter_.Holds(last.where)) continue;
    const auto step = kStep.Search(last.text);
    return step && step->number(1).value_or(0) + 1 < step->number(2).value_or(0);
  }
  return false;
}

bool Course::BeganAnother(EventIndex event) const {
  const std::uint32_t input = timeline_->events[event].where.input;
  const Bar* last = LastBar(input);
  if (last == nullptr || last->event <= event || last->count < kStepsThatUndo || last->count >= last->of) return false;
  const bool was_full = std::ranges::any_of(loops_, [&](const Bar& bar) {
    return bar.event < last->event && bar.loop == last->loop && bar.count == bar.of &&
           timeline_->events[bar.event].where.input == input;
  });
  return was_full && IsLastWord(last->event);
}

// Bars of loops within others are full again and again; what is loaded or made ready is none of the job's work.
std::optional<EventIndex> Course::LongestBarIsFull(std::uint32_t input, std::span<const Told> told) const {
  const auto is_here = [&](const Bar& bar) { return timeline_->events[bar.event].where.input == input; };
  const Bar* last = LastBar(input);
  if (last == nullptr || last->count < last->of || last->elapsed < kLongLoop) return std::nullopt;
  const bool longest = std::ranges::all_of(loops_, [&](const Bar& other) {
    return !is_here(other) || (other.elapsed <= last->elapsed && (other.loop != last->loop || other.count < other.of ||
                                                                  other.elapsed + kLongLoop > last->elapsed));
  });
  const bool prepares = std::ranges::any_of(told, [&](const Told& line) {
    return line.event == last->event && line.what == Told::What::kWork && IsPreparation(line.at);
  });
  return longest && !prepares && IsLastWord(last->event) ? std::optional(last->event) : std::nullopt;
}

bool Course::EndsInComplaint(std::span<const EventIndex> grumbles, EventIndex ending) const {
  constexpr std::uint64_t kLastWords = 2;
  if (grumbles.empty() || grumbles.back() <= ending) return false;
  const Event& grumble = timeline_->events[grumbles.back()];
  const auto* message = std::get_if<LogMessage>(&grumble.what);
  // What libraries say as they are torn down, and what a rule knows, is weighed for itself.
  if (message == nullptr || message->component != Component::kAny || !message->hits.empty()) return false;
  if (grumble.where <= timeline_->events[ending].where) return false;
  std::set<SourcePos> behind;  // how long lines are, and how they were cut, does not count
  for (EventIndex i = grumbles.back() + 1; i < timeline_->events.size() && behind.size() < kLastWords; ++i)
    if (timeline_->events[i].where.input == grumble.where.input && timeline_->events[i].where != grumble.where &&
        !chatter_.Holds(timeline_->events[i].where))
      behind.insert(timeline_->events[i].where);
  return behind.size() < kLastWords;
}

bool Course::IsLastWord(EventIndex event) const {
  const SourcePos where = timeline_->events[event].where;
  const EventIndex end = timeline_->EventsOf(where.input).second;
  return std::none_of(timeline_->events.begin() + event + 1, timeline_->events.begin() + end, [&](const Event& other) {
    return other.where != where && SaysAnything(other.text) && !chatter_.Holds(other.where);
  });
}

bool Course::EndsInBeginning(std::optional<EventIndex> begins, EventIndex ending) const {
  return begins && timeline_->events[*begins].where > timeline_->events[ending].where && IsLastWord(*begins);
}

bool Course::StandsBehindEachRound(EventIndex event) const {
  constexpr std::size_t kOften = 4, kLookedAt = 4096;
  constexpr std::uint64_t kApart = 3;
  const Event& line = timeline_->events[event];
  const std::string shape = ShapeOf(line.text);
  std::uint64_t last = line.where.line;
  std::size_t often = 0;
  for (EventIndex i = event; i-- > 0 && often < kOften && event - i <= kLookedAt;) {
    const Event& other = timeline_->events[i];
    if (other.where.input != line.where.input) break;
    if (!IsLike(other, line, shape)) continue;
    if (other.where.line + kApart > last) return false;
    last = other.where.line;
    ++often;
  }
  return often == kOften;
}

bool Course::WasStartedLater(EventIndex event) const {
  constexpr std::chrono::hours kLeast(1);
  const Event& ending = timeline_->events[event];
  const auto dated = [](const Event& line) { return line.at && line.at->date == Timestamp::Date::kFull; };
  if (!dated(ending)) return false;
  for (EventIndex i = event + 1, end = timeline_->EventsOf(ending.where.input).second; i < end; ++i) {
    const Event& next = timeline_->events[i];
    if (next.where == ending.where || !dated(next) || !SaysAnything(next.text)) continue;
    return std::holds_alternative<LogMessage>(next.what) && next.at->at > ending.at->at + kLeast;
  }
  return false;
}

// What a program says again and again, of one item after the other, it gets over each time.
bool Course::IsRoutine(std::span<const EventIndex> grumbles) const {
  constexpr std::ptrdiff_t kOften = 32;
  const Event& last = timeline_->events[grumbles.back()];
  const std::string shape = ShapeOf(last.text);
  return std::ranges::count_if(
             grumbles, [&](EventIndex other) { return IsLike(timeline_->events[other], last, shape); }) >= kOften;
}

bool Course::MayBeFarewell(EventIndex last, std::span<const Told> told, std::span<const EventIndex> grumbles) const {
  const Event& event = timeline_->events[last];
  // Who waits for others is told by what each was at.
  if (!timeline_->groups.empty() || !timeline_->collectives.empty() || !timeline_->communicators.empty()) return false;
  const auto near = [&](EventIndex other) {
    constexpr std::uint64_t kNear = 3;
    const SourcePos where = timeline_->events[other].where;
    return where.input == event.where.input && chatter_.Apart(where.input, where.line, event.where.line) < kNear;
  };
  // A server that is up waits for its next request; who prepares or says what he does next has not done it.
  if (std::ranges::any_of(served_, near) || short_of_goal_) return false;
  if (StandsBehindEachRound(last) && !EndsAWholeRound(*timeline_, event.where.input)) return false;
  const auto comes_first = [&](const Told& line) {
    return line.event == last &&
           (line.what == Told::What::kBegins || (line.what == Told::What::kWork && IsPreparation(line.at)));
  };
  // What a rule complains of, however little it weighs, may be what ended it; a hint long before was none.
  const auto complains = [&](const Told& line) {
    const SourcePos where = timeline_->events[line.event].where;
    const bool long_before = !line.heavy && where.input == event.where.input &&
                             chatter_.Apart(where.input, where.line, event.where.line) > kLastLines;
    return line.what == Told::What::kComplaint && !long_before && !WentOn(line.event) && !IsBehindEnd(line.event);
  };
  return std::ranges::none_of(told, [&](const Told& line) { return comes_first(line) || complains(line); }) &&
         (grumbles.empty() || !near(grumbles.back()) || IsRoutine(grumbles));
}

bool Course::NothingElseIsTold(std::span<const Told> told, const std::set<EventIndex>& settled) const {
  const auto is_of_work = [&](const Told& line) {
    return settled.contains(line.event) || line.what == Told::What::kEnding ||
           (line.what == Told::What::kWork && !IsPreparation(line.at));
  };
  std::set<std::uint32_t> of_job, of_hosts;  // inputs
  for (const Event& event : timeline_->events) {
    const bool of_host = IsOfHost(event.what) || IsOfKernel(event.what);
    if (!of_host && !std::holds_alternative<LogMessage>(event.what)) return false;
    (of_host ? of_hosts : of_job).insert(event.where.input);
  }
  for (const std::uint32_t input : of_hosts) of_job.erase(input);
  return of_job.size() == 1 && std::ranges::all_of(told, is_of_work);
}

void Course::ReadEndings(std::span<const Told> told) {
  struct Writer {
    std::optional<EventIndex> at_work;     ///< the first line that shows a job at work
    std::vector<EventIndex> grumbles;      ///< what nobody knows but sounds like trouble
    std::optional<EventIndex> saved;       ///< the first time
    std::optional<EventIndex> begins;      ///< the last time
    std::uint64_t leaving = 0;             ///< lines
    bool sets_up = false, set_up = false;  ///< a communicator
    std::uint64_t plain = 0;               ///< lines that nothing is known of
    bool witness = false;                  ///< some are of a host or a kernel
  };
  std::map<std::uint32_t, Writer> writers;  // by input
  std::set<EventIndex> full;                // bars that are full, drawn once more when they are closed
  for (EventIndex i = 0; i < timeline_->events.size(); ++i) {
    const Event& event = timeline_->events[i];
    Writer& writer = writers[event.where.input];
    if (ShowsAJob(event)) First(writer.at_work, i);
    writer.witness = writer.witness || IsOfHost(event.what) || IsOfKernel(event.what);
    if (const auto* message = std::get_if<LogMessage>(&event.what))
      writer.plain += message->component == Component::kAny && message->hits.empty() ? 1 : 0;
    writer.sets_up = writer.sets_up || std::holds_alternative<NetworkUsed>(event.what) ||
                     std::holds_alternative<ChannelsVia>(event.what);
    if (const auto* init = std::get_if<CommInit>(&event.what)) (init->complete ? writer.set_up : writer.sets_up) = true;
  }
  // Who counts what failed in the line that closes, or says in the line itself that it goes on, does not grumble.
  std::set<EventIndex> settled(recovered_.begin(), recovered_.end());
  for (const Told& line : told)
    if (line.what == Told::What::kEnding && line.ending != EndingKind::kFarewell) settled.insert(line.event);
  for (const Told& line : told) {
    Writer& writer = writers[timeline_->events[line.event].where.input];
    if (line.at == Activity::kBar && line.percent == 100) full.insert(line.event);
    if (line.what == Told::What::kEnding && line.ending == EndingKind::kLeaving) ++writer.leaving;
    if (line.what == Told::What::kWork && line.at != Activity::kJoining) First(writer.at_work, line.event);
    if (line.what == Told::What::kWork && line.at == Activity::kDone) First(writer.saved, line.event);
    if (line.what == Told::What::kBegins) writer.begins = line.event;
    if (line.what == Told::What::kGrumble && !settled.contains(line.event)) writer.grumbles.push_back(line.event);
  }
  const std::set<EventIndex> of_rounds = EndsOfRounds(*timeline_, told);
  const std::vector<std::uint32_t> others = OtherStreams(timeline_->inputs);
  std::map<std::uint32_t, bool> cut;  // by input that was asked about
  const auto breaks_off = [&](std::uint32_t input) {
    const auto [known, is_new] = cut.try_emplace(input);
    if (is_new) known->second = BreaksOff(*timeline_, input);
    return known->second;
  };
  // A reminder that processes print when they leave in order is a good end where nothing else is given.
  bool only_leaving = true;
  for (std::uint32_t input = 0; input < timeline_->inputs.size(); ++input)
    only_leaving = only_leaving && writers[input].leaving >= timeline_->inputs[input].lines;
  for (const Told& line : told) {
    if (line.what != Told::What::kEnding) continue;
    const SourcePos where = timeline_->events[line.event].where;
    const Writer& writer = writers[where.input];
    const std::span<const EventIndex> counted = CountedIn(where.input);
    // What a program counts on its standard error, it closes on its standard output; where each stood, no line tells,
    // but that nobody grumbled once all was counted.
    const std::uint32_t other = others[where.input];
    const std::span<const EventIndex> counted_there = other == where.input ? counted : CountedIn(other);
    const std::vector<EventIndex>& grumbles_there = writers[other].grumbles;
    const bool stepped_there = counted.empty() && !counted_there.empty() &&
                               (grumbles_there.empty() || grumbles_there.back() < counted_there.back());
    const bool stepped = stepped_there || (!counted.empty() && counted.front() < line.event);
    const bool worked = writer.at_work && (line.ending == EndingKind::kInFront ||
                                           timeline_->events[*writer.at_work].where.line < where.line);
    const bool counts = line.ending == EndingKind::kGoal;
    const bool only_last = line.ending == EndingKind::kScores || counts || line.ending == EndingKind::kSavedOnce;
    const bool of_anyone = line.ending == EndingKind::kShell || line.ending == EndingKind::kFigures || only_last;
    if (of_anyone && of_rounds.contains(line.event)) continue;
    if ((of_anyone || line.ending == EndingKind::kFarewell) && breaks_off(where.input)) continue;
    if (of_anyone && !counts && where.InputLine() + kClosingLines < timeline_->inputs[where.input].lines) continue;
    if (line.ending == EndingKind::kFarewell) {
      const bool joins = writer.sets_up && !writer.set_up && (work_.empty() || work_.front() >= line.event);
      const bool of_others = writer.witness && writer.plain < kLinesOfAJob;
      if (!joins && !of_others && MayBeFarewell(line.event, told, writer.grumbles)) endings_.push_back(line.event);
      continue;
    }
    if (line.ending == EndingKind::kFigures && IsOneOfMany(line.event)) continue;
    if (line.ending == EndingKind::kScores && std::ranges::binary_search(work_, line.event))
      continue;  // of a step among many
    // Who saves again and again is in the middle of it.
    if (line.ending == EndingKind::kSavedOnce && writer.saved && *writer.saved < line.event) continue;
    const bool shows_work = worked || stepped || where.line >= kLinesOfAJob || only_leaving;
    const auto is_its_result = [&] { return line.ending == EndingKind::kWork && NothingElseIsTold(told, settled); };
    if (of_anyone ? !stepped : !shows_work && !is_its_result()) continue;
    // Who was last seen setting up a communicator did not come to its work.
    if (!stepped && writer.sets_up && !writer.set_up && work_.empty()) continue;
    if (of_anyone) {
      // Whatever was grumbled of, the work that followed got over it.
      const auto& own = writer.grumbles;
      const auto last = std::ranges::upper_bound(own, line.event);
      if (counts && !own.empty() && own.back() >= line.event) continue;
      // A bar that is full is closed there; one that nobody drew in front was work behind it.
      const auto was_drawn = [&](EventIndex step) {
        const auto bar = std::ranges::lower_bound(loops_, step, {}, &Bar::event);
        return bar == loops_.end() || bar->event != step || WasDrawn(*bar, line.event);
      };
      if (!counts && std::ranges::any_of(counted, [&](EventIndex step) {
            return step > line.event && (!full.contains(step) || !was_drawn(step)) &&
                   timeline_->events[step].where.line > where.line;
          }))
        continue;
      const bool got_over =
          stepped_there || last == own.begin() || std::ranges::upper_bound(counted, *std::prev(last)) != counted.end();
      if (!got_over) continue;
    }
    if (line.ending != EndingKind::kInFront && AreBehind(trained_, line.event, kStepsThatUndo)) continue;
    // Who counts on for long had not ended, whatever it counts.
    if (line.ending != EndingKind::kInFront && line.ending != EndingKind::kScheduler && CountedOnForLong(line.event))
      continue;
    if (line.ending == EndingKind::kLeaving && StoppedShort(where.input)) continue;
    if (IsPrograms(line.ending) && BeganAnother(line.event)) continue;
    if (line.ending != EndingKind::kInFront && line.ending != EndingKind::kScheduler &&
        (EndsWithin(line.event) || WasStartedLater(line.event) || EndsInComplaint(writer.grumbles, line.event) ||
         EndsInBeginning(writer.begins, line.event)))
      continue;
    endings_.push_back(line.event);
    only_scores_ = only_scores_ && (only_last || only_leaving);
    only_weighed_ = false;
  }
}

Course::Course(const Timeline& timeline, std::span<const Told> told) : timeline_(&timeline), chatter_(timeline, told) {
  ReadWork(told);
  ReadSigns(told);
  DateTrouble();
  // Where several write, all that count came there.
  std::vector<Told> by_goal, by_rows;
  bool all_by_goal = true, all_by_rows = true;
  for (const auto& [input, counted] : counted_) {
    const AtGoal at = RowAtGoal(timeline, told, counted);
    const AtGoal of_all = since_ ? AtGoal() : LastOfAll(timeline, input);
    std::optional<EventIndex> by_row = at.row ? at.row : of_all.row;
    if (!by_row) by_row = LongestBarIsFull(input, told);
    if (by_row) by_rows.push_back({.event = *by_row, .what = Told::What::kEnding, .ending = EndingKind::kGoal});
    if (at.row) by_goal.push_back({.event = *at.row, .what = Told::What::kEnding, .ending = EndingKind::kGoal});
    all_by_goal = all_by_goal && (at.row || !at.counts);
    all_by_rows = all_by_rows && by_row;
    short_of_goal_ = short_of_goal_ || (at.counts && !at.row) || (of_all.counts && !of_all.row);
  }
  std::vector<Told> ends(told.begin(), told.end());
  if (all_by_rows)
    ends.insert(ends.end(), by_rows.begin(), by_rows.end());
  else if (all_by_goal)
    ends.insert(ends.end(), by_goal.begin(), by_goal.end());
  ReadEndings(ends);
}

}  // namespace inquest
