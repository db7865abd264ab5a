// The kernel log says that a rank's process was killed for memory, or crashed.
//
// What holds: the victim of the OOM killer, or the process of a segfault line, is a rank's, by host and pid. Why that
// implies the cause: the kernel writes the line when it ends the process, before launcher and peers notice. What looks
// like it: a kill of another program on the host, which the pid tells; a crash while the interpreter unwinds after an
// exception, which the exception tells; a trap inside libc, which an abort leaves behind.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/kernel_scope.h"

namespace inquest {
namespace {

bool RaisedBefore(const Timeline& timeline, GlobalRank rank) {
  return std::any_of(timeline.events.begin(), timeline.events.end(), [&](const Event& event) {
    const auto who = std::holds_alternative<ExceptionRaised>(event.what) ? timeline.RankOf(event) : std::nullopt;
    return who && who->value == rank;
  });
}

/// The line that opens the OOM killer's report: who asked for memory, seldom the victim.
std::optional<EventIndex> OpeningOf(const Timeline& timeline, EventIndex kill) {
  constexpr std::uint64_t kLongestReport = 2000;
  for (EventIndex i = kill; i-- > 0;) {
    const Event& event = timeline.events[i];
    if (event.where.input != timeline.events[kill].where.input || event.where.line + kLongestReport < timeline.events[kill].where.line) break;
    if (event.text.find(" invoked oom-killer") != std::string::npos) return i;
    if (std::holds_alternative<KernelKill>(event.what)) break;
  }
  return std::nullopt;
}

/// The victims of one kind, first to last.
struct Victims {
  std::map<GlobalRank, EventIndex> by_rank;
  std::string detail;  ///< of the first one
};

Finding FindingOf(const Evidence& evidence, const Victims& victims, std::string rule, std::string cause, double confidence, const std::string& what) {
  Finding finding;
  finding.rule = std::move(rule);
  finding.cause = std::move(cause);
  finding.strength = Strength::kDecisive;
  finding.confidence = confidence;
  finding.times = victims.by_rank.size();
  finding.explains = {"collective-timeout", "connection-closed", "remote-error", "nccl-error", "nccl-proxy-fallout", "sigterm", "elastic-exit", "exit-nonzero",
                      "killed-by-sigkill", "killed-by-segv", "loader-worker-killed", "ended-by-sigkill", "ended-by-sigsegv"};
  std::vector<int> ranks;
  for (const auto& [rank, event] : victims.by_rank) {
    ranks.push_back(rank.value);
    finding.culprits.push_back(BlameRank(evidence.timeline, rank, what));
    if (!finding.culprits.back().host) finding.culprits.back().host = evidence.timeline.HostOf(evidence.timeline.events[event]);
    if (finding.citations.size() >= 4) continue;
    if (const auto opening = OpeningOf(evidence.timeline, event)) finding.citations.push_back(Cite(evidence.timeline, *opening, "cause"));
    finding.citations.push_back(Cite(evidence.timeline, event, "cause"));
  }
  const auto& host = finding.culprits.front().host;
  finding.claim = fmt::format("Rank{} {}{} {}.", ranks.size() > 1 ? "s" : "", FoldRanks(ranks), ranks.size() == 1 && host ? " on " + *host : "", what);
  return finding;
}

std::vector<Finding> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  const KernelScope scope(timeline, evidence.book);
  Victims killed, crashed;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    const auto* kill = std::get_if<KernelKill>(&event.what);
    const auto* crash = std::get_if<KernelFault>(&event.what);
    if ((kill == nullptr && crash == nullptr) || scope.Of(event) != KernelScope::Outside::kNo) continue;
    const auto rank = timeline.RankOf(event);
    if (!rank) continue;
    if (crash != nullptr && (crash->library.rfind("libc", 0) == 0 || RaisedBefore(timeline, rank->value))) continue;
    Victims& victims = kill != nullptr ? killed : crashed;
    if (victims.by_rank.empty()) victims.detail = kill != nullptr ? kill->cgroup ? "the memory limit of its cgroup was hit" : "the host ran out of memory" : crash->library;
    victims.by_rank.emplace(rank->value, i);
  }
  std::vector<Finding> out;
  if (!killed.by_rank.empty()) out.push_back(FindingOf(evidence, killed, "rank-killed-for-memory", "host-oom", 0.94, "was killed by the kernel's OOM killer: " + killed.detail));
  if (!crashed.by_rank.empty())
    out.push_back(FindingOf(evidence, crashed, "rank-crashed-in-kernel-log", "native-crash", 0.88,
                            "crashed on a bad access, says the kernel log" + (crashed.detail.empty() ? std::string() : ", in " + crashed.detail)));
  return out;
}

constexpr std::string_view kFindings[] = {"rank-killed-for-memory", "rank-crashed-in-kernel-log"};

}  // namespace

const Detector kKernelEnds{"kernel-ends-a-rank", "The kernel log says that a rank's process was killed for memory, or crashed.", kFindings, &Run};

}  // namespace inquest
