// The barrier in the store, which every process group begins with, counts too few or too many.
//
// What holds: the last count that ranks print is above the size, or it is below and as many ranks print it as it
// counts. Why that implies the cause: each rank adds itself once before it waits, so a count above the size holds
// processes of an earlier start or of another job, and where all that came speak, those that do not speak did not come.
// What looks like it: slow starters, of whom a later count says that they came; a log of one rank among several that
// came, which names nobody.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace store_barrier {

constexpr FindingRow kFindings[] = {
    {"store-barrier-too-many-workers", "counted", "came size"},
    {"store-barrier-ranks-missing", "gave-up still-waiting", "ranks came size"},
};
using Found = FoundIn<kFindings>;

/// What a line claims of more ranks names none of them.
constexpr std::int64_t kMostMissing = 1024;

/// The last barrier that anybody stood in.
struct Barrier {
  std::int64_t came = 0;
  std::map<int, EventIndex> ranks;  ///< that wait, with the last line of each
  EventIndex last = 0;
  bool gave_up = false;
};

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  std::map<std::int64_t, Barrier> barriers;  // by size
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* count = std::get_if<StoreBarrierCount>(&timeline.events[i].what);
    if (count == nullptr || count->size <= 0) continue;
    Barrier& barrier = barriers[count->size];
    barrier.came = std::max(barrier.came, count->came);
    barrier.gave_up = barrier.gave_up || count->gave_up;
    barrier.last = i;
    if (count->rank) barrier.ranks[count->rank->value] = i;
  }
  for (const auto& [size, barrier] : barriers) {
    const bool too_many = barrier.came > size;
    const bool all_speak =
        static_cast<std::int64_t>(barrier.ranks.size()) == barrier.came && size - barrier.came <= kMostMissing;
    if (!too_many && (barrier.came == size || !all_speak)) continue;
    Found found({"store-barrier-too-many-workers", "counted"});
    if (!too_many) found.Grade({"store-barrier-ranks-missing", "still-waiting"});
    if (!too_many && barrier.gave_up) found.Grade({"store-barrier-ranks-missing", "gave-up"});
    found.Say("came", std::to_string(barrier.came));
    found.Say("size", std::to_string(size));
    if (!too_many) {
      RankSet ready;
      for (const auto& [rank, event] : barrier.ranks) ready.Add(rank);
      const RankSet missing = RankSet::Below(static_cast<int>(size)).Without(ready);
      found.Say("ranks", RanksInWords(missing));
      for (const int rank : missing) found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, ""));
    }
    found.citations.push_back(Cite(timeline, barrier.last, LineRole::kCause));
    for (const auto& [rank, event] : barrier.ranks)
      if (event != barrier.last && found.citations.size() < 4)
        found.citations.push_back(Cite(timeline, event, LineRole::kContext));
    return {found};
  }
  return {};
}

}  // namespace store_barrier

extern const Detector kStoreBarrier{"store-barrier", "The barrier in the store counts too few ranks or too many.",
                                    store_barrier::kFindings, &store_barrier::Run};

}  // namespace inquest
