// Where the readers that change an input's bytes have them from.
#pragma once

#include <cstddef>
#include <functional>

namespace inquest {

/// Reads at most so many of the bytes that follow; fewer: there are no more.
using ReadBytes = std::function<std::size_t(char* to, std::size_t room)>;

inline constexpr std::size_t kReadAtOnce = 256 * 1024;

}  // namespace inquest
