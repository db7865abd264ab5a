// What the supervisor makes of news whose order is not that of what happened, from nodes that only say it.
#include "replay/supervisor.h"

#include <sys/eventfd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "replay/spawn.h"
#include "tests/catch.h"
#include "tests/replay/replay_runs.h"

using namespace inquest;
using namespace std::chrono_literals;

namespace supervisor_test {

using Clock = std::chrono::steady_clock;

/// Says what a test has in store for its n-th question, from 0.
class Script final : public Node {
 public:
  using Story = std::function<std::vector<NodeEvent>(int question)>;
  explicit Script(Story story) : story_(std::move(story)) {}
  int fd() const override { return ready_.get(); }
  std::vector<NodeEvent> Take() override {
    std::vector<NodeEvent> events = story_(question_++);
    for (NodeEvent& seen : seen_) events.push_back(std::move(seen));
    seen_.clear();
    return events;
  }
  void Start(const StartOrder&) override {}
  void Tell(int, const ToWorker&) override {}
  void Look(const LookOrder& order) override { seen_.push_back({Clock::now(), NodeSaw{.id = order.id}}); }
  void Kill(const std::vector<int>&) override {}

 private:
  Story story_;
  OwnedFd ready_{::eventfd(0, EFD_CLOEXEC)};  // never readable: a question a tick
  int question_ = 0;
  std::vector<NodeEvent> seen_;
};

RankEnded Killed(int rank, int signal) { return {.rank = rank, .exit_code = {}, .signal = signal, .output = ""}; }

/// Rank 0 on this node, rank 1 on the other.
RunOutcome RunOn(Script::Story first, Script::Story second) {
  Plan plan = SmallPlan(Operation::kBroadcast, 10, 2);
  plan.places = {{.node = 0}, {.node = 1}};
  RunSetup setup = TestSetup();
  setup.nodes = {"node 0 (hosta)", "node 1 (hostb)"};
  Script a(std::move(first)), b(std::move(second));
  Node* const nodes[] = {&a, &b};
  return RunPlan(plan, setup, nodes);
}

std::vector<NodeEvent> Spawned(int rank) { return {{Clock::now(), RankSpawned{rank, 1000 + rank}}}; }

TEST_CASE("supervisor: who ends an agent ends its ranks, also where they are heard of first", "[unit][replay]") {
  const auto run = [](int signal) {
    return RunOn([](int question) { return question == 0 ? Spawned(0) : std::vector<NodeEvent>(); },
                 [signal](int question) -> std::vector<NodeEvent> {
                   if (question == 0) return Spawned(1);
                   if (question == 2) return {{Clock::now(), Killed(1, signal)}};
                   if (question == 3) return {{Clock::now(), NodeLost{"interrupted", true}}};
                   return {};
                 });
  };
  const RunOutcome interrupted = run(SIGTERM);
  CHECK(interrupted.verdict == RunVerdict::kInterrupted);
  CHECK(interrupted.sentence == "Node 1 (hostb) was interrupted before the run was over.");
  CHECK(run(SIGSEGV).verdict != RunVerdict::kInterrupted);
}

TEST_CASE("supervisor: what is heard after a suspension keeps its place in time", "[unit][replay]") {
  Clock::time_point died{};
  const RunOutcome run = RunOn(
      [&](int question) -> std::vector<NodeEvent> {
        if (question == 0) return Spawned(0);
        if (question == 3) std::this_thread::sleep_for(1500ms);  // as if this program had been stopped
        if (question == 4) return {{died + 20ms, Killed(0, SIGSEGV)}};
        return {};
      },
      [&](int question) -> std::vector<NodeEvent> {
        if (question == 0) return Spawned(1);
        if (question != 2) return {};
        died = Clock::now();
        return {{died, Killed(1, SIGSEGV)}};
      });
  REQUIRE(run.blamed.size() == 1);
  CHECK(run.blamed[0].rank == 1);
  CHECK(run.ranks[0].ended_at > run.ranks[1].ended_at);
}

TEST_CASE("supervisor: a node that gave up while this program was suspended was interrupted by nobody",
          "[unit][replay]") {
  const RunOutcome run = RunOn([](int question) { return question == 0 ? Spawned(0) : std::vector<NodeEvent>(); },
                               [](int question) -> std::vector<NodeEvent> {
                                 if (question == 0) return Spawned(1);
                                 if (question == 2) std::this_thread::sleep_for(1500ms);
                                 if (question == 3) return {{Clock::now(), NodeLost{"its connection was closed"}}};
                                 return {};
                               });
  CHECK(run.verdict == RunVerdict::kInterrupted);
  CHECK_FALSE(run.nodes[1].interrupted);
  CHECK(run.sentence == "Interrupted before the run was over.");
}

TEST_CASE("supervisor: no deadline passes while this program stands still between two looks at the clock",
          "[unit][replay]") {
  Plan plan = SmallPlan(Operation::kBroadcast, 10, 1);
  plan.deadlines.each = 1200ms;
  Script node([](int question) -> std::vector<NodeEvent> {
    if (question == 0) return Spawned(0);
    if (question == 2) std::this_thread::sleep_for(1500ms);  // stopped there, as a signal may at any place
    if (question == 6) return {{Clock::now(), Killed(0, SIGSEGV)}};
    return {};
  });
  Node* const nodes[] = {&node};
  const RunOutcome run = RunPlan(plan, TestSetup(), nodes);
  CHECK(run.sentence.starts_with("Rank 0 was killed by signal 11"));
  REQUIRE(run.notes.size() == 1);
  CHECK(run.notes[0].starts_with("This program was itself suspended for 1."));
}

}  // namespace supervisor_test
