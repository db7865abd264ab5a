// Settings of NCCL for a replay: logs of every rank, and several ranks on one GPU.
#pragma once

#include <string>

#include "replay/plan.h"

namespace inquest {

/// Every rank writes NCCL's own account of the run to `folder`/nccl.<rank>.log, for the analyzer to read.
Plan LoggedTo(Plan plan, const std::string& folder);

/// All ranks on one GPU, each as if on a host of its own, so that NCCL takes them and they talk over sockets. `tag` keeps
/// runs apart; ports from `first_port` on are for NCCL's RAS. Says in the plan's notes what that does not test.
Plan SharingGpu(Plan plan, const std::string& tag, int first_port);

}  // namespace inquest
