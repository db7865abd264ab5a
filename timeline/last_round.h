// Whether a loop whose rows say themselves of how many they are came to its last round, and was through with it.
#pragma once

#include <cstdint>

#include "timeline/goal.h"
#include "timeline/timeline.h"

namespace inquest {

/// The last row of a loop whose rows say themselves of how many they are, `Epoch 30/30:` or `[29/30][359/360]`, where
/// it is the last of all. A row that heads its round has as much behind it as the one before, whatever each round
/// prints; one that closes it has it in front, as the first had. None of a loop that came to its end before and was
/// begun anew, unless it stands within another. `counts`: the last of all was begun, and it is known what each round
/// prints.
AtGoal LastOfAll(const Timeline& timeline, std::uint32_t input);

}  // namespace inquest
