// What a case tells that the commands of its remedies ask for.
#pragma once

#include "rules/evidence.h"
#include "rules/remedy.h"
#include "rules/verdict.h"

namespace inquest {

/// By the culprits of the verdict, the job's id, and the names that its lines of cause hold (rules of kind `names`);
/// where the ranks meet may stand on any line. A GPU goes by its bus id where that is known: an index inside a
/// container is another outside.
Facts FactsOf(const Evidence& evidence, const Verdict& verdict);

}  // namespace inquest
