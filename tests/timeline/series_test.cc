// A log of many short runs ends with a whole round of them.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace series_test {

bool EndsWell(const std::string& text) { return JudgeText(text).verdict.outcome == Outcome::kHealthy; }

/// Of each program a run of each size: a line in front that asks for it, and its result.
std::string Series(const std::string& head, const std::string& result, const std::vector<int>& sizes, int programs,
                   int missing = 0) {
  std::string out = "Job 771204 on birch03\n";
  const int runs = programs * static_cast<int>(sizes.size()) - missing;
  for (int run = 0; run < runs; ++run) {
    const int size = sizes[static_cast<std::size_t>(run) % sizes.size()];
    out += fmt::format(fmt::runtime(head), size, run / static_cast<int>(sizes.size()));
    out += fmt::format(fmt::runtime(result), size, 3.17 + 0.31 * run);
  }
  return out;
}

const std::string kHead = "+ mpirun -np {} ./solve{} 4000\ncells checked: 4000\n";
const std::string kResult = "CELLS ({})  {:.4f}\n";

TEST_CASE("series: each program ran with each size", "[course]") {
  CHECK(EndsWell(Series(kHead, kResult, {8, 16, 24, 32}, 3)));
  CHECK(JudgeText(Series(kHead, kResult, {8, 16, 24, 32}, 3)).verdict.confidence < 0.7);
  for (const int missing : {1, 2, 3}) CHECK_FALSE(EndsWell(Series(kHead, kResult, {8, 16, 24, 32}, 3, missing)));
}

TEST_CASE("series: the last run was asked for, and has no result yet", "[course]") {
  const std::string whole = Series(kHead, kResult, {8, 16, 24, 32}, 3);
  CHECK_FALSE(EndsWell(whole.substr(0, whole.rfind("CELLS"))));
}

TEST_CASE("series: what counts up, epochs and steps, and what has no line in front are none", "[course]") {
  CHECK_FALSE(EndsWell(Series(kHead, kResult, {0, 1, 2, 3}, 3)));
  CHECK_FALSE(EndsWell(Series("+ eval {} set{}\n", "epoch {} {:.4f}\n", {8, 16, 24, 32}, 3)));
  CHECK_FALSE(EndsWell(Series("", kResult, {8, 16, 24, 32}, 3)));
}

}  // namespace series_test
}  // namespace inquest
