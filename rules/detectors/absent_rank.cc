// Some ranks never entered the operation that the others timed out in.
//
// What holds: of the ranks that belong to a process group, some timed out at one sequence number and some did not. Why
// that implies the cause: an operation ends when all its ranks have come, so those that waited waited for those that
// did not. What an absent rank did instead is told by its last phase: preparing data, saving, evaluating, loading
// (slow-rank), compiling (jit-build-stall), or nothing (rank-absent). What looks like it: a log of one rank among many,
// in which absence proves nothing; a broadcast that stops half-way, which those before the break are through with; a
// group that does not span the job; an absent rank that died, which the judge prefers to this finding; a rank that the
// log quotes under another number.
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/phases.h"

namespace inquest {
namespace absent_rank {

constexpr FindingRow kFindings[] = {
    {"rank-at-other-work", "by-its-lines spans-the-wait by-nobodys-lines of-nobody", "who work waiting",
     "data-preparation checkpoint compile evaluation loading"},
    {"rank-behind", "counted", "ranks waiting"},
    {"rank-absent", "everybody-known by-gap one-way majority", "ranks how waiting which"},
};
using Found = FoundIn<kFindings>;

/// Data of a broadcast or a reduction goes one way: who stands before the place where it stops is through with it, goes
/// on, and times out in something later or not at all.
bool OneWay(const CollectiveRow& row) { return row.work.op == "BROADCAST" || row.work.op == "REDUCE"; }

/// How many ranks may be claimed, by a size or by the number of one, where so many spoke. What is beyond is the word of
/// a line alone: none of them is missed, and none is blamed.
std::int64_t Supported(std::uint64_t spoken) { return 1024 + 64 * static_cast<std::int64_t>(spoken); }

/// What the whole log tells of its ranks; gathered once, held against every operation.
struct Told {
  explicit Told(const Evidence& evidence) : doings(evidence) {
    const Timeline& timeline = evidence.timeline;
    for (const RankRow& row : timeline.ranks) spoken.Add(row.rank.value);
    for (const Event& event : timeline.events)
      if (std::holds_alternative<HeartbeatLost>(event.what))
        if (const auto rank = timeline.RankOf(event)) stuck.Add(rank->value.value);
    waited.resize(timeline.groups.size());
    for (const CollectiveRow& row : timeline.collectives)
      for (const auto& waiter : row.waiters) waited[row.group].Add(waiter.rank.value);
  }
  RankSet spoken, stuck;
  std::vector<RankSet> waited;  ///< by group: who timed out in any operation of it
  Doings doings;
};

struct Members {
  RankSet waiting, absent;
  bool complete = false;  ///< everybody who should be there is known
};

bool DefaultGroup(const GroupRow& group) {
  return group.name.empty() || group.name == "0" || group.desc == "default_pg" || group.desc == "undefined";
}

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

/// The ranks that belong to the row's group: those that spoke of the group, and for the default group the whole job.
Members MembersOf(const Timeline& timeline, const CollectiveRow& row, const Told& told) {
  Members out;
  RankSet expected;
  // Ranks count from 0, so every number below a size or a rank exists.
  const auto expect_below = [&](std::int64_t size) {
    if (size < 0 || size > Supported(told.spoken.size())) return false;
    expected.Add(RankSet::Below(static_cast<int>(size)));
    return true;
  };
  const GroupRow& group = timeline.groups[row.group];
  for (const auto& waiter : row.waiters) out.waiting.Add(waiter.rank.value);
  if (!row.whole) return out;  // who is not among them may have been left out
  for (const auto& [rank, member] : group.members) expected.Add(rank.value);
  expected.Add(group.declared);
  out.complete = !group.declared.empty();
  if (DefaultGroup(group) && !out.complete) {
    // The default group is the job.
    if (!timeline.world_size) expect_below(SizeByNumbers(row.work));
    out.complete = timeline.world_size && expect_below(timeline.world_size->value);
    if (!out.complete) {
      expected.Add(told.spoken);
      if (!expected.empty()) expect_below(std::int64_t{expected.back()} + 1);
    }
  }
  AddGap(row, expected);
  // A rank that had enqueued the operation and not completed it is in it, whether or not its watchdog spoke.
  for (const auto& [rank, member] : group.members)
    if (row.work.seq && member.last_enqueued && *member.last_enqueued >= row.work.seq->value && member.last_completed &&
        *member.last_completed < row.work.seq->value)
      out.waiting.Add(rank.value);
  // A rank that timed out in another operation of the group was not absent; that is another detector's case. One whose
  // watchdog itself was stuck could not have said that it waits.
  out.absent = expected.Without(out.waiting).Without(told.waited[row.group]).Without(told.stuck);
  return out;
}

/// Those of the ranks that the log holds lines of.
RankSet HeardOf(const Timeline& timeline, const RankSet& ranks) {
  RankSet out;
  for (const RankRow& row : timeline.ranks)
    if (row.last_event && ranks.contains(row.rank.value)) out.Add(row.rank.value);
  return out;
}

std::string Waiting(const CollectiveRow& row, const Members& members) {
  return fmt::format("{} waited in {}{}", RanksWithin(members.waiting),
                     row.work.op.empty() ? "an operation" : row.work.op,
                     row.work.seq ? fmt::format(" #{}", row.work.seq->value) : "");
}

void Common(const Timeline& timeline, const CollectiveRow& row, const Members& members, Found& found) {
  found.collective = RefOf(timeline, row);
  found.collective->ranks_absent = members.absent;
  if (found.citations.empty() || found.citations.front().role != "cause")
    found.citations.insert(found.citations.begin(), Cite(timeline, row.waiters.front().event, "cause"));
  for (const auto& waiter : row.waiters)
    if (found.citations.size() < 4 && waiter.event != row.waiters.front().event)
      found.citations.push_back(Cite(timeline, waiter.event, "symptom"));
  found.Say("waiting", Waiting(row, members));
}

/// The absent rank itself by its prefix, or lines that name no rank, which in a job of "main process first" are rank
/// 0's.
AtWork WhoWorks(const Told& told, const Members& members) {
  AtWork out = told.doings.Of(members.absent);
  if (!out.doing || out.named) return out;
  if (members.absent.contains(0))
    out.ranks = {0};
  else if (members.absent.size() == 1)
    out.ranks = {members.absent.front()};
  return out;
}

/// Somebody was at work that takes long. Where nobody is known to be absent, and not all are known to be there either,
/// the work is all there is to go by, and no rank can be named.
std::optional<Found> FromPhase(const Evidence& evidence, const CollectiveRow& row, const Members& members,
                               const Told& told) {
  const Timeline& timeline = evidence.timeline;
  if (members.absent.empty() && members.complete) return std::nullopt;
  const AtWork work = WhoWorks(told, members);
  if (!work.doing) return std::nullopt;
  // Nobody's lines about a checkpoint or an evaluation are the main process's own, and it waits.
  const bool of_main = work.doing->kind == "checkpoint" || work.doing->kind == "evaluation";
  if (members.absent.empty() && !work.named && of_main && members.waiting.contains(0)) return std::nullopt;
  Found found({"rank-at-other-work", "of-nobody"});
  if (!members.absent.empty() && work.named)
    found.Grade({"rank-at-other-work", "by-its-lines"});
  else if (Spans(*work.doing, row.work.timeout_ms))
    found.Grade({"rank-at-other-work", "spans-the-wait"});
  else if (!members.absent.empty())
    found.Grade({"rank-at-other-work", "by-nobodys-lines"});
  found.kind = work.doing->kind;
  found.Say("who",
            work.ranks.empty() ? std::string("Somebody was") : fmt::format("Rank {} was", FoldRanks(work.ranks)));
  found.Say("work", InWords(*work.doing));
  for (const int rank : work.ranks) found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, work.doing->why));
  found.citations.push_back(Cite(timeline, work.doing->event, "cause"));
  Common(timeline, row, members, found);
  return found;
}

std::optional<Found> FromAbsence(const Evidence& evidence, const CollectiveRow& row, Members members) {
  const Timeline& timeline = evidence.timeline;
  if (members.absent.empty() || members.waiting.empty()) return std::nullopt;
  RankSet heard_absent = HeardOf(timeline, members.absent);
  const bool heard = !heard_absent.empty();
  const bool minority = members.absent.size() < members.waiting.size();
  if (!minority && !heard) return std::nullopt;
  // Of a job of which most logs are missing, only those who spoke are known not to have waited.
  if (!minority) members.absent = std::move(heard_absent);
  const bool one_way = OneWay(row) && members.absent.size() > 1;
  Found found({"rank-absent", "majority"});
  if (one_way)
    found.Grade({"rank-absent", "one-way"});
  else if (minority && (members.complete || heard))
    found.Grade({"rank-absent", "everybody-known"});
  else if (minority)
    found.Grade({"rank-absent", "by-gap"});
  found.Say("ranks", RanksInWords(members.absent));
  found.Say("which", RanksWithin(members.absent));
  found.Say("how", one_way ? "never entered it, or were through with it" : "never entered it");
  const GroupRow& group = timeline.groups[row.group];
  for (const int rank : members.absent) {
    std::string why = "did not time out with the others";
    const auto member = group.members.find(GlobalRank{rank});
    if (member != group.members.end() && member->second.last_enqueued)
      why = fmt::format("its last enqueued work is {}", *member->second.last_enqueued);
    found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, why));
    if (member != group.members.end() && member->second.status_event)
      found.citations.push_back(Cite(timeline, *member->second.status_event, "cause"));
    const RankRow* seen = timeline.FindRank(GlobalRank{rank});
    if (seen != nullptr && seen->last_event && found.citations.size() < 3)
      found.citations.push_back(Cite(timeline, *seen->last_event, "context"));
  }
  Common(timeline, row, members, found);
  return found;
}

// A rank whose last enqueued work of the group is below the one that failed never entered it, whatever else it printed.
// One that timed out in an earlier operation itself was not absent: its count differs from the others'.
std::optional<Found> FromStatus(const Timeline& timeline, const CollectiveRow& row, const RankSet& waited) {
  if (!row.work.seq) return std::nullopt;
  Members members;
  for (const auto& waiter : row.waiters) members.waiting.Add(waiter.rank.value);
  for (const auto& [rank, member] : timeline.groups[row.group].members)
    if (member.last_enqueued && *member.last_enqueued < row.work.seq->value && !waited.contains(rank.value))
      members.absent.Add(rank.value);
  if (members.absent.empty() || members.absent.size() >= members.waiting.size() + 1) return std::nullopt;
  Found found({"rank-behind", "counted"});
  found.Say("ranks", RanksInWords(members.absent));
  for (const int rank : members.absent) {
    const auto& member = timeline.groups[row.group].members.at(GlobalRank{rank});
    found.culprits.push_back(
        BlameRank(timeline, GlobalRank{rank}, fmt::format("its last enqueued work is {}", *member.last_enqueued)));
    if (member.status_event) found.citations.push_back(Cite(timeline, *member.status_event, "cause"));
  }
  Common(timeline, row, members, found);
  return found;
}

/// Each is held against all others. A job hangs in one, or in one of each of its groups.
constexpr std::size_t kMostRows = 1024;

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Relation> out;
  if (evidence.timeline.collectives.empty()) return out;
  const Told told(evidence);
  std::optional<Found> somebody;  // of a group of which nobody is known to be missing
  for (const CollectiveRow& row :
       std::span(evidence.timeline.collectives).first(std::min(evidence.timeline.collectives.size(), kMostRows))) {
    if (row.recorded) continue;  // recorded-calls knows more of it
    const Members members = MembersOf(evidence.timeline, row, told);
    // What the absent rank was at says more than that it was absent.
    if (auto phase = FromPhase(evidence, row, members, told); phase && !members.absent.empty())
      out.push_back(std::move(*phase));
    else if (auto behind = FromStatus(evidence.timeline, row, told.waited[row.group]))
      out.push_back(std::move(*behind));
    else if (auto absence = FromAbsence(evidence, row, members))
      out.push_back(std::move(*absence));
    else if (phase && !somebody)
      somebody = std::move(phase);
    if (!out.empty()) break;  // later rows are later waits
  }
  if (out.empty() && somebody) out.push_back(std::move(*somebody));
  return out;
}

}  // namespace absent_rank

const Detector kAbsentRank{"rank-absent", "Some ranks never entered the operation that the others timed out in.",
                           absent_rank::kFindings, &absent_rank::Run};

}  // namespace inquest
