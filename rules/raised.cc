#include "rules/raised.h"

#include <algorithm>
#include <string>
#include <variant>

#include "rules/thresholds.h"

namespace inquest {
namespace {

/// A logger names its rank in front of "Traceback", and the lines below have nothing in front; others may write
/// between.
std::optional<Known<GlobalRank>> RankOfHead(const Timeline& timeline, EventIndex index) {
  const auto& raised = std::get<ExceptionRaised>(timeline.events[index].what);
  const SourcePos begin = raised.begin;
  const std::uint64_t reach = raised.headless && !raised.stack.empty() ? thresholds::kTracebackLines : 1;
  const auto begins_another = [&](const SourcePos& head) {
    return std::ranges::any_of(timeline.events, [&](const Event& event) {
      const auto* other = std::get_if<ExceptionRaised>(&event.what);
      return other != nullptr && other != &raised && other->begin == head;
    });
  };
  for (EventIndex i = index; i-- > 0 && timeline.events[i].where.input == begin.input &&
                             timeline.events[i].where.line + reach >= begin.line;) {
    const Event& head = timeline.events[i];
    if (head.where.line > begin.line || head.text.find("Traceback (most recent call last)") == std::string::npos)
      continue;
    if (const auto rank = timeline.RankOf(head); rank && !begins_another(head.where))
      return Known<GlobalRank>{rank->value, Basis::kDerived, "the line that begins the traceback"};
  }
  return std::nullopt;
}

}  // namespace

bool IsOfLauncher(const ExceptionRaised& raised) {
  return raised.type.ends_with("ChildFailedError") || raised.type.ends_with("CalledProcessError");
}

std::optional<EventIndex> RaisedAt(const Timeline& timeline, EventIndex index) {
  const SourcePos where = timeline.events[index].where;
  for (EventIndex i = index > 1 ? index - 2 : 0; i < timeline.events.size() && i <= index + 2; ++i)
    if (timeline.events[i].where == where && std::holds_alternative<ExceptionRaised>(timeline.events[i].what)) return i;
  return std::nullopt;
}

std::optional<Known<GlobalRank>> RankOfRaised(const Timeline& timeline, EventIndex index) {
  if (auto rank = timeline.RankOf(timeline.events[index])) return rank;
  const SourcePos begin = std::get<ExceptionRaised>(timeline.events[index].what).begin;
  if (auto rank = RankOfHead(timeline, index)) return rank;
  // Inside torchelastic's failure report, the rank of the entry above it.
  for (EventIndex i = index;
       i-- > 0 && timeline.events[i].where.input == begin.input && timeline.events[i].where.line + 6 >= begin.line;) {
    const auto* exit = std::get_if<ProcessExit>(&timeline.events[i].what);
    if (exit != nullptr && exit->reporter == Reporter::kTorchelastic && exit->rank &&
        timeline.events[i].where.line <= begin.line)
      return Known<GlobalRank>{*exit->rank, Basis::kDerived, "entry of the failure report that holds the traceback"};
  }
  return std::nullopt;
}

}  // namespace inquest
