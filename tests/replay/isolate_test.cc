// Which variant is run how often, and what is concluded from it: over runs that a test makes up.
#include "replay/isolate.h"

#include <algorithm>
#include <map>

#include "replay/ops.h"
#include "replay/variants.h"
#include "tests/catch.h"

namespace inquest {
namespace isolate_test {

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

/// The ranks of a plan, by the GPUs that they keep in any part; of all ranks empty.
std::set<int> RanksIn(const Plan& plan) {
  std::set<int> ranks;
  for (const RankPlace& place : plan.places)
    if (const auto found = place.options.find("device"); found != place.options.end())
      ranks.insert(std::stoi(found->second));
  return ranks;
}
bool Includes(const Plan& plan, const std::set<int>& bad) {
  const std::set<int> ranks = RanksIn(plan);
  return ranks.empty() || std::ranges::includes(ranks, bad);
}
bool IsPair(const Plan& plan) {
  return plan.operation.value == Operation::kAllToAll || plan.operation.value == Operation::kSendRecv;
}

/// A machine: which runs break (`number` counts those of as many ranks), and what NCCL uses for a plan.
struct Machine {
  std::function<bool(const Plan&, int number)> breaks;
  std::function<std::set<std::string>(const Plan&)> uses = [](const Plan& plan) {
    if (Setting(plan, "NCCL_P2P_DISABLE") != "1") return std::set<std::string>{"P2P/CUMEM"};
    return std::set<std::string>{Setting(plan, "NCCL_SHM_DISABLE") == "1" ? "NET/Socket" : "SHM/direct/direct"};
  };
  std::vector<std::string> cards = {};
};

IsolationOutcome On(const Machine& machine, const Plan& plan = Broadcast(), int repeats = 5) {
  std::map<int, int> numbers;
  Plan last;
  IsolationSetup setup{.repeats = repeats,
                       .run = {},
                       .used = [&] { return machine.uses(last); },
                       .cards = [&] { return machine.cards; },
                       .progress = {}};
  setup.run = [&](const std::vector<Plan>& plans, Pace*) {
    std::vector<RunOutcome> runs;
    for (const Plan& one : plans) {
      last = one;
      runs.push_back(machine.breaks(one, numbers[one.ranks.value]++) ? Ended(RunVerdict::kHung, "Rank 1 waits.")
                                                                     : Ended(RunVerdict::kPassed, ""));
    }
    return runs;
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
  const auto p2p = [](const Plan& plan, int) {
    return plan.engine == "nccl" && Setting(plan, "NCCL_P2P_DISABLE") != "1";
  };
  const auto outcome = On({.breaks = p2p});
  // The pairs are tried as soon as it has broken once; the path is then sought with the first of them.
  CHECK(
      Has(outcome.finding,
          "Breaks 1 of 1. No pair alone passes either. Ranks 0, 1 alone break, 0 of 3 with peer-to-peer off: the GPUs' "
          "peer-to-peer path."));
  CHECK(outcome.part == std::vector<int>{0, 1});
  CHECK(Has(outcome.hint, "ACS"));
  CHECK(Find(outcome, "shm-off")->broken == 1);
  CHECK(Find(outcome, "shm-off")->runs == 1);
  CHECK(Find(outcome, "cpu")->broken == 0);
  CHECK(ExitStatus(outcome) == 1);
}

TEST_CASE("isolation: shared memory, not peer-to-peer", "[unit][replay]") {
  const Machine machine{
      .breaks = [](const Plan& plan, int) { return plan.engine == "nccl" && Setting(plan, "NCCL_SHM_DISABLE") != "1"; },
      .uses =
          [](const Plan& plan) {
            return std::set<std::string>{Setting(plan, "NCCL_SHM_DISABLE") == "1" ? "NET/Socket" : "SHM/direct/direct"};
          }};
  const auto outcome = On(machine);
  CHECK(Has(outcome.finding, "with shared memory off: NCCL's shared memory."));
  CHECK(Find(outcome, "p2p-off")->changed_nothing);
}

TEST_CASE("isolation: a variant that changed nothing decides nothing", "[unit][replay]") {
  // Breaks in the first two runs alone; sockets were used all along.
  const Machine machine{
      .breaks = [](const Plan& plan,
                   int number) { return plan.engine == "nccl" && plan.ranks.value == 3 && number < 2; },
      .uses = [](const Plan&) { return std::set<std::string>{"NET/Socket"}; }};
  const auto outcome = On(machine);
  for (const std::string_view id : {"net-only", "socket", "p2p-off", "shm-off", "gdr-off"}) {
    CAPTURE(id);
    CHECK(Find(outcome, id)->changed_nothing);
    CHECK_FALSE(Has(outcome.finding, "peer-to-peer"));
  }
}

TEST_CASE("isolation: what breaks now and then must pass every repeat elsewhere", "[unit][replay]") {
  const Machine machine{.breaks = [](const Plan& plan, int number) {
    return plan.engine == "nccl" && plan.ranks.value == 3 && Setting(plan, "NCCL_P2P_DISABLE") != "1" &&
           number % 2 == 1;
  }};
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

TEST_CASE("isolation: pairs name the link, the way, the rank or the sides", "[unit][replay]") {
  const auto broken = [](std::function<bool(const Plan&)> which) {
    return Machine{.breaks = [which](const Plan& plan, int) {
      return plan.engine == "nccl" && (RanksIn(plan).empty() || which(plan));
    }};
  };
  const auto link = On(broken([](const Plan& plan) { return Includes(plan, {2, 5}); }), Broadcast(8));
  CHECK(link.pairs.pairs.size() == 28);
  CHECK(link.part == std::vector<int>{2, 5});
  CHECK(Has(link.finding, "Breaks 1 of 1. Alone, this pair breaks: 2<->5, and 27 of 28 pairs pass."));
  CHECK(link.variants.front().runs == 1);
  const auto way = On(broken([](const Plan& plan) {
    const bool back = plan.operation.value == Operation::kSendRecv && plan.root.value == 1;
    return Includes(plan, {0, 1}) && (plan.operation.value != Operation::kSendRecv || back);
  }));
  CHECK_FALSE(way.pairs.pairs.front().forth.has_value());  // nothing told how long it may take
  const auto rank = On(broken([](const Plan& plan) { return Includes(plan, {2}); }), Broadcast(4));
  CHECK(Has(rank.finding, "Rank 2 passes with no other rank, and ranks 0, 1, 3 pass among themselves"));
  CHECK(ExitStatus(rank) == 1);
  const auto sides = On(broken([](const Plan& plan) {
                          const std::set<int> ranks = RanksIn(plan);
                          return *ranks.begin() < 4 && *ranks.rbegin() >= 4;
                        }),
                        Broadcast(8));
  CHECK(Has(sides.finding, "Ranks 0-3, and ranks 4-7 pass among themselves, and no pair across does"));
  CHECK(On(broken([](const Plan&) { return true; }), Broadcast(2)).pairs.pairs.empty());
}

Plan Of(Operation operation, int ranks = 3) {
  Plan plan = Broadcast(ranks);
  plan.operation.value = operation;
  return plan;
}

bool IsVariant(const Plan& plan, std::string_view id, const Environment& inherited = {},
               std::optional<int> nccl = 22809) {
  return std::ranges::any_of(VariantsFor(plan, inherited, nccl),
                             [&](const Variant* variant) { return variant->id == id; });
}

TEST_CASE("isolation: an algorithm or protocol that an operation has not is never asked for", "[unit][replay]") {
  struct Row {
    Operation operation;
    bool ring, tree, protocols;
  };
  for (const Row& row :
       {Row{Operation::kBroadcast, false, false, true}, Row{Operation::kReduce, false, false, true},
        Row{Operation::kAllReduce, true, true, true}, Row{Operation::kBarrier, true, true, true},
        Row{Operation::kAllGather, true, false, true}, Row{Operation::kReduceScatter, true, false, true},
        Row{Operation::kSendRecv, false, false, false}, Row{Operation::kAllToAll, false, false, false},
        Row{Operation::kGather, false, false, false}}) {
    CAPTURE(RowOf(row.operation).name);
    const Plan plan = Of(row.operation);
    CHECK(IsVariant(plan, "algo-ring") == row.ring);
    CHECK(IsVariant(plan, "algo-tree") == row.tree);
    for (const std::string_view id : {"proto-ll", "proto-simple", "proto-no-ll128"})
      CHECK(IsVariant(plan, id) == row.protocols);
    for (const std::string_view id : {"baseline", "cpu", "p2p-off", "nvls-off"}) CHECK(IsVariant(plan, id));
  }
  CHECK_FALSE(IsVariant(Of(Operation::kAllGather), "algo-ring", {}, 21403));  // Ring is all that there is
  CHECK_FALSE(IsVariant(Of(Operation::kAllReduce), "nvls-off", {}, 21403));
  CHECK_FALSE(IsVariant(Of(Operation::kAllReduce), "eager-connect", {}, 22105));
  CHECK(IsVariant(Of(Operation::kAllReduce), "eager-connect", {}, std::nullopt));
  // The job's own choice of algorithms leaves LL nothing to run on.
  CHECK_FALSE(IsVariant(Of(Operation::kAllReduce), "proto-ll", {{"NCCL_ALGO", "NVLS,NVLSTree"}}));
  CHECK_FALSE(IsVariant(Of(Operation::kAllReduce), "proto-ll", {{"NCCL_ALGO", "^Ring"}}));
  CHECK(IsVariant(Of(Operation::kAllReduce), "proto-ll", {{"NCCL_ALGO", "Tree,RING"}}));
}

TEST_CASE("isolation: protocols and algorithms narrow one another", "[unit][replay]") {
  // What runs: LL128 where it may, then LL, then Simple.
  const auto protocol = [](const Plan& plan) -> std::string {
    const std::string asked = Setting(plan, "NCCL_PROTO");
    return asked.empty() ? "LL128" : asked == "^LL128" ? "LL" : asked;
  };
  const auto breaks_at = [&](std::string_view bad) {
    return Machine{.breaks = [=](const Plan& plan, int) {
      return plan.engine == "nccl" && !IsPair(plan) && protocol(plan) == bad;
    }};
  };
  CHECK(Has(On(breaks_at("LL128")).finding,
            "0 of 3 without protocol LL128: the protocol LL128. It passes too on CPUs over TCP, with protocol LL "
            "alone, with protocol Simple alone."));
  const Machine ll{.breaks = [](const Plan& plan, int) {
    return plan.engine == "nccl" && !IsPair(plan) && Setting(plan, "NCCL_PROTO") != "Simple";
  }};
  CHECK(Has(On(ll).finding, "0 of 3 with protocol Simple alone: the protocol LL."));
  const Machine simple{.breaks = [](const Plan& plan, int) {
    return plan.engine == "nccl" && !IsPair(plan) && Setting(plan, "NCCL_PROTO") != "LL";
  }};
  CHECK(Has(On(simple).finding, "0 of 3 with protocol LL alone: the protocol Simple."));
  const Machine tree{.breaks = [](const Plan& plan, int) {
    return plan.engine == "nccl" && !IsPair(plan) && Setting(plan, "NCCL_ALGO") != "Ring";
  }};
  CHECK(Has(On(tree, Of(Operation::kAllReduce)).finding, "0 of 3 with algorithm Ring alone: the algorithm Tree."));
  const Machine other{.breaks = [](const Plan& plan, int) {
    return plan.engine == "nccl" && !IsPair(plan) && Setting(plan, "NCCL_ALGO").empty();
  }};
  CHECK(Has(On(other, Of(Operation::kAllReduce)).finding, "0 of 3 with algorithm Tree alone: the other algorithms"));
}

TEST_CASE("isolation: one RDMA port at a time", "[unit][replay]") {
  const auto bad_port = [](const Plan& plan, int) {
    const std::string asked = Setting(plan, "NCCL_IB_HCA");
    return plan.engine == "nccl" && Setting(plan, "NCCL_NET") != "Socket" && (asked.empty() || asked == "=mlx5_1:1");
  };
  Machine machine{
      .breaks = bad_port,
      .uses =
          [](const Plan& plan) {
            return std::set<std::string>{Setting(plan, "NCCL_NET") == "Socket" ? "NET/Socket" : "NET/IB/GDRDMA"};
          },
      .cards = {"mlx5_0:1", "mlx5_1:1", "mlx5_2:1"}};
  const auto outcome = On(machine);
  CHECK(Has(outcome.finding, "over sockets instead of RDMA: the RDMA network."));
  CHECK(Has(outcome.finding,
            "It breaks with RDMA port mlx5_1:1 alone, and passes with mlx5_0:1, mlx5_2:1 alone: its card, cable or "
            "switch port."));
  CHECK(Find(outcome, "hca mlx5_1:1")->broken == 1);
  CHECK(Find(outcome, "hca mlx5_0:1")->runs == 3);
  machine.breaks = [](const Plan& plan, int) { return plan.engine == "nccl"; };
  CHECK(Has(On(machine).finding, "Each RDMA port alone breaks too."));
  machine.breaks = [](const Plan& plan, int) { return plan.engine == "nccl" && Setting(plan, "NCCL_IB_HCA").empty(); };
  CHECK(Has(On(machine).finding, "Each RDMA port alone passes."));
  // One port, or another way: nothing to try.
  machine.cards = {"mlx5_0:1"};
  CHECK(Find(On(machine), "hca mlx5_0:1") == nullptr);
  machine.cards = {"mlx5_0:1", "mlx5_1:1"};
  machine.uses = [](const Plan&) { return std::set<std::string>{"P2P/CUMEM"}; };
  CHECK(Find(On(machine), "hca mlx5_0:1") == nullptr);
}

TEST_CASE("isolation: where no pair breaks, or there are too many, the ranks are shrunk", "[unit][replay]") {
  const auto needs = [](std::set<int> bad) {
    return Machine{.breaks = [bad](const Plan& plan, int) {
      return plan.engine == "nccl" && !IsPair(plan) && Includes(plan, bad);
    }};
  };
  const auto one = On(needs({37}), Broadcast(64));
  CHECK(Has(one.finding, "Rank 37 breaks all by itself; found in"));
  CHECK(one.pairs.pairs.empty());
  CHECK(one.subsets.size() <= 14);
  CHECK(Has(On(needs({3, 41}), Broadcast(64)).finding, "Alone, the pair of ranks 3, 41 break, and no fewer of them"));
  CHECK(On(needs({3, 17, 41}), Broadcast(64)).part == std::vector<int>{3, 17, 41});
  // At any number of ranks: below as many as pairs are tried for, behind them.
  const auto three = On(needs({1, 4, 6}), Broadcast(8));
  CHECK(three.part == std::vector<int>{1, 4, 6});
  CHECK(Has(three.finding, "Every pair alone passes, with 4.0 kB each way. Alone, ranks 1, 4, 6 break"));
  std::set<int> all;
  for (int rank = 0; rank < 20; ++rank) all.insert(rank);
  CHECK(Has(On(needs(all), Broadcast(20)).finding, "No smaller part of the ranks breaks"));
  // What needs half of a thousand ranks is given up in time, and said.
  std::set<int> many;
  for (int rank = 0; rank < 1000; rank += 2) many.insert(rank);
  const auto given_up = On(needs(many), Broadcast(1000));
  CHECK(given_up.subsets.size() <= 60);
  CHECK(Has(given_up.finding, "then given up: there may be a smaller one"));
  // Of a send the ranks are named by the call.
  CHECK(On(needs({1}), Of(Operation::kSendRecv, 64)).subsets.empty());
}

TEST_CASE("isolation: a part that only was in a hurry is not named", "[unit][replay]") {
  // Every part of the ranks is too slow for the deadline that is cut, and passes with the whole one.
  IsolationSetup setup{.repeats = 5, .run = {}, .used = {}, .progress = {}};
  int widened = 0;
  setup.run = [&](const std::vector<Plan>& plans, Pace* pace) {
    std::vector<RunOutcome> runs;
    for (const Plan& plan : plans) {
      const bool slow = pace != nullptr && Includes(plan, {0});
      runs.push_back(plan.ranks.value == 8 || slow ? Ended(RunVerdict::kHung, "") : Ended(RunVerdict::kPassed, ""));
      runs.back().is_hurried = slow;
      widened += pace == nullptr ? 1 : 0;
    }
    return runs;
  };
  const auto outcome = Isolate(Broadcast(8), setup);
  CHECK(outcome.part.empty());
  CHECK(Has(outcome.finding, "no fewer ranks are named"));
  CHECK(std::ranges::all_of(outcome.pairs.pairs,
                            [](const PairOutcome& pair) { return pair.state == PairOutcome::State::kPassed; }));
  CHECK(widened > 2);
}

TEST_CASE("isolation: an interruption ends it, and is no verdict", "[unit][replay]") {
  const auto always = [](RunVerdict verdict) {
    return [verdict](const std::vector<Plan>& plans, Pace*) {
      return std::vector<RunOutcome>(plans.size(), Ended(verdict, "no GPU"));
    };
  };
  IsolationSetup setup{.repeats = 5, .run = always(RunVerdict::kInterrupted), .used = {}, .progress = {}};
  const auto outcome = Isolate(Broadcast(), setup);
  CHECK(outcome.interrupted);
  CHECK(ExitStatus(outcome) == 2);
  setup.run = always(RunVerdict::kCouldNotRun);
  const auto could_not = Isolate(Broadcast(), setup);
  CHECK(ExitStatus(could_not) == 3);
  CHECK(Has(could_not.finding, "no GPU"));
}

/// Two communicators: all ranks, and the last two.
Plan TwoCommunicators(int ranks) {
  Plan plan;
  plan.ranks.value = ranks;
  plan.engine = "nccl";
  Sequence sequence{
      .communicators = {{.name = "all", .ranks = {}}, {.name = "two", .ranks = {ranks - 2, ranks - 1}, .id = 1}},
      .calls = {{.count = 100}, {.operation = Operation::kBroadcast, .count = 7000}},
      .steps = {},
      .rule = ""};
  for (int rank = 0; rank < ranks; ++rank) {
    sequence.communicators[0].ranks.push_back(rank);
    sequence.steps.push_back({{}});
    if (rank >= ranks - 2) sequence.steps.back().push_back({.communicator = 1, .call = 1});
  }
  Complete(sequence);
  plan.sequence = std::move(sequence);
  return plan;
}

TEST_CASE("isolation: a sequence is shrunk to the ranks whose own calls break it", "[unit][replay]") {
  std::vector<Plan> pairs;
  const Machine machine{.breaks = [&](const Plan& plan, int) {
    if (!plan.sequence) pairs.push_back(plan);
    return plan.sequence && Includes(plan, {1, 4});
  }};
  const auto outcome = On(machine, TwoCommunicators(6));
  CHECK(outcome.part == std::vector<int>{1, 4});
  CHECK(Has(outcome.finding, "Every pair alone passes, with 28.0 kB each way."));
  CHECK(Has(outcome.finding, "Alone, the pair of ranks 1, 4 break, and no fewer of them"));
  REQUIRE_FALSE(pairs.empty());
  CHECK(pairs.front().operation.value == Operation::kAllToAll);
  CHECK(pairs.front().count.value == 7000);
  // An algorithm that one of the calls has not is asked of none; those two make the all-reduce alone.
  CHECK(Find(outcome, "algo-tree") != nullptr);
  const auto is_tree = [](const Variant* variant) { return variant->id == "algo-tree"; };
  CHECK(std::ranges::none_of(VariantsFor(TwoCommunicators(6), {}, 22809), is_tree));
  CHECK(ExitStatus(outcome) == 1);
}

TEST_CASE("isolation: where the order of the calls is the cause, no machine is looked for", "[unit][replay]") {
  for (const bool is_cycle : {true, false}) {
    int runs = 0;
    IsolationSetup setup;
    setup.run = [&](const std::vector<Plan>& plans, Pace*) {
      ++runs;
      RunOutcome hung = Ended(RunVerdict::kHung, "Rank 0 waits for rank 1.");
      if (is_cycle) hung.cycle = {0, 1};
      if (!is_cycle) hung.waiting = {{.rank = 0, .call = "", .for_ranks = {}, .never = {1}}};
      return std::vector<RunOutcome>(plans.size(), hung);
    };
    const auto outcome = Isolate(TwoCommunicators(4), setup);
    CHECK(runs == 1);
    CHECK(Has(outcome.finding, "Breaks 1 of 1, by what the ranks call and in which order"));
    CHECK(Has(outcome.finding, "no machine was looked for. Rank 0 waits for rank 1."));
    CHECK(outcome.pairs.pairs.empty());
    CHECK(ExitStatus(outcome) == 1);
  }
}

TEST_CASE("isolation: a sequence that passes says so of the calls in their order", "[unit][replay]") {
  const auto outcome = On({.breaks = [](const Plan&, int) { return false; }}, TwoCommunicators(4));
  CHECK(Has(outcome.finding, "Passes 5 of 5: the machines can do these calls in this order now."));
}

}  // namespace isolate_test
}  // namespace inquest
