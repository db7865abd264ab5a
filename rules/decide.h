// From a timeline to a verdict.
#pragma once

#include <optional>

#include "rules/rule_book.h"
#include "rules/verdict.h"

namespace inquest {

/// Signatures, detectors and the judge, in this order: everything that happens between a timeline and its verdict.
/// Where the job was started several times, `timeline` becomes that of the attempt judged: number `attempt` from 1, the
/// last if that is none of them; the others are told in `Verdict::attempts`.
Verdict Decide(Timeline& timeline, const RuleBook& book, std::optional<std::size_t> attempt = std::nullopt);

}  // namespace inquest
