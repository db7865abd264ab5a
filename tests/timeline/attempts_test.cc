// Several starts of a job in one input: where they begin, which is judged, and what is none.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace attempts_test {

std::string Steps(int from, int to) {
  std::string out;
  for (int step = from; step <= to; ++step) out += fmt::format("step {} loss 1.{}\n", step, step);
  return out;
}

const std::string kBanner =
    "W0405 06:07:08.123000 41200 torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment variable for each "
    "process to be 1 in default\n";
const std::string kOom =
    "Traceback (most recent call last):\n  File \"train.py\", line 84, in main\ntorch.OutOfMemoryError: CUDA out of "
    "memory. Tried to allocate 2.00 GiB.\n";
const std::string kMissing =
    "Traceback (most recent call last):\n  File \"train.py\", line 12, in main\nModuleNotFoundError: No module named "
    "'flash_attn'\n";
const std::string kRestart =
    "INFO:torch.distributed.elastic.agent.server.api:[default] Worker group FAILED. 1/3 attempts left; will restart "
    "worker group\n";
const std::string kCancelled =
    "slurmstepd: error: *** JOB 88123 ON node07 CANCELLED AT 2031-04-05T06:07:08 DUE TO TIME LIMIT ***\n";

std::vector<std::string> Causes(const Verdict& verdict) {
  std::vector<std::string> causes;
  for (const AttemptTold& attempt : verdict.attempts) causes.push_back(attempt.cause);
  return causes;
}

TEST_CASE("attempts: the last one is judged, the others are told with their own cause", "[attempts]") {
  const Verdict verdict = JudgeText(kBanner + kMissing + kBanner + Steps(1, 5) + kOom).verdict;
  CHECK(verdict.cause == "cuda-oom");
  CHECK(Causes(verdict) == std::vector<std::string>{"python-exception", "cuda-oom"});
  REQUIRE(verdict.attempts.size() == 2);
  CHECK(verdict.attempts[1].judged);
  CHECK(verdict.attempts[1].first.where.line == 5);
}

TEST_CASE("attempts: an agent that restarts its workers begins one, whatever its banner", "[attempts]") {
  const Verdict verdict = JudgeText(Steps(1, 4) + kOom + kRestart + Steps(1, 4) + kMissing).verdict;
  CHECK(Causes(verdict) == std::vector<std::string>{"cuda-oom", "python-exception"});
}

TEST_CASE("attempts: a run that a scheduler ended is over, and the next may end well", "[attempts]") {
  const Verdict verdict =
      JudgeText(kBanner + Steps(1, 5) + kCancelled + kBanner + Steps(6, 12) +
                "Training completed. Do not forget to share your model on huggingface.co/models =)\n")
          .verdict;
  CHECK(verdict.outcome == Outcome::kHealthy);
  CHECK(Causes(verdict) == std::vector<std::string>{"interrupted", "healthy"});
}

/// A traceback whose module calls `run` from `line`.
std::string FailedAt(int line, int within, std::string_view error) {
  return fmt::format(
      "Traceback (most recent call last):\n  File \"/w/main.py\", line {}, in <module>\n    run(args)\n  File "
      "\"/w/main.py\", line {}, in run\n    go()\n{}\n",
      line, within, error);
}

TEST_CASE("attempts: a program that was edited since it failed was started since", "[attempts]") {
  const std::string device = "RuntimeError: CUDA error: invalid device ordinal", key = "KeyError: 'lr'",
                    note = "reading the configuration of today\n";
  const auto causes = [](const std::string& log) { return Causes(JudgeText(log).verdict); };
  using Told = std::vector<std::string>;
  CHECK(causes(FailedAt(239, 138, device) + note + FailedAt(251, 130, key)) ==
        Told{"device-mapping", "python-exception"});
  const Verdict verdict = JudgeText(FailedAt(239, 138, device) + note + FailedAt(251, 130, key)).verdict;
  CHECK(verdict.attempts.back().first.where.line == 7);
  // The same source; one of whose two calls failed first and last; another function; and ranks that tell who they are.
  CHECK(causes(FailedAt(239, 138, device) + note + FailedAt(239, 138, key)) == Told{});
  CHECK(causes(FailedAt(239, 138, device) + FailedAt(251, 130, key) + FailedAt(239, 138, device)) == Told{});
  std::string other = FailedAt(251, 130, key);
  other.replace(other.find("in run"), 6, "in end");
  CHECK(causes(FailedAt(239, 138, device) + note + other) == Told{});
  CHECK(causes(FailedAt(239, 138, device) +
               "\nDuring handling of the above exception, another exception occurred:\n\n" + FailedAt(251, 130, key)) ==
        Told{});
}

TEST_CASE("attempts: a module that stopped at another line was started again, where one program writes", "[attempts]") {
  const auto stopped_at = [](int line, std::string_view error, std::string_view rank = {}) {
    return fmt::format(
        "{0}Traceback (most recent call last):\n{0}  File \"/w/main.py\", line {1}, in <module>\n{0}{2}\n", rank, line,
        error);
  };
  const std::string missing = "ModuleNotFoundError: No module named 'seaborn'", key = "KeyError: 'lr'",
                    between = "reading a grid\n12 settings\nthe first one\nits data are read\n";
  const auto causes = [](const std::string& log) { return Causes(JudgeText(log).verdict); };
  using Told = std::vector<std::string>;
  CHECK(causes(stopped_at(6, missing) + between + stopped_at(63, key)) == Told{"python-exception", "python-exception"});
  // At once, as two ranks without a name do; and ranks that have one.
  CHECK(causes(stopped_at(6, missing) + stopped_at(63, key)) == Told{});
  CHECK(causes(stopped_at(6, missing, "[rank0]: ") + between + stopped_at(63, key, "[rank1]: ")) == Told{});
}

TEST_CASE("attempts: ranks that start late, and a last restart that nothing follows, are no new attempt",
          "[attempts]") {
  CHECK(JudgeText(kMissing + kBanner + Steps(1, 3)).verdict.attempts.empty());        // another host's banner, late
  CHECK(JudgeText(kBanner + kBanner + Steps(1, 3) + kOom).verdict.attempts.empty());  // two agents
  CHECK(JudgeText(kBanner + Steps(1, 3) + kOom + kRestart).verdict.attempts.empty());
  const std::string account =
      "INFO:torch.distributed.elastic.agent.server.api:[default] Rendezvous complete for workers. Result:\n"
      "  restart_count=1\n  global_world_sizes=[2, 2]\n";
  CHECK(JudgeText(kBanner + Steps(1, 3) + kOom + kRestart + account).verdict.attempts.empty());
  CHECK(JudgeText(kBanner + Steps(1, 3) + kOom + kRestart + account + Steps(1, 3)).verdict.attempts.size() == 2);
}

// A communicator that two attempts speak of is of both, its births each of one: what they are cited by must be of that
// one.
TEST_CASE("attempts: a rank that was born in an earlier one is cited by no line of the last", "[attempts]") {
  const auto init = [](int rank) {
    return fmt::format(
        "node07:{}:{} [{}] NCCL INFO comm 0x55d{} rank {} nranks 4 commId 0x8f3d2ab4c1e90d77 - Init START\n",
        4100 + rank, 4200 + rank, rank, rank, rank);
  };
  const std::string version = "NCCL version 2.21.5+cuda12.4\n";
  const Verdict verdict = JudgeText("Starting\nRuntimeError: bad shape\n" + version + init(1) + init(3) +
                                    "RuntimeError: bad shape\n" + version + init(0))
                              .verdict;
  REQUIRE(verdict.attempts.size() == 2);
  REQUIRE(verdict.rule == "init-incomplete");
  for (const Citation& citation : verdict.findings.front().citations)
    CHECK(citation.where.line >= verdict.attempts[1].first.where.line);
}

TEST_CASE("lifelines: what a process did, and how it ended", "[lifelines]") {
  const Judged judged = JudgeText(
      "[rank0]: Setting up\n[rank0]: {'loss': 1.25, 'learning_rate': 2e-05}\n[rank0]: {'loss': 1.21, 'learning_rate': "
      "2e-05}\n[rank0]: ***** Running evaluation *****\n"
      "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"train.py\", line 12, in main\n[rank0]: "
      "ValueError: bad shape\n");
  REQUIRE(judged.verdict.lifelines.size() == 1);
  const Lifeline& line = judged.verdict.lifelines.front();
  CHECK(line.rank == GlobalRank{0});
  REQUIRE(line.intervals.size() == 2);
  CHECK(line.intervals[0].at == Activity::kTraining);
  CHECK(line.intervals[0].times == 2);
  REQUIRE(line.intervals[0].end);
  CHECK(judged.timeline.events[*line.intervals[0].end].where.line == 4);
  CHECK(line.intervals[1].at == Activity::kEvaluation);
  CHECK_FALSE(line.intervals[1].end);
  CHECK(line.end.how == LifeEnd::How::kRaised);
  REQUIRE_FALSE(line.marks.empty());
  CHECK(line.marks.front().kind == "exception");
}

TEST_CASE("attempts: a program whose banner nobody knows is known by its first lines", "[attempts]") {
  const std::string start = "reading the configuration of the run\nworld has 4 members\nbuilding the model\n";
  const std::string run = start + Steps(1, 12) + kOom;
  const Verdict again = JudgeText(run + start + Steps(1, 12) + kMissing).verdict;
  CHECK(Causes(again) == std::vector<std::string>{"cuda-oom", "python-exception"});
  REQUIRE(again.attempts.size() == 2);
  CHECK(again.attempts[1].first.where.line == 19);
  // One of them is what anybody may say again, and what was given may begin with the end of a run.
  CHECK(JudgeText(run + "building the model\n" + Steps(1, 3) + kMissing).verdict.attempts.empty());
  CHECK(JudgeText(kOom + kOom + kOom).verdict.attempts.empty());
}

TEST_CASE("attempts: lines that are printed all the while begin none, though they stood at the head", "[attempts]") {
  const std::string chatter =
      "tokens of the shard were seen\nthe default will change in a later version\ngradients are clipped at one\n";
  const std::string run = chatter + Steps(1, 12) + kOom;
  CHECK(JudgeText(run + chatter + Steps(13, 14) + chatter + Steps(15, 16) + kMissing).verdict.attempts.empty());
  CHECK(JudgeText(run + chatter + Steps(1, 14) + kMissing).verdict.attempts.size() == 2);
}

TEST_CASE("attempts: lines that follow several deaths are its start, where work follows", "[attempts]") {
  const std::string warnings =
      "registry.py:962: overwriting the small model\nregistry.py:975: overwriting the base model\nregistry.py:987: "
      "overwriting the large model\n";
  const Verdict verdict = JudgeText("one line\n" + kMissing + warnings + kOom + warnings + Steps(1, 6) +
                                    "Results saved to out/results.json\n")
                              .verdict;
  CHECK(verdict.outcome == Outcome::kHealthy);
  CHECK(Causes(verdict) == std::vector<std::string>{"python-exception", "cuda-oom", "healthy"});
  // Every rank that died says the same behind its traceback.
  CHECK(JudgeText("one line\n" + Steps(1, 6) + kOom + warnings + kOom + warnings + kOom + warnings)
            .verdict.attempts.empty());
}

TEST_CASE("attempts: a thread and a child are no end of a run", "[attempts]") {
  const std::string start = "reading the configuration of the run\nworld has 4 members\nbuilding the model\n";
  const std::string child =
      "Process Process-5:\nTraceback (most recent call last):\n  File "
      "\"/usr/lib/python3.12/multiprocessing/process.py\", line 314, in _bootstrap\n    self.run()\n"
      "  File \"train.py\", line 12, in main\nModuleNotFoundError: No module named 'flash_attn'\n";
  CHECK(JudgeText(start + Steps(1, 12) + child + start + Steps(1, 2)).verdict.attempts.empty());
}

TEST_CASE("course: numbers that fall as often as they rise are no work that went on", "[course]") {
  const std::string preempted =
      "slurmstepd: error: *** JOB 88123 ON node07 CANCELLED AT 2031-04-05T06:07:08 DUE TO PREEMPTION ***\n";
  const auto rows = [](std::initializer_list<int> numbers) {
    std::string out;
    for (const int number : numbers) out += fmt::format("step {} loss 1.{}\n", number, number);
    return out;
  };
  CHECK(JudgeText(rows({1, 2}) + kMissing + rows({3, 4, 5, 6, 7, 8, 9}) + preempted).verdict.cause == "interrupted");
  CHECK(JudgeText(rows({91, 14}) + kMissing + rows({55, 72, 31, 40, 18, 63, 77}) + preempted).verdict.cause ==
        "python-exception");
}

TEST_CASE("attempts: a child whose name dies twice was the end of two programs", "[attempts]") {
  const std::string start = "reading the configuration of the run\nworld has 4 members\nbuilding the model\n";
  const auto child = [](int number) {
    return fmt::format(
        "Process Process-{}:\nTraceback (most recent call last):\n  File "
        "\"/usr/lib/python3.12/multiprocessing/process.py\", line 314, in _bootstrap\n    self.run()\n"
        "  File \"train.py\", line 12, in main\nModuleNotFoundError: No module named 'flash_attn'\n",
        number);
  };
  const std::string run = start + Steps(1, 12);
  const Verdict twice =
      JudgeText(run + child(1) + run + child(1) + run + "Results saved to out/results.json\n").verdict;
  CHECK(twice.outcome == Outcome::kHealthy);
  CHECK(Causes(twice) == std::vector<std::string>{"python-exception", "python-exception", "healthy"});
  CHECK(JudgeText(run + child(1) + run + child(2) + run).verdict.attempts.empty());
}

TEST_CASE("course: a scheduler's report in front of the output speaks of the output", "[course]") {
  const std::string report =
      "Sender: LSF System <lsfadmin@node07>\nSubject: Job 88123: <train> in cluster <uni> Done\n\nSuccessfully "
      "completed.\n\nResource usage summary:\n\n    CPU time : 64.00 sec.\n\n";
  const std::string follows = "The output (if any) follows:\n\n",
                    above = "The output (if any) is above this job summary.\n";
  CHECK(JudgeText(report + follows + Steps(1, 20)).verdict.outcome == Outcome::kHealthy);
  CHECK(JudgeText(report + follows + Steps(1, 20) + kOom).verdict.cause == "cuda-oom");
  CHECK(JudgeText(report + Steps(1, 20)).verdict.outcome != Outcome::kHealthy);
  CHECK(JudgeText(Steps(1, 20) + report + above).verdict.outcome == Outcome::kHealthy);
}

TEST_CASE("course: a thread that died of an exception did not end its process, which printed on", "[lifelines]") {
  const std::string thread =
      "Exception in thread Thread-3:\nTraceback (most recent call last):\n  File \"/usr/lib/python3.9/threading.py\", "
      "line 980, in _bootstrap_inner\n    self.run()\n"
      "  File \"/app/serialization.py\", line 447, in __init__\n    super().__init__(name)\nRuntimeError: "
      "PytorchStreamReader failed reading zip archive: failed finding central directory\n";
  std::string more;
  for (int i = 0; i < 150; ++i) more += fmt::format("sim {} is ready\n", i % 7);
  const std::string preempted =
      "slurmstepd: error: *** JOB 88123 ON node07 CANCELLED AT 2031-04-05T06:07:08 DUE TO PREEMPTION ***\n";
  CHECK(JudgeText(thread + more + preempted).verdict.cause == "interrupted");
  CHECK(JudgeText(more + thread).verdict.cause == "python-exception");
}

TEST_CASE("course: what is complained of behind the program's own end is tear-down", "[lifelines]") {
  const std::string end = "Training completed. Do not forget to share your model on huggingface.co/models =)\n";
  const std::string warn =
      "node07:41200:41200 [0] misc/argcheck.cc:41 NCCL WARN Error: corrupted comm object detected\n";
  CHECK(JudgeText(Steps(1, 10) + end + warn).verdict.outcome == Outcome::kHealthy);
  CHECK(JudgeText(Steps(1, 10) + warn + end).verdict.outcome != Outcome::kHealthy);
  CHECK(JudgeText(end + Steps(1, 10) + warn).verdict.outcome != Outcome::kHealthy);
  CHECK(JudgeText("starting\nnode07:41200:41200 [0] NCCL INFO NET/Socket : Using [0]ens5:10.4.17.9<0>\n" + end + warn)
            .verdict.outcome != Outcome::kHealthy);  // nothing was counted
  CHECK(JudgeText(Steps(1, 10) + end + warn + "srun: error: node07: task 3: Segmentation fault\n").verdict.outcome ==
        Outcome::kFailed);
}

TEST_CASE("attempts: starts in files of their own", "[attempts]") {
  const auto at = [](int minute, const std::string& line) {
    return fmt::format("2031-04-05 06:{:02}:08,123 INFO train.py:12 {}\n", minute, line);
  };
  const auto run = [&](int minute, const std::string& end) {
    return at(minute, "[Rank 0] starting") + at(minute, "step 1 loss 1.1") + at(minute + 1, "step 2 loss 1.0") + end +
           at(minute + 2, "leaving");
  };
  const auto causes = [](const std::vector<SynthFile>& files) {
    return Causes(AnalyzePaths(JobFolder(files).Files()).verdict);
  };
  const std::vector<std::string> both = {"cuda-oom", "python-exception"};
  // By name: the clocks would say the same, or say nothing.
  CHECK(causes({{"train-0-previous.log", kBanner + kOom}, {"train-0.log", kBanner + kMissing}}) == both);
  CHECK(causes({{"logs/attempt_0/0/stderr.log", kOom},
                {"logs/attempt_0/1/stderr.log", kOom},
                {"logs/attempt_1/0/stderr.log", kMissing},
                {"logs/attempt_1/1/stderr.log", "step 1\n"}}) == both);
  CHECK(causes({{"slurm-88123.out", kBanner + kOom}, {"slurm-88130.out", kBanner + kMissing}}) == both);
  CHECK(causes({{"var/log/pods/ml_train-0_1/trainer/9.log", kOom},
                {"var/log/pods/ml_train-0_1/trainer/10.log", kMissing}}) == both);
  CHECK(causes({{"run/attempt_0/0/stderr.log", kOom},
                {"run/attempt_1/0/stderr.log", kMissing},
                {"run/agent.log", kBanner + kRestart + kBanner}}) == both);
  // Names that users give, where one id has both streams.
  CHECK(causes({{"fit_v2_88123.out", "step 1\n"}, {"fit_v2_88123.err", kOom}, {"fit_v2_88130.err", kMissing}}) == both);
  CHECK(causes({{"fit_20570527.out", "step 1\n"}, {"fit_20570527.err", kOom}, {"fit_20575253.err", kMissing}}) == both);
  CHECK(causes({{"fit_88123.err", kOom}, {"fit_88130.err", kMissing}}).empty());  // pids of ranks, as well as jobs
  const auto step = [](const std::string& id) {
    return "srun: error: node07: task 3: Exited with exit code 1\nslurmstepd: error: *** STEP " + id +
           ".0 ON node07 CANCELLED AT 2031-04-05T06:07:08 ***\n";
  };
  CHECK(causes({{"srun.88123.log", kOom + step("88123")}, {"srun.88130.log", kMissing + step("88130")}}) == both);
  CHECK(causes({{"srun.88123.log", kOom + step("88123")}, {"srun.88130.log", kMissing + step("88123")}}).empty());
  // Where clocks say otherwise they are right.
  CHECK(causes({{"fit_88123.out", run(30, "")}, {"fit_88123.err", kOom}, {"fit_88130.err", run(10, kMissing)}}) !=
        both);
  CHECK(causes({{"fit_88123.out", "[rank0]: step 1 loss 2\n"},
                {"fit_88123.err", kOom},
                {"fit_88130.err", "[rank1]: step 1 loss 2\n" + kMissing}})
            .empty());  // one rank each
  CHECK(causes({{"fit_20310405.out", "step 1\n"}, {"fit_20310405.err", kOom}, {"fit_20310406.err", kMissing}})
            .empty());  // dates
  // Nothing that numbers a start: ranks, hosts, tasks of an array, two logs of one start.
  CHECK(causes({{"logs/rank_0.log", kOom}, {"logs/rank_1.log", kMissing}}).empty());
  CHECK(causes({{"slurm-88123_1.out", kOom}, {"slurm-88123_2.out", kMissing}}).empty());
  CHECK(causes({{"slurm-88123.out", "step 1\n"}, {"slurm-88123.err", kMissing}}).empty());
  CHECK(causes({{"attempt_1/0/stderr.log", kOom}, {"attempt_1/1/stderr.log", kMissing}}).empty());
  // By clocks, in any order of the names.
  CHECK(causes({{"b.log", run(10, kOom)}, {"a.log", run(30, kMissing)}}) == both);
  CHECK(causes({{"a.log", run(10, kOom)}, {"b.log", run(11, kMissing)}}).empty());  // at once
  CHECK(causes({{"stdout.log", at(10, "step 1 loss 1.1") + at(11, "step 2 loss 1.0")},
                {"stderr.log", at(12, "leaving") + kMissing}})
            .empty());  // one process, two files
  // Ranks that give up one after the other, each in a file of its own.
  const auto gave_up = [&](int rank, int minute, const std::string& communicator) {
    return fmt::format(
               "node07:{0}:{0} [{1}] NCCL INFO ncclCommInitRank comm 0x55d0 rank {1} nranks 2 cudaDev {1} busId "
               "{1}9000 commId {2} - Init COMPLETE\n",
               4700 + rank, rank, communicator) +
           at(minute, "step 1 loss 1.1") + at(minute, "step 2 loss 1.0") + kOom;
  };
  CHECK(causes({{"rank0.log", gave_up(0, 10, "0x1")}, {"rank1.log", gave_up(1, 20, "0x2")}}).empty());
  CHECK(causes({{"rank0.log", gave_up(0, 10, "0x1")}, {"again0.log", gave_up(0, 20, "0x1")}}).empty());
  CHECK(causes({{"rank0.log", gave_up(0, 10, "0x1")}, {"again0.log", gave_up(0, 20, "0x2")}}).size() == 2);
}

TEST_CASE("course: an ending is known by its shape", "[lifelines]") {
  const std::string epochs = "Epoch 8/10 | loss 0.41\nEpoch 9/10 | loss 0.40\n";
  const auto outcome = [](const std::string& text) { return JudgeText(text).verdict.outcome; };
  CHECK(outcome(epochs + "Epoch 10/10 | loss 0.39\n") == Outcome::kHealthy);
  CHECK(outcome(epochs) == Outcome::kUndecided);
  CHECK(outcome(epochs + "Results saved to out/results.json\n") == Outcome::kHealthy);
  CHECK(outcome(epochs + "All experiments finished successfully!\n") == Outcome::kHealthy);
  CHECK(outcome(epochs + "Saving results ...\n") == Outcome::kUndecided);
  // What somebody grumbled of last, and what goes on behind, is no end; and words alone prove nothing.
  CHECK(outcome(epochs + "could not reach the file server\nDone.\n") == Outcome::kUndecided);
  CHECK(outcome("could not reach the file server\n" + epochs + "Done.\n") == Outcome::kHealthy);
  CHECK(outcome(epochs +
                "Results saved to out/results.json\nCounting:  43%|####      | 43/100 [00:12<00:15, 3.11it/s]\n") ==
        Outcome::kUndecided);
  CHECK(outcome("Done.\n") == Outcome::kUndecided);
}

TEST_CASE("course: rows of numbers are work, whatever they count", "[lifelines]") {
  std::string rows;
  for (int i = 0; i < 6; ++i) rows += fmt::format("size {} kB gave {}.5 in the mean\n", 1 << i, i);
  CHECK(JudgeText(rows + "Benchmark complete\n").verdict.outcome == Outcome::kHealthy);
  CHECK(JudgeText("reading a\nreading b\nBenchmark complete\n").verdict.outcome == Outcome::kUndecided);
}

TEST_CASE("course: only what keeps rising is work that goes on", "[lifelines]") {
  const auto outcome = [](const std::string& steps) {
    return JudgeText(Steps(1, 4) + kMissing + steps +
                     "Training completed. Do not forget to share your model on huggingface.co/models =)\n")
        .verdict.outcome;
  };
  CHECK(outcome("eta: 5:11:12  iter: 20  total_loss: 0.91\neta: 5:10:58  iter: 40  total_loss: 0.90\neta: 4:59:03  "
                "iter: 60  total_loss: 0.88\n") == Outcome::kHealthy);
  CHECK(outcome("epoch 3 step 77 loss 0.31\nepoch 3 step 12 loss 0.44\nepoch 3 step 55 loss 0.12\nepoch 3 step 13 loss "
                "0.29\n") == Outcome::kFailed);  // of several runs
}

TEST_CASE("course: a log that breaks off within its last line did not end", "[lifelines]") {
  const auto outcome = [](const std::string& end) {
    std::string log = "loading model from /data/base\ncompiling kernels took 12 s\n";
    for (int i = 1; i < 12; ++i)
      log += fmt::format("{{'loss': 0.9{}, 'learning_rate': 0.00{}, 'epoch': 0.{}}}\n", i, i, i);
    return JudgeText(log + end).verdict.outcome;
  };
  const std::string result = "test accuracy 0.913 f1 0.872, results written to out/test.json\n";
  CHECK(outcome(result) == Outcome::kHealthy);
  CHECK(outcome(result + "{'loss': 0.88, 'learning_rate': 0.00") == Outcome::kUndecided);  // of a row
  CHECK(outcome("test results after 3 min: accuracy 0.913 {'car': 0.9, 'bike") == Outcome::kUndecided);
  CHECK(outcome("final results:\n{'accuracy': 0.913,\n 'precision': 0.89,\n 'recall': 0.9") == Outcome::kUndecided);
  CHECK(outcome("test results after 3 min: accuracy 0.913 in [0, 1), written to out/test.json\n") == Outcome::kHealthy);
}

TEST_CASE("course: a reminder of leaving is a good end where nothing else is given", "[lifelines]") {
  std::string left;
  for (int rank = 0; rank < 2; ++rank)
    left += fmt::format(
        "[rank{}]:[W405 06:07:08.829549331 ProcessGroupNCCL.cpp:1487] Warning: WARNING: destroy_process_group() was "
        "not called before program exit, which can leak resources.\n",
        rank);
  CHECK(JudgeText(left).verdict.outcome == Outcome::kHealthy);
  CHECK(JudgeText(kOom + left).verdict.cause == "cuda-oom");
  CHECK(JudgeText(Steps(1, 4) + kOom + Steps(1, 1) + left).verdict.cause == "cuda-oom");
}

TEST_CASE("course: who stops a job at work ends it, and what falls apart behind follows", "[lifelines]") {
  std::string waits;
  for (int rank = 1; rank < 4; ++rank)
    waits += fmt::format(
        "[rank{0}]:[E ProcessGroupNCCL.cpp:523] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=128520, OpType=ALLREDUCE, NumelIn=314981, NumelOut=314981, Timeout(ms)=600000) ran for 600155 "
        "milliseconds before timing out.\n",
        rank);
  const std::string stop = "KeyboardInterrupt\n";
  const Verdict stopped = JudgeText(Steps(1, 9) + stop + waits).verdict;
  CHECK(stopped.cause == "interrupted");
  REQUIRE(stopped.culprits.size() == 1);
  CHECK(stopped.culprits[0].rank == GlobalRank{0});
  CHECK(JudgeText(Steps(1, 9) + waits + stop).verdict.cause == "rank-absent");  // somebody gave up a job that hung
}

TEST_CASE("wait: a bar that moved for as long as another rank waited is what it waited for", "[lifelines]") {
  const auto cause = [](const std::string& elapsed) {
    const Verdict verdict =
        JudgeText(
            "Tokenizing:  92%|#########2| 328986/359152 [" + elapsed +
            "<12:05, 41.59 examples/s][rank1]:[W516 14:34:56.853490829 socket.cpp:464] [c10d] waitForInput: poll for "
            "socket SocketImpl(fd=79, addr=[localhost]:41170, remote=[localhost]:29500) returned 0, likely a timeout\n"
            "[rank1]:[W516 14:34:56.854597329 socket.cpp:489] [c10d] waitForInput: socket SocketImpl(fd=79, "
            "addr=[localhost]:41170, remote=[localhost]:29500) timed out after 1800000ms\n")
            .verdict;
    return fmt::format("{} {:.2f}", verdict.cause, verdict.confidence);
  };
  CHECK(cause("29:58") == "slow-rank 0.75");
  CHECK(cause("00:58") == "slow-rank 0.60");
}

TEST_CASE("unknown: who ended first is named where nothing says why", "[lifelines]") {
  const Verdict verdict = JudgeText(
                              "INFO:torch.distributed.elastic.agent.server.api:world_size=4\n"
                              "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 2 "
                              "(pid: 59469) of binary: /usr/bin/python\n")
                              .verdict;
  CHECK(verdict.cause == "unknown");
  REQUIRE(verdict.culprits.size() == 1);
  CHECK(verdict.culprits[0].rank == GlobalRank{2});
}

// ---- many appended runs ----------------------------------------------------------------------------------------

/// Runs that a loop appended to one file.
std::string Runs(int count, std::string (*run)(int)) {
  std::string out;
  for (int i = 0; i < count; ++i) out += run(i);
  return out;
}

std::string Epochs(int run) {
  std::string out = fmt::format("Loading dataset from /data/cifar, seed {}\n", run);
  for (int e = 1; e <= 5; ++e)
    out += fmt::format("Epoch {}/5 | train loss {}.{} | val acc {}\n", e, 5 - e, run % 10, e);
  return out + "Training finished. Best val acc 80.12\n";
}

std::string Warned(int run) {
  std::string out = fmt::format("=== run {}: lr=0.1 ===\n", run) +
                    "/opt/venv/lib/python3.10/torch/optim/lr_scheduler.py:143: UserWarning: Detected call of "
                    "`lr_scheduler.step()` before `optimizer.step()`. \n  warnings.warn(\"Detected call of\"\n"
                    "node01:4123:4123 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
                    "node01:4123:4123 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so)\n";
  const std::string day = fmt::format("2031-{:02}-{:02} 08:00:", 1 + run / 28, 1 + run % 28);
  for (int it = 0; it < 500; it += 50) out += fmt::format("{}{:02} INFO iter {:5} loss 0.4\n", day, it / 10, it);
  return out + day + "59 INFO Training completed in 0:00:59\n";
}

std::string Bars(int run) {
  std::string out;
  for (int e = 0; e < 3; ++e)
    for (int p = 0; p <= 100; p += 20)
      out += fmt::format("\rEpoch {}: {:3}%|####| {}/100 [00:{:02}<00:{:02}, 4.0it/s]{}", e, p, p, p / 4, 25 - p / 4,
                         p == 100 ? "\n" : "");
  return out + fmt::format("Test: accuracy=0.8{} f1=0.7000\nDone.\n", run % 10);
}

TEST_CASE("attempts: many runs in one file are no failure of the last", "[attempts]") {
  for (const auto run : {&Epochs, &Warned, &Bars})
    for (const int count : {1, 12, 64, 150}) {
      CAPTURE(count);
      CAPTURE(run(0).substr(0, 80));
      CHECK(JudgeText(Runs(count, run)).verdict.cause == "healthy");
    }
}

}  // namespace attempts_test
}  // namespace inquest
