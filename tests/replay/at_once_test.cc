// Several plans at the same time on one host: each judged by itself.
#include "replay/at_once.h"

#include <chrono>

#include "replay/local_node.h"
#include "tests/catch.h"
#include "tests/replay/replay_runs.h"

using namespace inquest;
using namespace std::chrono_literals;

namespace at_once_test {

std::vector<RunOutcome> Run(std::vector<Plan> plans, Pace* pace = nullptr) {
  RunSetup setup = TestSetup();
  setup.pace = pace;
  LocalNode node(setup.local);
  Node* const nodes[] = {&node};
  return RunAtOnce(plans, setup, nodes);
}

Plan With(Plan plan, std::string_view faults) {
  plan.faults = *ParseFaults(faults, plan);
  return plan;
}

TEST_CASE("at once: each plan has its own end, whatever befalls the others", "[replay][faults]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  Plan hung = With(SmallPlan(Operation::kAllReduce, 1000, 2), "1:hang@enqueued");
  hung.deadlines.each = 2s;
  const auto runs = Run({SmallPlan(Operation::kAllReduce, 1000, 2), hung,
                         With(SmallPlan(Operation::kBroadcast, 1000, 3), "2:kill@completed"),
                         With(SmallPlan(Operation::kAllGather, 500, 2), "0:count=5")});
  REQUIRE(runs.size() == 4);
  CHECK(runs[0].verdict == RunVerdict::kPassed);
  CHECK(runs[1].verdict == RunVerdict::kHung);
  CHECK(Has(runs[1].sentence, "Rank 1 did not enqueue #1"));
  CHECK(runs[2].verdict == RunVerdict::kRankDied);
  CHECK(Has(runs[2].sentence, "Rank 2 was killed by signal 9"));
  CHECK(runs[3].verdict == RunVerdict::kMismatch);
  for (const RunOutcome& run : runs)
    for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) CHECK(run.ranks[rank].rank == static_cast<int>(rank));
}

TEST_CASE("at once: a pace cuts the wait of those that are left, and never who passes", "[replay][faults]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  Pace pace(500ms, 5);
  const auto begin = std::chrono::steady_clock::now();
  const auto runs = Run(
      {SmallPlan(Operation::kAllReduce, 1000, 2), With(SmallPlan(Operation::kAllReduce, 1000, 2), "1:hang@enqueued")},
      &pace);
  CHECK(std::chrono::steady_clock::now() - begin < 20s);  // its own deadline is thirty
  CHECK(runs[0].verdict == RunVerdict::kPassed);
  CHECK_FALSE(runs[0].is_hurried);
  CHECK(runs[1].verdict == RunVerdict::kHung);
  CHECK(runs[1].is_hurried);
}

TEST_CASE("at once: where a rank cannot be spawned, all that wait for one behind it are told", "[replay][faults]") {
  Plan fine = SmallPlan(Operation::kAllReduce, 1000, 2), none = fine;
  none.places.resize(2);
  none.places[0].launcher = {"/nonexistent/launcher"};
  const auto runs = Run({none, fine});
  for (const RunOutcome& run : runs) {
    INFO(run.sentence);
    CHECK(run.verdict == RunVerdict::kCouldNotRun);
  }
}

}  // namespace at_once_test
