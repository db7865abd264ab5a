// Lines that come again and again and count nothing: what a reader steps over.
#include "timeline/chatter.h"

#include <algorithm>
#include <set>

#include "timeline/course.h"
#include "timeline/row_counters.h"

namespace inquest {
namespace {

constexpr std::size_t kFewest = 8, kShare = 20;  ///< of one kind; one of so many kept lines of the input
constexpr std::size_t kKnot = 3, kInKnots = 8;   ///< kept lines from one to the next, for one in so many
constexpr std::uint64_t kOfChatter = 24;         ///< lines, kept or not, between two that stand together

/// Plain lines of one kind in one input.
struct Kind {
  std::uint32_t input = 0;
  std::vector<std::uint64_t> lines;
  std::size_t last = 0, close = 0;  ///< which of the kept lines it was; how many stand soon behind the one before
};

/// Nobody complains: it does not matter what stands together.
bool IsAsked(const Timeline& timeline, std::span<const Told> told) {
  return std::ranges::any_of(told,
                             [](const Told& line) {
                               return line.what == Told::What::kComplaint || line.what == Told::What::kGrumble;
                             }) ||
         std::ranges::any_of(timeline.events,
                             [](const Event& event) { return std::holds_alternative<ExceptionRaised>(event.what); });
}

}  // namespace

Chatter::Chatter(const Timeline& timeline, std::span<const Told> told, Asked asked)
    : looked_for_(asked == Asked::kAlways || IsAsked(timeline, told)) {
  if (!looked_for_) return;
  std::set<EventIndex> telling;
  for (const Told& line : told)
    if (line.what != Told::What::kWork && line.what != Told::What::kGrumble) telling.insert(line.event);
  RowCounters rows;
  std::map<const RowCounters::Row*, Kind> kinds;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    std::vector<std::uint64_t>& kept = kept_[event.where.input];
    if (kept.empty() || kept.back() != event.where.line) kept.push_back(event.where.line);
    const auto* message = std::get_if<LogMessage>(&event.what);
    if (message == nullptr || message->component != Component::kAny || telling.contains(i)) continue;
    const RowCounters::Row* row = rows.Take(event);
    Kind& kind = kinds[row];
    kind.input = event.where.input;
    if (!kind.lines.empty() && kind.lines.back() == event.where.line) continue;
    kind.close += !kind.lines.empty() && kept.size() <= kind.last + kKnot ? 1 : 0;
    kind.last = kept.size();
    kind.lines.push_back(event.where.line);
  }
  std::map<std::uint32_t, std::vector<std::uint64_t>> chatter;
  for (const auto& [row, kind] : kinds)
    if (kind.lines.size() >= kFewest && kind.lines.size() * kShare >= kept_.at(kind.input).size() &&
        !row->KeepsRising() && kind.close * kInKnots >= kind.lines.size())
      chatter[kind.input].insert(chatter[kind.input].end(), kind.lines.begin(), kind.lines.end());
  std::erase_if(kept_, [&](const auto& input) { return !chatter.contains(input.first); });
  for (auto& of_input : chatter) {
    std::vector<std::uint64_t>& lines = of_input.second;
    std::ranges::sort(lines);
    std::erase_if(kept_.at(of_input.first),
                  [&](std::uint64_t line) { return std::ranges::binary_search(lines, line); });
  }
}

bool Chatter::Holds(const SourcePos& where) const {
  const auto kept = kept_.find(where.input);
  return kept != kept_.end() && !std::ranges::binary_search(kept->second, where.line);
}

std::uint64_t Chatter::Apart(std::uint32_t input, std::uint64_t from, std::uint64_t to) const {
  if (to <= from) return 0;
  const auto kept = kept_.find(input);
  if (kept == kept_.end()) return to - from;
  const auto first = std::ranges::upper_bound(kept->second, from), last = std::ranges::upper_bound(kept->second, to);
  const auto lines = static_cast<std::uint64_t>(last - first);
  return to - from <= kOfChatter * (lines + 1) ? lines : to - from;
}

}  // namespace inquest
