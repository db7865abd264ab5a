// Which variant is run how often, and what is concluded from it: over runs that a test makes up.
#include "replay/isolate.h"

#include "replay/ops.h"
#include "tests/catch.h"

namespace inquest {
namespace {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string Setting(const Plan& plan, const std::string& name) {
  const auto found = plan.env.find(name);
  return found == plan.env.end() ? "" : found->second;
}

Plan Broadcast(int ranks = 3) {
  Plan plan;
  plan.operation = {.value = Operation::kBroadcast};
  plan.count = {.value = 1000};
  plan.ranks = {.value = ranks};
  plan.engine = "nccl";
  return plan;
}

RunOutcome Ended(RunVerdict verdict, const std::string& sentence) {
  RunOutcome run;
  run.verdict = verdict;
  run.sentence = sentence;
  return run;
}

/// A machine: which runs break, and what NCCL uses for a plan.
struct Machine {
  std::function<bool(const Plan&, int number)> breaks;
  std::function<std::set<std::string>(const Plan&)> uses = [](const Plan& plan) {
    if (Setting(plan, "NCCL_P2P_DISABLE") != "1") return std::set<std::string>{"P2P/CUMEM"};
    return std::set<std::string>{Setting(plan, "NCCL_SHM_DISABLE") == "1" ? "NET/Socket" : "SHM/direct/direct"};
  };
};

IsolationOutcome On(const Machine& machine, const Plan& plan = Broadcast(), int repeats = 5) {
  int number = 0;
  Plan last;
  IsolationSetup setup{.repeats = repeats, .run = {}, .used = [&] { return machine.uses(last); }, .progress = {}};
  setup.run = [&](const Plan& one) {
    last = one;
    return machine.breaks(one, number++) ? Ended(RunVerdict::kHung, "Rank 1 waits.") : Ended(RunVerdict::kPassed, "");
  };
  return Isolate(plan, setup);
}

const VariantOutcome* Find(const IsolationOutcome& outcome, std::string_view id) {
  for (const VariantOutcome& tried : outcome.variants)
    if (tried.id == id) return &tried;
  return nullptr;
}

TEST_CASE("isolation: a baseline that passes every time ends it", "[unit][replay]") {
  const auto outcome = On({.breaks = [](const Plan&, int) { return false; }});
  REQUIRE(outcome.variants.size() == 1);
  CHECK(outcome.variants[0].runs == 5);
  CHECK(Has(outcome.finding, "Passes 5 of 5"));
  CHECK(Has(outcome.finding, "did not make the same calls"));
  CHECK(ExitStatus(outcome) == 0);
}

TEST_CASE("isolation: peer-to-peer is named by the variant that switches it off alone", "[unit][replay]") {
  const auto p2p = [](const Plan& plan, int) { return plan.engine == "nccl" && Setting(plan, "NCCL_P2P_DISABLE") != "1"; };
  const auto outcome = On({.breaks = p2p});
  CHECK(Has(outcome.finding, "Breaks 2 of 2, 0 of 3 with peer-to-peer off: the GPUs' peer-to-peer path."));
  CHECK(Has(outcome.hint, "ACS"));
  CHECK(Find(outcome, "shm-off")->broken == 1);
  CHECK(Find(outcome, "shm-off")->runs == 1);
  CHECK(Find(outcome, "cpu")->broken == 0);
  CHECK(ExitStatus(outcome) == 1);
}

TEST_CASE("isolation: shared memory, not peer-to-peer", "[unit][replay]") {
  const Machine machine{.breaks = [](const Plan& plan, int) { return plan.engine == "nccl" && Setting(plan, "NCCL_SHM_DISABLE") != "1"; },
                        .uses = [](const Plan& plan) { return std::set<std::string>{Setting(plan, "NCCL_SHM_DISABLE") == "1" ? "NET/Socket" : "SHM/direct/direct"}; }};
  const auto outcome = On(machine);
  CHECK(Has(outcome.finding, "with shared memory off: NCCL's shared memory."));
  CHECK(Find(outcome, "p2p-off")->changed_nothing);
}

TEST_CASE("isolation: a variant that changed nothing decides nothing", "[unit][replay]") {
  // Breaks in the first two runs alone; sockets were used all along.
  const Machine machine{.breaks = [](const Plan& plan, int number) { return plan.engine == "nccl" && number < 2; }, .uses = [](const Plan&) { return std::set<std::string>{"NET/Socket"}; }};
  const auto outcome = On(machine);
  for (const std::string_view id : {"net-only", "socket", "p2p-off", "shm-off", "gdr-off"}) {
    CAPTURE(id);
    CHECK(Find(outcome, id)->changed_nothing);
    CHECK_FALSE(Has(outcome.finding, "peer-to-peer"));
  }
}

TEST_CASE("isolation: what breaks now and then must pass every repeat elsewhere", "[unit][replay]") {
  const Machine machine{.breaks = [](const Plan& plan, int number) { return plan.engine == "nccl" && Setting(plan, "NCCL_P2P_DISABLE") != "1" && number % 2 == 1; }};
  const auto outcome = On(machine);
  CHECK(outcome.variants[0].runs == 5);
  CHECK(outcome.variants[0].broken == 2);
  CHECK(Find(outcome, "p2p-off")->runs == 5);
  CHECK(Has(outcome.finding, "Breaks 2 of 5, 0 of 5 with peer-to-peer off"));
}

TEST_CASE("isolation: where everything breaks no path is blamed", "[unit][replay]") {
  const auto nothing = On({.breaks = [](const Plan& plan, int) { return plan.engine == "nccl"; }});
  CHECK(Has(nothing.finding, "on CPUs over TCP: the GPUs, their driver or their fabric."));
  const auto hosts = On({.breaks = [](const Plan&, int) { return true; }});
  CHECK(Has(hosts.finding, "and on CPUs over TCP too: the hosts or their IP network"));
  CHECK(hosts.hint.empty());
}

TEST_CASE("isolation: pairs name the rank that is in each broken one", "[unit][replay]") {
  const auto rank_two = [](const Plan& plan, int) {
    if (plan.engine != "nccl") return false;
    return plan.operation.value != Operation::kSendRecv || plan.root.value == 2 || plan.peer.value == 2;
  };
  const auto outcome = On({.breaks = rank_two}, Broadcast(4));
  CHECK(outcome.pairs.size() == 12);
  CHECK(Has(outcome.finding, "rank 2 is in each"));
  const auto one_way = On({.breaks = [](const Plan& plan, int) { return plan.engine == "nccl" && (plan.operation.value != Operation::kSendRecv || (plan.root.value == 1 && plan.peer.value == 0)); }});
  CHECK(Has(one_way.finding, "this pair breaks: 1->0"));
  CHECK(On({.breaks = rank_two}, Broadcast(2)).pairs.empty());
}

TEST_CASE("isolation: an interruption ends it, and is no verdict", "[unit][replay]") {
  IsolationSetup setup{.repeats = 5, .run = [](const Plan&) { return Ended(RunVerdict::kInterrupted, ""); }, .used = {}, .progress = {}};
  const auto outcome = Isolate(Broadcast(), setup);
  CHECK(outcome.interrupted);
  CHECK(ExitStatus(outcome) == 2);
  setup.run = [](const Plan&) { return Ended(RunVerdict::kCouldNotRun, "no GPU"); };
  const auto could_not = Isolate(Broadcast(), setup);
  CHECK(ExitStatus(could_not) == 3);
  CHECK(Has(could_not.finding, "no GPU"));
}

}  // namespace
}  // namespace inquest
