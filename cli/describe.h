// Causes and rules in words.
#pragma once

#include <string>

#include "rules/rule_book.h"

namespace inquest {

std::string Describe(const Cause& cause, const RuleBook& book);
std::string Describe(const Rule& rule, const RuleBook& book);
/// `signature`, `symptom`, `phase`, `ending`.
std::string_view KindWord(Rule::Kind kind);

}  // namespace inquest
