// How messages become JSON text and back. Each has one list of its fields, Fields(archive, message), which both
// directions run. For the .cc files that speak on a wire.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <nlohmann/json.hpp>

namespace inquest::wire {

using Json = nlohmann::json;

/// Thrown inside a decoder alone, as nlohmann's own exceptions are.
struct Malformed {};

/// Of bytes that are no text: ids, addresses, keys.
std::string HexDigits(std::string_view bytes);
std::string BytesOfHex(const std::string& digits);

template <class T, template <class...> class Template>
inline constexpr bool kIs = false;
template <template <class...> class Template, class... Ts>
inline constexpr bool kIs<Template<Ts...>, Template> = true;
template <class T>
concept Moment = requires {
  typename T::clock;
};
template <class T>
concept Duration = requires {
  typename T::period;
}
&&!Moment<T>;

/// Puts fields into an object.
class Writer {
 public:
  static constexpr bool kReads = false;
  template <class T>
  void operator()(const char* key, const T& value) {
    json_[key] = Of(value);
  }
  void Bytes(const char* key, const std::string& bytes) { json_[key] = HexDigits(bytes); }
  /// A key that other versions may lack.
  template <class T>
  void Maybe(const char* key, const T& value) {
    (*this)(key, value);
  }
  void Demand(bool) {}
  /// The fields of the one that is there beside one another, under `key` its kKind.
  template <class Variant>
  void OneOf(const char* key, const Variant& value) {
    std::visit(
        [&](const auto& one) {
          Add(one);
          json_[key] = one.kKind;
        },
        value);
  }
  /// A Writer changes nothing; the list is one for both directions.
  template <class T>
  void Add(const T& value) {
    Fields(*this, const_cast<T&>(value));
  }
  std::string Text() const { return json_.dump(-1, ' ', false, Json::error_handler_t::replace); }

 private:
  template <class T>
  static Json Of(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<std::uint64_t>(value);
    } else if constexpr (Duration<T>) {
      return value.count();
    } else if constexpr (Moment<T>) {
      return std::chrono::duration_cast<std::chrono::nanoseconds>(value.time_since_epoch()).count();
    } else if constexpr (kIs<T, std::optional>) {
      return value ? Of(*value) : Json();
    } else if constexpr (kIs<T, std::vector>) {
      Json list = Json::array();
      for (const auto& one : value) list.push_back(Of(one));
      return list;
    } else if constexpr (kIs<T, std::variant>) {
      Writer inside;
      inside.OneOf("kind", value);
      return std::move(inside.json_);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string> || kIs<T, std::map>) {
      return value;
    } else {
      Writer inside;
      inside.Add(value);
      return std::move(inside.json_);
    }
  }

  Json json_ = Json::object();
};

/// Takes fields from an object. The other side is never trusted: what does not fit its type is Malformed.
class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) throw Malformed();
  }
  template <class T>
  void operator()(const char* key, T& value) {
    Take(json_.at(key), value);
  }
  void Bytes(const char* key, std::string& bytes) {
    std::string digits;
    (*this)(key, digits);
    bytes = BytesOfHex(digits);
  }
  template <class T>
  void Maybe(const char* key, T& value) {
    value = T();
    if (const auto found = json_.find(key); found != json_.end()) Take(*found, value);
  }
  void Demand(bool holds) {
    if (!holds) throw Malformed();
  }
  template <class Variant>
  void OneOf(const char* key, Variant& value) {
    std::string kind;
    (*this)(key, kind);
    Take(kind, value, std::make_index_sequence<std::variant_size_v<Variant>>());
  }

 private:
  template <class Variant, std::size_t... index>
  void Take(std::string_view kind, Variant& value, std::index_sequence<index...>) {
    const bool known = ((std::variant_alternative_t<index, Variant>::kKind == kind &&
                         (Fields(*this, value.template emplace<index>()), true)) ||
                        ...);
    Demand(known);
  }
  template <class T>
  static T Whole(const Json& json) {
    if (!json.is_number_integer()) throw Malformed();
    const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                                : std::in_range<T>(json.get<std::int64_t>());
    if (!fits) throw Malformed();
    return json.get<T>();
  }
  template <class D>
  static D Span(const Json& json) {
    constexpr D kLongest = std::chrono::duration_cast<D>(std::chrono::hours(24 * 365 * 100));  // in nanoseconds, too
    const D span(Whole<typename D::rep>(json));
    if (span > kLongest || span < -kLongest) throw Malformed();
    return span;
  }
  template <class T>
  static void Take(const Json& json, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto number = Whole<std::uint64_t>(json);
      if (number >= CountOf(T())) throw Malformed();
      value = static_cast<T>(number);
    } else if constexpr (Duration<T>) {
      value = Span<T>(json);
    } else if constexpr (Moment<T>) {
      value = T(Span<std::chrono::nanoseconds>(json));
    } else if constexpr (kIs<T, std::optional>) {
      value.reset();
      if (!json.is_null()) Take(json, value.emplace());
    } else if constexpr (kIs<T, std::vector>) {
      if (!json.is_array()) throw Malformed();
      value.clear();
      for (const Json& one : json) Take(one, value.emplace_back());
    } else if constexpr (kIs<T, std::variant>) {
      Reader(json).OneOf("kind", value);
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      value = Whole<T>(json);
    } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string> || kIs<T, std::map>) {
      value = json.get<T>();
    } else {
      Reader inside(json);
      Fields(inside, value);
    }
  }

  const Json& json_;
};

template <class Variant>
std::string EncodeAny(const Variant& message) {
  Writer writer;
  writer.OneOf("kind", message);
  return writer.Text();
}

/// nullopt: not a message of ours.
template <class Variant>
std::optional<Variant> DecodeAny(std::string_view packet) {
  try {
    const Json json = Json::parse(packet);
    Variant message;
    Reader(json).OneOf("kind", message);
    return message;
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const Malformed&) {
    return std::nullopt;
  }
}

}  // namespace inquest::wire
