// Pairs of ranks in rounds: in each round every rank is in one pair at most, so that all of a round can run at once.
#pragma once

#include <compare>
#include <vector>

namespace inquest {

/// Two ranks of one plan, the lower first.
struct RankPair {
  int low = 0, high = 1;
  bool Has(int rank) const { return low == rank || high == rank; }
  auto operator<=>(const RankPair&) const = default;
};

/// Every pair of `ranks` once, as a round robin has them: n-1 rounds of n/2 pairs where n is even, else n rounds of
/// (n-1)/2.
std::vector<std::vector<RankPair>> RoundsOf(int ranks);

/// Some of `pairs` that share no rank, to which none can be added: those of ranks that are in many first.
std::vector<RankPair> Disjoint(const std::vector<RankPair>& pairs);

/// Ranks that `joined` connects, directly or over others: each group ascending, by their first ranks.
std::vector<std::vector<int>> GroupsOf(int ranks, const std::vector<RankPair>& joined);

}  // namespace inquest
