// A rank died of an exception that no signature names.
//
// What holds: a traceback ended in an exception, and neither a symptom nor a signature speaks of that line. Why that
// implies the cause: Python prints a traceback and leaves; a rank that leaves makes the others wait. What looks like it:
// the launcher's own traceback, which only repeats that a child failed; survivors' errors after an abort, which symptoms
// name; an exception that the program caught and logged, which a good ending afterwards tells.
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace {

std::string_view LastName(std::string_view type) {
  const std::size_t dot = type.rfind('.');
  return dot == std::string_view::npos ? type : type.substr(dot + 1);
}

/// Exceptions that tell of another process' end, or of a signal.
bool TellsOfAnother(const ExceptionRaised& raised) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "ChildFailedError", "CalledProcessError", "SignalException", "KeyboardInterrupt", "ProcessRaisedException", "ProcessExitedException",
      "SystemExit", "DistBackendError", "DistNetworkError", "DistStoreError", "BrokenPipeError", "ConnectionResetError"};
  const std::string_view name = LastName(raised.type);
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool LineIs(const std::vector<bool>& flags, const Timeline& timeline, EventIndex index) {
  // The exception and the message that matched stand on one line, as two events next to one another.
  const SourcePos where = timeline.events[index].where;
  for (EventIndex i = index; i < timeline.events.size() && timeline.events[i].where == where; ++i)
    if (flags[i]) return true;
  for (EventIndex i = index; i-- > 0 && timeline.events[i].where == where;)
    if (flags[i]) return true;
  return false;
}

std::vector<Finding> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  std::vector<Finding> out;
  std::set<std::string> seen;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* raised = std::get_if<ExceptionRaised>(&timeline.events[i].what);
    if (raised == nullptr || TellsOfAnother(*raised) || LineIs(evidence.has_symptom, timeline, i)) continue;
    const auto rank = timeline.RankOf(timeline.events[i]);
    const std::string key = fmt::format("{}|{}", raised->type, raised->frame);
    if (!seen.insert(key).second) {
      for (Finding& finding : out)
        if (finding.explained_by == key) {
          ++finding.times;
          const bool known = std::any_of(finding.culprits.begin(), finding.culprits.end(), [&](const Culprit& c) { return rank && c.rank == rank->value; });
          if (rank && !known) finding.culprits.push_back(BlameRank(timeline, rank->value, "raised " + raised->type));
        }
      continue;
    }
    const bool named = LineIs(evidence.has_signature, timeline, i);
    Finding finding;
    finding.rule = "uncaught-exception";
    finding.cause = "python-exception";
    finding.strength = named ? Strength::kHint : Strength::kSupporting;  // a signature says it better
    finding.confidence = named ? 0.3 : 0.7;
    finding.claim = fmt::format("{} an uncaught {}{}.", rank ? fmt::format("Rank {} died of", rank->value.value) : std::string("A process died of"),
                                LastName(raised->type), raised->frame.empty() ? "" : " raised at " + raised->frame);
    if (rank) finding.culprits.push_back(BlameRank(timeline, rank->value, "raised " + raised->type));
    finding.citations.push_back(Cite(timeline, i, "cause"));
    finding.explained_by = key;  // a mark while collecting
    out.push_back(std::move(finding));
  }
  for (Finding& finding : out) finding.explained_by.clear();
  return out;
}

}  // namespace

const Detector kExceptions{"uncaught-exception", "A rank died of an exception that no signature names.", &Run};

}  // namespace inquest
