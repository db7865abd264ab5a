// Settings of NCCL for a replay: logs of every rank, witnesses of a hang, and several ranks on one GPU.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "replay/plan.h"

namespace inquest {

/// What workers inherit, by name. What the user or the job has set stays as it is.
using Environment = std::map<std::string, std::string>;
/// Of all ranks; the plan's settings replace what workers inherit. Empty: neither has it.
std::string SettingOf(const Plan& plan, const Environment& inherited, const std::string& name);

/// Where NCCL writes its log. A node of another host writes to a file of its own instead, and sends what is in it.
inline constexpr std::string_view kLogFileVariable = "NCCL_DEBUG_FILE";

/// Every rank writes NCCL's own account of the run to `folder`/nccl.<rank>.log, for the analyzer to read.
Plan LoggedTo(Plan plan, const std::string& folder);

/// What NCCL can be asked while it hangs: its RAS at a free port for each rank, since processes of one host would share
/// the usual one and any of them might answer; and a signal at which it prints what its proxy thread has in hand.
Plan Witnessed(Plan plan, const Environment& inherited);
/// Whether the settings of a rank are those of a Witnessed plan.
bool IsWitnessed(const Environment& of_rank);

/// All ranks on one GPU, or on its MIG instances in turn, each as if on a host of its own, so that NCCL takes them and
/// they talk over sockets; with NCCL_MULTI_RANK_GPU_ENABLE=1 (2.30) as ranks of this host. `tag` keeps runs apart. Says
/// in the plan's notes what that does not test.
Plan SharingGpu(Plan plan, const std::string& tag, const Environment& inherited);

}  // namespace inquest
