// A JSON document, written piece by piece: who is who of a large job would be as large again as the job's timeline.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/json_value.h"
#include "report/report.h"

namespace inquest {

/// Indented by two; a line behind it ends it. Its sink outlives it.
class JsonDocument {
 public:
  explicit JsonDocument(const Sink& sink) : sink_(sink) {}
  ~JsonDocument() { sink_(out_ + "\n"); }
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  void Begin(char bracket) {
    if (!keyed_) Next();
    keyed_ = false;
    out_ += bracket;
    depth_.push_back({bracket == '{' ? '}' : ']', true});
  }
  void End() {
    const Level level = depth_.back();
    depth_.pop_back();
    if (!level.empty) Line();
    out_ += level.close;
  }
  JsonDocument& Key(std::string_view key) {
    Next();
    AppendJsonText(key, out_);
    out_ += ": ";
    keyed_ = true;
    return *this;
  }
  void Value(const JsonValue& value) {
    if (!keyed_) Next();
    keyed_ = false;
    const std::string& text = value.text();
    std::size_t deep = depth_.size();
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = std::min(text.find('\n', at), text.size());
      out_.append(text, at, end - at);
      if (end == text.size()) break;
      if (out_.back() == '{' || out_.back() == '[') ++deep;
      if (text[end + 1] == '}' || text[end + 1] == ']') --deep;
      out_.append("\n").append(2 * deep, ' ');
    }
    if (out_.size() < kPiece) return;
    sink_(out_);
    out_.clear();
  }
  template <class Rows>
  void List(std::string_view key, const Rows& rows, const auto& convert) {
    Key(key).Begin('[');
    for (const auto& row : rows) Value(convert(row));
    End();
  }

 private:
  static constexpr std::size_t kPiece = 1 << 16;
  struct Level {
    char close;
    bool empty;
  };
  void Line() { out_.append("\n").append(2 * depth_.size(), ' '); }
  void Next() {
    if (depth_.empty()) return;
    if (!depth_.back().empty) out_ += ',';
    depth_.back().empty = false;
    Line();
  }
  const Sink& sink_;
  std::string out_;
  std::vector<Level> depth_;
  bool keyed_ = false;
};

}  // namespace inquest
