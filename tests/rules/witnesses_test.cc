// What witnesses say of a job: RAS, stacks, diagnostics.
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace witnesses_test {

using namespace std::chrono_literals;

// ---- RAS -------------------------------------------------------------------------------------------------------

const std::string kReport = "NCCL version 2.28.9 compiled with CUDA 12.9\n";
std::string Counts(const std::string& op, int others, int rank, int count) {
  return "#0-0 (8f3d2ab4c1e90d77) MISMATCH\n  Communicator ranks have different " + op +
         " operation counts\n  15 ranks have launched up to operation " + std::to_string(others) + "\n  Rank " +
         std::to_string(rank) + " has launched up to operation " + std::to_string(count) +
         " -- GPU 5 managed by process 41300 on node 10.3.0.22\n\n";
}

TEST_CASE("ras: who is behind", "[witnesses]") {
  const struct {
    std::string text;
    const char* cause;
    std::set<int> ranks;
  } rows[] = {
      {kReport + Counts("AllReduce", 4711, 13, 4710), "rank-absent", {13}},
      {kReport, "unknown", {}},
      {kReport + Counts("AllReduce", 4711, 13, 4712), "unknown", {}},  // who is ahead keeps nobody waiting
      {kReport + Counts("AllReduce", 4711, 13, 4710) + Counts("AllGather", 30, 13, 31), "collective-mismatch", {13}},
      {kReport + Counts("AllReduce", 4711, 13, 4710) + kReport + Counts("AllReduce", 4720, 13, 4719),
       "unknown",
       {}},  // it moves
      {kReport + Counts("AllReduce", 4711, 13, 4710) + kReport + Counts("AllReduce", 4711, 13, 4710),
       "rank-absent",
       {13}},
      {kReport + Counts("AllReduce", 4711, 13, 4710) + kReport, "unknown", {}},  // it has caught up
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    const Judged judged = JudgeText(row.text);
    CHECK(judged.verdict.cause == row.cause);
    CHECK(CulpritRanks(judged.verdict) == row.ranks);
  }
}

TEST_CASE("ras: a report of a healthy run is no finding that counts", "[witnesses]") {
  const std::string report = kReport + Counts("AllReduce", 4711, 13, 4710),
                    steps = "{'loss': 0.33, 'learning_rate': 2e-05}\n{'loss': 0.31, 'learning_rate': 1e-05}\n";
  const std::string ending =
      "{'train_runtime': 412.1, 'train_samples_per_second': 12.1, 'train_steps_per_second': 1.2, 'train_loss': 0.31, "
      "'epoch': 3.0}\n";
  CHECK(JudgeText(report + steps + ending).verdict.outcome == Outcome::kHealthy);
  CHECK(JudgeText(report + ending).verdict.outcome != Outcome::kHealthy);  // nothing moved behind the report
}

TEST_CASE("ras: a dead process is the job's by its pid", "[witnesses]") {
  SynthJob job({.ranks = 4, .hosts = 2});
  job.Init(job.NewComm(job.AllRanks()));
  const std::string text = job.Interleaved() + kReport +
                           "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  Process " +
                           std::to_string(job.Pid(3)) + " on node 10.3.0.22 managing GPU 1\n";
  const Judged judged = JudgeText(text);
  CHECK(judged.verdict.cause == "rank-absent");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{3});
  REQUIRE(judged.verdict.culprits.size() == 1);
  CHECK(judged.verdict.culprits[0].host == job.Host(3));
}

// ---- stacks ----------------------------------------------------------------------------------------------------

std::string Stack(std::int64_t pid, const std::string& frame) {
  return "Thread " + std::to_string(pid) + " (idle): \"MainThread\"\n    " + frame + "\n    main (train.py:84)\n\n";
}
constexpr const char* kIn = "all_reduce (torch/distributed/distributed_c10d.py:2050)";
constexpr const char* kData = "_try_get_data (torch/utils/data/dataloader.py:1133)";

TEST_CASE("stacks: one is elsewhere", "[witnesses]") {
  SynthJob job({.ranks = 4, .hosts = 1});
  job.Init(job.NewComm(job.AllRanks()));
  const auto text = [&](const char* of_two) {
    std::string out = job.Interleaved();
    for (const int rank : job.AllRanks()) out += Stack(job.Pid(rank), rank == 2 ? of_two : kIn);
    return out;
  };
  const Judged judged = JudgeText(text(kData));
  CHECK(judged.verdict.cause == "slow-rank");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{2});
  CHECK(JudgeText(text("wait (torch/utils/file_baton.py:42)")).verdict.cause == "jit-build-stall");
  CHECK(FindFinding(JudgeText(text(kIn)).verdict, "stack-at-other-work") == nullptr);
  CHECK(FindFinding(JudgeText(text("step (env.py:12)")).verdict, "stack-at-other-work") == nullptr);
}

TEST_CASE("stacks: what the absent rank was at, whatever it printed last", "[witnesses]") {
  SynthJob job({.ranks = 4, .hosts = 1});
  for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=4");
  job.Print(0, "[rank0]:Saving model checkpoint to /out/checkpoint-500");
  job.Wait(600s);
  for (const int rank : {1, 2, 3}) job.TimeOut(rank, {});
  const auto cause = [&](const char* frame) {
    const JobFolder folder({{"job.log", job.Interleaved()}, {"py-spy-rank0.txt", Stack(9000, frame)}});
    return AnalyzePaths({folder.path()}).verdict.cause;
  };
  CHECK(cause(kData) == "slow-rank");
  CHECK(cause("compile (torch/_inductor/compile_fx.py:4)") == "jit-build-stall");
  CHECK(cause(kIn) == "rank-absent");  // it is in an operation by now, another one
}

TEST_CASE("stacks: a traceback that was cut is all there is", "[witnesses]") {
  const auto cut = [](int rank, const std::string& function, const std::string& file) {
    const std::string tag = "[rank" + std::to_string(rank) + "]: ";
    return tag + "Traceback (most recent call last):\n" + tag + "  File \"train.py\", line 84, in main\n" + tag +
           "  File \"/opt/lib/python3.10/site-packages/" + file + "\", line 7, in " + function + "\n";
  };
  const std::string c10d = "torch/distributed/distributed_c10d.py";
  const auto rule = [](const std::string& text) { return JudgeText(text).verdict.rule; };
  CHECK(rule(cut(1, "main_process_first", "accelerate/state.py") + cut(1, "barrier", c10d)) == "");  // two stacks
  CHECK(rule(cut(1, "_store_based_barrier", c10d)) == "stack-waits-to-join");
  CHECK(rule(cut(1, "barrier", c10d)) == "");
  CHECK(rule(cut(1, "save", "torch/serialization.py")) == "");
  // Three of four stand in the collective. Not so where one of them is not known, or all are there.
  const std::string sized = "args: world_size=4\n", all = cut(0, "barrier", c10d) + cut(1, "barrier", c10d);
  const Judged judged = JudgeText(sized + all + cut(3, "barrier", c10d) + "[rank2]: loading shard 7\n");
  CHECK(judged.verdict.rule == "stack-missing-in-collective");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{2});
  CHECK(rule(all + cut(3, "barrier", c10d)) == "");
  CHECK(rule(sized + all + cut(2, "barrier", c10d) + cut(3, "barrier", c10d)) == "");
}

// ---- diagnostics -----------------------------------------------------------------------------------------------

TEST_CASE("dcgm: the GPU of the absent rank", "[witnesses]") {
  const auto judged = [](const std::string& status, int gpu) {
    SynthJob job({.ranks = 4, .hosts = 1});
    job.Init(job.NewComm(job.AllRanks()));
    job.Wait(600s);
    for (const int rank : {0, 1, 2}) job.TimeOut(rank, {});
    const JobFolder folder({{"job.log", job.Interleaved()},
                            {job.Host(0) + "-dcgm.json",
                             "{\"DCGM Diagnostic\": {\"test_categories\": [{\"category\": \"Hardware\", \"tests\": "
                             "[{\"name\": \"memory\", \"results\": "
                             "[{\"entity_group\": \"GPU\", \"entity_id\": " +
                                 std::to_string(gpu) + ", \"status\": \"" + status + "\"}]}]}]}}"}});
    return AnalyzePaths({folder.path()}).verdict;
  };
  const Verdict failed = judged("Fail", 3);
  CHECK(failed.cause == "gpu-fault");
  CHECK(CulpritRanks(failed) == std::set<int>{3});
  CHECK(judged("Warn", 3).cause == "rank-absent");
  CHECK(judged("Fail", 7).cause == "rank-absent");  // not a GPU of the job
}

}  // namespace witnesses_test
}  // namespace inquest
