// The circle method: one rank stands, the others go round it, and those that face one another are a pair.
#include "replay/rounds.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace inquest {

std::vector<std::vector<RankPair>> RoundsOf(int ranks) {
  if (ranks < 2) return {};
  const int places = ranks + ranks % 2;  // of an odd number one is left over in each round
  std::vector<std::vector<RankPair>> rounds;
  for (int turn = 0; turn < places - 1; ++turn) {
    const auto at = [&](int place) { return place == 0 ? places - 1 : (turn + place - 1) % (places - 1); };
    auto& round = rounds.emplace_back();
    for (int place = 0; place < places / 2; ++place) {
      const int one = at(place), other = at(places - 1 - place);
      if (std::max(one, other) < ranks) round.push_back({std::min(one, other), std::max(one, other)});
    }
    std::ranges::sort(round);
  }
  return rounds;
}

std::vector<RankPair> Disjoint(const std::vector<RankPair>& pairs) {
  std::map<int, int> times;
  for (const RankPair& pair : pairs) {
    ++times[pair.low];
    ++times[pair.high];
  }
  std::vector<RankPair> order = pairs;
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](const RankPair& pair) { return std::max(times[pair.low], times[pair.high]); });
  std::set<int> taken;
  std::vector<RankPair> disjoint;
  for (const RankPair& pair : order) {
    if (taken.contains(pair.low) || taken.contains(pair.high)) continue;
    taken.insert({pair.low, pair.high});
    disjoint.push_back(pair);
  }
  return disjoint;
}

std::vector<std::vector<int>> GroupsOf(int ranks, const std::vector<RankPair>& joined) {
  std::vector<int> group(static_cast<std::size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  for (const RankPair& pair : joined) {
    const int from = group[static_cast<std::size_t>(pair.high)], to = group[static_cast<std::size_t>(pair.low)];
    std::ranges::replace(group, std::max(from, to), std::min(from, to));
  }
  std::map<int, std::vector<int>> groups;
  for (int rank = 0; rank < ranks; ++rank) groups[group[static_cast<std::size_t>(rank)]].push_back(rank);
  std::vector<std::vector<int>> list;
  for (auto& [first, members] : groups) list.push_back(std::move(members));
  return list;
}

}  // namespace inquest
