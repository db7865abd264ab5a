// Ranks gave up waiting outside a collective that the watchdog names, while other work ran on.
//
// What holds: a wait ran out (the id of a communicator, a key of the store, a Gloo barrier), and the last that was
// heard of a rank that did not wait is work that takes long. Why that implies the cause: such a wait ends when the
// other rank comes, and that rank was busy. What looks like it: a rank that died at that work, which the judge prefers;
// work of the waiting rank itself, long over; a job that cannot connect, where nothing was at work yet.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/phases.h"

namespace inquest {
namespace unmatched_wait {

constexpr FindingRow kFindings[] = {
    {"other-work-during-wait", "by-its-lines spans-the-wait by-nobodys-lines of-nobody", "who work waiters what",
     "data-preparation checkpoint compile evaluation loading"},
};
using Found = FoundIn<kFindings>;

/// All that gave up in vain, outside of the watchdog's operations.
struct Waits {
  std::set<int> waiting;
  std::set<int> awaited;  ///< named as the one to come
  std::string on;
  std::vector<EventIndex> events;
  std::optional<std::int64_t> timeout_ms;  ///< of the first that tells it
};

/// A store that is gone ends the waits of others as its time-out does: rank 0 kept it, or an agent that gave up.
bool RanOut(const UniqueIdWait& wait) {
  static const Pattern kRanOut(R"((?i)time[sd]? ?-?out|connection reset|broken pipe|connection was closed)");
  return kRanOut.Matches(wait.error);
}

Waits WaitsOf(const Timeline& timeline) {
  Waits out;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    std::string on;
    if (const auto* id = std::get_if<UniqueIdWait>(&event.what); id != nullptr && RanOut(*id)) {
      out.awaited.insert(id->publisher.value);
      out.waiting.insert(id->waiter.value);
      on = "the id of a communicator";
    } else if (const auto* barrier = std::get_if<MonitoredBarrierFailed>(&event.what);
               barrier != nullptr && barrier->ranks.empty()) {
      if (barrier->printer && barrier->printer->value != 0) out.awaited.insert(0);
      if (barrier->printer) out.waiting.insert(barrier->printer->value);
      on = "a monitored barrier";
    } else if (const auto* wait = std::get_if<WaitGivenUp>(&event.what)) {
      on = wait->on;
      if (!out.timeout_ms) out.timeout_ms = wait->timeout_ms;
    }
    if (on.empty()) continue;
    if (const auto rank = timeline.RankOf(event)) out.waiting.insert(rank->value.value);
    if (out.on.empty()) out.on = on;
    out.events.push_back(i);
  }
  for (const int rank : out.waiting) out.awaited.erase(rank);
  return out;
}

/// A rank that did not wait, by its own lines; else lines without a rank, which are those of the only rank that was
/// awaited, or rank 0's if it did not wait.
AtWork WhoWorks(const Evidence& evidence, const Waits& waits) {
  RankSet others = RankSet::Of(waits.awaited);
  for (const RankRow& row : evidence.timeline.ranks)
    if (waits.waiting.count(row.rank.value) == 0) others.Add(row.rank.value);
  AtWork out = Doings(evidence).Of(others);
  if (!out.doing || out.named) return out;
  out.named = waits.awaited.size() == 1;
  if (out.named)
    out.ranks = {*waits.awaited.begin()};
  else if (!waits.waiting.empty() && waits.waiting.count(0) == 0)
    out.ranks = {0};
  return out;
}

/// An exception that is no wait's own and that nobody got over, in front of the first wait that ran out: who died of it
/// could not come, whatever the others were at.
bool SomebodyDiedBefore(const Evidence& evidence, const Waits& waits) {
  const Timeline& timeline = evidence.timeline;
  static const Pattern kOfAWait(R"((?i)time[sd]?[ -]?out)");
  const EventIndex first = waits.events.front();
  for (EventIndex i = 0; i < first; ++i) {
    const auto* raised = std::get_if<ExceptionRaised>(&timeline.events[i].what);
    if (raised == nullptr || raised->ignored || evidence.course.WentOn(i) ||
        timeline.Order(i, first) != std::partial_ordering::less)
      continue;
    const auto same_line = [&](EventIndex wait) { return timeline.events[wait].where == timeline.events[i].where; };
    if (std::ranges::none_of(waits.events, same_line) && !kOfAWait.Matches(raised->message)) return true;
  }
  return false;
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  if (!timeline.collectives.empty()) return {};  // the watchdog's operation tells more
  const Waits waits = WaitsOf(timeline);
  if (waits.events.empty()) return {};
  const AtWork work = WhoWorks(evidence, waits);
  if (!work.doing || SomebodyDiedBefore(evidence, waits)) return {};
  Found found({"other-work-during-wait", "of-nobody"});
  if (!work.ranks.empty() && work.named)
    found.Grade({"other-work-during-wait", "by-its-lines"});
  else if (Spans(*work.doing, waits.timeout_ms))
    found.Grade({"other-work-during-wait", "spans-the-wait"});
  else if (!work.ranks.empty())
    found.Grade({"other-work-during-wait", "by-nobodys-lines"});
  found.kind = Name(work.doing->at);
  found.Say("who",
            work.ranks.empty() ? std::string("Somebody was") : fmt::format("Rank {} was", FoldRanks(work.ranks)));
  found.Say("work", InWords(*work.doing));
  found.Say("waiters",
            waits.waiting.empty() ? "another rank" : RanksWithin({waits.waiting.begin(), waits.waiting.end()}));
  found.Say("what", waits.on);
  for (const int rank : work.ranks) found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, work.doing->why));
  found.citations = {Cite(timeline, work.doing->event, LineRole::kCause),
                     Cite(timeline, waits.events.front(), LineRole::kCause)};
  for (const EventIndex event : waits.events)
    if (found.citations.size() < 4 && event != waits.events.front())
      found.citations.push_back(Cite(timeline, event, LineRole::kSymptom));
  return {found};
}

}  // namespace unmatched_wait

const Detector kUnmatchedWait{
    "unmatched-wait", "Ranks gave up waiting outside a collective that the watchdog names, while other work ran on.",
    unmatched_wait::kFindings, &unmatched_wait::Run};

}  // namespace inquest
