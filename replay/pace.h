// How long runs that passed took, and what deadline that leaves to those that run beside them or after them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

namespace inquest {

/// A deadline that is cut short only says who is worth a second look: nobody is accused by it, and a pass within it is
/// a pass. Shared by the threads of runs that go on at once.
class Pace {
 public:
  /// The least that a step gets, and how often the time of the slowest whole run that passed.
  explicit Pace(std::chrono::milliseconds least = std::chrono::milliseconds(2000), int times = 5)
      : least_(least), times_(times) {}

  /// A run passed, after so long.
  void Passed(std::chrono::nanoseconds took) {
    for (auto known = slowest_.load(); known < took && !slowest_.compare_exchange_weak(known, took);) {
    }
  }
  /// For each step; nullopt: nothing has passed yet, so the plan's own deadlines stand.
  std::optional<std::chrono::milliseconds> limit() const {
    const std::chrono::nanoseconds slowest = slowest_;
    if (slowest.count() == 0) return std::nullopt;
    return std::max(least_, std::chrono::ceil<std::chrono::milliseconds>(slowest * times_.load()));
  }
  /// It was too short for somebody who passed in the end.
  void Widen() { times_ = times_ * 4; }

 private:
  std::chrono::milliseconds least_;
  std::atomic<int> times_;
  std::atomic<std::chrono::nanoseconds> slowest_{std::chrono::nanoseconds(0)};
};

}  // namespace inquest
