// Whether a log is a series of short runs, each asked for with other parameters, and its last round of them is whole.
#pragma once

#include <cstdint>

#include "timeline/timeline.h"

namespace inquest {

// A batch job that measures something runs one program many times: `np` 16, 24, 32, then the next program with the
// same. Nothing says at the end that all is through; a reader sees that the parameters go round, and that the log ends
// with a whole round. What is looked for: rows of one form, in one column of which the same values come in the same
// order, three or more, round after round; a line in front of each row or round that differs from it in form and says
// other numbers each time; and a last line behind which such a line always came, before. One that was cut off anywhere
// ends so once in as many times as a round has rows. What looks like it: ranks, layers or GPUs that print in turn,
// which count up or have no line in front; the parts of a loop, whose lines count epochs or steps.
/// The whole input is such a series, and its last round is complete; or it is runs of one program, three or more, each
/// of which begins and ends alike, and so does the last; or it is a whole roll call.
bool EndsAWholeRound(const Timeline& timeline, std::uint32_t input);

/// Each of so many ranks greeted, `Hello from process 3 of 8`, as often as the others, and nothing else came of the
/// program: that is all that it does.
bool IsWholeRollCall(const Timeline& timeline, std::uint32_t input);

}  // namespace inquest
