// From logs to the arguments of a replay, and how each is known.
#include "replay/infer.h"

#include <fmt/format.h>

#include "replay/members.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace infer_test {

using namespace std::chrono_literals;

Plan PlanOf(const Judged& judged) {
  const auto what = WhatToReplay(judged.verdict);
  REQUIRE(what);
  return PlanFrom(judged.timeline, *what);
}

SynthJob TimedOut(int ranks, const SynthWork& work) {
  SynthJob job({.ranks = ranks});
  for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=" + std::to_string(ranks));
  job.Wait(700s);
  for (const int rank : job.AllRanks()) job.TimeOut(rank, work);
  return job;
}

Plan PlanOf(int ranks, const SynthWork& work) { return PlanOf(JudgeText(TimedOut(ranks, work).Interleaved())); }

TEST_CASE("replay plan: the numbers that a watchdog prints, in NCCL's meaning", "[unit][replay]") {
  struct Row {
    const char* op;
    std::int64_t in, out;
    Operation operation;
    std::uint64_t count;
    int ranks;
  };
  const Row rows[] = {
      {"BROADCAST", 253440000, 253440000, Operation::kBroadcast, 253440000, 3},
      {"ALLREDUCE", 4096, 4096, Operation::kAllReduce, 4096, 4},
      {"_ALLGATHER_BASE", 10, 80, Operation::kAllGather, 10, 8},
      {"ALLGATHER", 10, 40, Operation::kAllGather, 10, 4},
      {"_REDUCE_SCATTER_BASE", 80, 10, Operation::kReduceScatter, 10, 8},
      {"ALLTOALL_BASE", 64, 64, Operation::kAllToAll, 16, 4},
      {"REDUCE", 7, 7, Operation::kReduce, 7, 4},
  };
  for (const Row& row : rows) {
    CAPTURE(row.op);
    const Plan plan = PlanOf(row.ranks, {.op = row.op, .numel_in = row.in, .numel_out = row.out});
    CHECK(plan.operation.value == row.operation);
    CHECK(plan.operation.basis == Basis::kObserved);
    REQUIRE(plan.operation.at);
    CHECK(plan.operation.at->path == "text");
    CHECK(plan.operation.at->line > 0);
    CHECK(plan.count.value == row.count);
    CHECK(plan.ranks.value == row.ranks);
    CHECK_FALSE(WhyNotRunnable(plan));
    CHECK(plan.datatype.basis == Basis::kAssumed);
    CHECK(plan.datatype.sweep == std::vector{Datatype::kFloat32, Datatype::kBfloat16});
  }
}

TEST_CASE("replay plan: a root that no line prints is tried, unless there are many", "[unit][replay]") {
  CHECK(PlanOf(3, {.op = "BROADCAST"}).root.sweep == std::vector{0, 1, 2});
  CHECK(PlanOf(16, {.op = "BROADCAST"}).root.sweep.empty());
  CHECK(PlanOf(3, {.op = "ALLREDUCE"}).root.sweep.empty());

  SynthJob job({.ranks = 4});
  for (const int rank : job.AllRanks())
    job.TimeOut(rank, {.op = "GATHER", .numel_in = 6, .numel_out = rank == 2 ? 24 : 0});
  const Plan plan = PlanOf(JudgeText(job.Interleaved()));
  CHECK(plan.root.value == 2);
  CHECK(plan.root.basis == Basis::kDerived);
  CHECK(plan.root.sweep.empty());
  CHECK(plan.count.value == 6);
}

TEST_CASE("replay plan: numbers that the log does not record are unknown, not zero", "[unit][replay]") {
  const Plan unrecorded = PlanOf(4, {.op = "ALLGATHER", .numel_in = -1, .numel_out = -1});
  CHECK(WhyNotRunnable(unrecorded));
  CHECK(CommandLine(unrecorded).empty());
  const Plan group = PlanOf(4, {.op = "COALESCED", .numel_in = 5, .numel_out = 5});
  CHECK_FALSE(group.cannot.empty());
  CHECK(CommandLine(group).empty());
}

TEST_CASE("replay plan: what one rank gets of an all-to-all is unknown while the number of ranks is",
          "[unit][replay]") {
  CollectiveRef collective;
  collective.op = "ALLTOALL_BASE";
  collective.numel_in = collective.numel_out = 64;
  collective.ranks_waiting = RankSet::Of(std::vector<int>{0, 1});
  const Plan plan = PlanFrom(Timeline(), {.collective = collective});
  CHECK(plan.ranks.value == 0);
  CHECK(plan.count.value == 0);
  CHECK(plan.count.basis == Basis::kAssumed);
  CHECK(WhyNotRunnable(WithGiven(plan, {.ranks = 4})));
  const Plan four = PlanFrom(Timeline(), {.collective = collective, .ranks = 4});
  CHECK(four.count.value == 16);
  CHECK_FALSE(WhyNotRunnable(four));
}

TEST_CASE("replay plan: a number of ranks that no replay can start takes no memory", "[unit][replay]") {
  SynthJob job({.ranks = 4});
  const auto comm = job.NewComm(job.AllRanks());
  job.Init(comm);
  job.Wait(700s);
  for (const int rank : job.AllRanks()) job.TimeOut(rank, {.op = "ALLREDUCE"});
  std::string text = job.Interleaved();
  for (std::size_t at = text.find("nranks 4"); at != std::string::npos; at = text.find("nranks 4", at))
    text.replace(at, 8, "nranks 1641234567");
  const Plan torn = PlanOf(JudgeText(text));
  CHECK(torn.ranks.value == 1641234567);
  CHECK(torn.places.empty());
  CHECK(WhyNotRunnable(torn));

  SynthJob large({.ranks = 4});
  for (const int rank : large.AllRanks()) large.Print(rank, "args: world_size=16777216");
  large.Wait(700s);
  for (const int rank : large.AllRanks()) large.TimeOut(rank, {.op = "ALLREDUCE"});
  const Plan whole = PlanOf(JudgeText(large.Interleaved()));
  CHECK(whole.ranks.value == 16777216);
  CHECK(whole.places.empty());
  CHECK(WhyNotRunnable(whole));
}

TEST_CASE("replay plan: NCCL's own line goes before the watchdog's", "[unit][replay]") {
  SynthJob job({.ranks = 4});
  const auto comm = job.NewComm(job.AllRanks());
  job.Init(comm);
  job.CallAll(comm, {.op = "AllReduce", .count = 8, .datatype = 6});
  job.CallAll(comm, {.op = "Broadcast", .count = 1048576, .datatype = 9, .redop = 0, .root = 3, .op_count = 1});
  job.Wait(700s);
  for (const int rank : job.AllRanks()) job.TimeOut(rank, {.op = "BROADCAST"});
  const Plan plan = PlanOf(JudgeText(job.Interleaved()));
  CHECK(plan.datatype.value == Datatype::kBfloat16);
  CHECK(plan.datatype.basis == Basis::kObserved);
  CHECK(plan.datatype.sweep.empty());
  REQUIRE(plan.datatype.at);
  CHECK(plan.root.value == 3);
  CHECK(plan.root.sweep.empty());
  CHECK(plan.ranks.basis == Basis::kObserved);
  CHECK(CommandLine(plan) == "inquest replay --op broadcast --count 1048576 --dtype bfloat16 --root 3 --ranks 4");
}

TEST_CASE("replay plan: says beforehand what a replay cannot show", "[unit][replay]") {
  SynthJob job({.ranks = 8});
  for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=8");
  job.Wait(700s);
  for (const int rank : job.AllRanks())
    if (rank != 5) job.TimeOut(rank, {});
  const Judged judged = JudgeText(job.Interleaved());
  const Plan plan = PlanOf(judged);
  REQUIRE(plan.cannot.size() == 1);
  CHECK(plan.cannot[0].find("rank 5 never called") == 0);
  CHECK(plan.ranks.value == 8);
  CHECK(PlanOf(4, {}).cannot.empty());
}

TEST_CASE("replay plan: the job's settings travel, what loads code does not", "[unit][replay]") {
  SynthJob job = TimedOut(2, {});
  for (const int rank : job.AllRanks()) {
    job.PrintNccl(rank, "NCCL_P2P_DISABLE set by environment to 1.");
    job.PrintNccl(rank, "NCCL_NET_PLUGIN set by environment to /tmp/evil.so");
    job.PrintNccl(rank, "NCCL_TOPO_FILE set by environment to /etc/topo.xml");
    job.PrintNccl(rank, "NCCL_DEBUG_FILE set by environment to /tmp/x");
    job.PrintNccl(rank, "NCCL_ALGO set by environment to " + std::string(rank == 0 ? "Ring" : "Tree"));
  }
  const Plan plan = PlanOf(JudgeText(job.Interleaved()));
  CHECK(plan.env == std::map<std::string, std::string>{{"NCCL_P2P_DISABLE", "1"}});
  const auto notes = fmt::format("{}", fmt::join(plan.notes, "\n"));
  CHECK(notes.find("not all ranks set NCCL_ALGO alike") != std::string::npos);  // nothing says which did
  CHECK(notes.find("NCCL_NET_PLUGIN=/tmp/evil.so") != std::string::npos);
}

TEST_CASE("replay plan: a printed verdict gives the same arguments as its log", "[unit][replay]") {
  for (const SynthWork& work :
       {SynthWork{.op = "BROADCAST"}, SynthWork{.op = "_ALLGATHER_BASE", .numel_in = 3, .numel_out = 12}}) {
    const Judged judged = JudgeText(TimedOut(4, work).Interleaved());
    const std::string json = JsonOf(judged.timeline, judged.verdict);
    REQUIRE(LooksLikeVerdict(json));
    const auto plan = PlanFromVerdict(json, "verdict.json");
    REQUIRE(plan);
    CHECK(CommandLine(*plan) == CommandLine(PlanOf(judged)));
    REQUIRE(plan->count.at);
    CHECK(plan->count.at->path == "text");
    CHECK(plan->count.at->line > 0);
  }
  CHECK_FALSE(PlanFromVerdict("{", "v"));
  CHECK_FALSE(PlanFromVerdict("{}", "v"));
  CHECK_FALSE(PlanFromVerdict(R"({"schema": 1, "verdict": {"collective": null}})", "v"));
  CHECK_FALSE(PlanFromVerdict(R"({"verdict": {"collective": []}})", "v"));
  CHECK(PlanFromVerdict(R"({"verdict": {"collective": {"op": 5, "numel_in": "x", "ranks_waiting": [1e99, null]}}})",
                        "v"));
  CHECK_FALSE(LooksLikeVerdict("[{}]"));
}

TEST_CASE("replay plan: a command line holds nothing of a log but names that we know", "[unit][replay]") {
  CollectiveRef collective;
  collective.op = "ALLREDUCE; rm -rf /";
  collective.numel_in = collective.numel_out = 5;
  collective.ranks_waiting = RankSet::Of(std::vector<int>{0, 1});
  Timeline timeline;
  const auto command = [&] { return CommandLine(PlanFrom(timeline, {.collective = collective})); };
  timeline.world_size = {2, Basis::kObserved, ""};
  CHECK(command().empty());
  collective.op = "ALLREDUCE";
  collective.dtype = "float32\n--x";
  CHECK(command() == "inquest replay --op all-reduce --count 5 --ranks 2");
  collective.dtype = "bfloat16";
  CHECK(command() == "inquest replay --op all-reduce --count 5 --dtype bfloat16 --ranks 2");
  timeline.world_size.reset();  // two are named, and there may be more
  CHECK(command().empty());
}

TEST_CASE("replay plan: a rank's number may be the largest there is", "[unit][replay]") {
  SynthJob job({.ranks = 2});
  job.Wait(700s);
  job.Print(0,
            "[rank2147483647]:[E523 10:00:00.000000000 ProcessGroupNCCL.cpp:616] [Rank 2147483647] Watchdog caught "
            "collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=7, NumelOut=7, "
            "Timeout(ms)=600000) ran for 600001 milliseconds before timing out.");
  const Judged judged = JudgeText(job.Interleaved());
  if (const auto what = WhatToReplay(judged.verdict)) {
    const Plan plan = PlanFrom(judged.timeline, *what);
    CHECK(plan.at_least >= 0);
    CHECK(WhyNotRunnable(plan));
  }
  CollectiveRef collective;
  collective.process_group = "0";
  collective.ranks_waiting.Add(2147483647);
  CHECK(MembersOf(judged.timeline, collective, {}).at_least == 2147483647);
}

}  // namespace infer_test
}  // namespace inquest
