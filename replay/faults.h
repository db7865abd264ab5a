// Faults that tests inject, as text: `2:hang@comm-init;1:count=5`. Explained in docs/replay.md.
#pragma once

#include <string_view>
#include <vector>

#include "core/result.h"
#include "replay/plan.h"

namespace inquest {

/// `plan` gives the call that an altered one differs from.
Result<std::vector<Fault>> ParseFaults(std::string_view text, const Plan& plan);

}  // namespace inquest
