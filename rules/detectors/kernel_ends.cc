// The kernel log says that a process of the job was killed for memory, crashed, or lost a page.
//
// What holds: the victim of the OOM killer, or the process of a segfault line, is a rank's, by host and pid; or it is
// named like a job's process, or in a cgroup of its scheduler. Why that implies the cause: the kernel writes the line when
// it ends the process, before launcher and peers notice. What looks like it: a kill of another program on the host, which
// pid and name tell; a crash while the interpreter unwinds after an exception, which the exception tells; a trap inside
// libc, which an abort leaves behind.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "rules/detectors.h"

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

/// The kernel was asked for memory and nothing below says who had to go: the log is cut.
bool IsCut(const Timeline& timeline, EventIndex opening) {
  constexpr std::uint64_t kLongestReport = 2000;
  for (EventIndex i = opening + 1; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    if (event.where.input != timeline.events[opening].where.input || event.where.line > timeline.events[opening].where.line + kLongestReport) break;
    if (const auto* kill = std::get_if<KernelKill>(&event.what); kill != nullptr && kill->pid != 0) return false;
  }
  return true;
}

/// Whether a process whose pid is no rank's may still be of the job: by its name, by a cgroup that a scheduler made, or
/// because nothing tells which pids on that host are. Containers count pids of their own.
bool MayBeOfJob(const Timeline& timeline, const Event& event, std::string_view process, std::string_view cgroup) {
  static constexpr std::string_view kNames[] = {"python", "pt_", "ray", "torchrun", "train", "mpirun", "orted", "dali", "deepspeed", "accelerate", "cuda-", "all_reduce_perf"};
  if (std::any_of(std::begin(kNames), std::end(kNames), [&](std::string_view name) { return process.starts_with(name); })) return true;
  for (const std::string_view scheduler : {"slurm", "kubepods", "docker", "job_", "lsf", "pbs"})
    if (cgroup.find(scheduler) != std::string_view::npos) return true;
  const auto host = timeline.HostOf(event);
  return std::none_of(timeline.processes.begin(), timeline.processes.end(), [&](const ProcessRow& row) { return row.pid && row.rank && (!host || row.host == host); });
}

/// What the kernel did to processes, of one kind: first to last.
struct Ends {
  std::map<GlobalRank, EventIndex> by_rank;
  std::vector<EventIndex> of_job;  ///< whose rank is not known
  std::vector<EventIndex> others;  ///< of some other program on the host
};

struct Kind {
  std::string_view rule, cause;
  double of_rank;  ///< confidence
  Strength of_job;
  double of_job_confidence;
};
constexpr Kind kKilled{"rank-killed-for-memory", "host-oom", 0.94, Strength::kDecisive, 0.9};
constexpr Kind kCrashed{"rank-crashed-in-kernel-log", "native-crash", 0.88, Strength::kSupporting, 0.7};
constexpr Kind kLostPage{"rank-lost-memory-page", "native-crash", 0.92, Strength::kDecisive, 0.85};

std::string WhatOf(const What& what) {
  if (const auto* kill = std::get_if<KernelKill>(&what)) {
    const std::string reason = kill->cgroup ? "the memory limit of its cgroup was hit" : "the host ran out of memory";
    return kill->pid == 0 ? "asked for memory that was not there, and the kernel looked for somebody to kill" : "was killed by the kernel's OOM killer: " + reason;
  }
  const auto& crash = std::get<KernelFault>(what);
  if (crash.how == kHardwareMemory) return "was ended by SIGBUS: the memory of its host lost a page (uncorrectable hardware error)";
  return "crashed on a bad access, says the kernel log" + (crash.library.empty() ? std::string() : ", in " + crash.library);
}

const std::string& ProcessName(const What& what) { return std::holds_alternative<KernelKill>(what) ? std::get<KernelKill>(what).process : std::get<KernelFault>(what).process; }

void AddEnd(const Timeline& timeline, EventIndex i, Ends& ends) {
  const Event& event = timeline.events[i];
  const auto* kill = std::get_if<KernelKill>(&event.what);
  const auto* crash = std::get_if<KernelFault>(&event.what);
  if (kill != nullptr && kill->pid == 0 && !IsCut(timeline, i)) return;
  if (crash != nullptr && (crash->library.starts_with("libc.so") || crash->library.starts_with("libc-2"))) return;
  if (const auto rank = timeline.RankOf(event)) {
    if (crash == nullptr || !RaisedBefore(timeline, rank->value)) ends.by_rank.emplace(rank->value, i);
  } else if (MayBeOfJob(timeline, event, ProcessName(event.what), kill != nullptr ? kill->cgroup_path : std::string())) {
    ends.of_job.push_back(i);
  } else {
    ends.others.push_back(i);
  }
}

void CiteEnd(const Timeline& timeline, EventIndex event, Finding& finding) {
  if (finding.citations.size() >= 4) return;
  if (const auto opening = OpeningOf(timeline, event)) finding.citations.push_back(Cite(timeline, *opening, "cause"));
  finding.citations.push_back(Cite(timeline, event, "cause"));
}

void BlameHosts(const Timeline& timeline, const std::vector<EventIndex>& events, Finding& finding) {
  for (const EventIndex i : events) {
    const Event& event = timeline.events[i];
    CiteEnd(timeline, i, finding);
    Culprit culprit;
    culprit.host = timeline.HostOf(event);
    culprit.why = ProcessName(event.what) + " " + WhatOf(event.what);
    const bool known = std::any_of(finding.culprits.begin(), finding.culprits.end(), [&](const Culprit& other) { return other.host == culprit.host; });
    if (culprit.host && !known) finding.culprits.push_back(std::move(culprit));
  }
}

std::optional<Finding> FindingOf(const Evidence& evidence, const Ends& ends, const Kind& kind) {
  const Timeline& timeline = evidence.timeline;
  Finding finding;
  finding.rule = kind.rule;
  finding.cause = kind.cause;
  if (!ends.by_rank.empty()) {
    finding.strength = Strength::kDecisive;
    finding.confidence = kind.of_rank;
    finding.times = ends.by_rank.size();
    std::vector<int> ranks;
    for (const auto& [rank, event] : ends.by_rank) {
      ranks.push_back(rank.value);
      finding.culprits.push_back(BlameRank(timeline, rank, WhatOf(timeline.events[event].what)));
      if (!finding.culprits.back().host) finding.culprits.back().host = timeline.HostOf(timeline.events[event]);
      CiteEnd(timeline, event, finding);
    }
    const auto& host = finding.culprits.front().host;
    finding.claim = fmt::format("Rank{} {}{} {}.", ranks.size() > 1 ? "s" : "", FoldRanks(ranks), ranks.size() == 1 && host ? " on " + *host : "", WhatOf(timeline.events[ends.by_rank.begin()->second].what));
  } else {
    const std::vector<EventIndex>& events = ends.of_job.empty() ? ends.others : ends.of_job;
    if (events.empty()) return std::nullopt;
    finding.strength = ends.of_job.empty() ? Strength::kHint : kind.of_job;
    finding.confidence = ends.of_job.empty() ? 0.25 : kind.of_job_confidence;
    finding.times = events.size();
    BlameHosts(timeline, events, finding);
    const What& what = timeline.events[events.front()].what;
    const std::string where = finding.culprits.size() == 1 ? " on " + *finding.culprits.front().host : "";
    finding.claim = fmt::format("Process {}{} {}{}.", ProcessName(what), where, WhatOf(what), ends.of_job.empty() ? "; it is none of the job's" : "");
  }
  if (finding.strength != Strength::kHint)
    finding.explains = {"collective-timeout", "connection-closed", "remote-error", "nccl-error", "nccl-proxy-fallout", "sigterm", "elastic-exit", "exit-nonzero", "retry-exceeded", "work-request-flushed",
                        "killed-by-sigkill", "killed-by-segv", "killed-by-sigbus", "loader-worker-killed", "loader-worker-exited", "ended-by-sigkill", "ended-by-sigsegv", "ended-by-sigbus"};
  return finding;
}

std::vector<Finding> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  Ends killed, crashed, lost;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    const auto* crash = std::get_if<KernelFault>(&event.what);
    if ((crash == nullptr && !std::holds_alternative<KernelKill>(event.what)) || evidence.scope.Of(event) != KernelScope::Outside::kNo) continue;
    AddEnd(timeline, i, crash == nullptr ? killed : crash->how == kHardwareMemory ? lost : crashed);
  }
  std::vector<Finding> out;
  const std::pair<const Ends*, const Kind*> kinds[] = {{&killed, &kKilled}, {&crashed, &kCrashed}, {&lost, &kLostPage}};
  for (const auto& [ends, kind] : kinds)
    if (auto finding = FindingOf(evidence, *ends, *kind)) out.push_back(std::move(*finding));
  return out;
}

constexpr std::string_view kFindings[] = {kKilled.rule, kCrashed.rule, kLostPage.rule};

}  // namespace

const Detector kKernelEnds{"kernel-ends-a-rank", "The kernel log says that a process of the job was killed for memory, crashed, or lost a page.", kFindings, &Run};

}  // namespace inquest
