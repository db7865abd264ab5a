// Sets of ranks: the same as a set of numbers, but as small as its stretches.
#include "core/rank_set.h"

#include <limits>
#include <random>
#include <set>

#include "tests/catch.h"

namespace inquest {
namespace rank_set_test {

TEST_CASE("ranks: a set of stretches does what a set of numbers does", "[unit][core]") {
  std::mt19937 chance(20310219);
  for (int round = 0; round < 200; ++round) {
    RankSet ranks, others;
    std::set<int> expected, expected_others;
    for (int step = 0; step < 40; ++step) {
      const int first = static_cast<int>(chance() % 60), last = first + static_cast<int>(chance() % 6) - 1;
      const bool other = chance() % 3 == 0;
      if (chance() % 4 == 0) {
        ranks.Remove(first);
        expected.erase(first);
        continue;
      }
      (other ? others : ranks).Add(first, last);
      for (int rank = first; rank <= last; ++rank) (other ? expected_others : expected).insert(rank);
    }
    CHECK(std::set<int>(ranks.begin(), ranks.end()) == expected);
    CHECK(ranks.size() == expected.size());
    for (int rank = -1; rank < 70; ++rank) CHECK(ranks.contains(rank) == expected.contains(rank));
    const auto& stretches = ranks.stretches();
    for (std::size_t i = 1; i < stretches.size(); ++i) CHECK(stretches[i - 1].last + 1 < stretches[i].first);
    const RankSet without = ranks.Without(others);
    std::set<int> left = expected;
    for (const int rank : expected_others) left.erase(rank);
    CHECK(std::set<int>(without.begin(), without.end()) == left);
    RankSet both = ranks;
    both.Add(others);
    expected.merge(expected_others);
    CHECK(both == RankSet::Of(expected));
  }
}

TEST_CASE("ranks: up to the highest number that there is", "[unit][core]") {
  constexpr int kHighest = std::numeric_limits<int>::max();
  RankSet ranks;
  ranks.Add(0, kHighest);
  CHECK(ranks.size() == std::uint64_t{1} << 31);
  ranks.Remove(1'000'000'000);
  CHECK(ranks.stretches().size() == 2);
  CHECK(ranks.Without(ranks).empty());
  RankSet middle;
  middle.Add(3, kHighest);
  CHECK(ranks.Without(middle) == RankSet::Of(std::set<int>{0, 1, 2}));
  ranks.Add(5, 2);
  CHECK(ranks.size() == (std::uint64_t{1} << 31) - 1);
}

}  // namespace rank_set_test
}  // namespace inquest
