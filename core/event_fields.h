// What follows from the list of fields that every event kind gives: whether two say the same, what one takes of memory,
// and its names and values for printing. To be included where that is asked, by few.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/event.h"

namespace inquest {

template <class T>
concept HasFields = requires(const T& value) {
  value.Fields([](std::string_view, const auto&...) { return 0; });
};

template <class T>
const T& FieldValue(const T& value) {
  return value;
}
template <class T>
const T& FieldValue(const KeyField<T>& key) {
  return key.value;
}

/// Calls `each(name, value)` for every field, in order.
template <HasFields T, class F>
void ForEachField(const T& kind, F&& each) {
  kind.Fields([&](std::string_view names, const auto&... fields) {
    const auto next = [&] {
      std::string_view name = names.substr(0, names.find(','));
      names.remove_prefix(name.size() == names.size() ? names.size() : name.size() + 1);
      name.remove_prefix(name.find_first_not_of(' '));
      if (name.starts_with("Key(")) name = name.substr(4, name.size() - 5);
      return name;
    };
    (each(next(), FieldValue(fields)), ...);
    return 0;
  });
}

/// Two events of one kind with the same key say the same thing again. 64 bits of a hash: what differs may, very seldom,
/// be taken for the same.
std::uint64_t KeyOf(const What& what);
/// What an event takes of memory, in bytes, allocations included.
std::size_t SizeOf(const Event& event);

}  // namespace inquest
