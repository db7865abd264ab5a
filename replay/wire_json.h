// How a variant of messages becomes one JSON text and back: each has its kKind, a body, and a reader. For the .cc files that speak on a wire.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace inquest::wire {

using Json = nlohmann::json;

/// Thrown inside a decoder alone, as nlohmann's own exceptions are.
struct Malformed {};

template <class Enum>
Enum Enumerator(const Json& json, std::size_t count) {
  const auto value = json.get<std::uint64_t>();
  if (value >= count) throw Malformed();
  return static_cast<Enum>(value);
}

inline std::chrono::milliseconds Milliseconds(const Json& json) { return std::chrono::milliseconds(json.get<std::chrono::milliseconds::rep>()); }

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
