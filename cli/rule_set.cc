// Loads rules from the binary and from a folder.
#include "cli/rule_set.h"

#include <fmt/format.h>

#include "parsers/formats.h"
#include "report/terminal.h"
#include "rules/sought.h"

namespace inquest {

std::variant<RuleBook, RuleErrors> LoadRuleSet(const std::string& rules_dir, Samples samples) {
  RuleBook embedded = Deserialize(EmbeddedRules(), samples);
  if (rules_dir.empty()) return embedded;
  return LoadRules(rules_dir, &embedded);
}

Result<std::unique_ptr<Sieve>> LoadSieveFor(const std::string& rules_dir, const RuleBook& book) {
  if (rules_dir.empty()) return LoadSieve(EmbeddedSieve(), SoughtBy(book, Marks().marks));
  const RuleBook embedded = Deserialize(EmbeddedRules(), Samples::kLeft);
  return ExtendSieve(EmbeddedSieve(), SoughtBy(embedded, Marks().marks), SoughtBy(book, Marks().marks));
}

std::string RuleErrorText(const RuleErrors& errors) {
  std::string text;
  for (const Error& error : errors) {
    text +=
        Sanitize(fmt::format("{}: {}{}{}", error.where, error.message, error.hint.empty() ? "" : "; ", error.hint)) +
        "\n";
  }
  return text;
}

CommandResult BadRules(const RuleErrors& errors) {
  const std::string count =
      fmt::format("inquest: {} mistake{} in the rules\n", errors.size(), errors.size() == 1 ? "" : "s");
  return {.status = kExitCouldNotRun, .out = "", .err = count + RuleErrorText(errors)};
}

}  // namespace inquest
