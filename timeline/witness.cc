// Whom a witness speaks of: stacks, reports of NCCL's RAS and Inspector, diagnostics.
#include "timeline/witness.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "timeline/kernel.h"

namespace inquest {
namespace {

// How a witness finds its rank.
//  1. By the file's name (`py-spy-rank3.txt`), which the reader has done.
//  2. By pid, if one process of the job has it, on the witness' host where that is known.
//  3. By GPU, if one process of that host has it. The host is the folder's, else one that the file's name holds, else
//  the
//     job's only one.
//  4. By its number in the largest communicator that the witness knows, which is taken for the job's.
// RAS names nodes by address; where a pid finds the process, its host's name replaces the address.

constexpr std::string_view kByPid = "pid of the job's process";
constexpr std::string_view kByGpu = "GPU of the job's process";
constexpr std::string_view kByCommunicator = "number in the largest communicator of the report";

const ProcessRow* Only(const std::vector<const ProcessRow*>& rows) {
  if (rows.empty()) return nullptr;
  const bool same = std::all_of(rows.begin(), rows.end(), [&](const ProcessRow* row) {
    return row->rank && rows.front()->rank && row->rank->value == rows.front()->rank->value;
  });
  return rows.size() == 1 || same ? rows.front() : nullptr;
}

/// Processes that have a rank, by what a witness may know of them.
struct KnownProcesses {
  std::multimap<std::int64_t, const ProcessRow*> by_pid;
  std::multimap<int, const ProcessRow*> by_gpu;
};

template <class Key>
const ProcessRow* FindProcess(const std::multimap<Key, const ProcessRow*>& rows, const Key& key,
                              const std::optional<std::string>& host) {
  std::vector<const ProcessRow*> fit;
  const auto [begin, end] = rows.equal_range(key);
  for (auto it = begin; it != end; ++it)
    if (!host || !it->second->host || *host == *it->second->host) fit.push_back(it->second);
  return Only(fit);
}

void Join(Event& event, const ProcessRow* row, std::string_view rule) {
  if (row == nullptr) return;
  if (!event.origin.rank) event.origin.rank = Known<GlobalRank>{row->rank->value, Basis::kDerived, rule};
  if (!event.origin.host && row->host) event.origin.host = Known<std::string>{*row->host, Basis::kDerived, rule};
}

void GiveHost(const Timeline& timeline, const std::set<std::string>& hosts, Event& event) {
  if (event.origin.host || event.where.input >= timeline.inputs.size()) return;
  if (timeline.inputs[event.where.input].host)
    event.origin.host = timeline.inputs[event.where.input].host;
  else if (auto host = JobHostIn(timeline.inputs[event.where.input].path, hosts))
    event.origin.host = Known<std::string>{*host, Basis::kFileName, "host in the name of the file"};
  else if (hosts.size() == 1)
    event.origin.host = Known<std::string>{*hosts.begin(), Basis::kAssumed, "the job's only host"};
}

/// How many ranks each communicator of the reports has, as far as they tell.
std::map<std::string, int> SizesOf(const Timeline& timeline) {
  std::map<std::string, int> sizes;
  for (const Event& event : timeline.events)
    if (const auto* progress = std::get_if<RankProgress>(&event.what); progress != nullptr && !progress->comm.empty()) {
      int& size = sizes[progress->comm];
      size = std::max({size, progress->nranks, progress->rank ? progress->rank->value + 1 : progress->ranks + 1});
    }
  return sizes;
}

}  // namespace

void JoinWitnesses(Timeline& timeline) {
  const std::set<std::string>& hosts = timeline.ProcessHosts();
  const std::map<std::string, int> sizes = SizesOf(timeline);
  KnownProcesses known;
  for (const ProcessRow& row : timeline.processes) {
    if (!row.rank) continue;
    if (row.pid) known.by_pid.emplace(*row.pid, &row);
    if (const auto gpu = row.nvml_dev ? row.nvml_dev : row.cuda_dev) known.by_gpu.emplace(*gpu, &row);
  }
  const auto host_of = [](const Event& event) {
    return event.origin.host ? std::optional(event.origin.host->value) : std::nullopt;
  };
  int largest = 0;
  for (const auto& [comm, size] : sizes) largest = std::max(largest, size);
  for (Event& event : timeline.events) {
    if (auto* progress = std::get_if<RankProgress>(&event.what)) {
      const auto pid = progress->pid ? progress->pid : event.origin.pid;
      if (pid) Join(event, FindProcess(known.by_pid, *pid, host_of(event)), kByPid);
      const bool job_wide = !progress->comm.empty() && sizes.at(progress->comm) == largest;
      if (job_wide && progress->rank) progress->in_job = RankSet::Of(std::array{progress->rank->value});
      if (timeline.world_size && timeline.world_size->value < largest) progress->in_job = {};
      if (!event.origin.rank && progress->rank && !progress->in_job.empty())
        event.origin.rank = Known<GlobalRank>{GlobalRank{progress->in_job.front()}, Basis::kDerived, kByCommunicator};
      if (event.origin.rank && progress->rank)
        progress->in_job = RankSet::Of(std::array{event.origin.rank->value.value});
      if (!event.origin.host && !progress->node.empty())
        event.origin.host = Known<std::string>{progress->node, Basis::kObserved, {}};
      if (!event.origin.pid) event.origin.pid = progress->pid;
    } else if (std::holds_alternative<StackSeen>(event.what) || std::holds_alternative<CrashFrame>(event.what)) {
      GiveHost(timeline, hosts, event);
      if (!event.origin.rank && event.origin.pid)
        Join(event, FindProcess(known.by_pid, *event.origin.pid, host_of(event)), kByPid);
    } else if (const auto* diag = std::get_if<GpuDiag>(&event.what)) {
      GiveHost(timeline, hosts, event);
      if (!event.origin.rank && diag->gpu && event.origin.host)
        Join(event, FindProcess(known.by_gpu, *diag->gpu, host_of(event)), kByGpu);
    }
  }
}

}  // namespace inquest
