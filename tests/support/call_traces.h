// Calls of ranks, written down in short: what a recorder would have kept, and how it is shown again.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/call_trace.h"
#include "timeline/recorded.h"
#include "timeline/wait_graph.h"

namespace inquest {

struct TracedGroup {
  std::string name;
  std::vector<int> ranks;
};

/// `a#2 all_reduce:4 + | a#1 send>1:8 -`: group, number, operation, elements of each tensor; for a send or receive the
/// peer's number in the group. How it stands: `+` completed, `~` started, `-` enqueued, `!` given up. Groups whose
/// members are none of the rank's are left out. `a=7`: the recorder counted so many calls of the group. `torn`: the
/// dump is.
CallTrace TraceOf(const std::vector<TracedGroup>& groups, int rank, std::string_view calls);

/// The ledger of those ranks, read in the order of their numbers or the other way round.
Recorded RecordedOf(const std::vector<TracedGroup>& groups, const std::map<int, std::string>& ranks,
                    bool last_first = false);

/// `a#2: all_reduce:4 by 0-1, all_reduce:8 by 2`; of all groups that have one.
std::string ShowDivergences(const Recorded& recorded);
/// `a#2 by 0-1, idle 3, unknown 4, through 5, waits for b#1 (2)`; a node each, then `root a#2: 0-1`.
std::string ShowWaits(const Recorded& recorded, const WaitGraph& graph);

}  // namespace inquest
