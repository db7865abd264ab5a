// Waits that no watchdog names, and the work that went on meanwhile.
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace unmatched_wait_test {

constexpr const char* kSaving = "Saving model checkpoint to /out/checkpoint-500";
constexpr const char* kStep = "step 500: loss 3.2011, time 251.12ms";

std::string IdWait(int rank, const std::string& error) {
  const std::string r = std::to_string(rank);
  return "[rank" + r + "]: torch.distributed.DistBackendError: [" + r +
         "] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', "
         "but store->get('0') got error: " +
         error;
}
std::string GlooWait(int rank, const std::string& how) {
  return "[rank" + std::to_string(rank) +
         "]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting "
         "1800000ms for " +
         how + " operation to complete";
}

TEST_CASE("unmatched wait: what the others were at", "[detectors]") {
  const struct {
    const char* work;
    std::string wait;
    const char* cause;
    std::set<int> ranks;
  } rows[] = {
      {kSaving, GlooWait(1, "send"), "slow-rank", {0}},
      {kSaving, GlooWait(0, "recv"), "slow-rank", {}},  // it did not wait for itself, and who else it was is not told
      {"[rank2]: Saving model checkpoint to /out/checkpoint-500", GlooWait(0, "recv"), "slow-rank", {2}},
      {kStep, GlooWait(1, "send"), "unknown", {}},
      {kSaving, IdWait(1, "Socket Timeout"), "slow-rank", {0}},
      {kSaving,
       "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"t.py\", line 9, in <module>\n[rank1]: "
       "RuntimeError: Socket Timeout",
       "slow-rank",
       {0}},
      {kStep,
       "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"t.py\", line 9, in <module>\n[rank1]: "
       "RuntimeError: Socket Timeout",
       "unknown",
       {}},
      {kSaving,
       IdWait(1,
              "Connection reset by peer. This may indicate a possible application crash on rank 0 or a network set up "
              "issue."),
       "slow-rank",
       {0}},
      {kStep, IdWait(1, "Socket Timeout"), "rank-absent", {0}},
      {kSaving,
       "[rank3]: torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0//cuda//0",
       "slow-rank",
       {0}},
      {kSaving,
       "[rank2]: RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while waiting for "
       "send/recv from rank 0. Please check rank 0 logs for faulty rank.",
       "slow-rank",
       {0}},
      {"[rank1]: Saving model checkpoint to /out/checkpoint-500",
       GlooWait(1, "send"),
       "unknown",
       {}},  // the waiting rank's own, and over
  };
  for (const auto& row : rows) {
    CAPTURE(row.work, row.wait);
    const Judged judged = JudgeText(std::string(row.work) + "\n" + row.wait + "\n");
    CHECK(judged.verdict.cause == row.cause);
    CHECK(CulpritRanks(judged.verdict) == row.ranks);
  }
}

TEST_CASE("unmatched wait: a logger that names its rank in some lines only", "[detectors]") {
  const std::string saving =
      "[2031-06-11 22:11:14,310] [INFO] [logging.py:107:log_dist] [Rank 0] Saving model checkpoint: "
      "/run7/global_step500/mp_rank_00_model_states.pt\n";
  CHECK(JudgeText(saving + GlooWait(1, "send") + "\n").verdict.cause == "slow-rank");
  CHECK(JudgeText(saving + kStep + "\n" + GlooWait(1, "send") + "\n").verdict.cause == "unknown");
}

TEST_CASE("unmatched wait: a death of the awaited rank is the better answer", "[detectors]") {
  const Judged judged = JudgeText(
      std::string(kSaving) + "\n[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n" +
      GlooWait(1, "send") + "\n");
  CHECK(judged.verdict.cause == "cuda-oom");
}

}  // namespace unmatched_wait_test
}  // namespace inquest
