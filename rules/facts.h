// What a case tells that the commands of its remedies ask for.
#pragma once

#include "rules/remedy.h"
#include "rules/verdict.h"

namespace inquest {

/// By the culprits of the verdict and the job's id, where it is Slurm's, whose commands ask for it. A GPU goes by its
/// bus id where that is known: an index inside a container is another outside.
Facts FactsOf(const Timeline& timeline, const Verdict& verdict);

}  // namespace inquest
