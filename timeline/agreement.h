// Whether logs and dumps that speak of the same operation of a rank say the same of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/timeline.h"

namespace inquest {

/// A time-out of a rank that its own dump speaks against.
struct Contradiction {
  enum class How : std::uint8_t { kEndsBefore, kHadEnded, kOtherTime };
  How how = How::kEndsBefore;
  GlobalRank rank;
  EventIndex event = 0;   ///< of the log
  std::int64_t seq = 0;   ///< by the log
  std::int64_t last = 0;  ///< by the dump, the last number of the group
  std::string group;      ///< of the dump
};

struct Agreement {
  std::uint64_t agreeing = 0;  ///< time-outs that the dumps show, too
  std::vector<Contradiction> contradictions;
  /// The dumps are most likely of another start of the job: the recorder writes under the same names again.
  bool of_another_run() const { return contradictions.size() > agreeing; }
};

// A watchdog that gives up names a number of a group; the dump that it then writes holds that number, and not as ended.
// A dump that ends before it, or in which it ended, was written by somebody else, or long before. Dumps that are two
// days away from the log are, too, whatever zones the clocks are in.
Agreement HoldTogether(const Timeline& timeline);

}  // namespace inquest
