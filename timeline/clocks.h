// When lines that count from boot were written: kernel logs without dates, aligned to the dates of others.
#pragma once

#include "timeline/timeline.h"

namespace inquest {

/// Dates kernel events that have only an uptime, and says in their inputs' `clock` how. Of a timeline whose kernel logs
/// have hosts and processes.
void AlignClocks(Timeline& timeline);

}  // namespace inquest
