// The rules that a run works with: the embedded ones, and those of --rules.
#pragma once

#include <memory>
#include <variant>

#include "cli/options.h"
#include "rules/rule_book.h"
#include "search/sieve.h"

namespace inquest {

/// With their samples for those who show or try them.
std::variant<RuleBook, RuleErrors> LoadRuleSet(const std::string& rules_dir, Samples samples = Samples::kLeft);
/// The embedded database, and a second one for the rules that are not in it.
Result<std::unique_ptr<Sieve>> LoadSieveFor(const std::string& rules_dir, const RuleBook& book);
/// All mistakes, one a line: `file:line: message; hint`.
std::string RuleErrorText(const RuleErrors& errors);
CommandResult BadRules(const RuleErrors& errors);

}  // namespace inquest
