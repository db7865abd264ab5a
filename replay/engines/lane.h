// One stream of a sequence, as each engine runs it: its steps, and how far they are.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "replay/sequence.h"

namespace inquest {

struct StreamLane {
  explicit StreamLane(std::vector<std::uint32_t> of) : steps(std::move(of)) {}
  /// To be asked by any thread: what is completed had begun.
  StreamProgress progress() const {
    const std::uint32_t done = completed;
    return {std::max<std::uint32_t>(begun, done), done};
  }

  const std::vector<std::uint32_t> steps;
  std::atomic<std::uint32_t> begun = 0, completed = 0;
};

}  // namespace inquest
