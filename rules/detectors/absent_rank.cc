// Some ranks never entered the operation that the others timed out in.
//
// What holds: of the ranks that belong to a process group, some timed out at one sequence number and some did not. Why
// that implies the cause: an operation ends when all its ranks have come, so those that waited waited for those that
// did not. What an absent rank did instead is told by its last phase: preparing data, saving, evaluating, loading
// (slow-rank), compiling (jit-build-stall), or nothing (rank-absent). What looks like it: a log of one rank among many,
// in which absence proves nothing; a broadcast that stops half-way, which those before the break are through with; a
// group that does not span the job; an absent rank that died, which the judge prefers to this finding; a rank that the
// log quotes under another number.
#include <utility>

#include <fmt/format.h>

#include "core/ascii.h"
#include "rules/detectors.h"
#include "rules/phases.h"
#include "timeline/membership.h"

namespace inquest {
namespace absent_rank {

constexpr FindingRow kFindings[] = {
    {"rank-at-other-work", "by-its-lines spans-the-wait by-nobodys-lines of-nobody", "who work waiting",
     "data-preparation checkpoint compile evaluation loading"},
    {"rank-behind", "counted", "ranks waiting"},
    {"rank-absent", "everybody-known by-gap one-way majority left-out", "ranks how waiting which"},
};
using Found = FoundIn<kFindings>;

/// Data of a broadcast or a reduction goes one way: who stands before the place where it stops is through with it, goes
/// on, and times out in something later or not at all.
bool OneWay(const CollectiveRow& row) { return row.work.op == "BROADCAST" || row.work.op == "REDUCE"; }

/// Gathered once, held against every operation.
struct Told {
  explicit Told(const Evidence& evidence) : membership(evidence.timeline), doings(evidence) {}
  Membership membership;
  Doings doings;
};

std::string Waiting(const CollectiveRow& row, const Members& members) {
  return fmt::format("{} waited in {}{}", RanksWithin(members.waiting),
                     row.work.op.empty() ? "an operation" : row.work.op,
                     row.work.seq ? fmt::format(" #{}", row.work.seq->value) : "");
}

void Common(const Timeline& timeline, const CollectiveRow& row, const Members& members, Found& found) {
  found.collective = RefOf(timeline, row);
  found.collective->ranks_absent = members.absent;
  if (found.citations.empty() || found.citations.front().role != LineRole::kCause)
    found.citations.insert(found.citations.begin(), Cite(timeline, row.waiters.front().event, LineRole::kCause));
  for (const auto& waiter : row.waiters)
    if (found.citations.size() < 4 && waiter.event != row.waiters.front().event)
      found.citations.push_back(Cite(timeline, waiter.event, LineRole::kSymptom));
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
  const bool of_main = work.doing->at == Activity::kCheckpoint || work.doing->at == Activity::kEvaluation;
  if (members.absent.empty() && !work.named && of_main && members.waiting.contains(0)) return std::nullopt;
  Found found({"rank-at-other-work", "of-nobody"});
  if (!members.absent.empty() && work.named)
    found.Grade({"rank-at-other-work", "by-its-lines"});
  else if (Spans(*work.doing, row.work.timeout_ms))
    found.Grade({"rank-at-other-work", "spans-the-wait"});
  else if (!members.absent.empty())
    found.Grade({"rank-at-other-work", "by-nobodys-lines"});
  found.kind = Name(work.doing->at);
  found.Say("who",
            work.ranks.empty() ? std::string("Somebody was") : fmt::format("Rank {} was", FoldRanks(work.ranks)));
  found.Say("work", InWords(*work.doing));
  for (const int rank : work.ranks) found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, work.doing->why));
  found.citations.push_back(Cite(timeline, work.doing->event, LineRole::kCause));
  Common(timeline, row, members, found);
  return found;
}

/// That a rank is not among those that waited may be the log's doing: Ray, whose mark in front of a line is a name,
/// prints once what several processes say alike; or the text ends within such a report.
bool MayBeLeftOut(const Timeline& timeline, const CollectiveRow& row) {
  return std::ranges::any_of(row.waiters, [&](const CollectiveRow::Waiter& waiter) {
    const Event& event = timeline.events[waiter.event];
    const std::string& writer = event.origin.writer;
    const bool by_ray = event.origin.pid && !writer.empty() && IsLetter(writer.front());
    return by_ray || (!waiter.work.timeout_ms && event.where.InputLine() >= timeline.inputs[event.where.input].lines);
  });
}

std::optional<Found> FromAbsence(const Evidence& evidence, const CollectiveRow& row, Members members) {
  const Timeline& timeline = evidence.timeline;
  if (members.missed().empty() || members.waiting.empty()) return std::nullopt;
  const bool heard = !members.heard.empty(), minority = members.FewAbsent();
  members.absent = members.missed();
  const bool one_way = OneWay(row) && members.absent.size() > 1;
  Found found({"rank-absent", "majority"});
  if (one_way)
    found.Grade({"rank-absent", "one-way"});
  else if (minority && (members.complete || heard))
    found.Grade({"rank-absent", "everybody-known"});
  else if (minority)
    found.Grade(MayBeLeftOut(timeline, row) ? Found::Held{"rank-absent", "left-out"}
                                            : Found::Held{"rank-absent", "by-gap"});
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
      found.citations.push_back(Cite(timeline, *member->second.status_event, LineRole::kCause));
    const RankRow* seen = timeline.FindRank(GlobalRank{rank});
    if (seen != nullptr && seen->last_event && found.citations.size() < 3)
      found.citations.push_back(Cite(timeline, *seen->last_event, LineRole::kContext));
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
    if (member.status_event) found.citations.push_back(Cite(timeline, *member.status_event, LineRole::kCause));
  }
  Common(timeline, row, members, found);
  return found;
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Relation> out;
  if (evidence.timeline.collectives.empty()) return out;
  const Told told(evidence);
  std::optional<Found> somebody;  // of a group of which nobody is known to be missing
  for (const CollectiveRow& row : RowsHeld(evidence.timeline)) {
    if (row.recorded) continue;  // recorded-calls knows more of it
    const Members members = told.membership.Of(row);
    // What the absent rank was at says more than that it was absent.
    if (auto phase = FromPhase(evidence, row, members, told); phase && !members.absent.empty())
      out.push_back(std::move(*phase));
    else if (auto behind = FromStatus(evidence.timeline, row, told.membership.waited(row.group)))
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
