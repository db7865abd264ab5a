// What the job set for NCCL, as a plan's environment.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/plan.h"
#include "timeline/timeline.h"

namespace inquest {

/// Into `plan`'s environment for all ranks what all of them print, into that of one place what it alone prints. A rank
/// whose NCCL prints, and not this, had it not. What makes NCCL load code or touch files is named in the notes and left
/// to the user: a log could come from anywhere. `processes`: into Timeline::processes, beside the plan's places.
Plan WithSettings(Plan plan, const Timeline& timeline, const std::vector<std::optional<std::uint32_t>>& processes);

}  // namespace inquest
