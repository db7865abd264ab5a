// Which calls of several ranks are one collective: numbers of flows.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace inquest {

/// Whose numbers they are: two counters of one value are no flow.
enum class FlowOf : std::uint64_t { kWait = 1, kRecorder = 2, kNccl = 3 };

/// The same for the same call of all members. Not 0.
constexpr std::uint64_t FlowNumber(FlowOf of, std::uint64_t group, std::uint64_t call) {
  std::uint64_t mixed = static_cast<std::uint64_t>(of) * 0x9e3779b97f4a7c15U;
  for (const std::uint64_t part : {group, call}) {
    mixed = (mixed ^ part) * 0xbf58476d1ce4e5b9U;
    mixed ^= mixed >> 31;
  }
  return mixed | 1;
}

/// Numbers that two members or more have, of members that have all from a first to a last.
class SharedNumbers {
 public:
  SharedNumbers() = default;
  explicit SharedNumbers(const std::vector<std::pair<std::int64_t, std::int64_t>>& members);
  bool Holds(std::int64_t number) const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;  ///< ascending, apart from one another
};

}  // namespace inquest
