// Jobs that failed for a known reason because of one rank, for tests that say what must not change the verdict.
#pragma once

#include <string_view>
#include <vector>

#include "tests/support/synth_job.h"

namespace inquest {

struct Scenario {
  std::string_view name;
  std::string_view cause;  ///< the code that the verdict must carry
  bool has_agent = false;  ///< torchelastic started the ranks, so srun did not
  /// Writes the whole life of the job. Only `culprit` differs from the others.
  void (*play)(SynthJob& job, int culprit);
};

const std::vector<Scenario>& Scenarios();

}  // namespace inquest
