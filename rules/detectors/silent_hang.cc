// The log stops where a collective begins, without an error and without an end.
//
// What holds: communicators reached Init COMPLETE, or a framework said that it starts, and nothing follows: no call's
// result, no training, no ending, no error. Why that implies the cause: a job that prints nothing after its set-up is in
// its first collective, and no watchdog speaks in programs without one or before its time-out. What looks like it: a log
// that was cut, which this cannot tell; hence a hint, that other evidence (a driver known for it, spinning GPUs) lifts.
#include <algorithm>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace {

bool AnyFailure(const Evidence& evidence) {
  for (const Event& event : evidence.timeline.events) {
    if (std::holds_alternative<WorkTimedOut>(event.what) || std::holds_alternative<ExceptionRaised>(event.what) ||
        std::holds_alternative<ProcessExit>(event.what) || std::holds_alternative<JobStopped>(event.what) || std::holds_alternative<CommEnd>(event.what))
      return true;
  }
  // Warnings that no rule knows, or only as a hint, are what healthy set-ups print too.
  for (const LineMatch& match : evidence.matches) {
    const Rule& rule = evidence.book.rules[match.rule];
    if (rule.kind == Rule::Kind::kEnding || rule.kind == Rule::Kind::kSymptom) return true;
    if (rule.kind == Rule::Kind::kSignature && rule.strength != Strength::kHint) return true;
  }
  return std::any_of(evidence.phases.begin(), evidence.phases.end(), [](const PhaseSeen& phase) { return phase.kind == "training" || phase.kind == "evaluation"; });
}

std::vector<Finding> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  if (AnyFailure(evidence)) return {};
  std::optional<EventIndex> complete, via;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    if (const auto* init = std::get_if<CommInit>(&timeline.events[i].what); init != nullptr && init->complete && init->nranks > 1) complete = i;
    if (const auto* channels = std::get_if<ChannelsVia>(&timeline.events[i].what); channels != nullptr && channels->via.rfind("P2P/", 0) == 0 && !via) via = i;
  }
  if (!complete || !via) return {};
  const bool called = std::any_of(timeline.communicators.begin(), timeline.communicators.end(), [](const CommunicatorRow& row) {
    return std::any_of(row.members.begin(), row.members.end(), [](const auto& member) { return member.calls > 1; });
  });
  if (called) return {};
  Finding finding;
  finding.rule = "silence-after-init";
  finding.cause = "p2p-transport";
  finding.strength = Strength::kHint;
  finding.confidence = 0.45;
  finding.claim = "Every communicator was set up over GPU peer-to-peer, and then nothing more was printed: the first collective did not end, or the log was cut.";
  finding.citations = {Cite(timeline, *complete, "cause"), Cite(timeline, *via, "cause")};
  finding.remedies = {{"Test, not repair: the same job without peer-to-peer.", "NCCL_P2P_DISABLE=1 <the same command>"}};
  finding.collect = {"nvidia-smi while it hangs (100 % at a third of the power on all GPUs: all ranks are inside a collective)", "py-spy dump --pid <each rank>",
                     "nvidia-smi topo -m", "dmesg | grep -iE 'NVRM|Xid|AMD-Vi|DMAR|IOMMU'"};
  return {finding};
}

constexpr std::string_view kFindings[] = {"silence-after-init"};

}  // namespace

const Detector kSilentHang{"silence-after-init", "The log stops where a collective begins, without an error and without an end.", kFindings, &Run};

}  // namespace inquest
