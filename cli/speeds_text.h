// Bandwidths between ranks as a table.
#pragma once

#include <string>

#include "cli/replay_report.h"

namespace inquest {

/// From row to column, at the largest size; then those that are slower than they were, size by size.
std::string SpeedsText(const SpeedReport& report, const TextStyle& style);

}  // namespace inquest
