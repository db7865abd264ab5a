// A value of a JSON document, as its text: what is in it is written once, and never a tree.
#include "report/json_value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace inquest {

void AppendJsonText(std::string_view text, std::string& out) {
  const auto plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), plain)) {
    out.append(1, '"').append(text).append(1, '"');
    return;
  }
  out += nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

JsonValue::JsonValue(double value) : text_(nlohmann::json(value).dump()) {}

JsonValue::JsonValue(std::initializer_list<Member> members) : text_("{}") {
  std::size_t bytes = 2;
  for (const Member& member : members) bytes += member.key.size() + member.value.text_.size() + 6;
  text_.reserve(bytes);
  for (const Member& member : members) Add(member.key, member.value);
}

void JsonValue::Open() {
  const bool empty = text_.size() == 2;
  text_.resize(text_.size() - (empty ? 1 : 2));
  text_ += empty ? "\n" : ",\n";
}

void JsonValue::push_back(const JsonValue& item) {
  Open();
  text_ += item.text_;
  text_ += "\n]";
}

void JsonValue::Add(std::string_view key, const JsonValue& value) {
  Open();
  AppendJsonText(key, text_);
  text_ += ": ";
  text_ += value.text_;
  text_ += "\n}";
}

std::string OneLine(const JsonValue& value) {
  std::string out;
  for (const char c : value.text())  // texts hold no line ends of their own: they are escaped
    if (c != '\n')
      out += c;
    else if (out.back() == ',')
      out += ' ';
  return out + "\n";
}

}  // namespace inquest
