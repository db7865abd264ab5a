// The search is delta debugging's (Zeller), over ranks.
#include "replay/subsets.h"

#include <algorithm>
#include <iterator>
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

class Search {
 public:
  Search(const std::function<std::optional<bool>(const Ranks&)>& breaks, int most_sets)
      : breaks_(breaks), left_(most_sets) {}

  /// The smallest part of `ranks` that breaks together with `others`; all of `ranks` do.
  Ranks Reduce(const Ranks& ranks, const Ranks& others) {
    if (ranks.size() < 2 || over_) return ranks;
    const auto middle = ranks.begin() + static_cast<std::ptrdiff_t>(ranks.size() / 2);
    const Ranks first(ranks.begin(), middle), second(middle, ranks.end());
    if (Breaks(Union(first, others))) return Reduce(first, others);
    if (Breaks(Union(second, others))) return Reduce(second, others);
    if (over_) return ranks;
    const Ranks of_first = Reduce(first, Union(second, others));
    const Ranks of_second = Reduce(second, Union(of_first, others));
    return Union(of_first, of_second);
  }
  bool is_over() const { return over_; }

 private:
  bool Breaks(const Ranks& ranks) {
    if (over_) return false;
    const std::optional<bool> answer = left_-- > 0 ? breaks_(ranks) : std::nullopt;
    over_ = !answer;
    return answer.value_or(false);
  }

  const std::function<std::optional<bool>(const Ranks&)>& breaks_;
  int left_;
  bool over_ = false;
};

}  // namespace

Plan SubsetOf(const Plan& plan, const std::vector<int>& ranks) {
  Plan subset = plan;
  const auto place_in = [&](int rank) -> std::optional<int> {
    const auto found = std::ranges::find(ranks, rank);
    return found == ranks.end() ? std::nullopt : std::optional(static_cast<int>(found - ranks.begin()));
  };
  subset.ranks.value = static_cast<int>(ranks.size());
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

Bisection Bisect(const std::vector<int>& ranks,
                 const std::function<std::optional<bool>(const std::vector<int>&)>& breaks, int most_sets) {
  Search search(breaks, most_sets);
  Bisection result{.smallest = search.Reduce(ranks, {}), .is_whole = true};
  result.is_whole = !search.is_over();
  return result;
}

}  // namespace inquest
