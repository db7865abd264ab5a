// Because of whom each rank stood still or ended: the graph on which the first break of a job is found.
#include "timeline/breaks.h"

#include <utility>
#include <vector>

#include "timeline/course.h"
#include "timeline/membership.h"
#include "timeline/wait_graph.h"

namespace inquest {
namespace {

using Shared = std::shared_ptr<const RankSet>;

Shared Share(RankSet ranks) { return std::make_shared<const RankSet>(std::move(ranks)); }

/// The first that is known is the earliest.
void Add(std::map<GlobalRank, Because>& edges, GlobalRank rank, Because because) {
  if (because.of->contains(rank.value)) {
    RankSet others = *because.of;
    others.Remove(rank.value);
    because.of = Share(std::move(others));
  }
  if (!because.of->empty()) edges.try_emplace(rank, std::move(because));
}

/// Whose watchdog gave up waited for those who never came. One whose peer failed on the same operation did not wait.
void AddTimeOuts(const Timeline& timeline, std::map<GlobalRank, Because>& edges) {
  const Membership membership(timeline);
  for (const CollectiveRow& row : RowsHeld(timeline)) {
    if (row.recorded) continue;
    const Shared missed = Share(membership.Of(row).missed());
    for (const auto& waiter : row.waiters) {
      const auto* timed_out = std::get_if<WorkTimedOut>(&timeline.events[waiter.event].what);
      if (timed_out == nullptr || timed_out->how != WorkTimedOut::How::kAsyncError)
        Add(edges, waiter.rank, {.how = Because::How::kWaited, .of = missed, .event = waiter.event});
    }
  }
}

void AddRecorded(const Timeline& timeline, std::map<GlobalRank, Because>& edges) {
  if (!timeline.recorded_fits || timeline.recorded->ranks.empty()) return;
  const WaitGraph graph = WaitsOf(*timeline.recorded);
  for (const auto& [rank, number] : graph.node_of) {
    const WaitNode& node = graph.nodes[number];
    RankSet awaited = node.idle;
    awaited.Add(node.unknown);
    for (const WaitNode::Edge& edge : node.edges) awaited.Add(edge.ranks);
    Add(edges, GlobalRank{rank},
        {.how = Because::How::kWaited, .of = Share(std::move(awaited)), .event = std::nullopt});
  }
}

/// Who was told to end is gone because of those who went before.
void AddTold(const Timeline& timeline, std::map<GlobalRank, Because>& edges) {
  RankSet first;
  for (const FirstEnd& end : FirstToEnd(timeline)) first.Add(end.rank.value);
  if (first.empty()) return;
  const Shared ended = Share(std::move(first));
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* exit = std::get_if<ProcessExit>(&timeline.events[i].what);
    const auto rank = exit != nullptr && WasToldToEnd(*exit) ? RankOfExit(timeline, timeline.events[i]) : std::nullopt;
    if (rank && !ended->contains(rank->value)) Add(edges, *rank, {.how = Because::How::kTold, .of = ended, .event = i});
  }
}

}  // namespace

std::string_view Name(Because::How how) { return how == Because::How::kWaited ? "waited-for" : "told-to-end"; }

BreakGraph::BreakGraph(const Timeline& timeline) : ends_(timeline) {
  AddTimeOuts(timeline, edges_);
  AddRecorded(timeline, edges_);
  AddTold(timeline, edges_);
}

const Because* BreakGraph::Of(GlobalRank rank) const {
  const auto edge = edges_.find(rank);
  return edge == edges_.end() ? nullptr : &edge->second;
}

RankSet BreakGraph::Reached(GlobalRank from) const {
  RankSet out;
  std::vector<GlobalRank> next = {from};
  while (!next.empty()) {
    const Because* because = Of(next.back());
    next.pop_back();
    if (because == nullptr) continue;
    const RankSet fresh = because->of->Without(out);
    out.Add(fresh);
    // Of a million that a line claims few have an edge of their own.
    for (const RankSet::Stretch& stretch : fresh.stretches())
      for (auto edge = edges_.lower_bound(GlobalRank{stretch.first});
           edge != edges_.end() && edge->first.value <= stretch.last; ++edge)
        next.push_back(edge->first);
  }
  return out;
}

bool BreakGraph::Leads(GlobalRank from, GlobalRank to) const { return Reached(from).contains(to.value); }

RankSet BreakGraph::FirstBreaks() const {
  RankSet out;
  const RankSet* known = nullptr;
  for (const auto& [rank, edge] : edges_)
    if (edge.of.get() != known) out.Add(*(known = edge.of.get()));
  for (const auto& [rank, edge] : edges_) out.Remove(rank.value);
  return out;
}

std::partial_ordering BreakGraph::Order(GlobalRank first, GlobalRank later) const {
  if (first == later) return std::partial_ordering::equivalent;
  const bool forth = Leads(later, first), back = Leads(first, later);
  if (forth != back) return forth ? std::partial_ordering::less : std::partial_ordering::greater;
  return ends_.Order(first, later);
}

}  // namespace inquest
