// Who belongs to an operation that did not end: who waits in it, and who never came.
#include "timeline/membership.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace inquest {
namespace {

/// How many ranks may be claimed, by a size or by the number of one, where so many spoke. What is beyond is the word of
/// a line alone: none of them is missed, and none is blamed.
std::int64_t Supported(std::uint64_t spoken) { return 1024 + 64 * static_cast<std::int64_t>(spoken); }

/// An all-gather's output is its input times the size of the group, and so is a reduce-scatter's input its output; else
/// 0.
std::int64_t SizeByNumbers(const WorkFields& work) {
  const std::int64_t in = work.numel_in.value_or(0), out = work.numel_out.value_or(0);
  if (in <= 0 || out <= 0) return 0;
  if (work.op.find("ALLGATHER") != std::string::npos) return out / in;
  return work.op.find("REDUCE_SCATTER") != std::string::npos && in % out == 0 ? in / out : 0;
}

/// Group ranks count from 0, so a gap among those that waited is a member; and global ranks of a group stand at equal
/// steps, which two waiters give. Group ranks and global ones must both be known, and agree with one step.
void AddGap(const CollectiveRow& row, RankSet& expected) {
  std::vector<std::pair<int, int>> known;  // group rank, global rank
  for (const auto& waiter : row.waiters)
    if (waiter.group_rank && waiter.known.basis >= Basis::kEnvelope)
      known.emplace_back(waiter.group_rank->value, waiter.rank.value);
  std::sort(known.begin(), known.end());
  if (known.size() < 2 || known.front().first == known.back().first) return;
  const std::int64_t span = known.back().first - known.front().first,
                     distance = known.back().second - known.front().second;
  if (distance % span != 0 || distance / span <= 0) return;
  const std::int64_t step = distance / span, first = known.front().second - step * known.front().first;
  for (const auto& [group_rank, rank] : known)
    if (first + step * group_rank != rank) return;
  if (first < 0) return;
  const std::int64_t size = std::max(std::int64_t{known.back().first} + 1, SizeByNumbers(row.work));
  if (size > Supported(known.size()) || !IsRank(first + step * (size - 1))) return;
  if (step == 1) return expected.Add(static_cast<int>(first), static_cast<int>(first + size - 1));
  for (std::int64_t group_rank = 0; group_rank < size; ++group_rank)
    expected.Add(static_cast<int>(first + step * group_rank));
}

/// Those of the ranks that the log holds lines of.
RankSet HeardOf(const Timeline& timeline, const RankSet& ranks) {
  RankSet out;
  if (ranks.empty()) return out;
  for (const RankRow& row : timeline.ranks)
    if (row.last_event && ranks.contains(row.rank.value)) out.Add(row.rank.value);
  return out;
}

}  // namespace

std::span<const CollectiveRow> RowsHeld(const Timeline& timeline) {
  constexpr std::size_t kMost = 1024;
  return std::span(timeline.collectives).first(std::min(timeline.collectives.size(), kMost));
}

Membership::Membership(const Timeline& timeline) : timeline_(&timeline) {
  for (const RankRow& row : timeline.ranks) spoken_.Add(row.rank.value);
  for (const Event& event : timeline.events)
    if (std::holds_alternative<HeartbeatLost>(event.what))
      if (const auto rank = timeline.RankOf(event)) stuck_.Add(rank->value.value);
  waited_.resize(timeline.groups.size());
  for (const CollectiveRow& row : timeline.collectives)
    for (const auto& waiter : row.waiters) {
      waited_[row.group].Add(waiter.rank.value);
      (timeline.groups[row.group].named() ? in_named_ : in_unnamed_).Add(waiter.rank.value);
    }
}

Members Membership::Of(const CollectiveRow& row) const {
  Members out;
  RankSet expected;
  // Ranks count from 0, so every number below a size or a rank exists.
  const auto expect_below = [&](std::int64_t size) {
    if (size < 0 || size > Supported(spoken_.size())) return false;
    expected.Add(RankSet::Below(static_cast<int>(size)));
    return true;
  };
  const GroupRow& group = timeline_->groups[row.group];
  for (const auto& waiter : row.waiters) out.waiting.Add(waiter.rank.value);
  if (!row.whole) return out;  // who is not among them may have been left out
  for (const auto& [rank, member] : group.members) expected.Add(rank.value);
  expected.Add(group.declared);
  out.complete = !group.declared.empty();
  if (group.is_default() && !out.complete) {
    // The default group is the job.
    if (!timeline_->world_size) expect_below(SizeByNumbers(row.work));
    out.complete = timeline_->world_size && expect_below(timeline_->world_size->value);
    if (!out.complete) {
      expected.Add(spoken_);
      if (!expected.empty()) expect_below(std::int64_t{expected.back()} + 1);
    }
  }
  AddGap(row, expected);
  // A rank that had enqueued the operation and not completed it is in it, whether or not its watchdog spoke.
  for (const auto& [rank, member] : group.members)
    if (row.work.seq && member.last_enqueued && *member.last_enqueued >= row.work.seq->value && member.last_completed &&
        *member.last_completed < row.work.seq->value)
      out.waiting.Add(rank.value);
  // A rank that timed out in another operation of the group was not absent; that is another detector's case. Where no
  // line names the group of the one wait or of the other, they may be of one. One whose watchdog itself was stuck could
  // not have said that it waits.
  out.absent = expected.Without(out.waiting).Without(waited_[row.group]).Without(in_unnamed_).Without(stuck_);
  if (!group.named()) out.absent = out.absent.Without(in_named_);
  out.heard = HeardOf(*timeline_, out.absent);
  return out;
}

}  // namespace inquest
