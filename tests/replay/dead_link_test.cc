// A link that goes dead without a word: one rank's network namespace is taken off the bridge while they work.
#include <unistd.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/catch.h"
#include "tests/replay/replay_runs.h"

using namespace inquest;
using namespace std::chrono_literals;

namespace dead_link_test {

int Shell(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()); }

/// Three namespaces on a bridge in a fourth, gone at the end.
class Bridge {
 public:
  Bridge() : name_(fmt::format("inq{}", ::getpid())) {
    ok_ = ::geteuid() == 0 && Shell("ip netns add " + name_) == 0 && Ip("link add br0 type bridge") &&
          Ip("link set br0 up");
    for (int rank = 0; rank < 3 && ok_; ++rank) {
      const std::string node = Node(rank);
      ok_ = Shell("ip netns add " + node) == 0 &&
            Ip(fmt::format("link add v{} type veth peer name eth0 netns {}", rank, node)) &&
            Ip(fmt::format("link set v{} master br0 up", rank)) &&
            Shell(fmt::format("ip -n {} addr add 10.77.0.{}/24 dev eth0", node, rank + 1)) == 0 &&
            Shell(fmt::format("ip -n {} link set eth0 up", node)) == 0 &&
            Shell(fmt::format("ip -n {} link set lo up", node)) == 0;
    }
  }
  ~Bridge() {
    for (int rank = 0; rank < 3; ++rank) Shell("ip netns del " + Node(rank));
    Shell("ip netns del " + name_);
  }
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;
  bool ok() const { return ok_; }
  std::string Node(int rank) const { return fmt::format("{}n{}", name_, rank); }
  void Cut(int rank) const { Ip(fmt::format("link set v{} nomaster", rank)); }

 private:
  bool Ip(const std::string& words) const { return Shell(fmt::format("ip -n {} {}", name_, words)) == 0; }
  std::string name_;
  bool ok_ = false;
};

Plan PlanOn(const Bridge& bridge) {
  Plan plan = SmallPlan(Operation::kAllReduce, 2'000'000, 3);
  plan.iterations = 1'000'000;
  plan.deadlines.each = 5s;
  for (int rank = 0; rank < 3; ++rank) {
    RankPlace place;
    place.launcher = {"ip", "netns", "exec", bridge.Node(rank)};
    place.options = {{"interface", "eth0"}};
    plan.places.push_back(place);
  }
  return plan;
}

TEST_CASE("a link that goes dead while ranks work is named", "[replay][faults]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  const Bridge bridge;
  if (!bridge.ok()) {
    WARN("skipped: network namespaces need root and ip");
    return;
  }
  RunSetup setup = TestSetup();
  bool cut = false;
  setup.progress = [&](const RunOutcome& run) {
    if (cut || run.ranks[0].times.size() < 2) return;
    bridge.Cut(2);
    cut = true;
  };
  const RunOutcome run = RunPlan(PlanOn(bridge), setup);
  INFO(run.sentence);
  CHECK(run.verdict == RunVerdict::kLinkDead);
  CHECK(run.decided_at - run.event_at < 2s);
  REQUIRE_FALSE(run.blamed.empty());
  for (const Blamed& blamed : run.blamed) CHECK((blamed.rank == 2 || blamed.to == 2));
}

TEST_CASE("a link that is dead from the start is named", "[replay][faults]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  const Bridge bridge;
  if (!bridge.ok()) {
    WARN("skipped: network namespaces need root and ip");
    return;
  }
  bridge.Cut(1);
  const RunOutcome run = RunPlan(PlanOn(bridge), TestSetup());
  INFO(run.sentence);
  CHECK(run.verdict == RunVerdict::kLinkDead);
  CHECK(Has(run.sentence, "does not connect"));
  REQUIRE_FALSE(run.blamed.empty());
  for (const Blamed& blamed : run.blamed) CHECK((blamed.rank == 1 || blamed.to == 1));
}

}  // namespace dead_link_test
