// The name of an enumerator, by a table in their order.
#pragma once

#include <cstddef>
#include <string_view>

namespace inquest {

/// `kLast`: the last enumerator; a table that is shorter or longer does not compile.
template <auto kLast, std::size_t kCount>
constexpr std::string_view NameIn(const std::string_view (&names)[kCount], decltype(kLast) value) {
  static_assert(kCount == static_cast<std::size_t>(kLast) + 1);
  return names[static_cast<std::size_t>(value)];
}

}  // namespace inquest
