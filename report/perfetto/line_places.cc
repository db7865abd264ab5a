// Where lines that are no events stand on the picture's axis.
#include "report/perfetto/line_places.h"

#include <algorithm>

namespace inquest {

LinePlaces::LinePlaces(const Timeline& timeline, const Axis& axis) : axis_(axis), anchors_(timeline.inputs.size()) {
  bool was_ahead = false;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    if (event.where.input >= anchors_.size()) continue;
    std::vector<Anchor>& anchors = anchors_[event.where.input];
    const Anchor next{event.where.line, Bounded(axis.Placed(i).ns)};
    // What is ahead of all lines with a time lies before the axis' begin, however late that first time is.
    const bool is_ahead = axis.Placed(i).how == Moment::How::kAhead;
    if (was_ahead && !is_ahead && !anchors.empty() && anchors.back().line + 1 < next.line)
      anchors.push_back({next.line - 1, Bounded(axis.low())});
    was_ahead = is_ahead;
    if (anchors.empty() || anchors.back().line < next.line) anchors.push_back(next);
  }
  for (std::uint32_t input = 0; input < anchors_.size(); ++input) {
    std::vector<Anchor>& anchors = anchors_[input];
    const bool by_place = anchors.empty() || !axis.clock() || std::ranges::count(axis.without_clock(), input) > 0;
    if (!by_place) continue;
    const std::uint64_t lines = timeline.inputs[input].lines;
    if (anchors.empty() || anchors.front().line > 1) anchors.insert(anchors.begin(), {1, Bounded(axis.low())});
    if (anchors.back().line < lines) anchors.push_back({lines, Bounded(axis.high())});
  }
}

std::int64_t LinePlaces::At(const SourcePos& where, const std::optional<Timestamp>& at) const {
  if (IsPrinted(at)) return Bounded(at->at.time_since_epoch().count());
  if (where.input >= anchors_.size() || anchors_[where.input].empty()) return Bounded(axis_.low());
  const std::vector<Anchor>& anchors = anchors_[where.input];
  const auto next = std::ranges::upper_bound(anchors, where.line, {}, &Anchor::line);
  const auto lines = [](std::uint64_t from, std::uint64_t to) { return static_cast<std::int64_t>(to - from); };
  if (next == anchors.begin()) return next->ns - lines(where.line, next->line);
  const Anchor& last = *std::prev(next);
  if (next == anchors.end()) return last.ns + lines(last.line, where.line);
  const double part = static_cast<double>(where.line - last.line) / static_cast<double>(next->line - last.line);
  return last.ns + static_cast<std::int64_t>(part * static_cast<double>(next->ns - last.ns));
}

}  // namespace inquest
