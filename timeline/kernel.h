// Whose lines a kernel log's are: its host, and the process that a line of it speaks of.
#pragma once

#include "timeline/timeline.h"

namespace inquest {

/// Names the hosts of kernel logs and joins their events to processes. Of a timeline whose processes are resolved.
void JoinKernel(Timeline& timeline);

}  // namespace inquest
