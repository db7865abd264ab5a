// Whom a witness speaks of: stacks, reports of NCCL's RAS and Inspector, diagnostics.
#pragma once

#include "timeline/timeline.h"

namespace inquest {

/// Gives events of witnesses the rank and host that their pid, GPU, file name or communicator names. Of a timeline
/// whose processes are resolved.
void JoinWitnesses(Timeline& timeline);

}  // namespace inquest
