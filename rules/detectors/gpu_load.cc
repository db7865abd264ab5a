// The GPUs of a job spin in a collective: all of them, or all but one.
//
// What holds: nvidia-smi shows full utilisation at a third of the power, one process a GPU. Why that implies the cause: that
// is NCCL's kernel waiting on every rank; where all spin every rank is inside a collective and the bytes do not arrive,
// where one stands idle its process has not entered. What looks like it: other jobs' GPUs, kernels that wait for memory, a
// look taken after the job had ended, and a container's table, which lists no processes.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/gpu_view.h"

namespace inquest {
namespace {

using Row = std::pair<const GpuSeen*, const GpuSeen::Of<GpuProcess>*>;

bool SpinsAtLowPower(const GpuSnapshot& gpu) {
  return gpu.utilization_percent.value_or(0) >= 95 && gpu.power_w && gpu.power_cap_w && *gpu.power_cap_w > 0 && *gpu.power_w / *gpu.power_cap_w < 0.45;
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

void CiteGpus(const Evidence& evidence, const std::vector<const GpuSeen*>& gpus, Finding& finding) {
  for (const GpuSeen* gpu : gpus)
    if (finding.citations.size() < 3) finding.citations.push_back(Cite(evidence.timeline, *gpu->event, "cause"));
}

/// The time-outs already tell that somebody was not in the operation: then the path is not the question.
bool SomebodyIsAbsent(const Timeline& timeline) {
  if (timeline.collectives.empty() || !timeline.world_size) return false;
  return static_cast<int>(timeline.collectives.front().waiters.size()) < timeline.world_size->value;
}

void FindSpinning(const Evidence& evidence, const GpuHost& host, const std::vector<Row>& rows, std::vector<Finding>& out) {
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
  Finding finding;
  finding.rule = "all-gpus-spin";
  finding.cause = "p2p-transport";
  finding.strength = Strength::kSupporting;
  finding.confidence = 0.6;
  finding.claim = fmt::format("All {} GPUs of the job run at full utilisation and low power, one process each: every rank is inside a collective and the bytes do not arrive.", gpus.size());
  if (SomebodyIsAbsent(evidence.timeline)) {
    finding.strength = Strength::kHint;
    finding.confidence = 0.35;
  }
  CiteGpus(evidence, gpus, finding);
  finding.citations.push_back(Cite(evidence.timeline, rows.front().second->event, "context"));
  finding.remedies = {{"Test and stopgap: shared memory instead of peer-to-peer. It costs bandwidth between GPUs, so it is no repair.", "NCCL_P2P_DISABLE=1 <command>"},
                      {"If that helps: on bare metal look at ACS and the IOMMU, in a guest at the hypervisor's peer-to-peer support, else at the driver branch. NCCL_SOCKET_IFNAME and NCCL_IB_DISABLE have no part in traffic inside one host.",
                       "cat /proc/cmdline; systemd-detect-virt; sudo lspci -vvv | grep -i acsctl"}};
  finding.collect = {"NCCL_DEBUG=INFO of all ranks (does it end in `via P2P/...` and then silence?)", "nvidia-smi topo -m; nvidia-smi topo -p2p r", "dmesg"};
  out.push_back(std::move(finding));
}

void FindIdleAmongSpinning(const Evidence& evidence, const GpuHost& host, const std::vector<Row>& rows, std::vector<Finding>& out) {
  std::vector<Row> idle;
  std::size_t spinning = 0;
  for (const Row& row : rows) {
    if (SpinsAtLowPower(row.first->state)) ++spinning;
    else if (row.first->state.utilization_percent.value_or(100) < 10) idle.push_back(row);
  }
  if (idle.empty() || idle.size() >= spinning || spinning + idle.size() != rows.size()) return;
  Finding finding;
  finding.rule = "idle-gpu-among-spinning";
  finding.cause = "rank-absent";
  finding.strength = Strength::kHint;
  finding.confidence = 0.42;
  finding.claim = fmt::format("{} of the job stands idle while {} others spin in a collective: its process has not entered it.", NameOf(host, *idle.front().first), spinning);
  for (const auto& [gpu, process] : idle) {
    finding.culprits.push_back(BlameGpu(evidence.timeline, host, *gpu, "its GPU is idle while the others wait"));
    finding.culprits.back().pid = process->what->pid;
    finding.citations.push_back(Cite(evidence.timeline, *gpu->event, "cause"));
    finding.citations.push_back(Cite(evidence.timeline, process->event, "cause"));
  }
  finding.collect = {fmt::format("py-spy dump --pid {}", idle.front().second->what->pid)};
  out.push_back(std::move(finding));
}

// Without processes the GPUs alone tell, and less surely: they may be another job's.
void FindSpinningAlone(const Evidence& evidence, const GpuHost& host, std::vector<Finding>& out) {
  std::vector<const GpuSeen*> spinning, idle;
  bool others_work = false;
  for (const GpuSeen& gpu : host.gpus) {
    if (!gpu.event || IsOfOtherJob(evidence.timeline, host, gpu)) continue;
    if (SpinsAtLowPower(gpu.state)) spinning.push_back(&gpu);
    else if (gpu.state.utilization_percent.value_or(0) >= 50) others_work = true;
    else if (gpu.state.utilization_percent.value_or(100) < 10 && gpu.state.memory_used_mib.value_or(0) > 1024) idle.push_back(&gpu);
  }
  const bool broken = std::any_of(host.gpus.begin(), host.gpus.end(), [](const GpuSeen& gpu) { return gpu.state.error; });
  if (others_work || broken || spinning.size() < 2) return;
  Finding finding;
  finding.strength = Strength::kHint;
  std::vector<int> indexes;
  for (const GpuSeen* gpu : spinning) indexes.push_back(gpu->state.id.index.value_or(0));
  if (idle.size() == 1) {
    finding.rule = "idle-gpu-among-spinning";
    finding.cause = "rank-absent";
    finding.confidence = 0.42;
    finding.claim = fmt::format("{} holds memory and stands idle while GPUs {} spin in a collective: its process has not entered it.", NameOf(host, *idle.front()), FoldRanks(indexes));
    finding.culprits = {BlameGpu(evidence.timeline, host, *idle.front(), "its GPU is idle while the others wait")};
    CiteGpus(evidence, idle, finding);
  } else {
    finding.rule = "all-gpus-spin";
    finding.cause = "p2p-transport";
    finding.confidence = SomebodyIsAbsent(evidence.timeline) ? 0.3 : 0.4;
    finding.claim = fmt::format("GPUs {} run at full utilisation and low power: what uses them is inside a collective that does not move.", FoldRanks(indexes));
  }
  CiteGpus(evidence, spinning, finding);
  out.push_back(std::move(finding));
}

std::vector<Finding> Run(const Evidence& evidence) {
  std::vector<Finding> out;
  for (const GpuHost& host : ReadGpus(evidence.timeline)) {
    const bool split = std::any_of(host.gpus.begin(), host.gpus.end(), [](const GpuSeen& gpu) { return gpu.state.mig; });
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

constexpr std::string_view kFindings[] = {"all-gpus-spin", "idle-gpu-among-spinning"};

}  // namespace

const Detector kGpuLoad{"gpu-load", "The GPUs of a job spin in a collective: all of them, or all but one.", kFindings, &Run};

}  // namespace inquest
