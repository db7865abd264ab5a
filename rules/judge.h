// From a timeline to a verdict.
#pragma once

#include <vector>

#include "rules/rule_book.h"
#include "rules/verdict.h"

namespace inquest {

/// Signatures, detectors and the judge, in this order: everything that happens between a timeline and its verdict.
Verdict Decide(const Timeline& timeline, const RuleBook& book);

}  // namespace inquest
