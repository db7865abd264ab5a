// Part of a plan's ranks as a plan of its own.
#include "replay/subsets.h"

#include <algorithm>
#include <set>

#include "tests/catch.h"

namespace inquest {
namespace subsets_test {

TEST_CASE("subsets: ranks keep their GPUs, their places and their parts of the call", "[unit][replay]") {
  Plan plan;
  plan.ranks.value = 6;
  plan.root.value = 4;
  plan.splits = {10, 11, 12, 13, 14, 15};
  plan.places.resize(6);
  plan.places[4].env["NCCL_HOSTID"] = std::string("four");
  plan.places[5].options["device"] = std::string("0");
  plan.faults = {{.rank = 4}, {.rank = 1}};
  const Plan part = SubsetOf(plan, {2, 4, 5});
  CHECK(part.ranks.value == 3);
  CHECK(part.root.value == 1);
  CHECK(part.splits == std::vector<std::uint64_t>{12, 14, 15});
  REQUIRE(part.places.size() == 3);
  CHECK(part.places[0].options.at("device") == "2");
  CHECK(part.places[1].options.at("device") == "4");
  CHECK(part.places[1].env.at("NCCL_HOSTID") == "four");
  CHECK(part.places[2].options.at("device") == "0");
  REQUIRE(part.faults.size() == 1);
  CHECK(part.faults[0].rank == 1);
  CHECK(SubsetOf(plan, {0, 1}).root.value == 0);
}

TEST_CASE("subsets: over several nodes ranks stay on theirs", "[unit][replay]") {
  Plan plan;
  plan.ranks.value = 12;
  plan.shares = {{0, 4}, {1, 4}, {2, 4}};
  const Plan part = SubsetOf(plan, {1, 3, 9, 10, 11});
  REQUIRE(part.shares.size() == 2);
  CHECK(part.shares[0].node == 0);
  CHECK(part.shares[0].ranks == 2);
  CHECK(part.shares[1].node == 2);
  CHECK(part.shares[1].ranks == 3);
  CHECK(part.places[1].options.at("device") == "3");
  CHECK(part.places[2].options.at("device") == "1");
}

TEST_CASE("subsets: an interruption ends the search with what is known to break", "[unit][replay]") {
  int asked = 0;
  const BreakSets breaks = [&](const std::vector<std::vector<int>>& sets) -> std::optional<std::vector<bool>> {
    if (++asked == 2) return std::nullopt;
    std::vector<bool> answers;
    for (const auto& ranks : sets) answers.push_back(ranks.front() == 0);
    return answers;
  };
  const Shrunk result = Shrink({0, 1, 2, 3, 4, 5, 6, 7}, breaks, 100);
  CHECK_FALSE(result.is_whole);
  CHECK(result.smallest == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("subsets: what was asked is known, and nothing that is found can do without a rank", "[unit][replay]") {
  std::vector<int> all;
  for (int rank = 0; rank < 48; ++rank) all.push_back(rank);
  // Breaks with 7 and 30, or with 31 and any other two: not as simple as halving takes it for.
  std::set<std::vector<int>> seen;
  const auto bad = [](const std::vector<int>& ranks) {
    const auto has = [&](int rank) { return std::ranges::find(ranks, rank) != ranks.end(); };
    return (has(7) && has(30)) || (has(31) && ranks.size() > 2);
  };
  const Shrunk result = Shrink(
      all,
      [&](const std::vector<std::vector<int>>& sets) -> std::optional<std::vector<bool>> {
        std::vector<bool> answers;
        std::set<int> together;
        for (const auto& ranks : sets) {
          CHECK(seen.insert(ranks).second);
          for (const int rank : ranks) CHECK(together.insert(rank).second);  // what is tried at once shares no rank
          answers.push_back(bad(ranks));
        }
        return answers;
      },
      100);
  CHECK(result.is_whole);
  CHECK(result.sets == static_cast<int>(seen.size()));
  CHECK(bad(result.smallest));
  for (const int rank : result.smallest) {
    std::vector<int> rest = result.smallest;
    std::erase(rest, rank);
    CHECK_FALSE((!rest.empty() && bad(rest)));
  }
}

TEST_CASE("subsets: of a sequence, what the ranks make among themselves", "[unit][replay]") {
  Sequence sequence{.communicators = {{.name = "all", .ranks = {0, 1, 2, 3}, .id = 0},
                                      {.name = "pair", .ranks = {3, 1}, .id = 1},
                                      {.name = "left", .ranks = {0, 2}, .id = 2}},
                    .calls = {{.operation = Operation::kBroadcast, .count = 8, .root = 3},
                              {.operation = Operation::kSendRecv, .count = 4, .root = 0, .peer = 1},
                              {.operation = Operation::kAllToAll, .splits = {1, 2, 3, 4}},
                              {.count = 5}},
                    .steps = {{{}, {.communicator = 2, .call = 3}},
                              {{}, {.communicator = 1, .call = 1}, {.call = 2, .number = 1}},
                              {{}, {.communicator = 2, .call = 3}},
                              {{.communicator = 1, .call = 1}, {}, {.call = 2, .number = 1}}},
                    .rule = "the last 2"};
  Complete(sequence);
  Plan plan;
  plan.ranks.value = 4;
  plan.sequence = sequence;
  const Plan part = SubsetOf(plan, {1, 3});
  REQUIRE(part.sequence);
  const Sequence& both = *part.sequence;
  REQUIRE(both.communicators.size() == 2);
  CHECK(both.communicators[0].ranks == std::vector<int>{0, 1});
  CHECK(both.communicators[1].ranks == std::vector<int>{1, 0});  // as they were counted in it
  CHECK(both.communicators[1].id == 1);
  REQUIRE(both.steps.size() == 2);
  CHECK(both.steps[0].size() == 3);
  CHECK(both.steps[1].size() == 3);
  const Call& broadcast = both.calls[both.steps[0][0].call];
  CHECK(broadcast.root == 1);  // rank 3
  CHECK(both.calls[both.steps[0][2].call].splits == std::vector<std::uint64_t>{2, 4});
  CHECK(DisagreementsOf(both).empty());
  CHECK(WhyInvalid(both).empty());
  // A send to one that is not there is no send, and a root that is not there is the first.
  const Sequence three = SubsetOf(sequence, {0, 1, 2});
  CHECK(three.communicators.size() == 2);
  CHECK(three.steps[1].size() == 2);
  CHECK(three.calls[three.steps[1][0].call].root == 0);
  CHECK(SubsetOf(sequence, {1}).size() == 0);
}

}  // namespace subsets_test
}  // namespace inquest
