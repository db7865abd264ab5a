// Processes and GPUs do not pair one to one, or every GPU spins in a collective.
//
// What holds: nvidia-smi's table shows the same program's pids together with their working memory on one GPU while each
// holds a small context on another; or a rank's guessed device is not the one it reports. Why that implies the cause: a
// process works where its memory is. What looks like it: MPS and MIG share a GPU on purpose; a server beside the job has
// another name. The same table tells a stuck transport: one pid a GPU, all at full utilisation and a third of their
// power, is NCCL's kernel waiting on every rank, so every rank is inside a collective.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace {

struct Table {
  std::map<int, std::pair<const GpuSnapshot*, EventIndex>> gpus;
  struct Row { const GpuProcess* process; EventIndex event; };
  std::map<std::string, std::vector<Row>> by_program;
};

Table Read(const Timeline& timeline) {
  Table table;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    if (const auto* gpu = std::get_if<GpuSnapshot>(&timeline.events[i].what)) table.gpus[gpu->index] = {gpu, i};
    if (const auto* process = std::get_if<GpuProcess>(&timeline.events[i].what); process != nullptr && process->type == "C")
      table.by_program[process->name].push_back({process, i});
  }
  return table;
}

bool Mig(const Table& table) {
  return std::any_of(table.gpus.begin(), table.gpus.end(), [](const auto& gpu) { return gpu.second.first->mig; });
}

Finding Crowd(const Evidence& evidence, const Table& table, const std::vector<Table::Row>& rows, int gpu, const std::vector<const Table::Row*>& crowd) {
  const Timeline& timeline = evidence.timeline;
  Finding finding;
  finding.rule = "processes-share-gpu";
  finding.cause = "device-mapping";
  finding.strength = Strength::kDecisive;
  finding.confidence = 0.88;
  finding.claim = fmt::format("{} processes of one program work on GPU {} while other GPUs of the job hold no working memory of theirs.", crowd.size(), gpu);
  std::set<std::int64_t> elsewhere;
  for (const auto& row : rows)
    if (row.process->gpu_index != gpu) elsewhere.insert(row.process->pid);
  for (const Table::Row* row : crowd) {
    finding.citations.push_back(Cite(timeline, row->event, "cause"));
    if (elsewhere.count(row->process->pid) == 0 && !elsewhere.empty()) continue;  // this one is where it belongs
    Culprit culprit;
    culprit.pid = row->process->pid;
    culprit.gpu_index = gpu;
    culprit.why = "its working memory is on another rank's GPU";
    for (const ProcessRow& process : timeline.processes)
      if (process.pid == culprit.pid && process.rank) culprit.rank = process.rank->value;
    finding.culprits.push_back(std::move(culprit));
  }
  if (const auto it = table.gpus.find(gpu); it != table.gpus.end()) finding.citations.push_back(Cite(timeline, it->second.second, "context"));
  finding.remedies = {{"Set the device once per process, from the local rank, before anything is allocated, and never again to a constant.", ""},
                      {"Check that every pid has its memory on one GPU of its own.", "nvidia-smi --query-compute-apps=pid,gpu_uuid,used_memory --format=csv"}};
  return finding;
}

void FindCrowds(const Evidence& evidence, const Table& table, std::vector<Finding>& out) {
  for (const auto& [program, rows] : table.by_program) {
    std::map<int, std::vector<const Table::Row*>> by_gpu;
    std::map<std::int64_t, std::int64_t> largest;
    for (const auto& row : rows) largest[row.process->pid] = std::max(largest[row.process->pid], row.process->memory_mib.value_or(0));
    // Where a process holds most of its memory is where it works; its other entries are contexts.
    for (const auto& row : rows)
      if (row.process->memory_mib.value_or(0) == largest[row.process->pid]) by_gpu[row.process->gpu_index].push_back(&row);
    for (const auto& [gpu, crowd] : by_gpu) {
      if (crowd.size() < 2) continue;
      std::set<int> with_context, busy;
      for (const auto& row : rows) with_context.insert(row.process->gpu_index);
      for (const auto& [other, others] : by_gpu) busy.insert(other);
      const bool contexts_elsewhere = with_context.size() > busy.size();
      const bool idle_gpus = std::any_of(table.gpus.begin(), table.gpus.end(), [&](const auto& g) {
        return busy.count(g.first) == 0 && g.second.first->memory_used_mib.value_or(0) < 1024 && g.second.first->utilization_percent.value_or(0) < 10;
      });
      if (contexts_elsewhere || (idle_gpus && busy.size() == 1)) out.push_back(Crowd(evidence, table, rows, gpu, crowd));
    }
  }
}

bool SpinsAtLowPower(const GpuSnapshot& gpu) {
  return gpu.utilization_percent.value_or(0) >= 95 && gpu.power_w && gpu.power_cap_w && *gpu.power_cap_w > 0 && *gpu.power_w / *gpu.power_cap_w < 0.45;
}

void FindSpinning(const Evidence& evidence, const Table& table, std::vector<Finding>& out) {
  for (const auto& [program, rows] : table.by_program) {
    std::set<int> gpus;
    std::set<std::int64_t> pids;
    for (const auto& row : rows) {
      gpus.insert(row.process->gpu_index);
      pids.insert(row.process->pid);
    }
    if (gpus.size() < 2 || pids.size() != gpus.size() || rows.size() != gpus.size()) continue;
    const bool all = std::all_of(gpus.begin(), gpus.end(), [&](int gpu) { return table.gpus.count(gpu) != 0 && SpinsAtLowPower(*table.gpus.at(gpu).first); });
    if (!all) continue;
    Finding finding;
    finding.rule = "all-gpus-spin";
    finding.cause = "p2p-transport";
    finding.strength = Strength::kSupporting;
    finding.confidence = 0.6;
    finding.claim = fmt::format("All {} GPUs of the job run at full utilisation and low power, one process each: every rank is inside a collective and the bytes do not arrive.", gpus.size());
    for (const int gpu : gpus)
      if (finding.citations.size() < 3) finding.citations.push_back(Cite(evidence.timeline, table.gpus.at(gpu).second, "cause"));
    finding.citations.push_back(Cite(evidence.timeline, rows.front().event, "context"));
    finding.remedies = {{"Test and stopgap: shared memory instead of peer-to-peer. It costs bandwidth between GPUs, so it is no repair.", "NCCL_P2P_DISABLE=1 <the same command>"},
                        {"If that helps: on bare metal look at ACS and the IOMMU, in a guest at the hypervisor's peer-to-peer support, else at the driver branch. NCCL_SOCKET_IFNAME and NCCL_IB_DISABLE have no part in traffic inside one host.",
                         "cat /proc/cmdline; systemd-detect-virt; sudo lspci -vvv | grep -i acsctl"}};
    finding.collect = {"NCCL_DEBUG=INFO of all ranks (does it end in `via P2P/...` and then silence?)", "nvidia-smi topo -m; nvidia-smi topo -p2p r", "dmesg"};
    out.push_back(std::move(finding));
  }
}

// One GPU of the job stands idle while the others spin: its process has not entered the collective that they are in.
void FindIdleAmongSpinning(const Evidence& evidence, const Table& table, std::vector<Finding>& out) {
  for (const auto& [program, rows] : table.by_program) {
    std::vector<const Table::Row*> idle;
    std::size_t spinning = 0;
    for (const auto& row : rows) {
      const auto gpu = table.gpus.find(row.process->gpu_index);
      if (gpu == table.gpus.end()) continue;
      if (SpinsAtLowPower(*gpu->second.first)) ++spinning;
      else if (gpu->second.first->utilization_percent.value_or(100) < 10) idle.push_back(&row);
    }
    if (idle.empty() || idle.size() >= spinning || spinning + idle.size() != rows.size()) continue;
    Finding finding;
    finding.rule = "idle-gpu-among-spinning";
    finding.cause = "rank-absent";
    finding.strength = Strength::kHint;
    finding.confidence = 0.42;
    finding.claim = fmt::format("GPU {} of the job stands idle while {} others spin in a collective: its process has not entered it.", idle.front()->process->gpu_index, spinning);
    for (const Table::Row* row : idle) {
      Culprit culprit;
      culprit.pid = row->process->pid;
      culprit.gpu_index = row->process->gpu_index;
      culprit.bus_id = table.gpus.at(row->process->gpu_index).first->bus_id;
      culprit.why = "its GPU is idle while the others wait";
      // A container's pids are not the host's, but the address of the GPU is the same in both.
      for (const ProcessRow& process : evidence.timeline.processes)
        if (process.rank && process.bus_id == culprit.bus_id) culprit.rank = process.rank->value;
      finding.culprits.push_back(std::move(culprit));
      finding.citations.push_back(Cite(evidence.timeline, table.gpus.at(row->process->gpu_index).second, "cause"));
      finding.citations.push_back(Cite(evidence.timeline, row->event, "cause"));
    }
    finding.collect = {fmt::format("py-spy dump --pid {}", idle.front()->process->pid)};
    out.push_back(std::move(finding));
  }
}

// A container's nvidia-smi lists no processes. Then the GPUs alone tell, and less surely: they may be another job's.
void FindSpinningAlone(const Evidence& evidence, const Table& table, std::vector<Finding>& out) {
  std::vector<int> spinning;
  bool others_work = false;
  for (const auto& [index, gpu] : table.gpus) {
    if (SpinsAtLowPower(*gpu.first)) spinning.push_back(index);
    else others_work = others_work || gpu.first->utilization_percent.value_or(0) >= 50;
  }
  if (!table.by_program.empty() || others_work || spinning.size() < 2) return;
  Finding finding;
  finding.rule = "all-gpus-spin";
  finding.cause = "p2p-transport";
  finding.strength = Strength::kHint;
  finding.confidence = 0.4;
  finding.claim = fmt::format("GPUs {} run at full utilisation and low power: what uses them is inside a collective that does not move.", FoldRanks(spinning));
  for (const int gpu : spinning)
    if (finding.citations.size() < 3) finding.citations.push_back(Cite(evidence.timeline, table.gpus.at(gpu).second, "cause"));
  out.push_back(std::move(finding));
}

// The guess of barrier() is harmless while it is the rank's own device.
void FindWrongGuess(const Evidence& evidence, std::vector<Finding>& out) {
  const Timeline& timeline = evidence.timeline;
  std::map<int, int> own;
  for (const Event& event : timeline.events)
    if (const auto* reported = std::get_if<DeviceReported>(&event.what); reported != nullptr && reported->rank) own[reported->rank->value] = reported->device;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* guess = std::get_if<GuessedDevice>(&timeline.events[i].what);
    if (guess == nullptr) continue;
    const auto rank = timeline.RankOf(timeline.events[i]);
    if (!rank || own.count(rank->value.value) == 0 || own[rank->value.value] == guess->device) continue;
    Finding finding;
    finding.rule = "guessed-device-differs";
    finding.cause = "device-mapping";
    finding.strength = Strength::kSupporting;
    finding.confidence = 0.7;
    finding.claim = fmt::format("Rank {} reports device {} as its own, and barrier() used device {}.", rank->value.value, own[rank->value.value], guess->device);
    finding.culprits.push_back(BlameRank(timeline, rank->value, "barrier() guessed another device"));
    finding.citations.push_back(Cite(timeline, i, "cause"));
    finding.remedies = {{"Name the device.", "init_process_group(..., device_id=torch.device('cuda', local_rank))"}};
    out.push_back(std::move(finding));
    return;
  }
}

std::vector<Finding> Run(const Evidence& evidence) {
  std::vector<Finding> out;
  const Table table = Read(evidence.timeline);
  if (!Mig(table)) {
    FindCrowds(evidence, table, out);
    FindSpinning(evidence, table, out);
    FindSpinningAlone(evidence, table, out);
    FindIdleAmongSpinning(evidence, table, out);
  }
  FindWrongGuess(evidence, out);
  return out;
}

constexpr std::string_view kFindings[] = {"processes-share-gpu", "all-gpus-spin", "idle-gpu-among-spinning", "guessed-device-differs"};

}  // namespace

const Detector kDeviceMapping{"device-mapping", "Processes and GPUs do not pair one to one, or every GPU spins in a collective.", kFindings, &Run};

}  // namespace inquest
