// From a timeline to a verdict.
#pragma once

#include <vector>

#include "rules/rule_book.h"
#include "rules/verdict.h"

namespace inquest {

/// What signatures and symptoms say of the lines kept: one finding per rule and culprit.
std::vector<Finding> MatchSignatures(const Timeline& timeline, const RuleBook& book);
/// What relations across ranks say.
std::vector<Finding> RunDetectors(const Timeline& timeline, const RuleBook& book);
/// Weighs findings into one verdict.
Verdict Judge(const Timeline& timeline, const RuleBook& book, std::vector<Finding> findings);

}  // namespace inquest
