// A value of a JSON document, as its text: what is in it is written once, and never a tree.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>

#include "core/ids.h"

namespace inquest {

/// ASCII only: neither a C1 control nor a bidirectional override of a log reaches a terminal as itself. What is no
/// UTF-8 is replaced.
void AppendJsonText(std::string_view text, std::string& out);

class JsonValue {
 public:
  struct Member;

  JsonValue(std::nullptr_t = nullptr) : text_("null") {}
  JsonValue(bool value) : text_(value ? "true" : "false") {}
  JsonValue(double value);
  template <std::integral Int>
  requires(!std::same_as<Int, bool>) JsonValue(Int value) {
    char digits[24];
    text_.assign(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  JsonValue(std::string_view text) { AppendJsonText(text, text_); }
  JsonValue(const std::string& text) : JsonValue(std::string_view(text)) {}
  JsonValue(const char* text) : JsonValue(std::string_view(text)) {}
  /// An array of what is in it.
  template <std::ranges::range Items>
  requires(!std::convertible_to<const Items&, std::string_view>) JsonValue(const Items& items) : text_("[]") {
    for (const auto& item : items) push_back(JsonValue(item));
  }
  /// An object.
  JsonValue(std::initializer_list<Member> members);

  static JsonValue array() { return JsonValue(Text{"[]"}); }
  static JsonValue object() { return JsonValue(Text{"{}"}); }

  void push_back(const JsonValue& item);
  /// Of an object that lacks the key.
  void Add(std::string_view key, const JsonValue& value);

  /// Without indentation: a line that ends in a bracket opens it, one that begins with one closes it.
  const std::string& text() const { return text_; }

 private:
  struct Text {
    std::string_view text;
  };
  explicit JsonValue(Text text) : text_(text.text) {}
  /// Takes the bracket off the end of an array or object, where one more is to stand.
  void Open();

  std::string text_;
};

/// With the line's end.
std::string OneLine(const JsonValue& value);

struct JsonValue::Member {
  std::string_view key;
  JsonValue value;
};

/// null where it is not known; of a text, where it is empty.
template <class T>
JsonValue OrNull(const std::optional<T>& value) {
  return value ? JsonValue(*value) : JsonValue(nullptr);
}
inline JsonValue OrNull(const std::string& text) { return text.empty() ? JsonValue(nullptr) : JsonValue(text); }
template <class Tag, class Rep>
JsonValue OrNull(const std::optional<Strong<Tag, Rep>>& number) {
  return number ? JsonValue(number->value) : JsonValue(nullptr);
}

/// Of a confidence three digits: more would be noise of the multiplication.
inline JsonValue Rounded(double confidence) {
  constexpr double kDigits = 1000;
  return JsonValue(std::round(confidence * kDigits) / kDigits);
}

}  // namespace inquest
