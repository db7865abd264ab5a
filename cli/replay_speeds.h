// `inquest replay --save-baseline` and `--baseline`: how fast each rank sends to each other, and beside what it was.
#pragma once

#include <optional>
#include <string>

#include "cli/nccl_logs.h"
#include "cli/options.h"
#include "cli/replay_report.h"
#include "cli/replay_runs.h"

namespace inquest {

bool AsksForSpeeds(const ReplayOptions& options);

/// What --baseline names; nullopt: it is not given. Fails where it cannot be read, or is of another engine or number of
/// ranks.
Result<std::optional<Speeds>> BaselineFor(const ReplayOptions& options, const Plan& plan);

/// Measures, compares, and writes what --save-baseline names; what cannot be written, or should not, is a note.
SpeedReport RunSpeeds(const Plan& plan, const ReplayOptions& options, const std::optional<Speeds>& before,
                      const SpeedSetup& setup);

}  // namespace inquest
