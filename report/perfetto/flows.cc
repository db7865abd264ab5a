// Which calls of several ranks are one collective.
#include "report/perfetto/flows.h"

#include <algorithm>

namespace inquest {

SharedNumbers::SharedNumbers(const std::vector<std::pair<std::int64_t, std::int64_t>>& members) {
  std::vector<std::pair<std::int64_t, int>> steps;  // behind a last number there is one member less
  for (const auto& [first, last] : members) {
    steps.emplace_back(first, 1);
    steps.emplace_back(last + 1, -1);
  }
  std::ranges::sort(steps);
  int members_here = 0;
  for (std::size_t i = 0; i < steps.size();) {
    const std::int64_t at = steps[i].first;
    const bool before = members_here > 1;
    for (; i < steps.size() && steps[i].first == at; ++i) members_here += steps[i].second;
    if (members_here > 1 && !before) ranges_.emplace_back(at, at);
    if (members_here <= 1 && before) ranges_.back().second = at - 1;
  }
}

bool SharedNumbers::Holds(std::int64_t number) const {
  const auto next = std::ranges::upper_bound(ranges_, number, {}, [](const auto& range) { return range.first; });
  return next != ranges_.begin() && number <= std::prev(next)->second;
}

}  // namespace inquest
