// What the sieve is to look for: the expressions of a rule book, and the marks of formats.
#include "rules/sought.h"

#include <fmt/format.h>

namespace inquest {
namespace {

/// A training line says nothing about a failure and stands in every second line of a log; it is looked for, as rules of
/// the last line are, only where a writer's last lines are kept anyway.
bool InSieve(const Rule& rule) { return rule.at != Activity::kTraining && rule.scope.empty(); }

/// Where a job is to end, and who it is, is said once, at its start.
bool KeepLastOnly(const Rule& rule) {
  return (rule.kind == Rule::Kind::kPhase && rule.says != Rule::Says::kGoal && rule.says != Rule::Says::kIdentity) ||
         rule.kind == Rule::Kind::kEnding;
}

}  // namespace

Sought SoughtBy(const RuleBook& book, std::span<const std::string_view> marks) {
  Sought sought{{}, marks};
  for (const Rule& rule : book.rules)
    sought.expressions.push_back({.name = fmt::format("{} {}", static_cast<int>(rule.kind), rule.id),
                                  .text = rule.text,
                                  .where = rule.file,
                                  .in_sieve = InSieve(rule),
                                  .keep_last_only = KeepLastOnly(rule)});
  return sought;
}

}  // namespace inquest
