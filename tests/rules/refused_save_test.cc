// Whose write it was that storage refused, and a test of GPU copies that never ends.
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace refused_save_test {

std::string Saving(int rank) {
  const std::string r = std::to_string(rank);
  return "[2031-04-05 06:07:08,123] [INFO] [logging.py:96:log_dist] [Rank " + r +
         "] Saving model checkpoint: /out/global_step500/zero_pp_rank_" + r + "_model_states.pt\n";
}
const std::string kRefused =
    "RuntimeError: [enforce fail at inline_container.cc:471] . PytorchStreamWriter failed writing file data/3: file "
    "write failed\n";

TEST_CASE("refused save: the lines before it name the rank", "[detectors]") {
  const struct {
    std::string log;
    std::set<int> ranks;
  } rows[] = {
      {Saving(2) + kRefused, {2}},
      {Saving(0) + Saving(1) + kRefused, {}},
      {Saving(0) + "[rank1]: " + kRefused, {1}},
      {Saving(2) + std::string(60, '\n') + kRefused, {}},  // long ago
      {kRefused, {}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.log);
    const Judged judged = JudgeText(row.log);
    CHECK(judged.verdict.cause == "storage-stall");
    CHECK(CulpritRanks(judged.verdict) == row.ranks);
  }
}

TEST_CASE("p2p test: one that is not over when others give up", "[detectors]") {
  const std::string begun =
      "INFO 04-05 06:07:09 custom_all_reduce_utils.py:202] generating GPU P2P access cache in "
      "/root/.cache/vllm/gpu_p2p_access_cache_for_0,1.json\n";
  const std::string over =
      "INFO 04-05 06:07:14 custom_all_reduce_utils.py:232] reading GPU P2P access cache from "
      "/root/.cache/vllm/gpu_p2p_access_cache_for_0,1.json\n";
  const std::string gave_up =
      "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for "
      "recv operation to complete\n";
  const Judged hung = JudgeText(begun + gave_up);
  CHECK(hung.verdict.cause == "p2p-transport");
  CHECK(CulpritRanks(hung.verdict) == std::set<int>{0});
  CHECK(JudgeText(begun + over + gave_up).verdict.cause == "unknown");
  CHECK(JudgeText(begun).verdict.cause == "unknown");
  CHECK(JudgeText(gave_up + begun).verdict.cause != "p2p-transport");
}

}  // namespace refused_save_test
}  // namespace inquest
