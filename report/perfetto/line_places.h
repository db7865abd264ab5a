// Where lines that are no events stand on the picture's axis.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rules/picture_axis.h"

namespace inquest {

/// A dump may say any number: two moments so bounded differ by no more than a number holds.
constexpr std::int64_t Bounded(std::int64_t ns) {
  constexpr std::int64_t kMost = 4'000'000'000'000'000'000;  // 2096
  return std::clamp(ns, -kMost, kMost);
}

// A line that prints a time as most do stands at it. Any other stands between the events of its input round it, as far
// along as its number is; in front of the first and behind the last, a nanosecond a line away. In an input without any
// time, the first line stands at the axis' begin and the last at its end, as the picture has it.
class LinePlaces {
 public:
  /// Both outlive it.
  LinePlaces(const Timeline& timeline, const Axis& axis);
  std::int64_t At(const SourcePos& where, const std::optional<Timestamp>& at) const;
  /// The time of its own, where the line stands at that.
  bool IsPrinted(const std::optional<Timestamp>& at) const { return axis_.IsDated(at); }

 private:
  struct Anchor {
    std::uint64_t line = 0;
    std::int64_t ns = 0;
  };
  const Axis& axis_;
  std::vector<std::vector<Anchor>> anchors_;  ///< by input, lines ascending
};

}  // namespace inquest
