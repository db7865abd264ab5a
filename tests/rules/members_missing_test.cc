// Processes that announce themselves, and those that never do.
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace members_missing_test {

std::string Announced(std::initializer_list<int> ranks, int members) {
  std::string out = "GPU available: True (cuda), used: True\n";
  for (const int rank : ranks)
    out += "Initializing distributed: GLOBAL_RANK: " + std::to_string(rank) + ", MEMBER: " + std::to_string(rank + 1) +
           "/" + std::to_string(members) + "\n";
  return out;
}

TEST_CASE("members missing: fewer than all announced themselves, and nothing follows", "[detectors]") {
  const struct {
    std::string log;
    const char* cause;
  } rows[] = {
      {Announced({0, 1, 2, 3}, 8), "rendezvous"},
      {Announced({1, 1, 0, 0}, 4), "rendezvous"},
      {Announced({0, 1}, 2), "unknown"},
      {Announced({0, 1}, 4) + "All distributed processes registered. Starting with 4 processes\n", "unknown"},
      {Announced({0, 1}, 4) +
           "Epoch 0: 3%|3 | 12/400 [00:10<05:20, 1.2it/s, loss=3.1]\nstep 12: loss 3.1, time 251.12ms\n",
       "unknown"},
      {Announced({0, 1}, 4) + std::string(60, '\n'), "unknown"},  // it goes on
      {Announced({0, 1}, 4) +
           "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\n",
       "unknown"},
      {Announced({0, 1}, 4) + "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
       "cuda-oom"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.log);
    CHECK(JudgeText(row.log).verdict.cause == row.cause);
  }
}

}  // namespace members_missing_test
}  // namespace inquest
