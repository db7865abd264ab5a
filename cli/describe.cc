// Prints causes and rules for people: wrapped, the same on every terminal.
#include "cli/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "report/terminal.h"

namespace inquest {
namespace {

constexpr int kDescribed = 100;

std::string Wrapped(std::string_view head, std::string_view text) {
  std::string out, lead(head);
  for (const std::string& line : Wrap(Sanitize(text), kDescribed - Columns(head), 100)) {
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

std::string WhatToDo(const std::vector<Remedy>& remedies) {
  if (remedies.empty()) return {};
  std::string out = "\nWhat to do\n";
  for (std::size_t i = 0; i < remedies.size(); ++i) {
    out += Wrapped(fmt::format("  {}. ", i + 1), remedies[i].text);
    if (!remedies[i].command.empty())
      out += fmt::format("     {}: {}\n", Name(remedies[i].kind), Sanitize(remedies[i].command));
    for (const Remedy& way : remedies[i].otherwise)
      if (way.command != remedies[i].command)
        out += fmt::format("     under {}, {}: {}\n", way.under, Name(way.kind), Sanitize(way.command));
  }
  return out;
}

/// Samples are printed whole, so that they can be pasted.
std::string SamplesUnder(std::string_view title, const std::vector<std::string>& samples) {
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

std::string CauseWord(const FindingRule& rule) {
  if (!rule.cause.empty()) return rule.cause;
  std::vector<std::string_view> causes;
  for (const auto& [kind, cause] : rule.causes)
    if (std::find(causes.begin(), causes.end(), cause) == causes.end()) causes.push_back(cause);
  return causes.empty() ? "by the catalogue" : fmt::format("{}", fmt::join(causes, " or "));
}

Strength Strongest(const FindingRule& rule) {
  return std::max_element(rule.grades.begin(), rule.grades.end(),
                          [](const Grade& a, const Grade& b) { return a.strength < b.strength; })
      ->strength;
}

std::string Describe(const Cause& cause, const RuleBook& book) {
  std::string out =
      fmt::format("{}: {}\nlayer {}, retry {}\n\n", cause.code, cause.title, Name(cause.layer), Name(cause.retry));
  out += Wrapped("", cause.meaning) + WhatToDo(cause.remedies) + Items("What to collect", cause.collect);
  std::vector<std::string> rules;
  for (const Rule& rule : book.rules) {
    if (rule.cause == cause.code)
      rules.push_back(fmt::format("{} ({}): {}", rule.id, Name(rule.strength), rule.summary));
  }
  std::vector<std::string> findings;
  for (const FindingRule& rule : book.findings)
    if (rule.cause == cause.code ||
        std::any_of(rule.causes.begin(), rule.causes.end(), [&](const auto& row) { return row.cause == cause.code; }))
      findings.push_back(fmt::format("{} ({}): {}", rule.id, Name(Strongest(rule)), rule.summary));
  return out + Items("Signatures", rules) + Items("Findings of detectors", findings);
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
  out += Items("Sets aside", rule.explains) + WhatToDo(rule.remedies) + Items("What to collect", rule.collect) +
         Items("References", rule.references);
  return out + SamplesUnder("Matches", rule.match) + SamplesUnder("Does not match", rule.differ);
}

std::string Describe(const FindingRule& rule) {
  std::string out = fmt::format("{}: finding of the detector {}, for {}, blames {}\n{}\n\n", rule.id, rule.detector,
                                CauseWord(rule), Name(rule.blames), rule.file);
  const std::string& claim = rule.grades.front().claim;
  out += Wrapped("", rule.summary) + "\nClaim\n" + Wrapped("  ", claim) + "\nGrades\n";
  std::vector<Remedy> remedies;
  std::vector<std::string> explains, collect;
  const auto add = [](auto& all, const auto& more, const auto& same) {
    for (const auto& item : more)
      if (std::none_of(all.begin(), all.end(), [&](const auto& known) { return same(known, item); }))
        all.push_back(item);
  };
  for (const Grade& grade : rule.grades) {
    const std::string weight = grade.by_catalogue
                                   ? "as the catalogue says"
                                   : fmt::format("{}, confidence {:.2f}", Name(grade.strength), grade.confidence);
    out += Wrapped(fmt::format("  - {}: ", grade.name),
                   grade.claim == claim ? weight : fmt::format("{}. {}", weight, grade.claim));
    add(explains, grade.explains, std::equal_to<>());
    add(collect, grade.collect, std::equal_to<>());
    std::vector<Remedy> own;
    for (const Advice& advice : grade.remedies) own.push_back(advice.remedy);
    add(remedies, own, [](const Remedy& a, const Remedy& b) { return a.text == b.text && a.command == b.command; });
  }
  if (rule.alone) out += "\nDecides although nothing else says that the job failed.\n";
  if (rule.stall) out += "\nEverybody is in and nothing moves: lends weight to what is said of the transport.\n";
  return out + Items("Sets aside", explains) + Items("Refuted by", rule.refuted_by) + WhatToDo(remedies) +
         Items("What to collect", collect) + Items("References", rule.references);
}

std::string Describe(std::string_view name, const ErrorCode& code, const RuleBook& book) {
  static constexpr std::string_view kRoles[] = {"a cause", "follows from something else",
                                                "a notice, no job dies of it"};
  const Cause* cause = book.FindCause(code.cause);
  std::string out = fmt::format("{} {}: {}, {}\ncause {} ({}), {}, confidence {:.2f}\n\n", name, code.number,
                                Name(code.origin), kRoles[static_cast<std::size_t>(code.role)], code.cause,
                                cause != nullptr ? cause->title : "", Name(StrengthOf(code)), code.confidence);
  out += Wrapped("", code.meaning) + Wrapped("What to do: ", code.action);
  std::vector<std::string> needs;
  for (const ErrorCode::Need need : code.needs) needs.emplace_back(Name(need));
  return out + Items("What it needs", needs) + Items("Source", {code.source});
}

}  // namespace inquest
