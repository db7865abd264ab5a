// What every process of the job did over time.
#include "timeline/lifelines.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace inquest {
namespace {

constexpr std::size_t kMostMarks = 64;

std::string_view MarkOf(const What& what) {
  if (std::holds_alternative<WorkTimedOut>(what) || std::holds_alternative<HeartbeatLost>(what) ||
      std::holds_alternative<WaitGivenUp>(what))
    return "timed-out";
  if (std::holds_alternative<ExceptionRaised>(what)) return "exception";
  if (const auto* exit = std::get_if<ProcessExit>(&what)) return exit->signal ? "signal" : "exit";
  if (std::holds_alternative<SignalSent>(what)) return "signal";
  if (std::holds_alternative<JobStopped>(what)) return "stopped";
  if (std::holds_alternative<NcclWarn>(what)) return "complaint";
  if (std::holds_alternative<XidReported>(what) || std::holds_alternative<SxidReported>(what) ||
      std::holds_alternative<DriverFault>(what) || std::holds_alternative<KernelKill>(what) ||
      std::holds_alternative<KernelFault>(what))
    return "device";
  return {};
}

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
      key = {0, rank->value.value, {}, {}};
    else
      key = {1, static_cast<std::int64_t>(event.where.input), event.origin.pid, event.origin.writer};
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
    if (told.at == Activity::kRows) return;
    // A counter says no more than the work that it counts, which its line or one before may name.
    const auto is_counter = [](Activity at) { return at == Activity::kProgress || at == Activity::kBar; };
    if (open != nullptr && is_counter(open->at) && open->begin == told.event) open->at = told.at;
    const bool counts = is_counter(told.at) && open != nullptr &&
                        (open->at == Activity::kTraining || open->at == Activity::kEvaluation);
    if (open != nullptr && (counts || open->at == told.at)) {
      if (open->last != told.event) ++open->times;
      open->last = told.event;
      if (told.percent) open->percent = told.percent;
      return;
    }
    if (open != nullptr) open->end = told.event;
    if (told.at == Activity::kDone || told.at == Activity::kRecovered) return;
    Interval next;
    next.at = told.at;
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
  using Key = std::tuple<int, std::int64_t, std::optional<std::int64_t>, std::string>;
  const Timeline& timeline_;
  std::map<Key, std::size_t> numbers_;
  std::vector<Lifeline> lines_;
};

/// The end that an event tells of its process; nothing where it tells none.
std::optional<LifeEnd> EndBy(const Event& event, EventIndex index) {
  if (const auto* exit = std::get_if<ProcessExit>(&event.what)) {
    const auto how = exit->signal            ? LifeEnd::How::kSignal
                     : !exit->exit_code      ? LifeEnd::How::kUnknown
                     : *exit->exit_code != 0 ? LifeEnd::How::kExitCode
                                             : LifeEnd::How::kWell;
    return LifeEnd{how, index, std::string(Name(exit->reporter))};
  }
  if (std::holds_alternative<WorkTimedOut>(event.what) || std::holds_alternative<HeartbeatLost>(event.what))
    return LifeEnd{LifeEnd::How::kTimedOut, index, "itself"};
  if (std::holds_alternative<ExceptionRaised>(event.what)) return LifeEnd{LifeEnd::How::kRaised, index, "itself"};
  if (const auto* stopped = std::get_if<JobStopped>(&event.what))
    return LifeEnd{LifeEnd::How::kStopped, index, std::string(Name(stopped->by))};
  if (std::holds_alternative<KernelKill>(event.what) || std::holds_alternative<KernelFault>(event.what))
    return LifeEnd{LifeEnd::How::kSignal, index, "kernel"};
  return std::nullopt;
}

}  // namespace
std::string_view Name(LifeEnd::How how) {
  switch (how) {
    case LifeEnd::How::kUnknown:
      return "unknown";
    case LifeEnd::How::kWell:
      return "ended-well";
    case LifeEnd::How::kExitCode:
      return "exit-code";
    case LifeEnd::How::kSignal:
      return "signal";
    case LifeEnd::How::kRaised:
      return "raised";
    case LifeEnd::How::kTimedOut:
      return "timed-out";
    case LifeEnd::How::kStopped:
      return "stopped";
  }
  return "unknown";
}

std::vector<Lifeline> DrawLifelines(const Timeline& timeline, std::span<const Told> told) {
  Drawing drawing(timeline);
  auto next = told.begin();
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    if (!IsOfHost(event.what)) {
      Lifeline& line = drawing.Of(i);
      if (const std::string_view mark = MarkOf(event.what); !mark.empty()) drawing.Mark(line, i, mark);
      if (const auto end = EndBy(event, i);
          end && line.end.how != LifeEnd::How::kSignal && line.end.how != LifeEnd::How::kExitCode)
        line.end = *end;
    }
    for (; next != told.end() && next->event == i; ++next) {
      if (next->what == Told::What::kWork) drawing.Work(*next);
      if (next->what == Told::What::kComplaint && next->heavy) drawing.Mark(drawing.Of(i), i, "complaint");
      if (next->what == Told::What::kEnding) {
        Lifeline& line = drawing.Of(i);
        if (line.end.how == LifeEnd::How::kUnknown)
          line.end = {LifeEnd::How::kWell, i, std::string(Name(next->ending))};
      }
    }
  }
  std::vector<Lifeline> out = drawing.Take();
  const BreakGraph graph(timeline);
  for (Lifeline& line : out)
    if (const Because* because = line.rank ? graph.Of(*line.rank) : nullptr) line.end.because = *because;
  return out;
}

}  // namespace inquest
