// A task of a job's host was stuck inside the kernel, and its stack says on what.
//
// What holds: the kernel reported a task that waited for minutes, or a CPU that did not schedule, not hours before the
// failure; the nearest frame of its stack that belongs to a file system, a disk or the GPU driver names what it waited
// for. Why that implies the cause: nothing else ends such a wait, and a rank in it enters no collective. What looks
// like it: a wait for a lock or a cgroup, whose stack names neither; tasks of the driver that wait for a GPU which is
// already gone.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace stuck_task {

constexpr FindingRow kFindings[] = {
    {"stuck-on-storage", "server disk", "who on-host parts"},
    {"stuck-in-gpu-driver", "in-driver of-driver", "who on-host parts"},
    {"stuck-in-kernel", "unseen", "who on-host parts"},
    {"stuck-elsewhere", "elsewhere", "who on-host parts"},
    {"cpu-locked-up", "not-scheduled", "who on-host parts"},
};
using Found = FoundIn<kFindings>;

using Kind = Found::Held;
/// Of one finding the one that says more comes first.
constexpr Kind kKinds[] = {
    {"stuck-on-storage", "server"},       {"stuck-on-storage", "disk"},  {"stuck-in-gpu-driver", "in-driver"},
    {"stuck-in-gpu-driver", "of-driver"}, {"stuck-in-kernel", "unseen"}, {"stuck-elsewhere", "elsewhere"},
    {"cpu-locked-up", "not-scheduled"},
};
constexpr const Kind &kOnServer = kKinds[0], &kOnDisk = kKinds[1], &kInDriver = kKinds[2], &kOfDriver = kKinds[3],
                     &kUnseen = kKinds[4], &kElsewhere = kKinds[5], &kNotScheduled = kKinds[6];

/// Threads of the driver and of the daemons that talk to it.
bool IsOfDriver(std::string_view process) {
  static constexpr std::array<std::string_view, 8> kHeads = {
      "nvidia-", "nv-hosteng", "dcgm", "nvc:", "nv_queue", "cache_mgr_", "gpu-feature", "UVM "};
  return std::any_of(kHeads.begin(), kHeads.end(), [&](std::string_view head) { return process.starts_with(head); }) ||
         process.find("-nvidia") != std::string_view::npos;
}

const Kind& KindOf(const TaskStuck& stuck) {
  switch (stuck.waits_on) {
    case KernelPart::kNfs:
    case KernelPart::kLustre:
    case KernelPart::kCeph:
    case KernelPart::kBeegfs:
    case KernelPart::kGpfs:
    case KernelPart::kCifs:
    case KernelPart::kFuse:
      return kOnServer;
    case KernelPart::kNvidia:
      return kInDriver;
    default:
      break;
  }
  if (stuck.how != TaskStuck::How::kBlocked) return kNotScheduled;
  if (stuck.waits_on != KernelPart::kNone) return kOnDisk;
  if (IsOfDriver(stuck.process)) return kOfDriver;
  return stuck.stack ? kElsewhere : kUnseen;
}

struct Stuck {
  const Kind* kind = nullptr;  ///< that says most
  std::vector<EventIndex> events;
};

Found FoundOf(const Evidence& evidence, const Stuck& stuck) {
  const Timeline& timeline = evidence.timeline;
  Found found(*stuck.kind);
  found.times = stuck.events.size();
  std::set<int> ranks;
  std::set<std::string> hosts, parts;
  for (const EventIndex i : stuck.events) {
    const Event& event = timeline.events[i];
    const auto& task = std::get<TaskStuck>(event.what);
    if (task.waits_on != KernelPart::kNone) parts.emplace(Name(task.waits_on));
    if (const auto rank = timeline.RankOf(event)) ranks.insert(rank->value.value);
    if (const auto host = timeline.HostOf(event)) hosts.insert(*host);
    if (found.citations.size() < 4) found.citations.push_back(Cite(timeline, i, LineRole::kCause));
  }
  const auto& first = std::get<TaskStuck>(timeline.events[stuck.events.front()].what);
  for (const int rank : ranks) found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, ""));
  for (const std::string& host : hosts) {
    if (std::any_of(found.culprits.begin(), found.culprits.end(),
                    [&](const Culprit& culprit) { return culprit.host == host; }))
      continue;
    Culprit culprit;
    culprit.host = host;
    found.culprits.push_back(std::move(culprit));
  }
  found.Say("who", !ranks.empty()          ? RanksInWords({ranks.begin(), ranks.end()})
                   : first.process.empty() ? "A task"
                                           : "Process " + first.process);
  found.Say("on-host", hosts.size() == 1 ? " on " + *hosts.begin() : "");
  found.Say("parts", parts.empty() ? std::string() : fmt::format(" ({})", fmt::join(parts, ", ")));
  return found;
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::map<std::string_view, Stuck> by_rule;
  for (EventIndex i = 0; i < evidence.timeline.events.size(); ++i) {
    const Event& event = evidence.timeline.events[i];
    const auto* task = std::get_if<TaskStuck>(&event.what);
    if (task == nullptr || evidence.scope.Of(event) != KernelScope::Outside::kNo) continue;
    const Kind& kind = KindOf(*task);
    Stuck& stuck = by_rule[kind.id];
    if (stuck.kind == nullptr || &kind < stuck.kind) stuck.kind = &kind;
    stuck.events.push_back(i);
  }
  // One whose stack is not shown waits for what the others are seen to wait for.
  const auto unseen = by_rule.find(kUnseen.id), elsewhere = by_rule.find(kElsewhere.id);
  if (unseen != by_rule.end() && elsewhere != by_rule.end()) {
    elsewhere->second.events.insert(elsewhere->second.events.end(), unseen->second.events.begin(),
                                    unseen->second.events.end());
    by_rule.erase(unseen);
  }
  std::vector<Relation> out;
  for (const auto& [rule, stuck] : by_rule) out.push_back(FoundOf(evidence, stuck));
  return out;
}

}  // namespace stuck_task

const Detector kStuckTask{"stuck-task",
                          "A task of a job's host was stuck inside the kernel, and its stack says on what.",
                          stuck_task::kFindings, &stuck_task::Run};

}  // namespace inquest
