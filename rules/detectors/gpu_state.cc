// nvidia-smi shows a GPU in a state in which it cannot serve a job, or no longer shows it.
//
// What holds: a value of a GPU of the job reads ERR!, counts uncorrectable errors, waits for a reset or a remap, reports a
// slowdown by its hardware, an unfinished fabric; or a rank's GPU is not among those listed. Why that implies the cause: the
// driver and the hardware keep these states until a reset, so they outlive the failure that they caused. What looks like
// it: a state left from before the job, a software power cap, an idle clock, one power draw that could not be read, a table
// that was asked for some GPUs only; hence states that a job can live with count only where something failed, or where they
// are all that was given.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/gpu_view.h"

namespace inquest {
namespace {

constexpr std::size_t kCited = 6;

/// What a condition says of the job's failure.
struct Meaning {
  std::string_view property, rule, cause, says;
  Strength strength;
  double confidence;
  bool alone;  ///< no job runs on such a GPU, whether or not anything else was seen to fail
};

constexpr Strength kHint = Strength::kHint, kSupporting = Strength::kSupporting;
constexpr Meaning kMeanings[] = {
    {"error", "gpu-unreadable", "gpu-fault", "nvidia-smi cannot read it any more", kSupporting, 0.74, true},
    {"reset_status.reset_required", "gpu-needs-reset", "gpu-fault", "it must be reset before it works again", kSupporting, 0.74, true},
    {"reset_status.drain_and_reset_recommended", "gpu-needs-reset", "gpu-fault", "it should be drained and reset", kSupporting, 0.58, false},
    {"gpu_recovery_action", "gpu-needs-reset", "gpu-fault", "the driver asks for a recovery", kSupporting, 0.72, true},
    {"remapped_rows.failure", "gpu-memory-worn", "gpu-fault", "a faulty memory row could not be remapped", kSupporting, 0.72, true},
    {"ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", "gpu-memory-worn", "gpu-fault", "its uncorrectable SRAM errors passed the limit", kSupporting, 0.62, false},
    {"ecc.errors.uncorrected.volatile.total", "gpu-memory-errors", "gpu-fault", "it counts uncorrectable memory errors since the driver was loaded", kSupporting, 0.6, false},
    {"remapped_rows.pending", "gpu-memory-errors", "gpu-fault", "a faulty memory row waits for a reset to be remapped", kSupporting, 0.56, false},
    {"retired_pages.pending", "gpu-memory-errors", "gpu-fault", "a faulty memory page waits for a reset to be retired", kSupporting, 0.54, false},
    {"retired_pages.cause", "gpu-memory-errors", "gpu-fault", "pages of its memory were retired for double bit errors", kHint, 0.3, false},
    {"clocks_event_reasons.hw_thermal_slowdown", "gpu-slowed-by-hardware", "thermal-power", "its hardware slows it down for heat", kSupporting, 0.72, true},
    {"clocks_event_reasons.hw_power_brake_slowdown", "gpu-slowed-by-hardware", "thermal-power", "the power supply's brake slows it down", kSupporting, 0.72, true},
    {"clocks_event_reasons.hw_slowdown", "gpu-slowed-by-hardware", "thermal-power", "its hardware slows it down for heat or power", kSupporting, 0.7, true},
    {"clocks_event_reasons.sw_thermal_slowdown", "gpu-warm", "thermal-power", "the driver lowers its clocks for heat", kHint, 0.35, false},
    {"violations.thermal", "gpu-warm", "thermal-power", "it passed a limit of temperature", kHint, 0.35, false},
    {"fabric.state", "fabric-incomplete", "fabric-manager", "it has not finished joining the NVLink fabric", kSupporting, 0.66, true},
    {"fabric.status", "fabric-incomplete", "fabric-manager", "it could not join the NVLink fabric", kSupporting, 0.62, false},
    {"fabric.health.summary", "fabric-unhealthy", "nvlink-fault", "its part of the NVLink fabric is unhealthy", kHint, 0.46, false},
    {"fabric.health.route_unhealthy", "fabric-unhealthy", "nvlink-fault", "a route of its NVLink fabric is unhealthy", kHint, 0.46, false},
    {"fabric.health.degraded_bandwidth", "fabric-unhealthy", "nvlink-fault", "its NVLink fabric has lost bandwidth", kHint, 0.44, false},
};

std::vector<std::string> ExplainedBy(std::string_view cause) {
  if (cause == "fabric-manager") return {"system-not-initialized", "nvls-bind-failed"};
  if (cause == "thermal-power") return {"slow-rank", "collective-timeout"};
  if (cause == "nvlink-fault") return {"collective-timeout", "remote-error"};
  return {"cuda-context-error", "collective-timeout", "remote-error"};
}

std::vector<Remedy> RemediesFor(std::string_view rule) {
  if (rule == "fabric-incomplete")
    return {{"Wait a minute after the driver was loaded; if it stays, restart the fabric manager.", "nvidia-smi -q | grep -A 3 -w Fabric; systemctl restart nvidia-fabricmanager"}};
  if (rule == "gpu-slowed-by-hardware" || rule == "gpu-warm")
    return {{"Power brake: the power supply or its budget. Thermal: air flow, dust, fans, or the coolant. A software power cap is normal and not this.", ""}};
  if (rule == "fabric-unhealthy") return {{"Look at the links of the GPU and at the fabric manager's log.", "nvidia-smi nvlink -s; nvidia-smi nvlink -e"}};
  return {{"Read the kernel log of the host for the Xid, drain the host, then reset the GPU.", "dmesg -T | grep -E 'NVRM: Xid' | tail -20; nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT"}};
}

struct Held {
  const Meaning* meaning;
  const GpuHost* host;
  const GpuSeen* gpu;
  EventIndex event;
  std::string value;
};

const Meaning* MeaningOf(std::string_view property, std::string_view value) {
  static constexpr Meaning kDrain{"gpu_recovery_action", "fabric-unhealthy", "nvlink-fault", "the driver asks to drain its peer-to-peer traffic", kSupporting, 0.58, true};
  if (property == "gpu_recovery_action" && value == "Drain P2P") return &kDrain;
  const auto* found = std::find_if(std::begin(kMeanings), std::end(kMeanings), [&](const Meaning& meaning) { return meaning.property == property; });
  return found == std::end(kMeanings) ? nullptr : found;
}

/// Nothing was given but states of GPUs and hosts: who shows them asks about them.
bool OnlyStates(const Timeline& timeline) {
  return std::all_of(timeline.events.begin(), timeline.events.end(), [](const Event& event) {
    const auto* message = std::get_if<LogMessage>(&event.what);
    return IsOfHost(event.what) || (message != nullptr && message->hits.empty()) || std::holds_alternative<GpuSnapshot>(event.what) || std::holds_alternative<GpuCondition>(event.what) ||
           std::holds_alternative<GpuProcess>(event.what) || std::holds_alternative<GpuTopologyRow>(event.what);
  });
}

std::vector<Held> FindHeld(const Evidence& evidence, const std::vector<GpuHost>& hosts, bool failed) {
  std::vector<Held> held;
  for (const GpuHost& host : hosts)
    for (const GpuSeen& gpu : host.gpus) {
      if (IsOfOtherJob(evidence.timeline, host, gpu)) continue;
      if (gpu.state.error && gpu.event) held.push_back({MeaningOf("error", ""), &host, &gpu, *gpu.event, {}});
      for (const auto& condition : gpu.conditions)
        if (const Meaning* meaning = MeaningOf(condition.what->property, condition.what->value)) held.push_back({meaning, &host, &gpu, condition.event, condition.what->value});
    }
  const bool asked = failed || OnlyStates(evidence.timeline);
  std::erase_if(held, [&](const Held& h) { return !h.meaning->alone && !(h.meaning->strength == kHint ? failed : asked); });
  return held;
}

Finding FindingOf(const Evidence& evidence, const std::vector<Held>& held, bool failed) {
  constexpr double kOfAStateAlone = 0.5;  // a job may live with it
  // The GPU that holds the gravest state is named first; those in the same state are blamed with it.
  const Held& first = *std::max_element(held.begin(), held.end(), [](const Held& a, const Held& b) { return std::pair(a.meaning->confidence, b.event) < std::pair(b.meaning->confidence, a.event); });
  Finding finding;
  finding.rule = first.meaning->rule;
  finding.cause = first.meaning->cause;
  finding.strength = first.meaning->strength;
  finding.confidence = failed || first.meaning->alone ? first.meaning->confidence : std::min(first.meaning->confidence, kOfAStateAlone);
  finding.explains = ExplainedBy(first.meaning->cause);
  finding.remedies = RemediesFor(first.meaning->rule);
  std::set<const GpuSeen*> blamed;
  std::set<std::pair<const GpuSeen*, std::string_view>> cited;
  for (const Held& h : held)
    if (h.meaning->property == first.meaning->property && blamed.insert(h.gpu).second) finding.culprits.push_back(BlameGpu(evidence.timeline, *h.host, *h.gpu, std::string(h.meaning->says)));
  const auto cite = [&](const Held& h, const char* role) {
    if (finding.citations.size() < kCited && cited.insert({h.gpu, h.meaning->property}).second) finding.citations.push_back(Cite(evidence.timeline, h.event, role));
  };
  cite(first, "cause");
  for (const Held& h : held)
    if (blamed.count(h.gpu) != 0) cite(h, "cause");
  finding.times = held.size();
  finding.claim = blamed.size() > 1 ? fmt::format("{} GPUs, the first of them {}: {}.", blamed.size(), NameOf(*first.host, *first.gpu), first.meaning->says)
                                    : fmt::format("{}: {}.", NameOf(*first.host, *first.gpu), first.meaning->says);
  if (first.gpu->state.persistence == false && first.meaning->cause != "thermal-power")
    finding.remedies.push_back({"Persistence mode is off: the driver forgets its state, fabric and counters included, whenever the last program closes the GPU.", "systemctl enable --now nvidia-persistenced"});
  return finding;
}

// ---- what is not there -----------------------------------------------------------------------------------------

/// A GPU that a rank had when it started and that its host no longer lists, while it lists other ranks' GPUs.
std::optional<Finding> FindVanished(const Evidence& evidence, const std::vector<GpuHost>& hosts) {
  const Timeline& timeline = evidence.timeline;
  for (const GpuHost& host : hosts) {
    std::set<std::string> listed;
    for (const GpuSeen& gpu : host.gpus)
      if (gpu.event && !gpu.state.id.bus_id.empty()) listed.insert(WithoutFunction(gpu.state.id.bus_id));
    std::vector<const ProcessRow*> lost;
    std::size_t there = 0;
    for (const ProcessRow& row : timeline.processes) {
      if (!row.rank || !row.bus_id || (row.host && host.host && *row.host != *host.host) || (row.host && !host.host && timeline.hosts.size() > 1)) continue;
      if (listed.count(WithoutFunction(*row.bus_id)) != 0) ++there;
      else lost.push_back(&row);
    }
    if (!host.whole || lost.empty() || there < 2 || lost.size() > there) continue;
    Finding finding;
    finding.rule = "gpu-vanished";
    finding.cause = "gpu-fault";
    finding.strength = kSupporting;
    finding.confidence = 0.76;
    finding.claim = fmt::format("The GPU {} of rank {} is not among the {} that nvidia-smi lists on its host any more.", *lost.front()->bus_id, lost.front()->rank->value.value, listed.size());
    finding.explains = ExplainedBy("gpu-fault");
    for (const ProcessRow* row : lost) finding.culprits.push_back(BlameRank(timeline, row->rank->value, "nvidia-smi no longer lists its GPU"));
    for (const GpuSeen& gpu : host.gpus)
      if (gpu.event && finding.citations.size() < 2) finding.citations.push_back(Cite(timeline, *gpu.event, "cause"));
    for (EventIndex i = 0; i < timeline.events.size() && finding.citations.size() < 4; ++i)
      if (const auto* init = std::get_if<CommInit>(&timeline.events[i].what); init != nullptr && init->bus_id && *init->bus_id == *lost.front()->bus_id) finding.citations.push_back(Cite(timeline, i, "context"));
    finding.remedies = RemediesFor("gpu-vanished");
    return finding;
  }
  return std::nullopt;
}

/// A host that lists fewer GPUs than each of the others.
std::optional<Finding> FindFewer(const Evidence& evidence, const std::vector<GpuHost>& hosts) {
  const auto count = [](const GpuHost& host) { return std::count_if(host.gpus.begin(), host.gpus.end(), [](const GpuSeen& gpu) { return gpu.event.has_value(); }); };
  std::vector<const GpuHost*> whole;
  for (const GpuHost& host : hosts)
    if (host.whole && host.host) whole.push_back(&host);
  if (whole.size() < 2) return std::nullopt;
  const auto fewest = *std::min_element(whole.begin(), whole.end(), [&](const GpuHost* a, const GpuHost* b) { return count(*a) < count(*b); });
  std::set<std::ptrdiff_t> others;
  for (const GpuHost* host : whole)
    if (host != fewest) others.insert(count(*host));
  if (others.size() != 1 || *others.begin() <= count(*fewest)) return std::nullopt;
  Finding finding;
  finding.rule = "host-lists-fewer-gpus";
  finding.cause = "gpu-fault";
  finding.strength = kSupporting;
  finding.confidence = 0.55;
  finding.claim = fmt::format("{} lists {} GPUs, the other hosts {} each: one is lost to its driver.", *fewest->host, count(*fewest), *others.begin());
  finding.explains = ExplainedBy("gpu-fault");
  Culprit culprit;
  culprit.host = fewest->host;
  culprit.why = "a GPU of it is missing";
  finding.culprits.push_back(std::move(culprit));
  for (const GpuSeen& gpu : fewest->gpus)
    if (gpu.event && finding.citations.size() < 2) finding.citations.push_back(Cite(evidence.timeline, *gpu.event, "cause"));
  finding.remedies = RemediesFor("host-lists-fewer-gpus");
  return finding;
}

// ---- what does not fit together --------------------------------------------------------------------------------

std::optional<Finding> FindDrivers(const Evidence& evidence, const std::vector<GpuHost>& hosts) {
  std::map<std::string, std::pair<std::string, EventIndex>> by_version;
  for (const GpuHost& host : hosts)
    for (const GpuSeen& gpu : host.gpus)
      if (host.host && gpu.event && !gpu.state.driver.empty()) by_version.try_emplace(gpu.state.driver, *host.host, *gpu.event);
  if (by_version.size() < 2) return std::nullopt;
  Finding finding;
  finding.rule = "drivers-differ";
  finding.cause = "version-incompatible";
  finding.strength = kHint;
  finding.confidence = 0.33;
  std::vector<std::string> said;
  for (const auto& [version, where] : by_version) {
    said.push_back(fmt::format("{} on {}", version, where.first));
    if (finding.citations.size() < kCited) finding.citations.push_back(Cite(evidence.timeline, where.second, "cause"));
  }
  finding.claim = fmt::format("The hosts run different drivers: {}.", fmt::join(said, ", "));
  finding.remedies = {{"Bring all hosts to one driver before looking further.", ""}};
  return finding;
}

/// NCCL sees the instances of one GPU as one device, and they have no peer-to-peer.
std::optional<Finding> FindMig(const Evidence& evidence, const std::vector<GpuHost>& hosts) {
  const bool several = std::any_of(evidence.timeline.communicators.begin(), evidence.timeline.communicators.end(), [](const CommunicatorRow& row) { return row.nranks > 1; });
  for (const GpuHost& host : hosts)
    for (const GpuSeen& gpu : host.gpus) {
      if (!several || !gpu.state.mig || !gpu.event || !gpu.rank) continue;
      Finding finding;
      finding.rule = "mig-under-nccl";
      finding.cause = "device-mapping";
      finding.strength = kHint;
      finding.confidence = 0.41;
      finding.claim = fmt::format("{} is split by MIG: NCCL takes instances of one GPU for one device, and they have no peer-to-peer.", NameOf(host, gpu));
      finding.citations = {Cite(evidence.timeline, *gpu.event, "cause")};
      finding.remedies = {{"Switch MIG off for jobs of several GPUs.", "nvidia-smi -i <index> -mig 0"}};
      return finding;
    }
  return std::nullopt;
}

std::vector<Finding> Run(const Evidence& evidence) {
  const std::vector<GpuHost> hosts = ReadGpus(evidence.timeline);
  if (hosts.empty() || NothingWrong(evidence)) return {};
  const bool failed = FailureSeen(evidence);
  std::map<std::string_view, std::vector<Held>> by_cause;
  for (Held& held : FindHeld(evidence, hosts, failed)) by_cause[held.meaning->cause].push_back(std::move(held));
  std::vector<Finding> out;
  for (const auto& [cause, held] : by_cause) out.push_back(FindingOf(evidence, held, failed));
  if (auto vanished = FindVanished(evidence, hosts)) out.push_back(std::move(*vanished));
  if (!failed) return out;
  if (auto fewer = FindFewer(evidence, hosts)) out.push_back(std::move(*fewer));
  if (auto drivers = FindDrivers(evidence, hosts)) out.push_back(std::move(*drivers));
  if (auto mig = FindMig(evidence, hosts)) out.push_back(std::move(*mig));
  return out;
}

constexpr std::string_view kFindings[] = {"gpu-unreadable", "gpu-needs-reset", "gpu-memory-worn", "gpu-memory-errors", "gpu-slowed-by-hardware", "gpu-warm", "fabric-incomplete",
                                          "fabric-unhealthy", "gpu-vanished", "host-lists-fewer-gpus", "drivers-differ", "mig-under-nccl"};

}  // namespace

const Detector kGpuState{"gpu-state", "nvidia-smi shows a GPU in a state in which it cannot serve a job, or no longer shows it.", kFindings, &Run};

}  // namespace inquest
