// Whether what a program counted came to the number at which it ends, as its configuration or its own rows say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "timeline/course.h"

namespace inquest {

inline constexpr std::size_t kReadOfRow = 240;  ///< bytes of a line in which it says what it counts

/// What a row counts, and the number that stands behind its slash.
struct Counter {
  enum class Unit : std::uint8_t { kEpoch, kStep };
  Unit unit = Unit::kEpoch;
  std::uint64_t at = 0;
  std::optional<std::uint64_t> of;
};

/// In the order in which the row gives them; shares of an epoch are none, nor is the epoch that was best.
std::vector<Counter> CountersIn(std::string_view text);

/// What the counted lines of one input say of the goal that the job's configuration gives.
struct AtGoal {
  bool counts = false;            ///< in the goal's unit
  std::optional<EventIndex> row;  ///< in which it was reached, the last thing that was counted
};

/// `counted`: lines of one input that count something, in order.
AtGoal RowAtGoal(const Timeline& timeline, std::span<const Told> told, std::span<const EventIndex> counted);

}  // namespace inquest
