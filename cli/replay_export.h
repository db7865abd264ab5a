// What `inquest replay --export` writes: the same calls for people who have no inquest, for a vendor's ticket.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "replay/plan.h"

namespace inquest {

/// Stands in the first lines of every script that ReproScript writes.
inline constexpr std::string_view kReproMark = "inquest replay --export";

/// A Python script for torchrun that needs PyTorch alone: the calls of every rank in its order, groups, streams and
/// NCCL settings. Of a sweep, the first values. Texts of a log stand in it as escaped literals only. The plan can be
/// run. `name`: of the file, for the command in its head.
std::string ReproScript(const Plan& plan, std::string_view version, std::string_view name);

/// Lines for a shell: nccl-tests, one process a rank, by mpirun or srun. Fails where nccl-tests has no such operation,
/// or where there is more than one call.
Result<std::string> NcclTestsLines(const Plan& plan);

}  // namespace inquest
