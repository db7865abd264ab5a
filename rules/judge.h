// Weighs findings into one verdict.
#pragma once

#include <vector>

#include "rules/evidence.h"
#include "rules/verdict.h"

namespace inquest {

/// Which of the findings is the first cause, what follows from it, and whether the job failed at all. `findings` are of
/// all rules and detectors, in any order; they come back in the verdict, in order of weight. The argument is told above
/// its steps.
Verdict Judge(const Evidence& evidence, std::vector<Finding> findings);

}  // namespace inquest
