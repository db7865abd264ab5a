// A line or a path without its numbers: what stays alike from one step, rank or start to the next; and whether there is
// more in it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "core/ascii.h"

namespace inquest {

/// Every run of digits is one `0`.
inline std::string ShapeOf(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool digit = IsDigit(c);
    if (!digit || out.empty() || out.back() != '0') out += digit ? '0' : c;
  }
  return out;
}

/// A ruler at the end of a logger's record, `... - INFO - ======`: with nothing but the logger's own words in front.
inline bool IsLoggedRuler(std::string_view text) {
  constexpr std::size_t kRuler = 8;
  constexpr std::string_view kLevel = "INFO";
  const std::size_t before = text.empty() ? text.npos : text.find_last_not_of(text.back());
  if (before == text.npos || IsLetter(text.back()) || IsDigit(text.back()) || text.size() - before <= kRuler)
    return false;
  const std::size_t level = text.find(kLevel);
  return level != text.npos && level < before &&
         std::ranges::none_of(text.substr(level + kLevel.size(), before - level - kLevel.size()), IsLetter);
}

/// Escapes, rulers and numbers alone say nothing; a bar does, also one that was cut off as it was drawn.
inline bool SaysAnything(std::string_view text) {
  constexpr std::ptrdiff_t kLeastLetters = 3;
  return (std::count_if(text.begin(), text.end(), IsLetter) >= kLeastLetters && !IsLoggedRuler(text)) ||
         text.find("%|") != std::string_view::npos;
}

}  // namespace inquest
