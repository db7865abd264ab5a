// Packs a rule book into bytes for embedding, and back: fields in order, strings and lists behind their length.
#include <bit>
#include <cstdint>
#include <type_traits>

#include "rules/rule_book.h"

namespace inquest {
namespace {

constexpr std::string_view kMagic = "inquest-rules-5\n";

class Writer {
 public:
  void Value(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(number >> shift & 0xff));
  }
  void Value(double number) { Value(std::bit_cast<std::uint64_t>(number)); }
  void Value(bool flag) { Value(std::uint64_t{flag}); }
  void Value(const std::string& text) {
    Value(std::uint64_t{text.size()});
    bytes_ += text;
  }
  template <class E>
  requires std::is_enum_v<E>
  void Value(E value) { Value(static_cast<std::uint64_t>(value)); }
  template <class T>
  void Value(std::vector<T>& items);
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_{kMagic};
};

class BytesReader {
 public:
  explicit BytesReader(std::string_view bytes) : rest_(bytes) {
    INQUEST_CHECK(rest_.starts_with(kMagic));
    rest_.remove_prefix(kMagic.size());
  }
  void Value(std::uint64_t& number) {
    number = 0;
    const std::string_view bytes = Take(8);
    for (std::size_t i = 0; i < 8; ++i) number |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  void Value(double& number) { number = std::bit_cast<double>(Number()); }
  void Value(bool& flag) { flag = Number() != 0; }
  void Value(std::string& text) { text = Take(Number()); }
  template <class E>
  requires std::is_enum_v<E>
  void Value(E& value) { value = static_cast<E>(Number()); }
  template <class T>
  void Value(std::vector<T>& items);
  bool done() const { return rest_.empty(); }

 private:
  std::uint64_t Number() {
    std::uint64_t number = 0;
    Value(number);
    return number;
  }
  std::string_view Take(std::uint64_t size) {
    INQUEST_CHECK(size <= rest_.size());
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view rest_;
};

// One list of fields serves both directions, so that they cannot part.
template <class Archive>
void Fields(Archive& archive, std::string& text) {
  archive.Value(text);
}
template <class Archive>
void Fields(Archive& archive, Remedy& remedy) {
  archive.Value(remedy.text);
  archive.Value(remedy.command);
  archive.Value(remedy.kind);
  archive.Value(remedy.run_on);
  archive.Value(remedy.root);
  archive.Value(remedy.destructive);
  archive.Value(remedy.under);
  archive.Value(remedy.otherwise);
}
template <class Archive>
void Fields(Archive& archive, Rule& rule) {
  archive.Value(rule.kind);
  for (std::string* text : {&rule.id, &rule.cause, &rule.summary, &rule.text, &rule.scope, &rule.file})
    archive.Value(*text);
  archive.Value(rule.retry);
  archive.Value(rule.says);
  archive.Value(rule.at);
  archive.Value(rule.ending);
  archive.Value(rule.component);
  archive.Value(rule.strength);
  archive.Value(rule.confidence);
  archive.Value(rule.blames);
  archive.Value(rule.alone);
  archive.Value(rule.of_parent);
  archive.Value(rule.tells_death);
  archive.Value(rule.own_advice);
  archive.Value(rule.remedies);
  for (auto* list : {&rule.words, &rule.explains, &rule.collect, &rule.references}) archive.Value(*list);
}
template <class Archive>
void Fields(Archive& archive, AdvisedStep& step) {
  archive.Value(step.name);
  Fields(archive, step.remedy);
}
template <class Archive>
void Fields(Archive& archive, Advice& advice) {
  Fields(archive, advice.remedy);
  archive.Value(advice.when);
}
template <class Archive>
void Fields(Archive& archive, Grade& grade) {
  for (std::string* text : {&grade.name, &grade.claim, &grade.why}) archive.Value(*text);
  archive.Value(grade.by_catalogue);
  archive.Value(grade.strength);
  archive.Value(grade.confidence);
  archive.Value(grade.remedies);
  for (auto* list : {&grade.explains, &grade.collect}) archive.Value(*list);
}
template <class Archive>
void Fields(Archive& archive, FindingRule::KindCause& row) {
  archive.Value(row.kind);
  archive.Value(row.cause);
}
template <class Archive>
void Fields(Archive& archive, FindingRule& rule) {
  for (std::string* text : {&rule.id, &rule.detector, &rule.summary, &rule.cause, &rule.file}) archive.Value(*text);
  archive.Value(rule.retry);
  archive.Value(rule.causes);
  archive.Value(rule.grades);
  archive.Value(rule.blames);
  for (auto* list : {&rule.refuted_by, &rule.references}) archive.Value(*list);
  archive.Value(rule.alone);
  archive.Value(rule.stall);
}
template <class Archive>
void Fields(Archive& archive, Cause& cause) {
  for (std::string* text : {&cause.code, &cause.title, &cause.meaning}) archive.Value(*text);
  archive.Value(cause.layer);
  archive.Value(cause.retry);
  archive.Value(cause.remedies);
  archive.Value(cause.collect);
  archive.Value(cause.traits);
}
template <class Archive>
void Fields(Archive& archive, FarewellSign& sign) {
  for (std::string* text : {&sign.name, &sign.text, &sign.unless}) archive.Value(*text);
  archive.Value(sign.last);
  archive.Value(sign.before);
}
template <class Archive>
void Fields(Archive& archive, ErrorCode::Need& need) {
  archive.Value(need);
}
template <class Archive>
void Fields(Archive& archive, ErrorCode& code) {
  archive.Value(code.number);
  archive.Value(code.origin);
  archive.Value(code.role);
  archive.Value(code.confidence);
  for (std::string* text : {&code.meaning, &code.cause, &code.action, &code.source}) archive.Value(*text);
  archive.Value(code.needs);
}

template <class T>
void Writer::Value(std::vector<T>& items) {
  Value(std::uint64_t{items.size()});
  for (T& item : items) Fields(*this, item);
}
template <class T>
void BytesReader::Value(std::vector<T>& items) {
  items.clear();
  for (std::uint64_t left = Number(); left > 0; --left) Fields(*this, items.emplace_back());
}

}  // namespace

std::string Serialize(const RuleBook& book) {
  RuleBook copy = book;
  Writer writer;
  writer.Value(copy.rules);
  writer.Value(copy.findings);
  writer.Value(copy.causes);
  writer.Value(copy.steps);
  writer.Value(copy.xids);
  writer.Value(copy.sxids);
  writer.Value(copy.farewell);
  // Last of all, so that who leaves them out does not even touch their pages.
  for (Rule& rule : copy.rules) {
    writer.Value(rule.match);
    writer.Value(rule.differ);
  }
  return writer.Take();
}

RuleBook Deserialize(std::string_view bytes, Samples samples) {
  RuleBook book;
  BytesReader reader(bytes);
  reader.Value(book.rules);
  reader.Value(book.findings);
  reader.Value(book.causes);
  reader.Value(book.steps);
  reader.Value(book.xids);
  reader.Value(book.sxids);
  reader.Value(book.farewell);
  if (samples == Samples::kLeft) return book;
  for (Rule& rule : book.rules) {
    reader.Value(rule.match);
    reader.Value(rule.differ);
  }
  INQUEST_CHECK(reader.done());
  return book;
}

}  // namespace inquest
