// What stacks say of who waits for whom: of live ranks, and of those whose last words are a stack.
//
// What holds: of several processes some are in a collective and others at work that takes long, or nowhere; or all that
// is known of a process is that it waits to join the others, or until another one has done its part. Why that implies
// the cause: an operation ends when all its ranks have come, and a stack shows where a rank is, not what it printed
// last. What looks like it: stacks that were taken at different moments of a healthy run; all in the collective, which
// blames nobody; a job of which something is known that says more.
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/pattern.h"
#include "core/rank_set.h"
#include "rules/detectors.h"
#include "rules/phases.h"
#include "rules/raised.h"

namespace inquest {
namespace stacks {

constexpr FindingRow kFindings[] = {
    {"stack-at-other-work", "minority as-many", "who work waiting",
     "data-preparation checkpoint compile evaluation loading"},
    {"stack-missing-in-collective", "heard unheard", "ranks waiting which"},
    {"stack-waits-its-turn", "nothing-else", "who frame"},
    {"gave-up-its-turn", "nothing-else", "who frame"},
    {"stack-waits-to-join", "nothing-else", "who frame"},
};
using Found = FoundIn<kFindings>;

constexpr int kMostRanks = 4096;  ///< more are the word of a line alone

/// One process that somebody looked at, at last.
struct Seen {
  EventIndex event = 0;
  Doing doing;
};

std::map<std::string, Seen> Latest(const Timeline& timeline) {
  std::map<std::string, Seen> out;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    const auto* stack = std::get_if<StackSeen>(&event.what);
    if (stack == nullptr || (stack->raised && stack->at == Activity::kNone)) continue;  // what it was at is not known
    const auto rank = timeline.RankOf(event);
    // Without a pid, a stack that ends a process is of another one than the stack before.
    const std::string number = event.origin.pid ? std::to_string(*event.origin.pid)
                               : stack->raised  ? fmt::format("at {}", event.where.line)
                                                : std::string();
    const std::string who =
        rank ? fmt::format("rank {}", rank->value.value)
             : fmt::format("{}|{}|{}", event.where.input, timeline.HostOf(event).value_or(""), number);
    out[who] = {i, {stack->at, i, std::nullopt, std::nullopt, "its stack: " + stack->frame}};
  }
  return out;
}

Culprit Blame(const Timeline& timeline, const Seen& seen) {
  const Event& event = timeline.events[seen.event];
  if (const auto rank = timeline.RankOf(event)) return BlameRank(timeline, rank->value, seen.doing.why);
  Culprit culprit;
  culprit.host = timeline.HostOf(event);
  culprit.pid = event.origin.pid;
  culprit.why = seen.doing.why;
  return culprit;
}

using Stacks = std::vector<const Seen*>;

std::string WhoOf(const Timeline& timeline, const Seen& seen) {
  const auto rank = timeline.RankOf(timeline.events[seen.event]);
  return rank ? fmt::format("Rank {}", rank->value.value) : std::string("A process");
}

void CiteWaiting(const Timeline& timeline, const Stacks& waiting, LineRole role, Found& found) {
  for (std::size_t i = 0; i < waiting.size() && i < 3; ++i)
    found.citations.push_back(Cite(timeline, waiting[i]->event, role));
}

std::string InNumber(const Stacks& waiting) {
  return fmt::format("{} process{}", waiting.size(), waiting.size() > 1 ? "es" : "");
}

std::optional<Relation> AtOtherWork(const Timeline& timeline, const Stacks& inside, const Stacks& elsewhere) {
  if (inside.empty() || elsewhere.empty() || elsewhere.size() > inside.size()) return std::nullopt;
  const Doing& doing = elsewhere.front()->doing;
  Found found(elsewhere.size() < inside.size() ? Found::Held{"stack-at-other-work", "minority"}
                                               : Found::Held{"stack-at-other-work", "as-many"});
  found.kind = Name(doing.at);
  for (const Seen* seen : elsewhere) {
    found.culprits.push_back(Blame(timeline, *seen));
    found.citations.push_back(Cite(timeline, seen->event, LineRole::kCause));
  }
  CiteWaiting(timeline, inside, LineRole::kSymptom, found);
  const std::optional<GlobalRank>& rank = found.culprits.front().rank;
  found.Say("who", rank ? fmt::format("rank {}", rank->value) : std::string("one process"));
  found.Say("work", InWords(doing));
  found.Say("waiting", InNumber(inside));
  return found;
}

/// Most of the job's ranks are in a collective, and of the few others there is no stack.
std::optional<Relation> Missing(const Timeline& timeline, const Stacks& inside) {
  RankSet waiting, heard;
  for (const Seen* seen : inside)
    if (const auto rank = timeline.RankOf(timeline.events[seen->event])) waiting.Add(rank->value.value);
  for (const RankRow& row : timeline.ranks) heard.Add(row.rank.value);
  if (waiting.size() < 2 || !timeline.world_size || timeline.world_size->value > kMostRanks) return std::nullopt;
  const RankSet missing = RankSet::Below(timeline.world_size->value).Without(waiting);
  if (missing.empty() || missing.size() * 2 > waiting.size()) return std::nullopt;
  const bool all_heard = std::ranges::all_of(missing, [&](int rank) { return heard.contains(rank); });
  Found found(all_heard ? Found::Held{"stack-missing-in-collective", "heard"}
                        : Found::Held{"stack-missing-in-collective", "unheard"});
  found.Say("ranks", RanksInWords(missing));
  found.Say("which", RanksWithin(missing));
  found.Say("waiting", RanksWithin(waiting));
  for (const int rank : missing) found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, ""));
  CiteWaiting(timeline, inside, LineRole::kCause, found);
  return found;
}

/// All that are seen wait for one of whom nothing is known.
std::optional<Relation> AllWait(const Timeline& timeline, const Stacks& inside, Activity at, const Found::Held& held) {
  const auto first = std::ranges::find_if(inside, [&](const Seen* seen) { return seen->doing.at == at; });
  if (first == inside.end()) return std::nullopt;
  const auto* stack = std::get_if<StackSeen>(&timeline.events[(*first)->event].what);
  Found found(held);
  found.Say("who", WhoOf(timeline, **first));
  found.Say("frame", stack->frame);
  CiteWaiting(timeline, {*first}, LineRole::kCause, found);
  return found;
}

/// The frame in which a process let another one go first, where the exception was raised by its wait for that.
std::optional<std::string> TurnWaitedFor(const ExceptionRaised& raised) {
  static const Pattern kTurn(R"( in (\w*main_process_first|\w*_goes_first|\w*zero_first|wait_for_local_leader)$)");
  static const Pattern kWait(R"(c10d_logger\.py:\d+ in | in _?(?:\w*barrier|wait\w*)$)");
  std::optional<std::string> turn;
  for (const std::string& frame : raised.stack) {
    if (turn && kWait.Matches(frame)) return turn;
    if (const auto match = kTurn.Search(frame)) turn = std::string(match->text(1));
  }
  return std::nullopt;
}

/// Those that raised did so while the main process had its turn, of whose end nobody tells.
std::optional<Relation> GaveUpItsTurn(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  std::vector<EventIndex> gave_up;
  std::string frame;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* raised = std::get_if<ExceptionRaised>(&timeline.events[i].what);
    if (raised == nullptr || raised->ignored || IsOfLauncher(*raised) || evidence.course.WentOn(i)) continue;
    const auto turn = TurnWaitedFor(*raised);
    const auto rank = RankOfRaised(timeline, i);
    if (!turn || (rank && rank->value.value == 0)) return std::nullopt;
    gave_up.push_back(i);
    frame = *turn;
  }
  if (gave_up.empty()) return std::nullopt;
  const auto rank = RankOfRaised(timeline, gave_up.front());
  Found found({"gave-up-its-turn", "nothing-else"});
  found.Say("who", rank ? fmt::format("Rank {}", rank->value.value) : std::string("A process"));
  found.Say("frame", frame);
  if (timeline.job_hosts <= 1) found.culprits.push_back(BlameRank(timeline, GlobalRank{0}, ""));
  for (const EventIndex event : gave_up)
    if (found.citations.size() < 3) found.citations.push_back(Cite(timeline, event, LineRole::kCause));
  return found;
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  if (auto found = GaveUpItsTurn(evidence)) return {*std::move(found)};
  if (!timeline.collectives.empty()) return {};  // who is absent is known, and the stack tells what it was at
  Stacks inside, elsewhere;
  const auto latest = Latest(timeline);
  for (const auto& [who, seen] : latest) {
    if (evidence.course.WentOn(seen.event)) continue;
    if (IsWait(seen.doing)) inside.push_back(&seen);
    if (IsDelay(seen.doing)) elsewhere.push_back(&seen);
  }
  for (auto found : {AtOtherWork(timeline, inside, elsewhere), Missing(timeline, inside),
                     AllWait(timeline, inside, Activity::kTurn, {"stack-waits-its-turn", "nothing-else"}),
                     AllWait(timeline, inside, Activity::kJoining, {"stack-waits-to-join", "nothing-else"})})
    if (found) return {*std::move(found)};
  return {};
}

}  // namespace stacks

const Detector kStackDiffers{"stacks-differ",
                             "Stacks show who waits: for a rank at other work, for one that is nowhere, or to join.",
                             stacks::kFindings, &stacks::Run};

}  // namespace inquest
