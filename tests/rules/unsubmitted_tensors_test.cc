// Horovod's stall reports, by tensor and by rank.
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace unsubmitted_tensors_test {

const std::string kStall =
    "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are "
    "waiting for remainder of ranks for more than 60 seconds.\n";

TEST_CASE("unsubmitted tensors: who lacks what", "[detectors]") {
  const struct {
    std::string report;
    const char* cause;
    std::set<int> ranks;
  } rows[] = {
      {"Stalled ops:\nHorovodAllreduce_a_0 [missing ranks: 1]\nHorovodAllreduce_b_0 [missing ranks: 1]\n",
       "rank-absent",
       {1}},
      {"Stalled ops:HorovodAllreduce_a_0 [missing ranks: 1, 3]\nHorovodAllreduce_b_0 [missing ranks: 1]\n",
       "rank-absent",
       {1, 3}},
      {"Stalled ops:\nHorovodAllreduce_a_0 [missing ranks: 1]\nHorovodAllreduce_b_0 [missing ranks: 0, 2]\n",
       "collective-mismatch",
       {}},
      {"Missing ranks:\n1: [allreduce.a, allreduce.b]\n3: [allreduce.a, allreduce.b]\n", "rank-absent", {1, 3}},
      {"Stalled ranks:\n1!: [allreduce.a]\n", "rank-absent", {1}},
      {"Missing ranks:\n0: [allreduce.a]\n1: [allreduce.b]\n", "collective-mismatch", {}},
      {"Missing ranks:\n0: [allreduce.a, allreduce.c, allreduce.d, allreduce.e, allreduce.f, allreduce.g ...]\n1: "
       "[allreduce.b, allreduce.h ...]\n",
       "rank-absent",
       {0, 1}},
      {"world size: 4\nStalled ops:HorovodAllreduce_a_0 [ready ranks: 0, 1, 3]\n", "rank-absent", {2}},
      {"Stalled ops:HorovodAllreduce_a_0 [ready ranks: 0, 1, 3]\n", "rank-absent", {2}},
      {"Stalled ops:HorovodAllreduce_a_0 [ready ranks: 0, 1, 2]\n", "rank-absent", {}},
      {"Stalled ops:HorovodAllreduce_a_0 [ready ranks: 5]\n", "rank-absent", {}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.report);
    const Judged judged = JudgeText(kStall + row.report);
    CHECK(judged.verdict.cause == row.cause);
    CHECK(CulpritRanks(judged.verdict) == row.ranks);
  }
}

TEST_CASE("unsubmitted tensors: who comes late is not absent", "[detectors]") {
  std::string steps;
  for (int step = 100; step < 106; ++step)
    steps += "step " + std::to_string(step) + "/200: loss 2.1" + std::to_string(step) + "\n";
  const std::string report = "Missing ranks:\n0: [allreduce.a]\n1: [allreduce.b]\n";
  CHECK(JudgeText(kStall + report).verdict.cause == "collective-mismatch");
  CHECK(JudgeText(kStall + report + steps).verdict.cause == "unknown");
}

}  // namespace unsubmitted_tensors_test
}  // namespace inquest
