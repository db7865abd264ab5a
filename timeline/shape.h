// A line or a path without its numbers: what stays alike from one step, rank or start to the next.
#pragma once

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

}  // namespace inquest
