// The search is delta debugging's (Zeller), over ranks: what was asked once is known, and a set that was found is tried
// without each of its ranks, since a fault need not be as simple as halving takes it for.
#include "replay/subsets.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "replay/ops.h"

namespace inquest {
namespace {

using Ranks = std::vector<int>;

Ranks Union(const Ranks& a, const Ranks& b) {
  Ranks both;
  std::ranges::set_union(a, b, std::back_inserter(both));
  return both;
}

class SubsetSearch {
 public:
  SubsetSearch(const BreakSets& breaks, int most_sets) : breaks_(breaks), left_(most_sets) {}

  /// The smallest part of `ranks` that breaks together with `others`; all of `ranks` do.
  Ranks Reduce(const Ranks& ranks, const Ranks& others) {
    if (ranks.size() < 2 || over_) return ranks;
    const auto middle = ranks.begin() + static_cast<std::ptrdiff_t>(ranks.size() / 2);
    const Ranks first(ranks.begin(), middle), second(middle, ranks.end());
    if (others.empty()) (void)Ask({first, second});  // they share no rank
    if (Breaks(Union(first, others))) return Reduce(first, others);
    if (Breaks(Union(second, others))) return Reduce(second, others);
    if (over_) return ranks;
    const Ranks of_first = Reduce(first, Union(second, others));
    const Ranks of_second = Reduce(second, Union(of_first, others));
    return Union(of_first, of_second);
  }

  /// Without each of its ranks in turn; what breaks still is reduced anew.
  Ranks Minimal(Ranks ranks) {
    if (ranks.size() > kMostLeftOut) return ranks;
    for (std::size_t out = 0; out < ranks.size() && ranks.size() > 1 && !over_; ++out) {
      Ranks rest = ranks;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(out));
      if (Breaks(rest)) return Minimal(Reduce(rest, {}));
    }
    return ranks;
  }

  bool is_over() const { return over_; }
  int sets() const { return static_cast<int>(known_.size()); }

 private:
  static constexpr std::size_t kMostLeftOut = 16;

  bool Ask(std::vector<Ranks> sets) {
    std::erase_if(sets, [&](const Ranks& set) { return known_.contains(set); });
    if (over_ || sets.empty()) return !over_;
    left_ -= static_cast<int>(sets.size());
    const auto answers = left_ >= 0 ? breaks_(sets) : std::nullopt;
    over_ = !answers;
    for (std::size_t i = 0; answers && i < sets.size(); ++i) known_[sets[i]] = (*answers)[i];
    return !over_;
  }
  bool Breaks(const Ranks& ranks) { return Ask({ranks}) && known_[ranks]; }

  const BreakSets& breaks_;
  int left_;
  bool over_ = false;
  std::map<Ranks, bool> known_;
};

}  // namespace

Plan SubsetOf(const Plan& plan, const std::vector<int>& ranks) {
  Plan subset = plan;
  const auto place_in = [&](int rank) -> std::optional<int> {
    const auto found = std::ranges::find(ranks, rank);
    return found == ranks.end() ? std::nullopt : std::optional(static_cast<int>(found - ranks.begin()));
  };
  subset.ranks.value = static_cast<int>(ranks.size());
  if (plan.sequence) subset.sequence = SubsetOf(*plan.sequence, ranks);
  subset.root.value = place_in(plan.root.value).value_or(0);
  subset.places.clear();
  subset.shares.clear();
  subset.splits.clear();
  // Each rank's number on its node is that of its GPU, but where it is alone there: then the launcher may have chosen
  // one.
  const auto on_node = [&plan](int rank) -> std::pair<int, std::optional<int>> {
    for (const NodeShare& share : plan.shares) {
      if (rank < share.ranks) return {share.node, share.ranks > 1 ? std::optional(rank) : std::nullopt};
      rank -= share.ranks;
    }
    return {0, rank};
  };
  for (const int rank : ranks) {
    const auto [node, local] = on_node(rank);
    if (!plan.shares.empty()) {
      if (subset.shares.empty() || subset.shares.back().node != node) subset.shares.push_back({node, 0});
      ++subset.shares.back().ranks;
    }
    const auto index = static_cast<std::size_t>(rank);
    RankPlace& place = subset.places.emplace_back(index < plan.places.size() ? plan.places[index] : RankPlace{});
    if (local) place.options.try_emplace("device", std::to_string(*local));
    if (index < plan.splits.size()) subset.splits.push_back(plan.splits[index]);
  }
  std::erase_if(subset.faults, [&](const Fault& fault) { return !place_in(fault.rank); });
  for (Fault& fault : subset.faults) fault.rank = *place_in(fault.rank);
  return subset;
}

Shrunk Shrink(const std::vector<int>& ranks, const BreakSets& breaks, int most_sets) {
  SubsetSearch search(breaks, most_sets);
  Shrunk result;
  result.smallest = search.Reduce(ranks, {});
  result.smallest = search.Minimal(std::move(result.smallest));
  result.is_whole = !search.is_over();
  result.sets = search.sets();
  return result;
}

}  // namespace inquest
