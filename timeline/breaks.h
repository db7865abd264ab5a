// Because of whom each rank stood still or ended: the graph on which the first break of a job is found.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "core/rank_set.h"
#include "timeline/ends.h"
#include "timeline/timeline.h"

namespace inquest {

/// Why a rank's trouble is not its own.
struct Because {
  enum class How : std::uint8_t {
    kWaited,  ///< it gave up waiting in an operation to which those never came
    kTold     ///< it was told to end, and those had ended before it of themselves
  };
  How how = How::kWaited;
  std::shared_ptr<const RankSet> of;  ///< never null nor empty, without itself; all who waited in vain share one
  std::optional<EventIndex> event;    ///< that shows it; nullopt: the ranks' own recorders do
};
std::string_view Name(Because::How how);

// Nodes are ranks. An edge leads from a rank that gave up waiting to those that it waited for, by its watchdog's word
// or by the recorders', and from one that was told to end to those that ended first. A rank without an edge broke by
// itself, or nothing tells. Times order what no edge does: of two that ended, who was gone first.
class BreakGraph {
 public:
  explicit BreakGraph(const Timeline& timeline);

  /// nullptr: nothing says that it was because of another.
  const Because* Of(GlobalRank rank) const;
  /// Those to whom edges lead, and from whom none leads on: empty where there are none, or only a circle.
  RankSet FirstBreaks() const;
  /// Whether what befell `later` follows from what befell `first`: `less` says so, `greater` the opposite.
  std::partial_ordering Order(GlobalRank first, GlobalRank later) const;
  const Ends& ends() const { return ends_; }
  const std::map<GlobalRank, Because>& edges() const { return edges_; }

 private:
  bool Leads(GlobalRank from, GlobalRank to) const;
  RankSet Reached(GlobalRank from) const;

  Ends ends_;
  std::map<GlobalRank, Because> edges_;
};

}  // namespace inquest
