// A task of a job's host was stuck inside the kernel, and its stack says on what.
//
// What holds: the kernel reported a task that waited for minutes, or a CPU that did not schedule, not hours before the
// failure; the nearest frame of its stack that belongs to a file system, a disk or the GPU driver names what it waited for.
// Why that implies the cause: nothing else ends such a wait, and a rank in it enters no collective. What looks like it: a
// wait for a lock or a cgroup, whose stack names neither; tasks of the driver that wait for a GPU which is already gone.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace {

struct Kind {
  std::string_view rule, cause;
  Strength strength;
  double confidence;
  std::string_view claim;
};
constexpr Kind kOnServer{"stuck-on-storage", "storage-stall", Strength::kDecisive, 0.82, "was stuck in the kernel, waiting for a network file system"};
constexpr Kind kOnDisk{"stuck-on-storage", "storage-stall", Strength::kSupporting, 0.65, "was stuck in the kernel, waiting for a disk"};
constexpr Kind kInDriver{"stuck-in-gpu-driver", "gpu-fault", Strength::kSupporting, 0.5, "was stuck in the GPU driver"};
constexpr Kind kOfDriver{"stuck-in-gpu-driver", "gpu-fault", Strength::kSupporting, 0.45, "was stuck in the kernel, and belongs to the GPU driver or to a daemon that asks it"};
constexpr Kind kUnseen{"stuck-in-kernel", "storage-stall", Strength::kSupporting, 0.5, "was stuck in the kernel for minutes, mostly a wait for storage; the log holds no stack of it"};
constexpr Kind kElsewhere{"stuck-elsewhere", "storage-stall", Strength::kHint, 0.2, "was stuck in the kernel, and its stack names neither storage nor the GPU driver"};
constexpr Kind kNotScheduled{"cpu-locked-up", "slow-rank", Strength::kHint, 0.35, "kept a CPU from scheduling"};

bool IsOneOf(std::string_view what, std::initializer_list<std::string_view> list) { return std::find(list.begin(), list.end(), what) != list.end(); }

/// Threads of the driver and of the daemons that talk to it.
bool IsOfDriver(std::string_view process) {
  static constexpr std::array<std::string_view, 8> kHeads = {"nvidia-", "nv-hosteng", "dcgm", "nvc:", "nv_queue", "cache_mgr_", "gpu-feature", "UVM "};
  return std::any_of(kHeads.begin(), kHeads.end(), [&](std::string_view head) { return process.starts_with(head); }) || process.find("-nvidia") != std::string_view::npos;
}

const Kind& KindOf(const TaskStuck& stuck) {
  if (IsOneOf(stuck.waits_on, {"nfs", "lustre", "ceph", "beegfs", "gpfs", "cifs", "fuse"})) return kOnServer;
  if (stuck.waits_on == "nvidia") return kInDriver;
  if (stuck.how != TaskStuck::How::kBlocked) return kNotScheduled;
  if (!stuck.waits_on.empty()) return kOnDisk;
  if (IsOfDriver(stuck.process)) return kOfDriver;
  return stuck.stack ? kElsewhere : kUnseen;
}

struct Stuck {
  const Kind* kind = nullptr;  ///< the strongest
  std::vector<EventIndex> events;
};

Finding FindingOf(const Evidence& evidence, const Stuck& stuck) {
  const Timeline& timeline = evidence.timeline;
  Finding finding;
  finding.rule = stuck.kind->rule;
  finding.cause = stuck.kind->cause;
  finding.strength = stuck.kind->strength;
  finding.confidence = stuck.kind->confidence;
  finding.times = stuck.events.size();
  if (finding.strength != Strength::kHint) finding.explains = {"collective-timeout", "rank-absent", "slow-rank", "long-data-preparation", "heartbeat", "connection-closed"};
  std::set<int> ranks;
  std::set<std::string> hosts, parts;
  for (const EventIndex i : stuck.events) {
    const Event& event = timeline.events[i];
    const auto& task = std::get<TaskStuck>(event.what);
    if (!task.waits_on.empty()) parts.insert(task.waits_on);
    if (const auto rank = timeline.RankOf(event)) ranks.insert(rank->value.value);
    if (const auto host = timeline.HostOf(event)) hosts.insert(*host);
    if (finding.citations.size() < 4) finding.citations.push_back(Cite(timeline, i, "cause"));
  }
  const auto& first = std::get<TaskStuck>(timeline.events[stuck.events.front()].what);
  const std::string why = std::string(stuck.kind->claim) + (parts.empty() ? std::string() : fmt::format(" ({})", fmt::join(parts, ", ")));
  for (const int rank : ranks) finding.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, why));
  for (const std::string& host : hosts) {
    if (std::any_of(finding.culprits.begin(), finding.culprits.end(), [&](const Culprit& culprit) { return culprit.host == host; })) continue;
    Culprit culprit;
    culprit.host = host;
    culprit.why = why;
    finding.culprits.push_back(std::move(culprit));
  }
  const std::string who = !ranks.empty() ? fmt::format("Rank{} {}", ranks.size() > 1 ? "s" : "", FoldRanks({ranks.begin(), ranks.end()})) : first.process.empty() ? "A task" : "Process " + first.process;
  finding.claim = fmt::format("{}{} {}.", who, hosts.size() == 1 ? " on " + *hosts.begin() : "", why);
  return finding;
}

std::vector<Finding> Run(const Evidence& evidence) {
  std::map<std::string_view, Stuck> by_rule;
  for (EventIndex i = 0; i < evidence.timeline.events.size(); ++i) {
    const Event& event = evidence.timeline.events[i];
    const auto* task = std::get_if<TaskStuck>(&event.what);
    if (task == nullptr || evidence.scope.Of(event) != KernelScope::Outside::kNo) continue;
    const Kind& kind = KindOf(*task);
    Stuck& stuck = by_rule[kind.rule];
    if (stuck.kind == nullptr || stuck.kind->confidence < kind.confidence) stuck.kind = &kind;
    stuck.events.push_back(i);
  }
  std::vector<Finding> out;
  for (const auto& [rule, stuck] : by_rule) out.push_back(FindingOf(evidence, stuck));
  return out;
}

constexpr std::string_view kFindings[] = {kOnServer.rule, kInDriver.rule, kUnseen.rule, kElsewhere.rule, kNotScheduled.rule};

}  // namespace

const Detector kStuckTask{"stuck-task", "A task of a job's host was stuck inside the kernel, and its stack says on what.", kFindings, &Run};

}  // namespace inquest
