// `inquest explain CODE`: what a cause means, what to do, what to collect, and which rules speak for it.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/nearest.h"
#include "cli/rule_set.h"

namespace inquest {
namespace {

CommandResult Everything(const RuleBook& book) {
  CommandResult result;
  for (const Cause& cause : book.causes)
    result.out += fmt::format("{:<22} {:<8} {}\n", cause.code, cause.layer, cause.title);
  return result;
}

CommandResult Unknown(const RuleBook& book, const std::string& name) {
  std::vector<std::string_view> known;
  for (const Cause& cause : book.causes) known.push_back(cause.code);
  for (const Rule& rule : book.rules) known.push_back(rule.id);
  const auto nearest = Nearest(name, known);
  return CouldNotRun({fmt::format("no cause and no rule is called '{}'", name),
                      nearest ? fmt::format("did you mean {}?", *nearest) : "inquest explain lists all causes", ""});
}

}  // namespace

CommandResult RunExplain(const Options& options) {
  const std::variant<RuleBook, RuleErrors> loaded = LoadRuleSet(options);
  if (const RuleErrors* errors = std::get_if<RuleErrors>(&loaded)) return BadRules(*errors);
  const RuleBook& book = std::get<RuleBook>(loaded);
  if (options.arguments.empty()) return Everything(book);
  CommandResult result;
  for (const std::string& name : options.arguments) {
    if (!result.out.empty()) result.out += '\n';
    if (const Cause* cause = book.FindCause(name)) {
      result.out += Describe(*cause, book);
    } else if (const Rule* rule = book.FindRule(name)) {
      result.out += Describe(*rule, book);
    } else {
      return Unknown(book, name);
    }
  }
  return result;
}

}  // namespace inquest
