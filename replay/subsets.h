// The same call among some of the ranks: which of them it takes to break it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "replay/plan.h"

namespace inquest {

/// `ranks`: ascending, not empty. Each stays where it was, on its own GPU; a root that is not among them is the first.
Plan SubsetOf(const Plan& plan, const std::vector<int>& ranks);

struct Bisection {
  std::vector<int> smallest;  ///< no half of it breaks, as far as was tried
  bool is_whole = true;       ///< false: given up, after as many sets as were allowed or at an interruption
};
/// Halves what breaks until neither half does; where it takes ranks of both, each half is reduced beside the other.
/// About 4 log2(n) sets for one rank or one pair. `breaks` answers for a set, nullopt: it was interrupted. All of
/// `ranks` are known to break.
Bisection Bisect(const std::vector<int>& ranks,
                 const std::function<std::optional<bool>(const std::vector<int>&)>& breaks, int most_sets);

}  // namespace inquest
