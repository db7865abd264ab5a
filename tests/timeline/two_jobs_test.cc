// Two jobs in what was given: a warning, and no host of the one for the other.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace two_jobs_test {

std::string Init(const std::string& host, int rank) {
  return fmt::format(
      "[rank{}]:{}:{}:{} [0] NCCL INFO comm 0x55d0 rank {} nranks 2 cudaDev 0 busId 4e000 - Init COMPLETE\n", rank,
      host, 4000 + rank, 5000 + rank, rank);
}

const std::string kOom = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";

std::string Cancelled(int job) {
  return fmt::format(
      "slurmstepd: error: *** STEP {}.0 ON node07 CANCELLED AT 2031-04-05T06:07:08 DUE TO TIME LIMIT ***\n", job);
}

TEST_CASE("two jobs: one rank on two hosts", "[two-jobs]") {
  const Verdict verdict =
      JudgeText(Init("node07", 0) + Init("node07", 1) + Init("node12", 0) + Init("node12", 1) + kOom).verdict;
  REQUIRE(verdict.warnings.size() == 1);
  CHECK(verdict.warnings[0] ==
        "Two jobs, or two starts of one that nothing tells apart: rank 0 ran on node07 (text:1) and on node12 "
        "(text:3). Give the files of one at a time.");
  CHECK(verdict.cause == "cuda-oom");
  REQUIRE(verdict.culprits.size() == 1);
  CHECK_FALSE(verdict.culprits[0].host);  // the line names none
  CHECK_FALSE(verdict.culprits[0].pid);
}

TEST_CASE("two jobs: ids of a batch system", "[two-jobs]") {
  const JobFolder two(
      {{"a.log", "step 1 loss 1.1\n" + Cancelled(88123)}, {"b.log", "step 1 loss 1.1\n" + Cancelled(88130)}});
  CHECK(AnalyzePaths(two.Files()).verdict.warnings.size() == 1);
  const JobFolder one(
      {{"a.log", "step 1 loss 1.1\n" + Cancelled(88123)}, {"b.log", "step 1 loss 1.1\n" + Cancelled(88123)}});
  CHECK(AnalyzePaths(one.Files()).verdict.warnings.empty());
}

TEST_CASE("two jobs: names of one host, ranks of one job", "[two-jobs]") {
  CHECK(JudgeText(Init("node07", 0) + Init("node12", 1) + kOom).verdict.warnings.empty());
  CHECK(JudgeText(Init("train-0", 0) + Init("node07", 0) + kOom).verdict.warnings.empty());  // a pod and its node
  CHECK(JudgeText(Init("node07", 0) + Init("node07.cluster.example", 0) + kOom).verdict.warnings.empty());
}

}  // namespace two_jobs_test
}  // namespace inquest
