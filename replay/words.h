// What sentences about ranks are made of.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/ascii.h"
#include "timeline/timeline.h"

namespace inquest {

inline double Seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

/// `rank 3`, `ranks 0-2, 5`
inline std::string Ranks(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", FoldRanks(ranks));
}

/// As it stands at the beginning of a sentence.
inline std::string Capital(std::string text) {
  if (!text.empty() && IsLower(text[0])) text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

}  // namespace inquest
