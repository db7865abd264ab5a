// nvidia-smi shows a GPU in a state in which it cannot serve a job, or no longer shows it.
//
// What holds: a value of a GPU of the job reads ERR!, counts uncorrectable errors, waits for a reset or a remap,
// reports a slowdown by its hardware, an unfinished fabric; or a rank's GPU is not among those listed. Why that implies
// the cause: the driver and the hardware keep these states until a reset, so they outlive the failure that they caused.
// What looks like it: a state left from before the job, a software power cap, an idle clock, one power draw that could
// not be read, a table that was asked for some GPUs only; hence states that a job can live with count only where
// something failed, or where they are all that was given.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/gpu_view.h"
#include "rules/host_states.h"

namespace inquest {
namespace gpu_state {

constexpr FindingRow kFindings[] = {
    {"gpu-unreadable", "unreadable", "gpus persistence-off"},
    {"gpu-needs-reset", "required recommended recommended-seen-only recovery", "gpus persistence-off"},
    {"gpu-memory-worn", "not-remapped sram sram-seen-only", "gpus persistence-off"},
    {"gpu-memory-errors",
     "counted counted-seen-only row-waits row-waits-seen-only page-waits page-waits-seen-only pages-retired",
     "gpus persistence-off"},
    {"gpu-slowed-by-hardware", "heat power-brake heat-or-power", "gpus"},
    {"gpu-warm", "driver-slows passed-limit", "gpus"},
    {"fabric-incomplete", "not-finished not-joined not-joined-seen-only", "gpus persistence-off"},
    {"fabric-unhealthy", "drain summary route bandwidth", "gpus persistence-off"},
    {"gpu-vanished", "lost", "gpu rank count"},
    {"host-lists-fewer-gpus", "fewer", "host count others-count"},
    {"drivers-differ", "shown", "versions"},
    {"mig-under-nccl", "split", "gpu"},
};
using Found = FoundIn<kFindings>;

constexpr std::size_t kCited = 6;

/// What a condition says of the job's failure: where the job failed, or no job runs on such a GPU; and where only its
/// state was seen, which it may live with.
struct Meaning {
  std::string_view property;
  Found::Held failed, seen_only;
  bool grave;  ///< no job runs on such a GPU, whether or not anything else was seen to fail
};

constexpr Meaning Grave(std::string_view property, Found::Held held) { return {property, held, held, true}; }
/// A hint, and said only where something failed.
constexpr Meaning Slight(std::string_view property, Found::Held held) { return {property, held, held, false}; }

const Meaning kMeanings[] = {
    Grave("error", {"gpu-unreadable", "unreadable"}),
    Grave("reset_status.reset_required", {"gpu-needs-reset", "required"}),
    {"reset_status.drain_and_reset_recommended",
     {"gpu-needs-reset", "recommended"},
     {"gpu-needs-reset", "recommended-seen-only"},
     false},
    Grave("gpu_recovery_action", {"gpu-needs-reset", "recovery"}),
    Grave("remapped_rows.failure", {"gpu-memory-worn", "not-remapped"}),
    {"ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
     {"gpu-memory-worn", "sram"},
     {"gpu-memory-worn", "sram-seen-only"},
     false},
    {"ecc.errors.uncorrected.volatile.total",
     {"gpu-memory-errors", "counted"},
     {"gpu-memory-errors", "counted-seen-only"},
     false},
    {"remapped_rows.pending", {"gpu-memory-errors", "row-waits"}, {"gpu-memory-errors", "row-waits-seen-only"}, false},
    {"retired_pages.pending",
     {"gpu-memory-errors", "page-waits"},
     {"gpu-memory-errors", "page-waits-seen-only"},
     false},
    Slight("retired_pages.cause", {"gpu-memory-errors", "pages-retired"}),
    Grave("clocks_event_reasons.hw_thermal_slowdown", {"gpu-slowed-by-hardware", "heat"}),
    Grave("clocks_event_reasons.hw_power_brake_slowdown", {"gpu-slowed-by-hardware", "power-brake"}),
    Grave("clocks_event_reasons.hw_slowdown", {"gpu-slowed-by-hardware", "heat-or-power"}),
    Slight("clocks_event_reasons.sw_thermal_slowdown", {"gpu-warm", "driver-slows"}),
    Slight("violations.thermal", {"gpu-warm", "passed-limit"}),
    Grave("fabric.state", {"fabric-incomplete", "not-finished"}),
    {"fabric.status", {"fabric-incomplete", "not-joined"}, {"fabric-incomplete", "not-joined-seen-only"}, false},
    Slight("fabric.health.summary", {"fabric-unhealthy", "summary"}),
    Slight("fabric.health.route_unhealthy", {"fabric-unhealthy", "route"}),
    Slight("fabric.health.degraded_bandwidth", {"fabric-unhealthy", "bandwidth"}),
};

struct Held {
  const Meaning* meaning;
  const Grade* grade;  ///< where the job failed
  const GpuHost* host;
  const GpuSeen* gpu;
  EventIndex event;
};

const Meaning* MeaningOf(std::string_view property, std::string_view value) {
  static const Meaning kDrain = Grave("gpu_recovery_action", {"fabric-unhealthy", "drain"});
  if (property == "gpu_recovery_action" && value == "Drain P2P") return &kDrain;
  const auto* found = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                   [&](const Meaning& meaning) { return meaning.property == property; });
  return found == std::end(kMeanings) ? nullptr : found;
}

/// Nothing was given but states of GPUs and hosts: who shows them asks about them.
bool OnlyStates(const Timeline& timeline) {
  return std::all_of(timeline.events.begin(), timeline.events.end(), [](const Event& event) {
    const auto* message = std::get_if<LogMessage>(&event.what);
    return IsOfHost(event.what) || (message != nullptr && message->hits.empty()) ||
           std::holds_alternative<GpuSnapshot>(event.what) || std::holds_alternative<GpuCondition>(event.what) ||
           std::holds_alternative<GpuProcess>(event.what) || std::holds_alternative<GpuTopologyRow>(event.what);
  });
}

std::vector<Held> FindHeld(const Evidence& evidence, const std::vector<GpuHost>& hosts, bool failed) {
  std::vector<Held> held;
  const auto add = [&](const Meaning& meaning, const GpuHost& host, const GpuSeen& gpu, EventIndex event) {
    held.push_back({&meaning, &GradeOf(evidence.book, meaning.failed.id, meaning.failed.grade), &host, &gpu, event});
  };
  for (const GpuHost& host : hosts)
    for (const GpuSeen& gpu : host.gpus) {
      if (IsOfOtherJob(evidence.timeline, host, gpu)) continue;
      if (gpu.state.error && gpu.event) add(*MeaningOf("error", ""), host, gpu, *gpu.event);
      for (const auto& condition : gpu.conditions)
        if (const Meaning* meaning = MeaningOf(condition.what->property, condition.what->value))
          add(*meaning, host, gpu, condition.event);
    }
  const bool asked = failed || OnlyStates(evidence.timeline);
  std::erase_if(held, [&](const Held& h) {
    return !h.meaning->grave && !(h.grade->strength == Strength::kHint ? failed : asked);
  });
  return held;
}

Found FoundOf(const Evidence& evidence, const std::vector<Held>& held, bool failed) {
  // The GPU that holds the gravest state is named first; those in the same state are blamed with it.
  const Held& first = *std::max_element(held.begin(), held.end(), [](const Held& a, const Held& b) {
    return std::pair(a.grade->confidence, b.event) < std::pair(b.grade->confidence, a.event);
  });
  Found found(failed ? first.meaning->failed : first.meaning->seen_only);
  std::set<const GpuSeen*> blamed;
  std::set<std::pair<const GpuSeen*, std::string_view>> cited;
  for (const Held& h : held)
    if (h.meaning->property == first.meaning->property && blamed.insert(h.gpu).second)
      found.culprits.push_back(BlameGpu(evidence.timeline, *h.host, *h.gpu, ""));
  const auto cite = [&](const Held& h, LineRole role) {
    if (found.citations.size() < kCited && cited.insert({h.gpu, h.meaning->property}).second)
      found.citations.push_back(Cite(evidence.timeline, h.event, role));
  };
  cite(first, LineRole::kCause);
  for (const Held& h : held)
    if (blamed.count(h.gpu) != 0) cite(h, LineRole::kCause);
  found.times = held.size();
  const std::string name = NameOf(*first.host, *first.gpu);
  found.Say("gpus", blamed.size() > 1 ? fmt::format("{} GPUs, the first of them {}", blamed.size(), name) : name);
  if (first.gpu->state.persistence == false) found.Say("persistence-off", "yes");
  return found;
}

// ---- what is not there -----------------------------------------------------------------------------------------

/// A GPU that a rank had when it started and that its host no longer lists, while it lists other ranks' GPUs.
std::optional<Found> FindVanished(const Evidence& evidence, const std::vector<GpuHost>& hosts) {
  const Timeline& timeline = evidence.timeline;
  for (const GpuHost& host : hosts) {
    std::set<std::string> listed;
    for (const GpuSeen& gpu : host.gpus)
      if (gpu.event && !gpu.state.id.bus_id.empty()) listed.insert(WithoutFunction(gpu.state.id.bus_id));
    std::vector<const ProcessRow*> lost;
    std::size_t there = 0;
    for (const ProcessRow& row : timeline.processes) {
      if (!row.rank || !row.bus_id || (row.host && host.host && *row.host != *host.host) ||
          (row.host && !host.host && timeline.hosts.size() > 1))
        continue;
      if (listed.count(WithoutFunction(*row.bus_id)) != 0)
        ++there;
      else
        lost.push_back(&row);
    }
    if (!host.whole || lost.empty() || there < 2 || lost.size() > there) continue;
    Found found({"gpu-vanished", "lost"});
    found.Say("gpu", *lost.front()->bus_id);
    found.Say("rank", std::to_string(lost.front()->rank->value.value));
    found.Say("count", std::to_string(listed.size()));
    for (const ProcessRow* row : lost) found.culprits.push_back(BlameRank(timeline, row->rank->value, ""));
    for (const GpuSeen& gpu : host.gpus)
      if (gpu.event && found.citations.size() < 2)
        found.citations.push_back(Cite(timeline, *gpu.event, LineRole::kCause));
    for (EventIndex i = 0; i < timeline.events.size() && found.citations.size() < 4; ++i)
      if (const auto* init = std::get_if<CommInit>(&timeline.events[i].what);
          init != nullptr && init->bus_id && *init->bus_id == *lost.front()->bus_id)
        found.citations.push_back(Cite(timeline, i, LineRole::kContext));
    return found;
  }
  return std::nullopt;
}

/// A host that lists fewer GPUs than each of the others.
std::optional<Found> FindFewer(const Evidence& evidence, const std::vector<GpuHost>& hosts) {
  const auto count = [](const GpuHost& host) {
    return std::count_if(host.gpus.begin(), host.gpus.end(), [](const GpuSeen& gpu) { return gpu.event.has_value(); });
  };
  std::vector<const GpuHost*> whole;
  for (const GpuHost& host : hosts)
    if (host.whole && host.host) whole.push_back(&host);
  if (whole.size() < 2) return std::nullopt;
  const auto fewest = *std::min_element(whole.begin(), whole.end(),
                                        [&](const GpuHost* a, const GpuHost* b) { return count(*a) < count(*b); });
  std::set<std::ptrdiff_t> others;
  for (const GpuHost* host : whole)
    if (host != fewest) others.insert(count(*host));
  if (others.size() != 1 || *others.begin() <= count(*fewest)) return std::nullopt;
  Found found({"host-lists-fewer-gpus", "fewer"});
  found.Say("host", *fewest->host);
  found.Say("count", std::to_string(count(*fewest)));
  found.Say("others-count", std::to_string(*others.begin()));
  Culprit culprit;
  culprit.host = fewest->host;
  found.culprits.push_back(std::move(culprit));
  for (const GpuSeen& gpu : fewest->gpus)
    if (gpu.event && found.citations.size() < 2)
      found.citations.push_back(Cite(evidence.timeline, *gpu.event, LineRole::kCause));
  return found;
}

// ---- what does not fit together --------------------------------------------------------------------------------

std::optional<Found> FindDrivers(const Evidence& evidence, const std::vector<GpuHost>& hosts) {
  std::map<std::string, std::pair<std::string, EventIndex>> by_version;
  for (const GpuHost& host : hosts)
    for (const GpuSeen& gpu : host.gpus)
      if (host.host && gpu.event && !gpu.state.driver.empty())
        by_version.try_emplace(gpu.state.driver, *host.host, *gpu.event);
  if (by_version.size() < 2) return std::nullopt;
  Found found({"drivers-differ", "shown"});
  std::vector<std::string> said;
  for (const auto& [version, where] : by_version) {
    said.push_back(fmt::format("{} on {}", version, where.first));
    if (found.citations.size() < kCited)
      found.citations.push_back(Cite(evidence.timeline, where.second, LineRole::kCause));
  }
  found.Say("versions", fmt::format("{}", fmt::join(said, ", ")));
  return found;
}

/// NCCL sees the instances of one GPU as one device, and they have no peer-to-peer.
std::optional<Found> FindMig(const Evidence& evidence, const std::vector<GpuHost>& hosts) {
  const bool several = std::any_of(evidence.timeline.communicators.begin(), evidence.timeline.communicators.end(),
                                   [](const CommunicatorRow& row) { return row.nranks > 1; });
  for (const GpuHost& host : hosts)
    for (const GpuSeen& gpu : host.gpus) {
      if (!several || !gpu.state.mig || !gpu.event || !gpu.rank) continue;
      Found found({"mig-under-nccl", "split"});
      found.Say("gpu", NameOf(host, gpu));
      found.citations = {Cite(evidence.timeline, *gpu.event, LineRole::kCause)};
      return found;
    }
  return std::nullopt;
}

std::vector<Relation> Run(const Evidence& evidence) {
  const std::vector<GpuHost> hosts = ReadGpus(evidence.timeline);
  if (hosts.empty()) return {};
  const bool failed = SawFailure(evidence);
  std::map<std::string_view, std::vector<Held>> by_cause;
  for (Held& held : FindHeld(evidence, hosts, failed))
    by_cause[evidence.book.FindFinding(held.meaning->failed.id)->cause].push_back(held);
  std::vector<Relation> out;
  for (const auto& [cause, held] : by_cause) out.push_back(FoundOf(evidence, held, failed));
  if (auto vanished = FindVanished(evidence, hosts)) out.push_back(std::move(*vanished));
  if (!failed) return out;
  if (auto fewer = FindFewer(evidence, hosts)) out.push_back(std::move(*fewer));
  if (auto drivers = FindDrivers(evidence, hosts)) out.push_back(std::move(*drivers));
  if (auto mig = FindMig(evidence, hosts)) out.push_back(std::move(*mig));
  return out;
}

}  // namespace gpu_state

const Detector kGpuState{"gpu-state",
                         "nvidia-smi shows a GPU in a state in which it cannot serve a job, or no longer shows it.",
                         gpu_state::kFindings, &gpu_state::Run};

}  // namespace inquest
