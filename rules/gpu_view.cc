// The GPUs of each host as nvidia-smi showed them, and whose they are.
#include "rules/gpu_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace inquest {
namespace {

const GpuId* IdOf(const What& what) {
  if (const auto* gpu = std::get_if<GpuSnapshot>(&what)) return &gpu->id;
  if (const auto* condition = std::get_if<GpuCondition>(&what)) return &condition->id;
  if (const auto* process = std::get_if<GpuProcess>(&what)) return &process->id;
  return nullptr;
}

bool IsOfSmi(const What& what) { return IdOf(what) != nullptr || std::holds_alternative<GpuTopologyRow>(what); }

// ---- hosts -----------------------------------------------------------------------------------------------------

/// The only one of them, if there is one.
std::optional<std::string> Only(const std::set<std::string>& hosts) {
  return hosts.size() == 1 ? std::optional(*hosts.begin()) : std::nullopt;
}

/// Where neither its lines nor its name tell.
std::optional<std::string> HostOfInput(const Timeline& timeline, std::uint32_t input,
                                       const std::set<std::string>& job) {
  std::set<std::string> by_pid;
  for (const Event& event : timeline.events) {
    const auto* process = event.where.input == input ? std::get_if<GpuProcess>(&event.what) : nullptr;
    if (process == nullptr) continue;
    for (const ProcessRow& row : timeline.processes)
      if (row.host && row.pid == process->pid) by_pid.insert(*row.host);
  }
  if (auto host = Only(by_pid)) return host;
  return Only(job);
}

// ---- GPUs ------------------------------------------------------------------------------------------------------

bool Differ(const GpuId& a, const GpuId& b) {
  return (!a.uuid.empty() && !b.uuid.empty() && a.uuid != b.uuid) ||
         (!a.bus_id.empty() && !b.bus_id.empty() && !SameDevice(a.bus_id, b.bus_id)) ||
         (a.index && b.index && a.index != b.index);
}

bool Same(const GpuId& a, const GpuId& b) {
  if (Differ(a, b)) return false;
  return (!a.uuid.empty() && a.uuid == b.uuid) || SameDevice(a.bus_id, b.bus_id) || (a.index && a.index == b.index);
}

bool IsNamed(const GpuId& id) { return id.index || !id.bus_id.empty() || !id.uuid.empty(); }

template <class T>
void Take(std::optional<T>& into, const std::optional<T>& from) {
  if (from) into = from;
}
void Take(std::string& into, const std::string& from) {
  if (!from.empty()) into = from;
}

void Learn(GpuId& into, const GpuId& from) {
  Take(into.index, from.index);
  Take(into.bus_id, from.bus_id);
  Take(into.uuid, from.uuid);
}

void Learn(GpuSnapshot& into, const GpuSnapshot& from) {
  Take(into.name, from.name);
  // What is measured at one moment belongs together.
  if (from.utilization_percent) {
    into.utilization_percent = from.utilization_percent;
    into.power_w = from.power_w;
    into.pstate = from.pstate;
  }
  Take(into.temperature_c, from.temperature_c);
  Take(into.power_w, from.power_w);
  Take(into.power_cap_w, from.power_cap_w);
  Take(into.pstate, from.pstate);
  Take(into.memory_used_mib, from.memory_used_mib);
  Take(into.memory_total_mib, from.memory_total_mib);
  into.error = into.error || from.error;
  Take(into.driver, from.driver);
  Take(into.cuda, from.cuda);
  into.mig = into.mig || from.mig;
  Take(into.persistence, from.persistence);
  Take(into.pcie_gen, from.pcie_gen);
  Take(into.pcie_gen_max, from.pcie_gen_max);
  Take(into.pcie_width, from.pcie_width);
  Take(into.pcie_width_max, from.pcie_width_max);
  Take(into.nvlinks_active, from.nvlinks_active);
  Take(into.nvlinks_inactive, from.nvlinks_inactive);
  Take(into.fabric_state, from.fabric_state);
  Take(into.attached_gpus, from.attached_gpus);
  Take(into.taken, from.taken);
}

GpuSeen& GpuOf(GpuHost& host, const GpuId& id) {
  for (GpuSeen& gpu : host.gpus)
    if (IsNamed(id) ? Same(gpu.state.id, id) : !IsNamed(gpu.state.id)) return gpu;
  host.gpus.emplace_back();
  return host.gpus.back();
}

void AddEvent(GpuHost& host, const Event& event, EventIndex index) {
  if (const auto* row = std::get_if<GpuTopologyRow>(&event.what)) {
    host.topology.push_back({row, index});
    return;
  }
  const GpuId& id = *IdOf(event.what);
  const auto* process = std::get_if<GpuProcess>(&event.what);
  if (process != nullptr && !IsNamed(id)) return;  // on some GPU
  GpuSeen& gpu = GpuOf(host, id);
  Learn(gpu.state.id, id);
  if (process != nullptr) gpu.processes.push_back({process, index});
  if (const auto* condition = std::get_if<GpuCondition>(&event.what)) gpu.conditions.push_back({condition, index});
  if (const auto* snapshot = std::get_if<GpuSnapshot>(&event.what)) {
    // A fault is shown by the line that shows it, whatever was seen later.
    if (!gpu.state.error || snapshot->error) gpu.event = index;
    Learn(gpu.state, *snapshot);
  }
}

// ---- ranks -----------------------------------------------------------------------------------------------------

/// The rank of the processes that fit, if they are one.
template <class Fits>
std::optional<GlobalRank> RankWhere(const Timeline& timeline, const GpuHost& host, Fits fits) {
  std::optional<GlobalRank> rank;
  for (const ProcessRow& row : timeline.processes) {
    if (!row.rank || (host.host && row.host && *host.host != *row.host) || !fits(row)) continue;
    if (rank && *rank != row.rank->value) return std::nullopt;
    rank = row.rank->value;
  }
  return rank;
}

std::optional<GlobalRank> FindRank(const Timeline& timeline, const GpuHost& host, const GpuSeen& gpu) {
  const GpuId& id = gpu.state.id;
  if (auto rank = RankWhere(timeline, host,
                            [&](const ProcessRow& row) { return row.bus_id && SameDevice(*row.bus_id, id.bus_id); }))
    return rank;
  for (const auto& process : gpu.processes)
    if (gpu.processes.size() == 1)
      if (auto rank = RankWhere(timeline, host, [&](const ProcessRow& row) { return row.pid == process.what->pid; }))
        return rank;
  if (!id.index) return std::nullopt;
  if (auto rank = RankWhere(timeline, host, [&](const ProcessRow& row) { return row.nvml_dev == id.index; }))
    return rank;
  const bool one_host = timeline.hosts.size() <= 1 && timeline.world_size &&
                        timeline.world_size->value == static_cast<int>(host.gpus.size());
  const bool has_bus_ids = std::any_of(timeline.processes.begin(), timeline.processes.end(),
                                       [](const ProcessRow& row) { return row.bus_id.has_value(); });
  return one_host && !has_bus_ids && *id.index < timeline.world_size->value ? std::optional(GlobalRank{*id.index})
                                                                            : std::nullopt;
}

bool ListsAll(const GpuHost& host) {
  std::size_t listed = 0;
  int attached = 0;
  for (const GpuSeen& gpu : host.gpus) {
    listed += gpu.event && IsNamed(gpu.state.id) ? 1 : 0;
    attached = std::max(attached, gpu.state.attached_gpus.value_or(0));
  }
  return listed >= 2 && static_cast<int>(listed) >= attached;
}

}  // namespace

std::vector<GpuHost> ReadGpus(const Timeline& timeline) {
  const std::set<std::string>& job = timeline.ProcessHosts();
  std::map<std::uint32_t, std::optional<std::string>> by_input;
  std::map<std::string, GpuHost> hosts;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    if (!IsOfSmi(event.what)) continue;
    std::optional<std::string> host;
    if (event.origin.host) host = event.origin.host->value;
    if (!host) {
      const auto [it, is_new] = by_input.try_emplace(event.where.input);
      if (is_new) it->second = HostOfInput(timeline, event.where.input, job);
      host = it->second;
    }
    GpuHost& seen =
        hosts[host.value_or(timeline.hosts.size() <= 1 ? std::string() : fmt::format("#{}", event.where.input))];
    seen.host = host;
    AddEvent(seen, event, i);
  }
  std::vector<GpuHost> out;
  for (auto& [key, host] : hosts) {
    std::stable_sort(host.gpus.begin(), host.gpus.end(), [](const GpuSeen& a, const GpuSeen& b) {
      const GpuId &x = a.state.id, &y = b.state.id;
      return std::tuple(x.index.value_or(1 << 20), x.bus_id, x.uuid) <
             std::tuple(y.index.value_or(1 << 20), y.bus_id, y.uuid);
    });
    for (GpuSeen& gpu : host.gpus) gpu.rank = FindRank(timeline, host, gpu);
    host.whole = ListsAll(host);
    out.push_back(std::move(host));
  }
  return out;
}

bool IsOfOtherJob(const Timeline& timeline, const GpuHost& host, const GpuSeen& gpu) {
  if (gpu.rank || gpu.state.id.bus_id.empty()) return false;
  std::set<int> ranks;
  for (const ProcessRow& row : timeline.processes)
    if (row.rank && row.bus_id && (!host.host || !row.host || *row.host == *host.host))
      ranks.insert(row.rank->value.value);
  std::set<int> of_host;
  for (const ProcessRow& row : timeline.processes)
    if (row.rank && (!host.host || !row.host || *row.host == *host.host)) of_host.insert(row.rank->value.value);
  const bool all_hosts =
      !host.host && timeline.world_size && timeline.world_size->value != static_cast<int>(ranks.size());
  return !ranks.empty() && ranks == of_host && !all_hosts;
}

std::string NameOf(const GpuHost& host, const GpuSeen& gpu) {
  const GpuId& id = gpu.state.id;
  std::string name = id.index ? fmt::format("GPU {}", *id.index) : id.bus_id.empty() ? id.uuid : "GPU " + id.bus_id;
  if (name.empty()) name = "A GPU";
  if (id.index && !id.bus_id.empty()) name += fmt::format(" ({})", id.bus_id);
  if (gpu.rank) name += fmt::format(" of rank {}", gpu.rank->value);
  if (host.host) name += " on " + *host.host;
  return name;
}

Culprit BlameGpu(const Timeline& timeline, const GpuHost& host, const GpuSeen& gpu, std::string why) {
  Culprit culprit;
  if (gpu.rank) culprit = BlameRank(timeline, *gpu.rank, why);
  culprit.why = std::move(why);
  if (!culprit.host) culprit.host = host.host;
  culprit.gpu_index = gpu.state.id.index;
  if (!gpu.state.id.bus_id.empty()) culprit.bus_id = gpu.state.id.bus_id;
  return culprit;
}

}  // namespace inquest
