// The axis of a picture: where each line stands, by its clock or by its place.
#include "rules/picture_axis.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace inquest {
namespace {

std::int64_t Ns(const Timestamp& time) { return time.at.time_since_epoch().count(); }

std::int64_t Scaled(double part, std::int64_t whole) {
  return static_cast<std::int64_t>(part * static_cast<double>(whole));
}

}  // namespace

Axis::Axis(const Timeline& timeline) : timeline_(timeline) {
  const std::vector<Event>& events = timeline.events;
  std::array<std::size_t, 3> by_date{};
  for (const Event& event : events)
    if (event.at) ++by_date[static_cast<std::size_t>(event.at->date)];
  // Of as many, the one that says more.
  for (const auto date : {Timestamp::Date::kNone, Timestamp::Date::kNoYear, Timestamp::Date::kFull})
    if (by_date[static_cast<std::size_t>(date)] > 0 &&
        by_date[static_cast<std::size_t>(date)] >= by_date[static_cast<std::size_t>(date_)])
      date_ = date;
  std::int64_t low = INT64_MAX, high = INT64_MIN;
  for (const Event& event : events) {
    if (!event.at || event.at->date != date_) continue;
    low = std::min(low, Ns(*event.at));
    high = std::max(high, Ns(*event.at));
    zone_known_ = zone_known_ || event.at->zone_known;
  }
  clock_ = low < high;
  if (!clock_) {
    low = 0;
    high = 1'000'000'000;
  }
  // A wait that ended in a time-out began before it, and perhaps before any line that has a time.
  for (const CollectiveRow& row : timeline.collectives)
    for (const auto& waiter : row.waiters)
      if (IsDated(waiter.enqueued_at)) low = std::min(low, Ns(*waiter.enqueued_at));
  low_ = low;
  high_ = high;
  const std::int64_t ahead = std::max<std::int64_t>((high - low) / 12, 1'000'000'000);
  placed_.resize(events.size());
  for (EventIndex begin = 0, end = 0; begin < events.size(); begin = end) {
    const std::uint32_t input = events[begin].where.input;
    std::optional<EventIndex> dated;
    for (end = begin; end < events.size() && events[end].where.input == input; ++end)
      if (!dated && IsDated(events[end].at)) dated = end;
    if (!dated && clock_) without_clock_.push_back(input);
    const auto part = [&](EventIndex i, std::uint64_t bytes) {
      const double whole = static_cast<double>(std::max<std::uint64_t>(bytes, 1));
      return std::min(static_cast<double>(events[i].where.offset) / whole, 1.0);
    };
    for (EventIndex i = begin; i < end; ++i) {
      Moment& moment = placed_[i];
      moment.event = i;
      if (IsDated(events[i].at)) {
        moment = {.event = i, .ns = Ns(*events[i].at), .how = Moment::How::kPrinted};
      } else if (!dated) {
        moment.how = Moment::How::kPlace;
        moment.ns = low + Scaled(part(i, timeline.inputs[input].bytes), high - low);
      } else if (i < *dated) {
        moment.how = Moment::How::kAhead;
        moment.ns = low - ahead + Scaled(part(i, events[*dated].where.offset), ahead);
      } else {
        moment.how = Moment::How::kNear;
        moment.ns = placed_[i - 1].ns;
      }
    }
  }
}

std::uint32_t Axis::Add(const Moment& moment) {
  const auto [it, is_new] = known_.try_emplace({moment.event, moment.ns}, static_cast<std::uint32_t>(moments_.size()));
  if (is_new) moments_.push_back(moment);
  return it->second;
}

std::uint32_t Axis::At(EventIndex event) { return Add(placed_[event]); }

std::optional<std::uint32_t> Axis::Before(EventIndex event, const std::optional<Timestamp>& at,
                                          std::optional<std::int64_t> milliseconds) {
  if (IsDated(at)) return Add({.event = event, .ns = Ns(*at), .how = Moment::How::kComputed});
  const Moment& told = placed_[event];
  if (!milliseconds || !clock_ || told.how == Moment::How::kPlace || told.how == Moment::How::kAhead)
    return std::nullopt;
  return Add({.event = event, .ns = told.ns - *milliseconds * 1'000'000, .how = Moment::How::kComputed});
}

std::pair<std::vector<Moment>, std::vector<std::uint32_t>> Axis::Take() const {
  std::vector<std::uint32_t> order(moments_.size()), place(moments_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t i) {
    const Moment& moment = moments_[i];
    return std::tuple(moment.ns, timeline_.events[moment.event].where, moment.event);
  });
  std::vector<Moment> sorted;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(moments_[order[i]]);
  }
  return {std::move(sorted), std::move(place)};
}

std::string_view Name(Moment::How how) {
  switch (how) {
    case Moment::How::kPrinted:
      return "printed";
    case Moment::How::kNear:
      return "near";
    case Moment::How::kAhead:
      return "ahead";
    case Moment::How::kComputed:
      return "computed";
    case Moment::How::kPlace:
      return "by-place";
  }
  return "by-place";
}

}  // namespace inquest
