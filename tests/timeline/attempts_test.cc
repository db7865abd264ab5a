// Several starts of a job in one input: where they begin, which is judged, and what is none.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace {

std::string Steps(int from, int to) {
  std::string out;
  for (int step = from; step <= to; ++step) out += fmt::format("step {} loss 1.{}\n", step, step);
  return out;
}

const std::string kBanner = "W0405 06:07:08.123000 41200 torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n";
const std::string kOom = "Traceback (most recent call last):\n  File \"train.py\", line 84, in main\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
const std::string kMissing = "Traceback (most recent call last):\n  File \"train.py\", line 12, in main\nModuleNotFoundError: No module named 'flash_attn'\n";
const std::string kRestart = "INFO:torch.distributed.elastic.agent.server.api:[default] Worker group FAILED. 1/3 attempts left; will restart worker group\n";
const std::string kCancelled = "slurmstepd: error: *** JOB 88123 ON node07 CANCELLED AT 2031-04-05T06:07:08 DUE TO TIME LIMIT ***\n";

std::vector<std::string> Causes(const Verdict& verdict) {
  std::vector<std::string> causes;
  for (const AttemptTold& attempt : verdict.attempts) causes.push_back(attempt.cause);
  return causes;
}

}  // namespace

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
  const Verdict verdict = JudgeText(kBanner + Steps(1, 5) + kCancelled + kBanner + Steps(6, 12) + "Training completed. Do not forget to share your model on huggingface.co/models =)\n").verdict;
  CHECK(verdict.outcome == Outcome::kHealthy);
  CHECK(Causes(verdict) == std::vector<std::string>{"interrupted", "healthy"});
}

TEST_CASE("attempts: ranks that start late, and a last restart that nothing follows, are no new attempt", "[attempts]") {
  CHECK(JudgeText(kMissing + kBanner + Steps(1, 3)).verdict.attempts.empty());       // another host's banner, late
  CHECK(JudgeText(kBanner + kBanner + Steps(1, 3) + kOom).verdict.attempts.empty());  // two agents
  CHECK(JudgeText(kBanner + Steps(1, 3) + kOom + kRestart).verdict.attempts.empty());
}

TEST_CASE("lifelines: what a process did, and how it ended", "[lifelines]") {
  const Judged judged = JudgeText("[rank0]: Setting up\n[rank0]: {'loss': 1.25, 'learning_rate': 2e-05}\n[rank0]: {'loss': 1.21, 'learning_rate': 2e-05}\n[rank0]: ***** Running evaluation *****\n"
                                  "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"train.py\", line 12, in main\n[rank0]: ValueError: bad shape\n");
  REQUIRE(judged.verdict.lifelines.size() == 1);
  const Lifeline& line = judged.verdict.lifelines.front();
  CHECK(line.rank == GlobalRank{0});
  REQUIRE(line.intervals.size() == 2);
  CHECK(line.intervals[0].kind == "training");
  CHECK(line.intervals[0].times == 2);
  REQUIRE(line.intervals[0].end);
  CHECK(judged.timeline.events[*line.intervals[0].end].where.line == 4);
  CHECK(line.intervals[1].kind == "evaluation");
  CHECK_FALSE(line.intervals[1].end);
  CHECK(line.end.how == LifeEnd::How::kRaised);
  REQUIRE_FALSE(line.marks.empty());
  CHECK(line.marks.front().kind == "exception");
}

}  // namespace inquest
