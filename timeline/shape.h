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

/// Escapes, rulers and numbers alone say nothing; a bar does, also one that was cut off as it was drawn.
inline bool SaysAnything(std::string_view text) {
  constexpr std::ptrdiff_t kLeastLetters = 3;
  return std::count_if(text.begin(), text.end(), IsLetter) >= kLeastLetters ||
         text.find("%|") != std::string_view::npos;
}

}  // namespace inquest
