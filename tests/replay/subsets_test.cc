// Part of a plan's ranks as a plan of its own.
#include "replay/subsets.h"

#include "tests/catch.h"

namespace inquest {
namespace {

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
  int sets = 0;
  const auto breaks = [&](const std::vector<int>& ranks) -> std::optional<bool> {
    if (++sets == 3) return std::nullopt;
    return ranks.front() == 0;
  };
  const Bisection result = Bisect({0, 1, 2, 3, 4, 5, 6, 7}, breaks, 100);
  CHECK_FALSE(result.is_whole);
  CHECK(result.smallest == std::vector<int>{0, 1});
}

}  // namespace
}  // namespace inquest
