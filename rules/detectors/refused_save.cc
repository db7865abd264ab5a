// A write that storage refused is the save that the lines before it tell of, and those name the rank.
//
// What holds: a line of storage that refuses names no rank, and of the few lines before it in the same input some tell
// of a checkpoint being written, all of one rank. Why that implies the rank: a framework prints its rank where it
// begins to save, and the exception behind it has none. What looks like it: saves of several ranks mixed in one stream,
// of which any may have failed; hence nobody is named there.
#include <set>

#include "rules/detectors.h"
#include "rules/thresholds.h"

namespace inquest {
namespace refused_save {

constexpr FindingRow kFindings[] = {
    {"rank-was-saving", "just-before", "rank"},
};
using Found = FoundIn<kFindings>;

bool IsRefusal(const Rule& rule) {
  return rule.kind == Rule::Kind::kSignature && rule.cause == "storage-stall" &&
         rule.blames == Rule::Blames::kPrinter && rule.strength != Strength::kHint;
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  std::optional<EventIndex> refused;
  for (const LineMatch& match : evidence.matches) {
    if (!IsRefusal(evidence.book.rules[match.rule])) continue;
    if (timeline.RankOf(timeline.events[match.event])) return {};  // it says itself whose it is
    if (!refused) refused = match.event;
  }
  if (!refused) return {};
  const SourcePos where = timeline.events[*refused].where;
  std::optional<GlobalRank> rank;
  std::optional<EventIndex> save;
  for (EventIndex i = *refused; i-- > 0 && timeline.events[i].where.input == where.input &&
                                timeline.events[i].where.line + thresholds::kTracebackLines >= where.line;) {
    const auto known = timeline.RankOf(timeline.events[i]);
    if (!known) continue;
    if (rank && *rank != known->value) return {};
    rank = known->value;
    for (const PhaseSeen& phase : evidence.phases)
      if (phase.event == i && phase.at == Activity::kCheckpoint) save = i;
  }
  if (!rank || !save) return {};
  Found found({"rank-was-saving", "just-before"});
  found.Say("rank", std::to_string(rank->value));
  found.culprits.push_back(BlameRank(timeline, *rank, "it was saving just before"));
  found.citations = {Cite(timeline, *save, LineRole::kCause)};
  return {std::move(found)};
}

}  // namespace refused_save

extern const Detector kRefusedSave{"refused-save",
                                   "The lines before a write that storage refused name the rank that was saving.",
                                   refused_save::kFindings, &refused_save::Run};

}  // namespace inquest
