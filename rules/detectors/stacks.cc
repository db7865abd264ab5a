// Stacks of live ranks differ: most are in a collective, one is at other work.
//
// What holds: somebody looked at several processes of a job that hangs, and found some in a collective and others at
// work that takes long. Why that implies the cause: an operation ends when all its ranks have come, and a stack shows
// where a rank is, not what it printed last. What looks like it: stacks that were taken at different moments of a
// healthy run; all in the collective, which blames nobody.
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/phases.h"

namespace inquest {
namespace {

constexpr FindingRow kFindings[] = {
    {"stack-at-other-work", "minority as-many", "who work waiting",
     "data-preparation checkpoint compile evaluation loading"},
};
using Found = FoundIn<kFindings>;

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
    if (stack == nullptr) continue;
    const auto rank = timeline.RankOf(event);
    const std::string who = rank ? fmt::format("rank {}", rank->value.value)
                                 : fmt::format("{}|{}|{}", event.where.input, timeline.HostOf(event).value_or(""),
                                               event.origin.pid ? std::to_string(*event.origin.pid) : "");
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

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  if (!timeline.collectives.empty()) return {};  // who is absent is known, and the stack tells what it was at
  std::vector<const Seen*> inside, elsewhere;
  const auto latest = Latest(timeline);
  for (const auto& [who, seen] : latest) {
    if (seen.doing.kind == "collective" || seen.doing.kind == "device-wait") inside.push_back(&seen);
    if (IsDelay(seen.doing)) elsewhere.push_back(&seen);
  }
  if (inside.empty() || elsewhere.empty() || elsewhere.size() > inside.size()) return {};
  const Doing& doing = elsewhere.front()->doing;
  Found found(elsewhere.size() < inside.size() ? Found::Held{"stack-at-other-work", "minority"}
                                               : Found::Held{"stack-at-other-work", "as-many"});
  found.kind = doing.kind;
  for (const Seen* seen : elsewhere) {
    found.culprits.push_back(Blame(timeline, *seen));
    found.citations.push_back(Cite(timeline, seen->event, "cause"));
  }
  for (std::size_t i = 0; i < inside.size() && i < 3; ++i)
    found.citations.push_back(Cite(timeline, inside[i]->event, "symptom"));
  const std::optional<GlobalRank>& rank = found.culprits.front().rank;
  found.Say("who", rank ? fmt::format("rank {}", rank->value) : std::string("one process"));
  found.Say("work", InWords(doing));
  found.Say("waiting", fmt::format("{} process{}", inside.size(), inside.size() > 1 ? "es" : ""));
  return {found};
}

}  // namespace

const Detector kStackDiffers{
    "stacks-differ", "Stacks of live ranks differ: most are in a collective, one is at other work.", kFindings, &Run};

}  // namespace inquest
