// DCGM's diagnostic found a GPU broken.
//
// What holds: a test of the hardware failed on a GPU of the job, or of its host. Why that implies the cause: the test asks
// the GPU alone, without the program. What looks like it: a warning, which jobs live with; a test of the software around
// the GPU (permissions, libraries, persistence mode), which says nothing of it; a GPU that the job does not use.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace {

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The cause that a failed test speaks for. Empty: a test of the software.
std::string_view CauseOf(const GpuDiag& diag) {
  const std::string test = Lower(diag.test), detail = Lower(diag.detail);
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; };
  for (const std::string_view software : {"denylist", "blacklist", "nvml", "cuda main", "cuda toolkit", "permissions", "persistence", "environment", "graphics", "software", "page retirement/row remap pending"})
    if (has(test, software)) return {};
  // An error of the diagnostic itself is a program or a setting that it lacks, unless it names the memory of a GPU.
  if (test == "error" && !has(detail, "uncorrectable") && !has(detail, "row remap") && !has(detail, "fallen off")) return {};
  if (has(test, "nvlink") || has(test, "nvbandwidth") || has(detail, "nvlink")) return "nvlink-fault";
  if (has(test, "pcie") || has(detail, "pcie replay")) return "pcie-fault";
  if (has(test, "targeted power") || has(test, "targeted_power") || has(test, "pulse") || has(detail, "thermal violation") || has(detail, "power brake")) return "thermal-power";
  return "gpu-fault";
}

/// Its beginning, without the full stop that ends ours.
std::string Sentence(std::string text) {
  constexpr std::size_t kBytes = 160;
  if (text.size() > kBytes) text = text.substr(0, text.rfind(' ', kBytes)) + " ...";
  while (text.ends_with('.') && !text.ends_with("...")) text.pop_back();
  return text;
}

struct Held {
  std::vector<EventIndex> events;
  bool of_job = false;
};

bool OfJob(const Timeline& timeline, EventIndex index) { return timeline.RankOf(timeline.events[index]).has_value(); }

std::vector<Finding> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  std::map<std::string, Held> by_cause;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* diag = std::get_if<GpuDiag>(&timeline.events[i].what);
    if (diag == nullptr || !diag->failed) continue;
    const std::string_view cause = CauseOf(*diag);
    if (cause.empty()) continue;
    Held& held = by_cause[std::string(cause)];
    held.events.push_back(i);
    held.of_job = held.of_job || OfJob(timeline, i);
  }
  const bool devices_known = std::any_of(timeline.processes.begin(), timeline.processes.end(), [](const ProcessRow& row) { return row.rank && (row.nvml_dev || row.cuda_dev); });
  std::vector<Finding> out;
  for (const auto& [cause, held] : by_cause) {
    const auto& first = std::get<GpuDiag>(timeline.events[held.events.front()].what);
    Finding finding;
    finding.rule = "dcgm-" + cause;
    finding.cause = cause;
    // A GPU that no rank uses explains nothing; where the log does not say who uses which, the host's is the suspect.
    const bool outside = devices_known && !held.of_job && first.gpu;
    finding.strength = outside ? Strength::kHint : Strength::kSupporting;
    finding.confidence = outside ? 0.3 : held.of_job ? 0.8 : 0.65;
    const std::string what = first.test == "Error" ? "diagnostic stopped" : fmt::format("test {} failed", first.test);
    finding.claim = fmt::format("DCGM's {}{}{}.", what, first.gpu ? fmt::format(" on GPU {}", *first.gpu) : std::string(), first.detail.empty() ? "" : ": " + Sentence(first.detail));
    for (const EventIndex event : held.events) {
      const auto& diag = std::get<GpuDiag>(timeline.events[event].what);
      const auto rank = timeline.RankOf(timeline.events[event]);
      Culprit culprit;
      if (rank) culprit = BlameRank(timeline, rank->value, "");
      culprit.why = fmt::format("failed DCGM's test {}", diag.test);
      if (!culprit.host) culprit.host = timeline.HostOf(timeline.events[event]);
      if (!culprit.gpu_index) culprit.gpu_index = diag.gpu;
      const bool known = std::any_of(finding.culprits.begin(), finding.culprits.end(), [&](const Culprit& c) { return c.rank == culprit.rank && c.host == culprit.host && c.gpu_index == culprit.gpu_index; });
      if (!known && (culprit.rank || culprit.host || culprit.gpu_index)) finding.culprits.push_back(std::move(culprit));
      if (finding.citations.size() < 4) finding.citations.push_back(Cite(timeline, event, "cause"));
    }
    if (!outside) finding.explains = {"rank-absent", "p2p-transport"};
    out.push_back(std::move(finding));
  }
  return out;
}

constexpr std::string_view kFindings[] = {"dcgm-gpu-fault", "dcgm-nvlink-fault", "dcgm-pcie-fault", "dcgm-thermal-power"};

}  // namespace

const Detector kGpuDiag{"dcgm-diag", "DCGM's diagnostic found a GPU broken.", kFindings, &Run};

}  // namespace inquest
