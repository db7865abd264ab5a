// What every process of the job did over time, and how the job went.
#include "timeline/lifelines.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace inquest {
namespace {

constexpr std::size_t kMostMarks = 64;
/// Lines behind a complaint within which its writer says that it got over it.
constexpr std::uint64_t kSoon = 4;
/// Fewer lines in front of an ending, none of which shows work, are no log of a job: a sentence, a title, an echo.
constexpr std::uint64_t kLinesOfAJob = 12;

bool IsStep(std::string_view kind) { return kind == "training" || kind == "evaluation" || kind == "progress"; }

/// A process of the job wrote it, or spoke of itself: not a tool that shows a host's state, nor a plain line.
bool ShowsAJob(const Event& event) {
  return !std::holds_alternative<LogMessage>(event.what) && !IsOfHost(event.what) && !IsOfKernel(event.what) && !std::holds_alternative<NotCollected>(event.what) && !std::holds_alternative<WorldSize>(event.what);
}

std::string_view MarkOf(const What& what) {
  if (std::holds_alternative<WorkTimedOut>(what) || std::holds_alternative<HeartbeatLost>(what) || std::holds_alternative<WaitGivenUp>(what)) return "timed-out";
  if (std::holds_alternative<ExceptionRaised>(what)) return "exception";
  if (const auto* exit = std::get_if<ProcessExit>(&what)) return exit->signal ? "signal" : "exit";
  if (std::holds_alternative<SignalSent>(what)) return "signal";
  if (std::holds_alternative<JobStopped>(what)) return "stopped";
  if (std::holds_alternative<NcclWarn>(what)) return "complaint";
  if (std::holds_alternative<XidReported>(what) || std::holds_alternative<SxidReported>(what) || std::holds_alternative<DriverFault>(what) || std::holds_alternative<KernelKill>(what) || std::holds_alternative<KernelFault>(what))
    return "device";
  return {};
}

/// What a line counts: its whole numbers, and itself without any number.
struct Count {
  std::string shape;
  std::vector<std::uint64_t> numbers;
};

Count CountIn(std::string_view text) {
  constexpr std::size_t kRead = 160, kMost = 8, kDigits = 18;
  Count out;
  text = text.substr(0, kRead);
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  for (std::size_t i = 0; i < text.size();) {
    if (!is_digit(i)) {
      out.shape += text[i++];
      continue;
    }
    std::size_t end = i;
    std::uint64_t value = 0;
    for (; is_digit(end); ++end)
      if (end - i < kDigits) value = value * 10 + static_cast<std::uint64_t>(text[end] - '0');
    const auto is_exponent = [&](std::size_t at) { return at + 2 < text.size() && text[at] == 'e' && (text[at + 1] == '-' || text[at + 1] == '+') && is_digit(at + 2); };
    const bool fraction = (i > 0 && text[i - 1] == '.') || (end < text.size() && text[end] == '.' && is_digit(end + 1)) || is_exponent(end) || (i >= 2 && is_exponent(i - 2));
    if (!fraction && out.numbers.size() < kMost) out.numbers.push_back(value);
    if (out.shape.empty() || out.shape.back() != '0') out.shape += '0';
    i = end;
  }
  return out;
}

/// Lines of one shape none of whose numbers keeps rising count nothing that goes on: they are of several runs, or measure
/// something. A counter that begins anew with each epoch falls seldom; a time that is left falls all the while.
class Counters {
 public:
  struct Moves {
    std::uint64_t rises = 0, falls = 0;
    bool KeepRising() const { return rises > 0 && falls * 3 <= rises + falls; }
  };
  struct Row {
    std::optional<std::vector<std::uint64_t>> last;
    std::vector<Moves> moves;  ///< by the place of the number
    bool GoesOn() const {
      const auto moved = [](const Moves& place) { return place.rises + place.falls > 0; };
      return std::ranges::none_of(moves, moved) || std::ranges::any_of(moves, &Moves::KeepRising);
    }
  };

  /// The row that the line is counted in: lives as long as this, and tells once all are taken.
  const Row* Take(const Event& event) {
    const auto* message = std::get_if<LogMessage>(&event.what);
    Count count = CountIn(message == nullptr || message->text.empty() ? event.text : message->text);
    Row& row = rows_[{event.where.input, count.shape}];
    if (row.last) {
      row.moves.resize(std::max(row.moves.size(), count.numbers.size()));
      for (std::size_t i = 0; i < std::min(row.last->size(), count.numbers.size()); ++i)
        if ((*row.last)[i] != count.numbers[i]) ++((*row.last)[i] < count.numbers[i] ? row.moves[i].rises : row.moves[i].falls);
    }
    row.last = std::move(count.numbers);
    return &row;
  }

 private:
  std::map<std::pair<std::uint32_t, std::string>, Row> rows_;
};

/// Draws a lifeline for every writer.
class Drawing {
 public:
  explicit Drawing(const Timeline& timeline) : timeline_(timeline) {}

  Lifeline& Of(EventIndex index) {
    const Event& event = timeline_.events[index];
    const auto rank = timeline_.RankOf(event);
    const auto process = timeline_.ProcessOf(event);
    Key key;
    if (rank)
      key = {0, rank->value.value, 0, {}};
    else
      key = {1, static_cast<std::int64_t>(event.where.input), event.origin.pid.value_or(-1), event.origin.writer};
    const auto [it, is_new] = numbers_.try_emplace(std::move(key), lines_.size());
    if (is_new) {
      Lifeline line;
      if (rank) line.rank = rank->value;
      line.host = timeline_.HostOf(event);
      line.pid = process ? timeline_.processes[*process].pid : event.origin.pid;
      line.input = event.where.input;
      if (!rank) line.writer = event.origin.writer;
      line.first = line.last = index;
      lines_.push_back(std::move(line));
    }
    Lifeline& line = lines_[it->second];
    line.last = std::max(line.last, index);
    return line;
  }

  void Mark(Lifeline& line, EventIndex index, std::string_view kind) {
    if (!line.marks.empty() && line.marks.back().event == index) return;
    if (line.marks.size() >= kMostMarks) {
      line.marks.erase(line.marks.begin() + kMostMarks / 2);
      ++line.marks_left_out;
    }
    line.marks.push_back({index, kind});
  }

  void Work(const Told& told) {
    Lifeline& line = Of(told.event);
    Interval* open = line.intervals.empty() || line.intervals.back().end ? nullptr : &line.intervals.back();
    if (told.kind == "rows") return;
    if (open != nullptr && open->kind == told.kind) {
      open->last = told.event;
      ++open->times;
      if (told.percent) open->percent = told.percent;
      return;
    }
    if (open != nullptr) open->end = told.event;
    if (told.kind == "done" || told.kind == "recovered") return;
    Interval next;
    next.kind = told.kind;
    next.begin = next.last = told.event;
    next.percent = told.percent;
    line.intervals.push_back(next);
  }

  std::vector<Lifeline> Take() {
    std::vector<Lifeline> out;
    for (const auto& [key, number] : numbers_) out.push_back(std::move(lines_[number]));
    return out;
  }

 private:
  using Key = std::tuple<int, std::int64_t, std::int64_t, std::string>;
  const Timeline& timeline_;
  std::map<Key, std::size_t> numbers_;
  std::vector<Lifeline> lines_;
};

/// The end that an event tells of its process; nothing where it tells none.
std::optional<LifeEnd> EndBy(const Event& event, EventIndex index) {
  if (const auto* exit = std::get_if<ProcessExit>(&event.what)) {
    const auto how = exit->signal ? LifeEnd::How::kSignal : exit->exit_code.value_or(0) != 0 ? LifeEnd::How::kExitCode : LifeEnd::How::kWell;
    return LifeEnd{how, index, exit->reporter};
  }
  if (std::holds_alternative<WorkTimedOut>(event.what) || std::holds_alternative<HeartbeatLost>(event.what)) return LifeEnd{LifeEnd::How::kTimedOut, index, "itself"};
  if (std::holds_alternative<ExceptionRaised>(event.what)) return LifeEnd{LifeEnd::How::kRaised, index, "itself"};
  if (const auto* stopped = std::get_if<JobStopped>(&event.what)) return LifeEnd{LifeEnd::How::kStopped, index, stopped->by};
  if (std::holds_alternative<KernelKill>(event.what) || std::holds_alternative<KernelFault>(event.what)) return LifeEnd{LifeEnd::How::kSignal, index, "kernel"};
  return std::nullopt;
}

}  // namespace

std::string_view Name(LifeEnd::How how) {
  switch (how) {
    case LifeEnd::How::kUnknown: return "unknown";
    case LifeEnd::How::kWell: return "ended-well";
    case LifeEnd::How::kExitCode: return "exit-code";
    case LifeEnd::How::kSignal: return "signal";
    case LifeEnd::How::kRaised: return "raised";
    case LifeEnd::How::kTimedOut: return "timed-out";
    case LifeEnd::How::kStopped: return "stopped";
  }
  return "unknown";
}

bool IsBadExit(const What& what) {
  const auto* exit = std::get_if<ProcessExit>(&what);
  return exit != nullptr && (exit->signal || exit->exit_code.value_or(0) != 0);
}

bool IsDeath(const What& what) {
  return std::holds_alternative<WorkTimedOut>(what) || std::holds_alternative<HeartbeatLost>(what) || std::holds_alternative<JobStopped>(what) || IsBadExit(what);
}

bool Course::WentOn(EventIndex event, std::size_t steps) const {
  const SourcePos where = timeline_->events[event].where;
  if (std::ranges::binary_search(ignored_, where)) return true;
  const auto soon = std::ranges::find_if(recovered_, [&](EventIndex other) {
    const SourcePos there = timeline_->events[other].where;
    return there.input == where.input && there.line > where.line && there.line <= where.line + kSoon;
  });
  if (soon != recovered_.end()) return true;
  // A program that says by its own words that it reached its end, behind work of any kind, is another that went on.
  const auto own = counted_.find(where.input);
  for (const EventIndex said : said_) {
    if (said <= event || own == counted_.end() || timeline_->events[said].where.input != where.input) continue;
    const auto first = std::ranges::upper_bound(own->second, event), last = std::ranges::lower_bound(own->second, said);
    if (last - first >= static_cast<std::ptrdiff_t>(steps)) return true;
  }
  return SteppedOn(event, steps);
}

bool Course::SteppedOn(EventIndex event, std::size_t steps) const {
  const SourcePos where = timeline_->events[event].where;
  std::size_t after = 0;
  for (auto it = work_.rbegin(); it != work_.rend() && after < steps; ++it)
    after += timeline_->Order(event, *it) == std::partial_ordering::less && timeline_->events[*it].where != where ? 1 : 0;
  return after >= steps;
}

bool Course::WorkedBefore(EventIndex event) const {
  return std::ranges::any_of(work_, [&](EventIndex step) { return timeline_->Order(step, event) == std::partial_ordering::less; });
}

Course::Course(const Timeline& timeline, std::span<const Told> told) : timeline_(&timeline) {
  Counters counters;
  struct Counted { const Told* line = nullptr; const Counters::Row* row = nullptr; };
  std::vector<Counted> counted_lines;  // a bar, which has no row, moves whatever it counts
  for (const Told& line : told) {
    if (line.what != Told::What::kWork) continue;
    bars_ = bars_ || line.kind == "bar" || line.kind == "rows";
    if (line.kind == "recovered") recovered_.push_back(line.event);
    if (line.kind == "bar") counted_lines.push_back({&line, nullptr});
    if (IsStep(line.kind) || line.kind == "rows") counted_lines.push_back({&line, counters.Take(timeline.events[line.event])});
  }
  for (const auto& [line, row] : counted_lines) {
    if (row != nullptr && !row->GoesOn()) continue;
    if (IsStep(line->kind) && (work_.empty() || work_.back() != line->event)) work_.push_back(line->event);
    counted_[timeline.events[line->event].where.input].push_back(line->event);
  }
  std::map<std::uint32_t, std::uint64_t> leaving;  // lines, by input
  for (const Told& line : told)
    if (line.what == Told::What::kEnding && line.kind == "leaving") ++leaving[timeline.events[line.event].where.input];
  for (const Told& line : told)
    if (line.what == Told::What::kEnding && line.kind == "worker") said_.push_back(line.event);
  const auto sign = [&](EventIndex event) {
    if (!since_ || event < *since_) since_ = event;
  };
  // By input: the first line that shows a job at work, and what nobody knows but sounds like trouble.
  std::map<std::uint32_t, std::optional<EventIndex>> at_work;
  std::map<std::uint32_t, std::vector<EventIndex>> grumbles;
  std::set<EventIndex> full;  // bars that are full, drawn once more when they are closed
  for (const Told& line : told)
    if (line.kind == "bar" && line.percent == 100) full.insert(line.event);
  const auto first = [](std::optional<EventIndex>& known, EventIndex event) {
    if (!known || event < *known) known = event;
  };
  for (const Event& event : timeline.events)
    if (const auto* raised = std::get_if<ExceptionRaised>(&event.what); raised != nullptr && raised->ignored) ignored_.push_back(event.where);
  std::ranges::sort(ignored_);
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const What& what = timeline.events[i].what;
    if (ShowsAJob(timeline.events[i])) first(at_work[timeline.events[i].where.input], i);
    if (std::holds_alternative<WorkTimedOut>(what) && !first_time_out_) first_time_out_ = i;
    if (IsDeath(what) || (std::holds_alternative<ExceptionRaised>(what) && !WentOn(i))) sign(i);
  }
  for (const Told& line : told) {
    if (line.what == Told::What::kWork && line.kind != "joining") first(at_work[timeline.events[line.event].where.input], line.event);
    if (line.what == Told::What::kGrumble) grumbles[timeline.events[line.event].where.input].push_back(line.event);
    if (line.what != Told::What::kComplaint || !line.heavy || WentOn(line.event)) continue;
    // Trouble of a host that no line of the job complains of did the job no harm.
    if (!IsOfKernel(timeline.events[line.event].what)) sign(line.event);
  }
  for (const Told& line : told) {
    if (line.what != Told::What::kEnding) continue;
    const SourcePos where = timeline.events[line.event].where;
    const auto before = [&](const std::optional<EventIndex>& event) { return event && *event < line.event; };
    const std::vector<EventIndex>& counted = counted_[where.input];
    const bool stepped = !counted.empty() && counted.front() < line.event;
    // A reminder that processes print when they leave in order is a good end where nothing else is given.
    const bool only_leaving = where.input < timeline.inputs.size() && leaving[where.input] >= timeline.inputs[where.input].lines;
    if (line.kind == "shell" ? !stepped : !before(at_work[where.input]) && !stepped && where.line < kLinesOfAJob && !only_leaving) continue;
    if (line.kind == "shell") {
      // Whatever was grumbled of, the work that followed got over it.
      const auto& own = grumbles[where.input];
      const auto last = std::ranges::upper_bound(own, line.event);
      if (std::ranges::any_of(counted, [&](EventIndex step) { return step > line.event && !full.contains(step) && timeline.events[step].where.line > where.line; })) continue;
      if (last != own.begin() && std::ranges::upper_bound(counted, *std::prev(last)) == counted.end()) continue;
    }
    if (!SteppedOn(line.event, kStepsThatUndo)) endings_.push_back(line.event);
  }
}

std::vector<Lifeline> DrawLifelines(const Timeline& timeline, std::span<const Told> told) {
  Drawing drawing(timeline);
  auto next = told.begin();
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    if (!IsOfHost(event.what)) {
      Lifeline& line = drawing.Of(i);
      if (const std::string_view mark = MarkOf(event.what); !mark.empty()) drawing.Mark(line, i, mark);
      if (const auto end = EndBy(event, i); end && line.end.how != LifeEnd::How::kSignal && line.end.how != LifeEnd::How::kExitCode) line.end = *end;
    }
    for (; next != told.end() && next->event == i; ++next) {
      if (next->what == Told::What::kWork) drawing.Work(*next);
      if (next->what == Told::What::kComplaint && next->heavy) drawing.Mark(drawing.Of(i), i, "complaint");
      if (next->what == Told::What::kEnding) {
        Lifeline& line = drawing.Of(i);
        if (line.end.how == LifeEnd::How::kUnknown) line.end = {LifeEnd::How::kWell, i, std::string(next->kind)};
      }
    }
  }
  return drawing.Take();
}

}  // namespace inquest
