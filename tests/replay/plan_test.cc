// Plans: what is swept, what options replace, and what is said of each argument.
#include "replay/plan.h"

#include "tests/catch.h"

using namespace inquest;

TEST_CASE("plan: every combination of what is assumed, the likeliest first", "[unit][replay]") {
  Plan plan;
  plan.operation = {.value = Operation::kBroadcast, .basis = Basis::kObserved, .at = SourceLine{"job.log", 7}};
  plan.count = {.value = 12, .basis = Basis::kObserved};
  plan.ranks = {.value = 3, .basis = Basis::kDerived, .rule = "NumelOut / NumelIn"};
  plan.datatype.sweep = {Datatype::kFloat32, Datatype::kBfloat16};
  plan.root.sweep = {0, 1, 2};
  const std::vector<Plan> all = Combinations(plan, 100);
  REQUIRE(all.size() == 6);
  CHECK(CallOf(all[0]) == Call{.operation = Operation::kBroadcast, .count = 12});
  CHECK(CallOf(all[1]).datatype == Datatype::kBfloat16);
  CHECK(CallOf(all[5]).root == 2);
  CHECK(all[5].root.sweep.empty());
  CHECK(Combinations(plan, 2).size() == 2);

  plan.operation.value = Operation::kAllReduce;  // has no root
  CHECK(Combinations(plan, 100).size() == 2);

  const Plan given = WithGiven(plan, {.datatype = Datatype::kInt8});
  CHECK(Combinations(given, 100).size() == 1);
  const std::vector<ArgumentLine> lines = Arguments(given);
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].origin == "observed, job.log:7");
  CHECK(lines[2].value == "int8");
  CHECK(lines[2].origin == "given by --dtype");
  CHECK(lines[4].origin == "derived: NumelOut / NumelIn");
}

TEST_CASE("plan: what cannot be run says which argument is missing", "[unit][replay]") {
  Plan plan;
  plan.operation.value = Operation::kBroadcast;
  CHECK(WhyNotRunnable(plan)->message == "the number of ranks is not known");
  plan.ranks.value = 3;
  CHECK(WhyNotRunnable(plan)->message == "the number of elements is not known");
  CHECK(WhyNotRunnable(plan)->hint == "give --count");
  plan.count = {.value = 0, .basis = Basis::kGiven};
  CHECK(WhyNotRunnable(plan)->message == "broadcast of no elements would move nothing");
  plan.count.value = 1;
  CHECK_FALSE(WhyNotRunnable(plan));
  plan.root.sweep = {0, 3};
  CHECK(WhyNotRunnable(plan)->message == "root 3 is none of 3 ranks");
}
