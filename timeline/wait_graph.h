// Who waits for whom, as the ranks' own recorders have it: over all process groups, down to where it began.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/rank_set.h"
#include "timeline/recorded.h"

namespace inquest {

/// Something in which ranks wait: one number of a group, or the sends and receives of one rank that were launched as
/// one.
struct WaitNode {
  std::uint32_t group = 0;  ///< into Recorded::groups
  std::int64_t seq = 0;
  bool pairwise = false;
  RankSet ranks;  ///< whose oldest call that had not ended it is
  // Its other members, or the peers that do not answer:
  RankSet idle;     ///< had nothing that had not ended, and had not made this call
  RankSet unknown;  ///< of whom no recorder was given
  RankSet through;  ///< for whom it had ended
  RankSet lost;     ///< had made it once, or may have, and their recorders do not hold it: overwritten, torn, old
  struct Edge {
    std::uint32_t node = 0;  ///< where those members are instead
    RankSet ranks;
  };
  std::vector<Edge> edges;
  RankSet enqueued_only;        ///< of `ranks`, where some had begun it: those that had not
  std::int64_t created_ns = 0;  ///< when the first of them made it; 0: not recorded
  /// Two that answer one another with other sizes.
  struct Unequal {
    RecordedCall one, other;
    GlobalRank rank, peer;  ///< of `one`, and of `other`
  };
  std::optional<Unequal> unequal;

  bool all_there() const { return idle.empty() && unknown.empty() && lost.empty() && edges.empty(); }
};

/// Nobody waits for somebody else from here on: members never came, nothing is known of them, all came and it does not
/// end, or nodes wait for one another in a circle.
struct WaitRoot {
  std::vector<std::uint32_t> nodes;  ///< one; of a circle, each waits for the next, and the last for the first
  RankSet waiting;                   ///< all who wait in them, or for those who do
  std::int64_t created_ns = 0;
};

struct WaitGraph {
  std::vector<WaitNode> nodes;           ///< collectives by group and number, then pairs by rank
  std::map<int, std::uint32_t> node_of;  ///< of each rank that waits
  std::vector<WaitRoot> roots;           ///< those that most ranks wait for first; then the oldest
};

WaitGraph WaitsOf(const Recorded& recorded);
/// `all_reduce of 1 x Float #61 of group 0 (default_pg)`; of a pair, `send of 8 x Half to rank 4 in group 3 (pp)`.
std::string InWords(const Recorded& recorded, const WaitNode& node);

}  // namespace inquest
