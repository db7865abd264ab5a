// Whom a verdict blames.
#pragma once

#include <optional>
#include <vector>

#include "rules/evidence.h"
#include "rules/rule_book.h"
#include "rules/verdict.h"

namespace inquest {

/// The culprits of a verdict that rests on `top`: those that it names; where it names no rank, those of another finding
/// of the same cause, of what it explains, or who was gone before the others. `findings` hold `top`. `collective`: the
/// operation in which the others wait.
std::vector<Culprit> CulpritsOf(const Timeline& timeline, const RuleBook& book, const Finding& top,
                                const std::vector<Finding>& findings, const std::optional<CollectiveRef>& collective);

/// Where nothing says why the job failed: the ranks that were gone first, whose own logs would, else whom a consequence
/// names.
std::vector<Culprit> FirstGone(const Timeline& timeline, const std::vector<Finding>& findings);

}  // namespace inquest
