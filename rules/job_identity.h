// Which job it is: by what schedulers and launchers print, and by the names of files.
#pragma once

#include <span>
#include <vector>

#include "rules/evidence.h"
#include "timeline/two_jobs.h"

namespace inquest {

/// What lines say of batch jobs, in their order, each id once. An id that is printed with its server and without is
/// one, with it.
std::vector<NamedJob> JobsNamed(const Evidence& evidence);

// Lines go before names of files, and batch systems before pods, whose names go before what torchelastic calls a run.
// Several pods are one job where their names begin alike. Two ids of a kind are none.
/// Of the attempt whose evidence it is; `named` is what JobsNamed() says of it.
JobTold IdentityOf(const Evidence& evidence, std::span<const NamedJob> named);

}  // namespace inquest
