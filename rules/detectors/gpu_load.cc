// The GPUs of a job spin in a collective: all of them, or all but one.
//
// What holds: nvidia-smi shows full utilisation at a third of the power, one process a GPU. Why that implies the cause:
// that is NCCL's kernel waiting on every rank; where all spin every rank is inside a collective and the bytes do not
// arrive, where one stands idle its process has not entered. What looks like it: other jobs' GPUs, kernels that wait
// for memory, a look taken after the job had ended, and a container's table, which lists no processes.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/gpu_view.h"
#include "rules/thresholds.h"

namespace inquest {
namespace gpu_load {

constexpr FindingRow kFindings[] = {
    {"all-gpus-spin", "by-processes by-processes-one-absent by-load by-load-one-absent", "count gpus"},
    {"idle-gpu-among-spinning", "by-processes by-load", "gpu count spinning pid"},
};
using Found = FoundIn<kFindings>;

using Row = std::pair<const GpuSeen*, const GpuSeen::Of<GpuProcess>*>;

bool SpinsAtLowPower(const GpuSnapshot& gpu) {
  return gpu.utilization_percent.value_or(0) >= thresholds::kSpinsPercent && gpu.power_w && gpu.power_cap_w &&
         *gpu.power_cap_w > 0 && *gpu.power_w / *gpu.power_cap_w < thresholds::kSpinsAtPower;
}

/// Computing processes of each program, where nvidia-smi lists any.
std::map<std::string, std::vector<Row>> ByProgram(const GpuHost& host) {
  std::map<std::string, std::vector<Row>> programs;
  for (const GpuSeen& gpu : host.gpus)
    for (const auto& process : gpu.processes)
      if (process.what->type == "C" && gpu.event) programs[process.what->name].emplace_back(&gpu, &process);
  return programs;
}

/// The host's clock and the job's print no zone, and the look came after the job's end.
bool LookedTooLate(const Timeline& timeline, const GpuHost& host) {
  std::optional<Timestamp> taken, end;
  for (const GpuSeen& gpu : host.gpus)
    if (gpu.state.taken) taken = gpu.state.taken;
  for (const Event& event : timeline.events) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    const bool ended = exit != nullptr || std::holds_alternative<JobStopped>(event.what);
    if (ended && event.at && event.at->date == Timestamp::Date::kFull && !event.at->zone_known) end = event.at;
  }
  return taken && end && taken->date == Timestamp::Date::kFull && taken->at > end->at + std::chrono::seconds(30);
}

void CiteGpus(const Evidence& evidence, const std::vector<const GpuSeen*>& gpus, Relation& found) {
  for (const GpuSeen* gpu : gpus)
    if (found.citations.size() < 3) found.citations.push_back(Cite(evidence.timeline, *gpu->event, LineRole::kCause));
}

/// The time-outs already tell that somebody was not in the operation: then the path is not the question.
bool SomebodyIsAbsent(const Timeline& timeline) {
  if (timeline.collectives.empty() || !timeline.world_size) return false;
  return static_cast<int>(timeline.collectives.front().waiters.size()) < timeline.world_size->value;
}

void FindSpinning(const Evidence& evidence, const GpuHost& host, const std::vector<Row>& rows,
                  std::vector<Relation>& out) {
  std::set<const GpuSeen*> seen;
  std::set<std::int64_t> pids;
  std::vector<const GpuSeen*> gpus;
  for (const auto& [gpu, process] : rows) {
    if (seen.insert(gpu).second) gpus.push_back(gpu);
    pids.insert(process->what->pid);
  }
  if (std::any_of(host.gpus.begin(), host.gpus.end(), [](const GpuSeen& gpu) { return gpu.state.error; })) return;
  if (gpus.size() < 2 || pids.size() != gpus.size() || rows.size() != gpus.size()) return;
  if (!std::all_of(gpus.begin(), gpus.end(), [](const GpuSeen* gpu) { return SpinsAtLowPower(gpu->state); })) return;
  Found found({"all-gpus-spin", "by-processes"});
  if (SomebodyIsAbsent(evidence.timeline)) found.Grade({"all-gpus-spin", "by-processes-one-absent"});
  found.Say("count", std::to_string(gpus.size()));
  CiteGpus(evidence, gpus, found);
  found.citations.push_back(Cite(evidence.timeline, rows.front().second->event, LineRole::kContext));
  out.push_back(std::move(found));
}

void FindIdleAmongSpinning(const Evidence& evidence, const GpuHost& host, const std::vector<Row>& rows,
                           std::vector<Relation>& out) {
  std::vector<Row> idle;
  std::size_t spinning = 0;
  for (const Row& row : rows) {
    if (SpinsAtLowPower(row.first->state))
      ++spinning;
    else if (row.first->state.utilization_percent.value_or(100) < 10)
      idle.push_back(row);
  }
  if (idle.empty() || idle.size() >= spinning || spinning + idle.size() != rows.size()) return;
  Found found({"idle-gpu-among-spinning", "by-processes"});
  found.Say("gpu", NameOf(host, *idle.front().first));
  found.Say("count", std::to_string(spinning));
  found.Say("pid", std::to_string(idle.front().second->what->pid));
  for (const auto& [gpu, process] : idle) {
    found.culprits.push_back(BlameGpu(evidence.timeline, host, *gpu, ""));
    found.culprits.back().pid = process->what->pid;
    found.citations.push_back(Cite(evidence.timeline, *gpu->event, LineRole::kCause));
    found.citations.push_back(Cite(evidence.timeline, process->event, LineRole::kCause));
  }
  out.push_back(std::move(found));
}

// Without processes the GPUs alone tell, and less surely: they may be another job's.
void FindSpinningAlone(const Evidence& evidence, const GpuHost& host, std::vector<Relation>& out) {
  std::vector<const GpuSeen*> spinning, idle;
  bool others_work = false;
  for (const GpuSeen& gpu : host.gpus) {
    if (!gpu.event || IsOfOtherJob(evidence.timeline, host, gpu)) continue;
    if (SpinsAtLowPower(gpu.state))
      spinning.push_back(&gpu);
    else if (gpu.state.utilization_percent.value_or(0) >= 50)
      others_work = true;
    else if (gpu.state.utilization_percent.value_or(100) < 10 && gpu.state.memory_used_mib.value_or(0) > 1024)
      idle.push_back(&gpu);
  }
  const bool broken =
      std::any_of(host.gpus.begin(), host.gpus.end(), [](const GpuSeen& gpu) { return gpu.state.error; });
  if (others_work || broken || spinning.size() < 2) return;
  Found found({"all-gpus-spin", "by-load"});
  std::vector<int> indexes;
  for (const GpuSeen* gpu : spinning) indexes.push_back(gpu->state.id.index.value_or(0));
  if (idle.size() == 1) {
    found.Grade({"idle-gpu-among-spinning", "by-load"});
    found.Say("gpu", NameOf(host, *idle.front()));
    found.Say("spinning", FoldRanks(indexes));
    found.culprits = {BlameGpu(evidence.timeline, host, *idle.front(), "")};
    CiteGpus(evidence, idle, found);
  } else {
    if (SomebodyIsAbsent(evidence.timeline)) found.Grade({"all-gpus-spin", "by-load-one-absent"});
    found.Say("gpus", FoldRanks(indexes));
  }
  CiteGpus(evidence, spinning, found);
  out.push_back(std::move(found));
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Relation> out;
  for (const GpuHost& host : ReadGpus(evidence.timeline)) {
    const bool split =
        std::any_of(host.gpus.begin(), host.gpus.end(), [](const GpuSeen& gpu) { return gpu.state.mig; });
    if (split || LookedTooLate(evidence.timeline, host)) continue;
    const auto programs = ByProgram(host);
    for (const auto& [program, rows] : programs) {
      FindSpinning(evidence, host, rows, out);
      FindIdleAmongSpinning(evidence, host, rows, out);
    }
    if (programs.empty()) FindSpinningAlone(evidence, host, out);
  }
  return out;
}

}  // namespace gpu_load

const Detector kGpuLoad{"gpu-load", "The GPUs of a job spin in a collective: all of them, or all but one.",
                        gpu_load::kFindings, &gpu_load::Run};

}  // namespace inquest
