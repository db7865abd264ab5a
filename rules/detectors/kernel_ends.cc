// The kernel log says that a process of the job was killed for memory, crashed, or lost a page.
//
// What holds: the victim of the OOM killer, or the process of a segfault line, is a rank's, by host and pid; or it is
// named like a job's process, or in a cgroup of its scheduler. Why that implies the cause: the kernel writes the line
// when it ends the process, before launcher and peers notice. What looks like it: a kill of another program on the
// host, which pid and name tell; a crash while the interpreter unwinds after an exception, which the exception tells; a
// trap inside libc, which an abort leaves behind.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace kernel_ends {

constexpr FindingRow kFindings[] = {
    {"rank-killed-for-memory", "of-rank of-job of-others", "who what"},
    {"rank-crashed-in-kernel-log", "of-rank of-job of-others", "who what"},
    {"rank-lost-memory-page", "of-rank of-job of-others", "who what"},
};
using Found = FoundIn<kFindings>;

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
    if (event.where.input != timeline.events[kill].where.input ||
        event.where.line + kLongestReport < timeline.events[kill].where.line)
      break;
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
    if (event.where.input != timeline.events[opening].where.input ||
        event.where.line > timeline.events[opening].where.line + kLongestReport)
      break;
    if (const auto* kill = std::get_if<KernelKill>(&event.what); kill != nullptr && kill->pid != 0) return false;
  }
  return true;
}

/// Whether a process whose pid is no rank's may still be of the job: by its name, by a cgroup that a scheduler made, or
/// because nothing tells which pids on that host are. Containers count pids of their own.
bool MayBeOfJob(const Timeline& timeline, const Event& event, std::string_view process, std::string_view cgroup) {
  static constexpr std::string_view kNames[] = {"python",    "pt_",        "ray",   "torchrun",
                                                "train",     "mpirun",     "orted", "dali",
                                                "deepspeed", "accelerate", "cuda-", "all_reduce_perf"};
  if (std::any_of(std::begin(kNames), std::end(kNames),
                  [&](std::string_view name) { return process.starts_with(name); }))
    return true;
  for (const std::string_view scheduler : {"slurm", "kubepods", "docker", "job_", "lsf", "pbs"})
    if (cgroup.find(scheduler) != std::string_view::npos) return true;
  const auto host = timeline.HostOf(event);
  return std::none_of(timeline.processes.begin(), timeline.processes.end(),
                      [&](const ProcessRow& row) { return row.pid && row.rank && (!host || row.host == host); });
}

/// What the kernel did to processes, of one kind: first to last.
struct Ends {
  std::map<GlobalRank, EventIndex> by_rank;
  std::vector<EventIndex> of_job;  ///< whose rank is not known
  std::vector<EventIndex> others;  ///< of some other program on the host
};

struct Kind {
  Found::Held of_rank, of_job, of_others;
};
constexpr Kind kKilled{{"rank-killed-for-memory", "of-rank"},
                       {"rank-killed-for-memory", "of-job"},
                       {"rank-killed-for-memory", "of-others"}};
constexpr Kind kCrashed{{"rank-crashed-in-kernel-log", "of-rank"},
                        {"rank-crashed-in-kernel-log", "of-job"},
                        {"rank-crashed-in-kernel-log", "of-others"}};
constexpr Kind kLostPage{
    {"rank-lost-memory-page", "of-rank"}, {"rank-lost-memory-page", "of-job"}, {"rank-lost-memory-page", "of-others"}};

std::string WhatOf(const What& what) {
  if (const auto* kill = std::get_if<KernelKill>(&what)) {
    const std::string reason = kill->cgroup ? "the memory limit of its cgroup was hit" : "the host ran out of memory";
    return kill->pid == 0 && !kill->process.empty()
               ? "asked for memory that was not there, and the kernel looked for somebody to kill"
               : "was killed by the kernel's OOM killer: " + reason;
  }
  const auto& crash = std::get<KernelFault>(what);
  if (crash.how == kHardwareMemory)
    return "was ended by SIGBUS: the memory of its host lost a page (uncorrectable hardware error)";
  return "crashed on a bad access, says the kernel log" +
         (crash.library.empty() ? std::string() : ", in " + crash.library);
}

const std::string& ProcessName(const What& what) {
  return std::holds_alternative<KernelKill>(what) ? std::get<KernelKill>(what).process
                                                  : std::get<KernelFault>(what).process;
}

void AddEnd(const Timeline& timeline, EventIndex i, Ends& ends) {
  const Event& event = timeline.events[i];
  const auto* kill = std::get_if<KernelKill>(&event.what);
  const auto* crash = std::get_if<KernelFault>(&event.what);
  if (kill != nullptr && kill->pid == 0 && !IsCut(timeline, i)) return;
  if (crash != nullptr && (crash->library.starts_with("libc.so") || crash->library.starts_with("libc-2"))) return;
  if (const auto rank = timeline.RankOf(event)) {
    if (crash == nullptr || !RaisedBefore(timeline, rank->value)) ends.by_rank.emplace(rank->value, i);
  } else if (MayBeOfJob(timeline, event, ProcessName(event.what),
                        kill != nullptr ? kill->cgroup_path : std::string())) {
    ends.of_job.push_back(i);
  } else {
    ends.others.push_back(i);
  }
}

void CiteEnd(const Timeline& timeline, EventIndex event, Found& found) {
  if (found.citations.size() >= 4) return;
  if (const auto opening = OpeningOf(timeline, event))
    found.citations.push_back(Cite(timeline, *opening, LineRole::kCause));
  found.citations.push_back(Cite(timeline, event, LineRole::kCause));
}

void BlameHosts(const Timeline& timeline, const std::vector<EventIndex>& events, Found& found) {
  for (const EventIndex i : events) {
    const Event& event = timeline.events[i];
    CiteEnd(timeline, i, found);
    Culprit culprit;
    culprit.host = timeline.HostOf(event);
    culprit.why = (ProcessName(event.what).empty() ? "a process" : ProcessName(event.what)) + " " + WhatOf(event.what);
    const bool known = std::any_of(found.culprits.begin(), found.culprits.end(),
                                   [&](const Culprit& other) { return other.host == culprit.host; });
    if (culprit.host && !known) found.culprits.push_back(std::move(culprit));
  }
}

std::optional<Found> FoundOf(const Evidence& evidence, const Ends& ends, const Kind& kind) {
  const Timeline& timeline = evidence.timeline;
  Found found(!ends.by_rank.empty() ? kind.of_rank : !ends.of_job.empty() ? kind.of_job : kind.of_others);
  if (!ends.by_rank.empty()) {
    found.times = ends.by_rank.size();
    std::vector<int> ranks;
    for (const auto& [rank, event] : ends.by_rank) {
      ranks.push_back(rank.value);
      found.culprits.push_back(BlameRank(timeline, rank, WhatOf(timeline.events[event].what)));
      if (!found.culprits.back().host) found.culprits.back().host = timeline.HostOf(timeline.events[event]);
      CiteEnd(timeline, event, found);
    }
    const auto& host = found.culprits.front().host;
    found.Say("who", RanksInWords(ranks) + (ranks.size() == 1 && host ? " on " + *host : ""));
    found.Say("what", WhatOf(timeline.events[ends.by_rank.begin()->second].what));
  } else {
    const std::vector<EventIndex>& events = ends.of_job.empty() ? ends.others : ends.of_job;
    if (events.empty()) return std::nullopt;
    found.times = events.size();
    BlameHosts(timeline, events, found);
    const What& what = timeline.events[events.front()].what;
    const std::string where = found.culprits.size() == 1 ? " on " + *found.culprits.front().host : "";
    found.Say("who", (ProcessName(what).empty() ? "A process" : "Process " + ProcessName(what)) + where);
    found.Say("what", WhatOf(what));
  }
  return found;
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  Ends killed, crashed, lost;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    const auto* crash = std::get_if<KernelFault>(&event.what);
    if ((crash == nullptr && !std::holds_alternative<KernelKill>(event.what)) ||
        evidence.scope.Of(event) != KernelScope::Outside::kNo)
      continue;
    AddEnd(timeline, i, crash == nullptr ? killed : crash->how == kHardwareMemory ? lost : crashed);
  }
  std::vector<Relation> out;
  const std::pair<const Ends*, const Kind*> kinds[] = {{&killed, &kKilled}, {&crashed, &kCrashed}, {&lost, &kLostPage}};
  for (const auto& [ends, kind] : kinds)
    if (auto found = FoundOf(evidence, *ends, *kind)) out.push_back(std::move(*found));
  return out;
}

}  // namespace kernel_ends

const Detector kKernelEnds{
    "kernel-ends-a-rank",
    "The kernel log says that a process of the job was killed for memory, crashed, or lost a page.",
    kernel_ends::kFindings, &kernel_ends::Run};

}  // namespace inquest
