// Files that hold what one program wrote, its output in one and its errors in the other.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/timeline.h"

namespace inquest {

/// By input: the one that holds the other stream of the same program, as their names say it (`88123.out` beside
/// `88123.err`, `train.o88123` beside `train.e88123`, `stdout.log` beside `stderr.log`); itself where there is none.
std::vector<std::uint32_t> OtherStreams(const std::vector<InputSummary>& inputs);

}  // namespace inquest
