// Processes and GPUs do not pair one to one.
//
// What holds: nvidia-smi shows the same program's pids together with their working memory on one GPU while each holds a
// small context on another; or a rank works on another GPU than the one that it gave NCCL; or two ranks of one host
// gave a communicator the same GPU, and it did not come about; or a rank's guessed device is not the one it reports.
// Why that implies the cause: a process works where its memory is. What looks like it: MPS and MIG share a GPU on
// purpose; a server beside the job has another name; a small context on the first GPU is only untidy.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/gpu_view.h"

namespace inquest {
namespace device_mapping {

constexpr FindingRow kFindings[] = {
    {"processes-share-gpu", "working", "count gpu"},
    {"process-on-other-gpu", "by-pid", "rank given used"},
    {"guessed-device-differs", "guessed", "rank own guessed"},
    {"ranks-give-one-gpu", "by-address", "ranks gpu nranks"},
};
using Found = FoundIn<kFindings>;

/// A process on a GPU.
struct Row {
  const GpuSeen* gpu;
  const GpuProcess* process;
  EventIndex event;
};

std::map<std::string, std::vector<Row>> ByProgram(const GpuHost& host) {
  std::map<std::string, std::vector<Row>> programs;
  for (const GpuSeen& gpu : host.gpus)
    for (const auto& process : gpu.processes)
      if (process.what->type == "C") programs[process.what->name].push_back({&gpu, process.what, process.event});
  return programs;
}

Found Crowd(const Evidence& evidence, const GpuHost& host, const std::vector<Row>& rows, const GpuSeen& gpu,
            const std::vector<const Row*>& crowd) {
  const Timeline& timeline = evidence.timeline;
  Found found({"processes-share-gpu", "working"});
  GpuSeen nobodys = gpu;
  nobodys.rank.reset();
  found.Say("count", std::to_string(crowd.size()));
  found.Say("gpu", NameOf(host, nobodys));
  std::set<std::int64_t> elsewhere;
  for (const Row& row : rows)
    if (row.gpu != &gpu) elsewhere.insert(row.process->pid);
  for (const Row* row : crowd) {
    found.citations.push_back(Cite(timeline, row->event, LineRole::kCause));
    if (elsewhere.count(row->process->pid) == 0 && !elsewhere.empty()) continue;  // this one is where it belongs
    Culprit culprit;
    culprit.pid = row->process->pid;
    culprit.gpu_index = gpu.state.id.index;
    for (const ProcessRow& process : timeline.processes)
      if (process.pid == culprit.pid && process.rank) culprit.rank = process.rank->value;
    found.culprits.push_back(std::move(culprit));
  }
  if (gpu.event) found.citations.push_back(Cite(timeline, *gpu.event, LineRole::kContext));
  return found;
}

void FindCrowds(const Evidence& evidence, const GpuHost& host, std::vector<Relation>& out) {
  for (const auto& [program, rows] : ByProgram(host)) {
    std::map<const GpuSeen*, std::vector<const Row*>> by_gpu;
    std::map<std::int64_t, std::int64_t> largest;
    for (const Row& row : rows)
      largest[row.process->pid] = std::max(largest[row.process->pid], row.process->memory_mib.value_or(0));
    // Where a process holds most of its memory is where it works; its other entries are contexts. Two looks at one
    // process are one.
    for (const Row& row : rows) {
      auto& there = by_gpu[row.gpu];
      const bool known = std::any_of(there.begin(), there.end(),
                                     [&](const Row* other) { return other->process->pid == row.process->pid; });
      if (row.process->memory_mib.value_or(0) == largest[row.process->pid] && !known) there.push_back(&row);
    }
    std::erase_if(by_gpu, [](const auto& entry) { return entry.second.empty(); });
    for (const GpuSeen& gpu : host.gpus) {
      const auto crowd = by_gpu.find(&gpu);
      if (crowd == by_gpu.end() || crowd->second.size() < 2) continue;
      std::set<const GpuSeen*> with_context;
      for (const Row& row : rows) with_context.insert(row.gpu);
      const bool contexts_elsewhere = with_context.size() > by_gpu.size();
      const bool idle_gpus = std::any_of(host.gpus.begin(), host.gpus.end(), [&](const GpuSeen& other) {
        return other.event && by_gpu.count(&other) == 0 && other.state.memory_used_mib.value_or(0) < 1024 &&
               other.state.utilization_percent.value_or(0) < 10;
      });
      if (contexts_elsewhere || (idle_gpus && by_gpu.size() == 1))
        out.push_back(Crowd(evidence, host, rows, gpu, crowd->second));
    }
  }
}

/// A rank's process holds its memory on another GPU than the one whose address its NCCL printed.
void FindStrays(const Evidence& evidence, const GpuHost& host, std::vector<Relation>& out) {
  const Timeline& timeline = evidence.timeline;
  for (const ProcessRow& rank : timeline.processes) {
    if (!rank.rank || !rank.pid || !rank.bus_id || (rank.host && host.host && *rank.host != *host.host)) continue;
    const GpuSeen* works_on = nullptr;
    const GpuSeen::Of<GpuProcess>* most = nullptr;
    bool is_at_home = false;
    for (const GpuSeen& gpu : host.gpus)
      for (const auto& process : gpu.processes) {
        if (process.what->pid != *rank.pid || process.what->type == "G" || gpu.state.id.bus_id.empty()) continue;
        is_at_home = is_at_home || (SameDevice(gpu.state.id.bus_id, *rank.bus_id) &&
                                    process.what->memory_mib.value_or(1 << 20) >= 1024);
        if (most != nullptr && process.what->memory_mib.value_or(0) <= most->what->memory_mib.value_or(0)) continue;
        most = &process;
        works_on = &gpu;
      }
    if (most == nullptr || is_at_home || SameDevice(works_on->state.id.bus_id, *rank.bus_id)) continue;
    Found found({"process-on-other-gpu", "by-pid"});
    found.Say("rank", std::to_string(rank.rank->value.value));
    found.Say("given", *rank.bus_id);
    found.Say("used", works_on->state.id.bus_id);
    found.culprits = {BlameRank(timeline, rank.rank->value, "")};
    found.citations = {Cite(timeline, most->event, LineRole::kCause)};
    if (works_on->event) found.citations.push_back(Cite(timeline, *works_on->event, LineRole::kContext));
    out.push_back(std::move(found));
    return;
  }
}

// The guess of barrier() is harmless while it is the rank's own device.
void FindWrongGuess(const Evidence& evidence, std::vector<Relation>& out) {
  const Timeline& timeline = evidence.timeline;
  std::map<int, int> own;
  for (const Event& event : timeline.events)
    if (const auto* reported = std::get_if<DeviceReported>(&event.what); reported != nullptr && reported->rank)
      own[reported->rank->value] = reported->device;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* guess = std::get_if<GuessedDevice>(&timeline.events[i].what);
    if (guess == nullptr) continue;
    const auto rank = timeline.RankOf(timeline.events[i]);
    if (!rank || own.count(rank->value.value) == 0 || own[rank->value.value] == guess->device) continue;
    Found found({"guessed-device-differs", "guessed"});
    found.Say("rank", std::to_string(rank->value.value));
    found.Say("own", std::to_string(own[rank->value.value]));
    found.Say("guessed", std::to_string(guess->device));
    found.culprits.push_back(BlameRank(timeline, rank->value, ""));
    found.citations.push_back(Cite(timeline, i, LineRole::kCause));
    out.push_back(std::move(found));
    return;
  }
}

/// Ranks of one communicator that gave it the same GPU of the same host. NCCL refuses that, unless it was told not to.
void FindOneGpuOfTwo(const Evidence& evidence, std::vector<Relation>& out) {
  const Timeline& timeline = evidence.timeline;
  if (!evidence.course.failed()) return;
  for (const CommunicatorRow& row : timeline.communicators) {
    using Member = CommunicatorRow::Member;
    if (std::ranges::any_of(row.members, [](const Member& member) { return member.completed; })) continue;
    std::map<std::pair<std::string, std::string>, std::vector<const Member*>> by_gpu;  // by host and address
    for (const Member& member : row.members) {
      const auto* init = member.init_event ? std::get_if<CommInit>(&timeline.events[*member.init_event].what) : nullptr;
      const auto& host = timeline.processes[member.process].host;
      if (init != nullptr && init->bus_id && member.rank && host) by_gpu[{*host, *init->bus_id}].push_back(&member);
    }
    for (const auto& [gpu, members] : by_gpu) {
      if (members.size() < 2) continue;
      Found found({"ranks-give-one-gpu", "by-address"});
      RankSet ranks;
      for (const Member* member : members) {
        ranks.Add(member->rank->value);
        found.citations.push_back(Cite(timeline, *member->init_event, LineRole::kCause));
        const auto rank = timeline.processes[member->process].rank;
        if (rank) found.culprits.push_back(BlameRank(timeline, rank->value, ""));
      }
      found.Say("ranks", RanksInWords(ranks));
      found.Say("gpu", gpu.second);
      found.Say("nranks", std::to_string(row.nranks));
      out.push_back(std::move(found));
      return;
    }
  }
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Relation> out;
  FindOneGpuOfTwo(evidence, out);
  for (const GpuHost& host : ReadGpus(evidence.timeline)) {
    if (std::any_of(host.gpus.begin(), host.gpus.end(), [](const GpuSeen& gpu) { return gpu.state.mig; })) continue;
    FindCrowds(evidence, host, out);
    FindStrays(evidence, host, out);
  }
  FindWrongGuess(evidence, out);
  return out;
}

}  // namespace device_mapping

const Detector kDeviceMapping{"device-mapping", "Processes and GPUs do not pair one to one.", device_mapping::kFindings,
                              &device_mapping::Run};

}  // namespace inquest
