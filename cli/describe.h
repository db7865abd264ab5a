// Causes, rules and numbered errors in words.
#pragma once

#include <string>

#include "rules/rule_book.h"

namespace inquest {

std::string Describe(const Cause& cause, const RuleBook& book);
std::string Describe(const Rule& rule, const RuleBook& book);
std::string Describe(const FindingRule& rule);
/// The causes that it may be: `slow-rank or jit-build-stall`.
std::string CauseWord(const FindingRule& rule);
/// Of its grades.
Strength Strongest(const FindingRule& rule);
/// `name` is `Xid` or `SXid`.
std::string Describe(std::string_view name, const ErrorCode& code, const RuleBook& book);
/// `signature`, `symptom`, `phase`, `ending`.
std::string_view KindWord(Rule::Kind kind);

}  // namespace inquest
