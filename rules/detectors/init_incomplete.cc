// A communicator was begun by some of its ranks and never by the others, so nobody finished its set-up.
//
// What holds: several ranks print Init START of one communicator, none prints COMPLETE, and some ranks of it print no
// START. Why that implies the cause: the bootstrap is a meeting of all ranks, which waits for the last one. What looks
// like it: logs of some ranks only, so most of the ranks must have been heard; an error inside the set-up, which speaks
// for itself.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace init_incomplete {

constexpr FindingRow kFindings[] = {
    {"init-incomplete", "most-heard", "begun size absent"},
};
using Found = FoundIn<kFindings>;

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  for (const CommunicatorRow& row : timeline.communicators) {
    std::set<int> begun;
    bool completed = false;
    for (const auto& member : row.members) {
      if (member.started && member.rank) begun.insert(member.rank->value);
      completed = completed || member.completed;
    }
    const int missing = row.nranks - static_cast<int>(begun.size());
    if (completed || begun.size() < 2 || missing <= 0 || missing >= static_cast<int>(begun.size())) continue;
    std::vector<int> absent;
    for (int rank = 0; rank < row.nranks; ++rank)
      if (begun.count(rank) == 0) absent.push_back(rank);
    Found found({"init-incomplete", "most-heard"});
    found.Say("begun", FoldRanks({begun.begin(), begun.end()}));
    found.Say("size", std::to_string(row.nranks));
    found.Say("absent", RanksWithin(absent));
    const bool job_wide = !timeline.world_size || timeline.world_size->value == row.nranks;
    if (job_wide)
      for (const int rank : absent) found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, ""));
    for (const auto& member : row.members)
      if (member.init_event && found.citations.size() < 3)
        found.citations.push_back(Cite(timeline, *member.init_event, LineRole::kCause));
    return {found};
  }
  return {};
}

}  // namespace init_incomplete

const Detector kInitIncomplete{"init-incomplete",
                               "A communicator was begun by some of its ranks and never by the others.",
                               init_incomplete::kFindings, &init_incomplete::Run};

}  // namespace inquest
