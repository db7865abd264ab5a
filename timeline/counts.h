// What NCCL's RAS and Inspector counted of the ranks' calls, beside what the ranks' own recorders kept.
#pragma once

#include "timeline/recorded.h"
#include "timeline/timeline.h"

namespace inquest {

// A count is no record: it says how many calls of one operation a rank had launched (RAS) or ended (Inspector) on a
// communicator. But no rank ends a call that a member has not launched, so whoever launched more than the fewest has a
// call open: the first that somebody lacks. Of several RAS reports the last counts; a rank whose count grew between two
// of them is slow and not stuck, and where it is now nobody knows. Communicators whose ranks are not known by their
// numbers in the job are left out, and so are ranks in calls of which a recorder was given.
void AddCounts(const Timeline& timeline, Recorded& recorded);

}  // namespace inquest
