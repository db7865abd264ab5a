// From findings to one verdict: what explains what, what counts as an end, what comes first.
#include "rules/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace judge_test {

using namespace std::chrono_literals;

const std::string kOom =
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.15 GiB of which 1.20 GiB is "
    "free.";
const std::string kRetries =
    "NET/IB: Got completion from peer 10.9.0.22<47012> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_2";
const std::string kTimeLimit =
    "slurmstepd: error: *** STEP 88123.0 ON alder04 CANCELLED AT 2031-04-05T06:07:08 DUE TO TIME LIMIT ***";
const std::string kEnded = "Training completed. Do not forget to share your model on huggingface.co/models =)";

/// Lines carry the collector's clock, so that files can be compared.
SynthJob Job() { return SynthJob({.ranks = 8, .hosts = 2, .launcher = Launcher::kKubectl}); }

Verdict Of(const SynthJob& job) { return JudgeText(job.Interleaved()).verdict; }

Verdict OfFiles(const SynthJob& job) {
  const JobFolder folder(job.PerRank());
  return AnalyzePaths({folder.path()}).verdict;
}

void OutOfMemory(SynthJob& job, int rank) { job.Raise(rank, "torch.OutOfMemoryError", kOom); }
void IllegalAccess(SynthJob& job, int rank) {
  job.Raise(rank, "RuntimeError", "CUDA error: an illegal memory access was encountered");
}

void TimeOutBut(SynthJob& job, int absent) {
  for (const int rank : job.AllRanks())
    if (rank != absent) job.TimeOut(rank, {});
}

std::set<std::string> Alternatives(const Verdict& verdict) {
  std::set<std::string> causes;
  for (const Alternative& alternative : verdict.alternatives) CHECK(causes.insert(alternative.cause).second);
  return causes;
}

// ---- how it ended ----------------------------------------------------------------------------------------------

TEST_CASE("judge: healthy needs an ending", "[judge]") {
  SynthJob job = Job();
  for (const int rank : job.AllRanks()) job.Chatter(rank, 5);
  const Verdict silent = Of(job);
  CHECK(silent.outcome == Outcome::kUndecided);
  CHECK(silent.cause == "unknown");
  job.Print(0, kEnded);
  const Verdict ended = Of(job);
  CHECK(ended.outcome == Outcome::kHealthy);
  CHECK(ended.cause == "healthy");
  CHECK(ended.culprits.empty());
  REQUIRE_FALSE(ended.evidence.empty());
  CHECK(ended.evidence[0].text == kEnded);
}

TEST_CASE("judge: what failed after the ending, or cannot be survived before it, is not healthy", "[judge]") {
  const auto with = [](void (*spoil)(SynthJob&), bool after) {
    SynthJob job = Job();
    job.Chatter(0, 3);
    if (!after) spoil(job);
    job.Wait(60s);
    job.Print(0, kEnded);
    job.Wait(60s);
    if (after) spoil(job);
    return Of(job).outcome;
  };
  CHECK(with([](SynthJob& job) { job.TimeOut(3, {}); }, false) != Outcome::kHealthy);
  CHECK(with([](SynthJob& job) { job.TimeOut(3, {}); }, true) != Outcome::kHealthy);
  CHECK(with([](SynthJob& job) { job.ElasticReport({{3, -11}}); }, false) != Outcome::kHealthy);
  CHECK(with([](SynthJob& job) { OutOfMemory(job, 3); }, true) != Outcome::kHealthy);
  CHECK(with([](SynthJob& job) { job.Warn(3, "transport/net_ib.cc:2211", kRetries); }, true) != Outcome::kHealthy);
  CHECK(with([](SynthJob& job) { OutOfMemory(job, 3); }, false) != Outcome::kHealthy);
  const auto goes_on = [](SynthJob& job) {  // somebody caught it and tried with less
    OutOfMemory(job, 3);
    job.Wait(60s);
    for (int step = 41; step < 44; ++step) job.Print(0, fmt::format("step {} loss 1.{}", step, step));
  };
  CHECK(with(goes_on, false) == Outcome::kHealthy);
}

TEST_CASE("judge: no ending acquits behind, before or beside a failure", "[judge]") {
  const auto outcome = [](std::string_view text) { return JudgeText(text).verdict.outcome; };
  SynthJob job = Job();
  job.Chatter(0, 3);
  OutOfMemory(job, 3);
  const std::string failed = job.Interleaved();
  for (const Rule& rule : BuiltInRules().rules) {
    if (rule.kind != Rule::Kind::kEnding) continue;
    const std::string& ending = rule.match.front();
    CAPTURE(rule.id, ending);
    CHECK(outcome(failed + ending + "\n") == Outcome::kFailed);
    CHECK(outcome(ending + "\n" + failed) == Outcome::kFailed);
    const JobFolder folder({{"job.log", failed}, {"other.log", ending + "\n"}});
    CHECK(AnalyzePaths({folder.path()}).verdict.outcome == Outcome::kFailed);
  }
  CHECK(outcome("Training complete!\nAll went well.\n") != Outcome::kHealthy);  // prose
}

TEST_CASE("judge: an exception that Python ignored at exit is none", "[judge]") {
  SynthJob job = Job();
  for (int step = 1; step < 4; ++step) job.Print(0, fmt::format("step {} loss 1.{}", step, step));
  job.Print(0, kEnded);
  const std::string well = job.Interleaved();
  const std::string raised =
      "Traceback (most recent call last):\n  File \"a.py\", line 3, in put\nFileNotFoundError: [Errno 2] No such file "
      "or directory: 'x.tmp'\n";
  CHECK(JudgeText(well + "Exception ignored in atexit callback: <function put>\n" + raised).verdict.outcome ==
        Outcome::kHealthy);
  CHECK(JudgeText(well + raised).verdict.outcome == Outcome::kFailed);
}

TEST_CASE("judge: nothing at all", "[judge]") {
  const Verdict verdict = JudgeText("").verdict;
  CHECK(verdict.outcome == Outcome::kUndecided);
  CHECK(verdict.cause == "unknown");
  CHECK(verdict.confidence == 0);
  CHECK(verdict.culprits.empty());
  CHECK(verdict.alternatives.empty());
  CHECK_FALSE(verdict.collect_next.empty());
  CHECK_FALSE(verdict.summary.empty());
}

// ---- symptoms and hints ----------------------------------------------------------------------------------------

TEST_CASE("judge: symptoms alone are no cause", "[judge]") {
  SynthJob job = Job();
  job.ElasticReport({{3, 1}});
  const Verdict verdict = Of(job);
  CHECK(verdict.cause == "unknown");
  CHECK(std::any_of(verdict.findings.begin(), verdict.findings.end(),
                    [](const Finding& finding) { return finding.cause.empty(); }));
}

TEST_CASE("judge: a weak hint decides nothing, and is named as a possibility", "[judge]") {
  SynthJob job = Job();
  job.Print(0, "args: world_size=8");
  job.Wait(700s);
  TimeOutBut(job, -1);
  const Verdict alone = Of(job);
  CHECK(alone.cause == "unknown");
  CHECK(alone.outcome == Outcome::kUndecided);
  CHECK(Alternatives(alone).contains("p2p-transport"));
  REQUIRE(alone.collective);
  CHECK(alone.collective->seq == 100);
}

TEST_CASE("judge: a hint decides where a few lines are all that was given", "[judge]") {
  const std::string hint =
      "node17:41:42 [0] find_ofi_provider:543 NCCL WARN NET/OFI Couldn't find any optimal provider\n";
  std::string more;
  for (int step = 0; step < 20; ++step) more += fmt::format("step {}\n", step);
  CHECK(JudgeText(hint).verdict.cause == "plugin-fault");
  CHECK(JudgeText(hint + more).verdict.cause == "unknown");
}

TEST_CASE("judge: a hint counts only where nothing better stands", "[judge]") {
  SynthJob job = Job();
  job.Warn(2, "misc/socket.cc:484",
           "socketProgress: Connection closed by remote peer birch09<52388>");  // a hint, and the first to speak
  job.Wait(1s);
  OutOfMemory(job, 5);
  const Verdict verdict = Of(job);
  CHECK(verdict.cause == "cuda-oom");
  CHECK(CulpritRanks(verdict) == std::set<int>{5});
}

// ---- what explains what ----------------------------------------------------------------------------------------

TEST_CASE("judge: a death explains the absence that follows from it", "[judge]") {
  SynthJob job = Job();
  for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=8");
  OutOfMemory(job, 5);
  job.Wait(600s);
  TimeOutBut(job, 5);
  const Verdict verdict = Of(job);
  CHECK(verdict.cause == "cuda-oom");
  const Finding* absent = FindFinding(verdict, "rank-absent");
  REQUIRE(absent != nullptr);
  CHECK_FALSE(absent->explained_by.empty());
  REQUIRE(FindFinding(verdict, absent->explained_by) != nullptr);
  CHECK(FindFinding(verdict, absent->explained_by)->cause == "cuda-oom");
  REQUIRE(verdict.collective);
  CHECK(verdict.collective->op == "ALLREDUCE");
}

TEST_CASE("judge: a dead peer explains a broken network, if it died before", "[judge]") {
  for (const bool died_first : {true, false}) {
    CAPTURE(died_first);
    SynthJob job = Job();
    job.Chatter(0, 3);
    if (died_first) OutOfMemory(job, 6);
    job.Wait(20s);
    job.Warn(2, "transport/net_ib.cc:2211", kRetries);
    job.Wait(20s);
    if (!died_first) OutOfMemory(job, 6);
    CHECK(Of(job).cause == (died_first ? "cuda-oom" : "ib-fault"));
    CHECK(OfFiles(job).cause == (died_first ? "cuda-oom" : "ib-fault"));
  }
}

TEST_CASE("judge: being stopped is a consequence, unless nothing went wrong before", "[judge]") {
  SynthJob alone = Job();
  alone.Chatter(0, 3);
  alone.PrintAgent(0, kTimeLimit);
  CHECK(Of(alone).cause == "interrupted");

  SynthJob after = Job();
  OutOfMemory(after, 5);
  after.Wait(60s);
  after.PrintAgent(0, kTimeLimit);
  CHECK(Of(after).cause == "cuda-oom");

  SynthJob before = Job();
  before.PrintAgent(0, kTimeLimit);
  before.Wait(5s);
  before.Raise(3, "RuntimeError", "DataLoader was shut down", "loader.py");
  CHECK(Of(before).cause == "interrupted");
}

TEST_CASE("judge: the cause names whom another report of the same end names", "[judge]") {
  SynthJob job = Job();
  job.Print(5,
            "[12345.678901] Memory cgroup out of memory: Killed process 4711 (python3) total-vm:312345678kB, "
            "anon-rss:212345678kB, file-rss:0kB, shmem-rss:4096kB");
  job.ElasticReport({{5, -9}});
  const Verdict verdict = Of(job);
  CHECK(verdict.cause == "host-oom");
  CHECK(CulpritRanks(verdict) == std::set<int>{5});
}

// ---- what comes first ------------------------------------------------------------------------------------------

TEST_CASE("judge: of two causes alike in strength the earlier wins", "[judge]") {
  for (const bool memory_first : {true, false}) {
    CAPTURE(memory_first);
    SynthJob job = Job();
    memory_first ? OutOfMemory(job, 2) : IllegalAccess(job, 6);
    job.Wait(30s);
    memory_first ? IllegalAccess(job, 6) : OutOfMemory(job, 2);
    for (const Verdict& verdict : {Of(job), OfFiles(job)}) {
      CHECK(verdict.cause == (memory_first ? "cuda-oom" : "cuda-kernel-fault"));
      CHECK(CulpritRanks(verdict) == std::set<int>{memory_first ? 2 : 6});
      CHECK(Alternatives(verdict).contains(memory_first ? "cuda-kernel-fault" : "cuda-oom"));
    }
  }
}

TEST_CASE("judge: where clocks cannot tell, the surer wins, in whatever file it stands", "[judge]") {
  SynthJob job({.ranks = 8, .hosts = 2});
  OutOfMemory(job, 2);
  IllegalAccess(job, 6);
  std::vector<SynthFile> files = job.PerRank();
  REQUIRE(files.size() == 2);
  const JobFolder as_written(files);
  std::swap(files[0].name, files[1].name);
  const JobFolder swapped(files);
  const Verdict one = AnalyzePaths({as_written.path()}).verdict, other = AnalyzePaths({swapped.path()}).verdict;
  CHECK(one.cause == other.cause);
  const auto confidence = [&](std::string_view cause) {
    double best = 0;
    for (const Finding& finding : one.findings)
      if (finding.cause == cause) best = std::max(best, finding.confidence);
    return best;
  };
  REQUIRE(confidence("cuda-oom") != confidence("cuda-kernel-fault"));
  CHECK(one.cause == (confidence("cuda-oom") > confidence("cuda-kernel-fault") ? "cuda-oom" : "cuda-kernel-fault"));
}

TEST_CASE("judge: alternatives are other causes, each once", "[judge]") {
  SynthJob job = Job();
  OutOfMemory(job, 2);
  OutOfMemory(job, 3);
  job.Wait(30s);
  IllegalAccess(job, 6);
  IllegalAccess(job, 7);
  const Verdict verdict = Of(job);
  const std::set<std::string> causes = Alternatives(verdict);
  CHECK_FALSE(causes.contains(verdict.cause));
  CHECK(causes.contains("cuda-kernel-fault"));
  for (const Alternative& alternative : verdict.alternatives) {
    CHECK(FindFinding(verdict, alternative.rule) != nullptr);
    CHECK_FALSE(alternative.why.empty());
  }
}

// ---- what a verdict promises -----------------------------------------------------------------------------------

TEST_CASE("judge: the verdict carries what its cause says to do", "[judge]") {
  SynthJob job = Job();
  OutOfMemory(job, 5);
  const Verdict verdict = Of(job);
  const Cause* cause = BuiltInRules().FindCause("cuda-oom");
  REQUIRE(cause != nullptr);
  CHECK(verdict.title == cause->title);
  for (const Remedy& remedy : cause->remedies)
    CHECK(std::any_of(verdict.remedies.begin(), verdict.remedies.end(), [&](const Remedy& r) {
      return r.text == remedy.text || (!r.command.empty() && r.command == remedy.command);
    }));
  CHECK(verdict.retry != Retry::kUnsaid);
  CHECK(verdict.confidence > 0.4);
  CHECK(verdict.confidence < 1);
  REQUIRE_FALSE(verdict.findings.empty());
  CHECK(verdict.findings[0].rule == verdict.rule);
}

SynthJob Diverging() {
  SynthJob job = Job();
  for (const int rank : job.AllRanks()) job.Chatter(rank, 2);
  const auto comm = job.NewComm(job.AllRanks());
  job.Init(comm);
  for (int step = 0; step < 9; ++step)
    for (const int rank : job.AllRanks()) job.Call(comm, rank, {.count = rank == 4 && step == 6 ? 7u : 8u});
  return job;
}

TEST_CASE("judge: every citation of a line that is an event is that event", "[judge]") {
  SynthJob job = Job();
  for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=8");
  job.Warn(2, "transport/net_ib.cc:2211", kRetries);
  job.Wait(600s);
  TimeOutBut(job, 5);
  job.ElasticReport({{2, -6}});
  const Judged judged = JudgeText(job.Interleaved());
  REQUIRE_FALSE(judged.verdict.findings.empty());
  for (const Finding& finding : judged.verdict.findings)
    for (const Citation& citation : finding.citations) {
      CAPTURE(finding.rule, citation.text);
      REQUIRE(citation.event < judged.timeline.events.size());
      CHECK(judged.timeline.events[citation.event].where == citation.where);
      CHECK(job.Lines().at(citation.where.line - 1).find(citation.text) != std::string::npos);
    }
}

// A call is no event; it counts as the last event that is not behind it.
TEST_CASE("judge: calls that differ count as late as they were made", "[judge]") {
  SynthJob job = Job();
  job.Chatter(0, 3);
  OutOfMemory(job, 6);  // hours before, and survived nobody knows how: still the first thing that went wrong
  job.Wait(3600s);
  const auto comm = job.NewComm(job.AllRanks());
  job.Init(comm);
  for (const int rank : job.AllRanks()) job.Call(comm, rank, {.count = rank == 4 ? 7u : 8u});
  CHECK(Of(job).cause == "cuda-oom");
}

TEST_CASE("judge: a call is cited where it stands", "[judge]") {
  const SynthJob job = Diverging();
  const Verdict verdict = Of(job);
  CHECK(verdict.cause == "collective-mismatch");
  const Finding* finding = FindFinding(verdict, "call-divergence");
  REQUIRE(finding != nullptr);
  REQUIRE_FALSE(finding->citations.empty());
  CHECK(job.Lines().at(finding->citations[0].where.line - 1).find("count 7 ") != std::string::npos);
  CHECK(finding->citations[0].rank == GlobalRank{4});
}

TEST_CASE("Judge: a few lines that complain of the set-up complain of nothing once a communicator is complete",
          "[rules]") {
  const std::string lines =
      "node01:4121:4121 [3] NCCL INFO NET/OFI No eligible providers were found\n"
      "node01:4121:4170 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.1.2<0>\n";
  CHECK(JudgeText(lines).verdict.cause == "plugin-fault");
  const Verdict verdict = JudgeText(lines +
                                    "node01:4121:4170 [3] NCCL INFO ncclCommInitRank comm 0x55cc27005c20 rank 0 nranks "
                                    "8 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x1c3170e2c1182784 - Init COMPLETE\n")
                              .verdict;
  CHECK(verdict.cause == "unknown");
}

}  // namespace judge_test
}  // namespace inquest
