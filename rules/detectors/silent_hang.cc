// The log stops where a collective begins, without an error and without an end.
//
// What holds: communicators reached Init COMPLETE, or a framework said that it starts, and nothing follows: no call's
// result, no training, no ending, no error. Why that implies the cause: a job that prints nothing after its set-up is
// in its first collective, and no watchdog speaks in programs without one or before its time-out. What looks like it: a
// log that was cut, which this cannot tell; hence a hint, that other evidence (a driver known for it, spinning GPUs)
// lifts.
#include <algorithm>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include "core/pattern.h"
#include "rules/detectors.h"
#include "rules/thresholds.h"

namespace inquest {
namespace silent_hang {

constexpr FindingRow kFindings[] = {
    {"silence-after-init", "nothing-else"},
    {"silence-in-build", "nothing-else"},
};
using Found = FoundIn<kFindings>;

/// Somebody failed, ended, or went on to work.
bool AnythingElse(const Evidence& evidence) {
  if (evidence.course.failed()) return true;
  for (const Event& event : evidence.timeline.events)
    if (std::holds_alternative<ExceptionRaised>(event.what) || std::holds_alternative<ProcessExit>(event.what) ||
        std::holds_alternative<CommEnd>(event.what))
      return true;
  // Warnings that no rule knows, or only as a hint, are what healthy set-ups print too.
  for (const LineMatch& match : evidence.matches) {
    const Rule& rule = evidence.book.rules[match.rule];
    if (rule.kind == Rule::Kind::kEnding || rule.kind == Rule::Kind::kSymptom) return true;
    if (rule.kind == Rule::Kind::kSignature && rule.strength != Strength::kHint) return true;
  }
  return std::any_of(evidence.phases.begin(), evidence.phases.end(), [](const PhaseSeen& phase) {
    return phase.at == Activity::kTraining || phase.at == Activity::kEvaluation || phase.at == Activity::kServing;
  });
}

/// A GPU of the job stands idle while another one spins: its rank is not in the collective, so the path is not the
/// question.
bool OneStandsIdle(const Timeline& timeline) {
  std::map<std::optional<int>, int> utilization;
  std::set<std::optional<int>> used;
  for (const Event& event : timeline.events) {
    if (const auto* gpu = std::get_if<GpuSnapshot>(&event.what); gpu != nullptr && gpu->utilization_percent)
      utilization[gpu->id.index] = *gpu->utilization_percent;
    if (const auto* process = std::get_if<GpuProcess>(&event.what); process != nullptr && process->type == "C")
      used.insert(process->id.index);
  }
  bool idle = false, spins = false;
  for (const std::optional<int> gpu : used) {
    if (utilization.count(gpu) == 0) continue;
    idle = idle || utilization[gpu] < thresholds::kIdlePercent;
    spins = spins || utilization[gpu] >= thresholds::kSpinsPercent;
  }
  return idle && spins;
}

/// Several ranks printed results of the program's own behind the set-up: the collective ended.
bool RanksPrintedResults(const Evidence& evidence, EventIndex complete) {
  static const Pattern kFigure(R"([=: (]-?\d+\.\d)");
  std::set<int> ranks;
  for (EventIndex i = complete + 1; i < evidence.timeline.events.size(); ++i) {
    const Event& event = evidence.timeline.events[i];
    const auto* message = std::get_if<LogMessage>(&event.what);
    if (message == nullptr || message->component != Component::kAny || !kFigure.Matches(event.text)) continue;
    if (const auto rank = evidence.timeline.RankOf(event)) ranks.insert(rank->value.value);
  }
  return ranks.size() > 1;
}

/// The last thing heard is a build: it still runs, or it waits for a lock that nobody holds. Other ranks may add a few
/// words; a log that goes on for pages is not silent.
std::vector<Relation> SilenceInBuild(const Evidence& evidence) {
  if (evidence.phases.empty() || evidence.phases.back().at != Activity::kCompile) return {};
  const SourcePos last = evidence.timeline.events[evidence.phases.back().event].where;
  const bool over = evidence.phases.back().percent == 100;
  if (over || evidence.timeline.inputs[last.input].lines > last.line + thresholds::kFewWords) return {};
  // A bar that counts many a second was cut off as it went.
  static const Pattern kCounts(R"(%\|.*\d\w+/s\])");
  const std::span<const PhaseSeen> phases(evidence.phases);
  if (std::ranges::any_of(
          phases.last(std::min<std::size_t>(phases.size(), 2)),  // itself may break off
          [&](const PhaseSeen& seen) { return kCounts.Matches(evidence.timeline.events[seen.event].text); }))
    return {};
  Found found({"silence-in-build", "nothing-else"});
  found.citations = {Cite(evidence.timeline, evidence.phases.back().event, LineRole::kCause)};
  return {found};
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  if (AnythingElse(evidence) || OneStandsIdle(timeline)) return {};
  if (std::vector<Relation> build = SilenceInBuild(evidence); !build.empty()) return build;
  std::optional<EventIndex> complete, via;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    if (const auto* init = std::get_if<CommInit>(&timeline.events[i].what);
        init != nullptr && init->complete && init->nranks > 1)
      complete = i;
    if (const auto* channels = std::get_if<ChannelsVia>(&timeline.events[i].what);
        channels != nullptr && channels->via.rfind("P2P/", 0) == 0 && !via)
      via = i;
  }
  if (!complete || !via) return {};
  if (RanksPrintedResults(evidence, *complete)) return {};
  // Rows of results, a bar, anything that is counted behind the set-up.
  if (std::ranges::any_of(evidence.told, [&](const Told& told) {
        return told.what == Told::What::kWork && told.at != Activity::kJoining && told.event > *complete;
      }))
    return {};
  const bool called =
      std::any_of(timeline.communicators.begin(), timeline.communicators.end(), [](const CommunicatorRow& row) {
        return std::any_of(row.members.begin(), row.members.end(), [](const auto& member) { return member.calls > 1; });
      });
  if (called) return {};
  Found found({"silence-after-init", "nothing-else"});
  found.citations = {Cite(timeline, *complete, LineRole::kCause), Cite(timeline, *via, LineRole::kCause)};
  return {found};
}

}  // namespace silent_hang

const Detector kSilentHang{"silence-after-init",
                           "The log stops where a collective begins, without an error and without an end.",
                           silent_hang::kFindings, &silent_hang::Run};

}  // namespace inquest
