// The axis of a picture: where each line stands, by its clock or by its place.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "rules/picture.h"

namespace inquest {

/// Gives out moments, each once; Take() puts them in order. How they come to their places is told in picture.h.
class Axis {
 public:
  explicit Axis(const Timeline& timeline);
  bool clock() const { return clock_; }
  Timestamp::Date date() const { return date_; }
  bool zone_known() const { return zone_known_; }
  const std::vector<std::uint32_t>& without_clock() const { return without_clock_; }

  /// From the first that is placed by its time to the last; without a clock, that of its unit. What is ahead lies
  /// before.
  std::int64_t low() const { return low_; }
  std::int64_t high() const { return high_; }
  const Moment& Placed(EventIndex event) const { return placed_[event]; }
  /// Whether what prints so stands at its time.
  bool IsDated(const std::optional<Timestamp>& at) const { return clock_ && at && at->date == date_; }

  std::uint32_t At(EventIndex event);
  /// A moment that a line tells of, and that lies before it; nullopt where nothing says how long.
  std::optional<std::uint32_t> Before(EventIndex event, const std::optional<Timestamp>& at,
                                      std::optional<std::int64_t> milliseconds);
  EventIndex event(std::uint32_t moment) const { return moments_[moment].event; }
  std::int64_t ns(std::uint32_t moment) const { return moments_[moment].ns; }
  /// In order, and of each that was given out its place among them.
  std::pair<std::vector<Moment>, std::vector<std::uint32_t>> Take() const;

 private:
  std::uint32_t Add(const Moment& moment);
  const Timeline& timeline_;
  bool clock_ = false, zone_known_ = false;
  std::int64_t low_ = 0, high_ = 0;
  Timestamp::Date date_ = Timestamp::Date::kNone;
  std::vector<Moment> placed_;  ///< by event
  std::vector<std::uint32_t> without_clock_;
  std::vector<Moment> moments_;
  std::map<std::pair<EventIndex, std::int64_t>, std::uint32_t> known_;
};

}  // namespace inquest
