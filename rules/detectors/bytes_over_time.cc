// Every rank is in the operation and it does not move: transport or set-up, not program order and not slowness.
//
// What holds: all ranks of the job timed out in one operation, alike, having entered it within seconds of one another,
// and its bytes over the time-out are far below what any link carries. Why that implies the cause: nobody is missing
// and nobody was late, so what failed is the moving of bytes; if nothing ever completed before, the set-up of it. What
// looks like it: a log that shows only some of the ranks, so the size of the job must be known or nobody be missing.
// Which part of the transport it is the log seldom says: the finding is a hint of its own and lends weight to others.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/host_states.h"
#include "rules/thresholds.h"

namespace inquest {
namespace bytes_over_time {

constexpr FindingRow kFindings[] = {
    {"all-in-nothing-moves", "only-peer-to-peer any-path only-between-hosts", "ranks operation seconds first",
     "peer-to-peer between-hosts"},
};
using Found = FoundIn<kFindings>;

bool AllIn(const Timeline& timeline, const CollectiveRow& row) {
  const int size = timeline.world_size ? timeline.world_size->value : 0;
  const int waiters = static_cast<int>(row.waiters.size());
  if (size > 0) return waiters >= size;
  if (waiters < 2) return false;
  return row.waiters.back().rank.value == waiters - 1;  // 0..n-1, nobody missing in between
}

bool Together(const CollectiveRow& row) {
  std::optional<Timestamp> first, last;
  for (const auto& waiter : row.waiters) {
    if (!waiter.enqueued_at) continue;
    if (!first || waiter.enqueued_at->at < first->at) first = waiter.enqueued_at;
    if (!last || waiter.enqueued_at->at > last->at) last = waiter.enqueued_at;
  }
  return !first || last->at - first->at <= thresholds::kAllGaveUpTogether;
}

bool NothingEverCompleted(const Timeline& timeline, const CollectiveRow& row) {
  if (row.work.seq && row.work.seq->value <= 1) return true;
  for (const auto& [rank, member] : timeline.groups[row.group].members)
    if (member.last_completed && *member.last_completed < 0) return true;
  return false;
}

/// One host, and NCCL said that every channel goes over peer-to-peer: then no other path can be the one that stands.
bool OnlyPeerToPeer(const Timeline& timeline) {
  bool seen = false;
  for (const Event& event : timeline.events)
    if (const auto* via = std::get_if<ChannelsVia>(&event.what)) {
      if (via->via.rfind("P2P/", 0) != 0) return false;
      seen = true;
    }
  return seen && timeline.hosts.size() <= 1;
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  std::vector<Relation> out;
  for (const CollectiveRow& row : timeline.collectives) {
    if (!AllIn(timeline, row) || !Together(row)) continue;
    const std::int64_t elements = std::max(row.work.numel_in.value_or(0), row.work.numel_out.value_or(0));
    const double seconds = static_cast<double>(row.work.timeout_ms.value_or(600000)) / 1000;
    const double rate = static_cast<double>(elements) * 4 / seconds;
    if (rate > thresholds::kStallBytesPerSecond) continue;
    Found found({"all-in-nothing-moves", "any-path"});
    const bool first = NothingEverCompleted(timeline, row);
    if (first && OnlyPeerToPeer(timeline)) found.Grade({"all-in-nothing-moves", "only-peer-to-peer"});
    found.kind = "peer-to-peer";
    if (OnlyBetweenHosts(timeline)) {
      found.Grade({"all-in-nothing-moves", "only-between-hosts"});
      found.kind = "between-hosts";
    }
    std::vector<int> ranks;
    for (const auto& waiter : row.waiters) ranks.push_back(waiter.rank.value);
    found.Say("ranks", FoldRanks(ranks));
    found.Say("operation", fmt::format("{}{}", row.work.op.empty() ? "the operation" : row.work.op,
                                       row.work.seq ? fmt::format(" #{}", row.work.seq->value) : ""));
    found.Say("seconds", fmt::format("{:.0f}", seconds));
    found.Say("first", first ? "; nothing had ever completed on this communicator" : "");
    found.collective = RefOf(timeline, row);
    for (const auto& waiter : row.waiters)
      if (found.citations.size() < 4) found.citations.push_back(Cite(timeline, waiter.event, LineRole::kCause));
    out.push_back(std::move(found));
    break;
  }
  return out;
}

}  // namespace bytes_over_time

const Detector kBytesOverTime{"all-in-nothing-moves", "Every rank is in the operation and it does not move.",
                              bytes_over_time::kFindings, &bytes_over_time::Run};

}  // namespace inquest
