// Runs several plans at the same time on the same nodes, each as a job of its own.
#pragma once

#include <span>
#include <vector>

#include "replay/supervisor.h"

namespace inquest {

/// Fresh processes for each; every plan is watched and judged by itself, as if it were alone. In the order of `plans`,
/// whose ranks count from 0 in each. Each may have any number of ranks on any node; that all of them together fit into
/// a host's memory is looked at once. RunSetup::progress and decided are not called. To be called from a thread that
/// outlives it, as RunPlan.
std::vector<RunOutcome> RunAtOnce(std::span<const Plan> plans, const RunSetup& setup, std::span<Node* const> nodes);

}  // namespace inquest
