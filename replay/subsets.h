// The same call among some of the ranks: which of them it takes to break it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "replay/plan.h"

namespace inquest {

/// `ranks`: ascending, not empty. Each stays where it was, on its own GPU; a root that is not among them is the first.
/// Of a sequence what they make among themselves.
Plan SubsetOf(const Plan& plan, const std::vector<int>& ranks);

struct Shrunk {
  std::vector<int> smallest;  ///< breaks, and does not without any one of its ranks, as far as was tried
  bool is_whole = true;       ///< false: given up, after as many sets as were allowed or at an interruption
  int sets = 0;               ///< that were tried; none twice
};
/// Answers for sets that share no rank and can be tried at once, in their order; nullopt: it was interrupted.
using BreakSets = std::function<std::optional<std::vector<bool>>(const std::vector<std::vector<int>>& sets)>;
/// Halves what breaks, both halves at once, until neither half does; where it takes ranks of both, each half is reduced
/// beside the other. Then each rank is left out once. About 4 log2(n) sets for one rank or one pair. All of `ranks` are
/// known to break; ascending, not empty.
Shrunk Shrink(const std::vector<int>& ranks, const BreakSets& breaks, int most_sets);

}  // namespace inquest
