// Prints causes and rules for people: wrapped, the same on every terminal.
#include "cli/describe.h"

#include <fmt/format.h>

#include "report/terminal.h"

namespace inquest {
namespace {

constexpr int kWidth = 100;

std::string Wrapped(std::string_view head, std::string_view text) {
  std::string out, lead(head);
  for (const std::string& line : Wrap(Sanitize(text), kWidth - Columns(head), 100)) {
    out += lead + line + "\n";
    lead.assign(static_cast<std::size_t>(Columns(head)), ' ');
  }
  return out;
}

std::string Items(std::string_view title, const std::vector<std::string>& items) {
  if (items.empty()) return {};
  std::string out = fmt::format("\n{}\n", title);
  for (const std::string& item : items) out += Wrapped("  - ", item);
  return out;
}

std::string Advice(const std::vector<Remedy>& remedies) {
  if (remedies.empty()) return {};
  std::string out = "\nWhat to do\n";
  for (std::size_t i = 0; i < remedies.size(); ++i) {
    out += Wrapped(fmt::format("  {}. ", i + 1), remedies[i].text);
    if (!remedies[i].command.empty()) out += "     $ " + Sanitize(remedies[i].command) + "\n";
  }
  return out;
}

/// Samples are printed whole, so that they can be pasted.
std::string Samples(std::string_view title, const std::vector<std::string>& samples) {
  if (samples.empty()) return {};
  std::string out = fmt::format("\n{}\n", title);
  for (const std::string& sample : samples) out += "  " + Sanitize(sample) + "\n";
  return out;
}

}  // namespace

std::string_view KindWord(Rule::Kind kind) {
  switch (kind) {
    case Rule::Kind::kSignature:
      return "signature";
    case Rule::Kind::kSymptom:
      return "symptom";
    case Rule::Kind::kPhase:
      return "phase";
    case Rule::Kind::kEnding:
      break;
  }
  return "ending";
}

std::string Describe(const Cause& cause, const RuleBook& book) {
  std::string out = fmt::format("{}: {}\nlayer {}, retry {}\n\n", cause.code, cause.title, cause.layer, cause.retry);
  out += Wrapped("", cause.meaning) + Advice(cause.remedies) + Items("What to collect", cause.collect);
  std::vector<std::string> rules;
  for (const Rule& rule : book.rules) {
    if (rule.cause == cause.code)
      rules.push_back(fmt::format("{} ({}): {}", rule.id, Name(rule.strength), rule.summary));
  }
  return out + Items("Signatures", rules);
}

std::string Describe(const Rule& rule, const RuleBook& book) {
  const Cause* cause = book.FindCause(rule.cause);
  const std::string speaks = cause != nullptr ? fmt::format(" for {} ({}), {}, confidence {:.2f}", cause->code,
                                                            cause->title, Name(rule.strength), rule.confidence)
                                              : "";
  std::string out = fmt::format("{}: {}{}\n{}\n\n", rule.id, KindWord(rule.kind), speaks, rule.file);
  out += Wrapped("", rule.summary);
  out += fmt::format("\nExpression ({})\n  {}\n",
                     rule.component == Component::kAny ? "any line" : fmt::format("{} lines", Name(rule.component)),
                     Sanitize(rule.text));
  out += Items("Sets aside", rule.explains) + Advice(rule.remedies) + Items("What to collect", rule.collect) +
         Items("References", rule.references);
  return out + Samples("Matches", rule.match) + Samples("Does not match", rule.differ);
}

std::string Describe(std::string_view name, const ErrorCode& code, const RuleBook& book) {
  static constexpr std::string_view kRoles[] = {"a cause", "follows from something else", "a notice, no job dies of it"};
  const Cause* cause = book.FindCause(code.cause);
  std::string out = fmt::format("{} {}: {}, {}\ncause {} ({}), {}, confidence {:.2f}\n\n", name, code.number, Name(code.origin),
                                kRoles[static_cast<std::size_t>(code.role)], code.cause, cause != nullptr ? cause->title : "", Name(StrengthOf(code)), code.confidence);
  out += Wrapped("", code.meaning) + Advice({{code.action, ""}});
  return out + Items("What it needs", code.needs) + Items("Source", {code.source});
}

}  // namespace inquest
