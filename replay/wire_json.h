// How a variant of messages becomes one JSON text and back: each has its kKind, a body, and a reader. For the .cc files that speak on a wire.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace inquest::wire {

/// Thrown inside a decoder alone, as nlohmann's own exceptions are.
struct Malformed {};

/// Reads an integer of a message only where it is one and fits: nlohmann casts whatever number stands there.
template <class T, class = void>
struct Exact : nlohmann::adl_serializer<T> {};
template <class T>
struct Exact<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  template <class Json>
  static void to_json(Json& json, T value) {
    nlohmann::to_json(json, value);
  }
  template <class Json>
  static void from_json(const Json& json, T& value) {
    const auto* natural = json.template get_ptr<const typename Json::number_unsigned_t*>();
    const auto* integer = json.template get_ptr<const typename Json::number_integer_t*>();
    const bool fits = natural != nullptr ? std::in_range<T>(*natural) : integer != nullptr && std::in_range<T>(*integer);
    if (!fits) throw Malformed();
    value = static_cast<T>(natural != nullptr ? *natural : static_cast<typename Json::number_unsigned_t>(*integer));
  }
};

using Json = nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t, double, std::allocator, Exact>;

template <class Enum>
Enum Enumerator(const Json& json, std::size_t count) {
  const auto value = json.get<std::uint64_t>();
  if (value >= count) throw Malformed();
  return static_cast<Enum>(value);
}

/// A span that can be added to a time and counted in nanoseconds: thirty years at most.
inline std::chrono::milliseconds Milliseconds(const Json& json) {
  constexpr std::int64_t kMost = 1'000'000'000'000;
  const auto count = json.get<std::int64_t>();
  if (count < -kMost || count > kMost) throw Malformed();
  return std::chrono::milliseconds(count);
}

template <class Variant, class Body>
std::string EncodeAny(const Variant& message, Body body) {
  return std::visit(
      [&](const auto& m) {
        Json json = body(m);
        json["kind"] = m.kKind;
        return json.dump(-1, ' ', false, Json::error_handler_t::replace);
      },
      message);
}

template <class Variant, class Read, std::size_t index = 0>
std::optional<Variant> DecodeKind(const Json& json, std::string_view kind, Read read) {
  if constexpr (index < std::variant_size_v<Variant>) {
    std::variant_alternative_t<index, Variant> message;
    if (kind != message.kKind) return DecodeKind<Variant, Read, index + 1>(json, kind, read);
    read(json, message);
    return message;
  } else {
    return std::nullopt;
  }
}

/// nullopt: not a message of ours. The other side is never trusted.
template <class Variant, class Read>
std::optional<Variant> DecodeAny(std::string_view packet, Read read) {
  try {
    const Json json = Json::parse(packet);
    return DecodeKind<Variant>(json, json.at("kind").get<std::string>(), read);
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const Malformed&) {
    return std::nullopt;
  }
}

}  // namespace inquest::wire
