// Keys and sizes of events, from their fields.
#include "core/event_fields.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace inquest {

/// Initialises a member of any type; never evaluated, hence no body.
struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): it must convert
};

namespace {

// ---- every field is listed --------------------------------------------------------------------------------------

template <class T, class... Members>
constexpr std::size_t CountMembers() {
  if constexpr (requires { T{Members{}..., AnyMember{}}; })
    return CountMembers<T, Members..., AnyMember>();
  else
    return sizeof...(Members);
}
template <class T>
constexpr std::size_t CountListed() {
  return decltype(std::declval<const T&>().Fields([](std::string_view, const auto&... fields) {
    return std::integral_constant<std::size_t, sizeof...(fields)>();
  }))::value;
}
template <class... Kinds>
constexpr bool ListEverything(std::type_identity<std::variant<Kinds...>>) {
  return ((CountMembers<Kinds>() == CountListed<Kinds>()) && ...);
}
static_assert(ListEverything(std::type_identity<WhatKinds>()), "INQUEST_FIELDS of an event kind lacks a field");
static_assert(CountMembers<WorkFields>() == CountListed<WorkFields>() &&
              CountMembers<Fingerprint>() == CountListed<Fingerprint>() &&
              CountMembers<GpuId>() == CountListed<GpuId>());

// ---- keys -------------------------------------------------------------------------------------------------------

class Hash {
 public:
  void Add(std::uint64_t value) {
    value_ ^= value + 0x9e3779b97f4a7c15U + (value_ << 6) + (value_ >> 2);
    value_ *= 0xff51afd7ed558ccdU;
    value_ ^= value_ >> 32;
  }
  void Add(std::string_view text) { Add(std::uint64_t{std::hash<std::string_view>()(text)}); }
  template <class T>
  requires std::is_enum_v<T> || std::is_integral_v<T>
  void AddField(const T& value) { Add(static_cast<std::uint64_t>(value)); }
  void AddField(const std::string& text) { Add(std::string_view(text)); }
  template <class Tag, class Rep>
  void AddField(const Strong<Tag, Rep>& value) {
    AddField(value.value);
  }
  template <class T>
  void AddField(const std::optional<T>& value) {
    Add(std::uint64_t{value ? 1U : 0U});
    if (value) AddField(*value);
  }
  template <class T>
  void AddField(const std::vector<T>& values) {
    for (const T& value : values) AddField(value);
  }
  void AddField(const RankSet& ranks) {
    for (const RankSet::Stretch& stretch : ranks.stretches()) {
      AddField(stretch.first);
      AddField(stretch.last);
    }
  }
  template <HasFields T>
  void AddField(const T& kind) {
    kind.Fields([&hash = *this](std::string_view, const auto&... fields) {
      (hash.AddIfKey(fields), ...);
      return 0;
    });
  }
  std::uint64_t value() const { return value_; }

 private:
  template <class T>
  void AddIfKey(const KeyField<T>& key) {
    AddField(key.value);
  }
  template <class T>
  void AddIfKey(const T&) {}

  std::uint64_t value_ = 0x2545f4914f6cdd1dU;
};

// ---- memory -----------------------------------------------------------------------------------------------------

constexpr std::size_t kAllocation = 16;  ///< what an allocation costs beside its bytes

std::size_t Heap(const std::string& text) {
  return text.capacity() <= std::string().capacity() ? 0 : text.capacity() + kAllocation;
}
template <class T>
std::size_t Heap(const T& value);
template <class T>
std::size_t Heap(const std::optional<T>& value);
template <class T>
std::size_t Heap(const std::vector<T>& values);
template <class A, class B>
std::size_t Heap(const std::pair<A, B>& pair) {
  return Heap(pair.first) + Heap(pair.second);
}
template <class T>
std::size_t Heap(const std::optional<T>& value) {
  return value ? Heap(*value) : 0;
}
std::size_t Heap(const RankSet& ranks) { return Heap(ranks.stretches()); }
template <class T>
std::size_t Heap(const std::vector<T>& values) {
  std::size_t bytes = values.capacity() == 0 ? 0 : values.capacity() * sizeof(T) + kAllocation;
  if constexpr (!std::is_trivially_copyable_v<T>)
    for (const T& value : values) bytes += Heap(value);
  return bytes;
}
template <class T>
std::size_t Heap(const T& value) {
  if constexpr (HasFields<T>)
    return value.Fields(
        [](std::string_view, const auto&... fields) { return (std::size_t{0} + ... + Heap(FieldValue(fields))); });
  else {
    static_assert(std::is_trivially_copyable_v<T>, "say what this takes of memory");
    return 0;
  }
}

}  // namespace

std::uint64_t KeyOf(const What& what) {
  Hash hash;
  hash.Add(std::uint64_t{what.index()});
  std::visit([&](const auto& kind) { hash.AddField(kind); }, what);
  return hash.value();
}

std::size_t SizeOf(const Event& event) {
  const std::size_t host = event.origin.host ? Heap(event.origin.host->value) : 0;
  return sizeof(Event) + host + Heap(event.origin.writer) + Heap(event.text) +
         std::visit([](const auto& what) { return Heap(what); }, event.what);
}

}  // namespace inquest
