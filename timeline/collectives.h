// What timed out, matched over its participants: process groups and the operations that did not end.
#pragma once

#include "timeline/timeline.h"

namespace inquest {

/// Fills groups and collectives of a timeline whose identities are resolved.
void MatchWork(Timeline& timeline);

}  // namespace inquest
