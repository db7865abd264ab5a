// Whether what a program counted came to the number at which its configuration says that it ends.
#pragma once

#include <optional>
#include <span>

#include "timeline/course.h"

namespace inquest {

/// What the counted lines of one input say of the goal that the job's configuration gives.
struct AtGoal {
  bool counts = false;            ///< in the goal's unit
  std::optional<EventIndex> row;  ///< in which it was reached, the last thing that was counted
};

/// `counted`: lines of one input that count something, in order.
AtGoal RowAtGoal(const Timeline& timeline, std::span<const Told> told, std::span<const EventIndex> counted);

}  // namespace inquest
