// DCGM's diagnostic found a GPU broken.
//
// What holds: a test of the hardware failed on a GPU of the job, or of its host. Why that implies the cause: the test
// asks the GPU alone, without the program. What looks like it: a warning, which jobs live with; a test of the software
// around the GPU (permissions, libraries, persistence mode), which says nothing of it; a GPU that the job does not use.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace gpu_diag {

constexpr FindingRow kFindings[] = {
    {"dcgm-gpu-fault", "of-job of-host outside", "what gpu detail"},
    {"dcgm-nvlink-fault", "of-job of-host outside", "what gpu detail"},
    {"dcgm-pcie-fault", "of-job of-host outside", "what gpu detail"},
    {"dcgm-thermal-power", "of-job of-host outside", "what gpu detail"},
};
using Found = FoundIn<kFindings>;

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// What a failed test says to be broken.
enum class Part : std::uint8_t { kGpu, kNvlink, kPcie, kPower };
struct Holds {
  Found::Held of_job, of_host, outside;
};
constexpr Holds kParts[] = {
    {{"dcgm-gpu-fault", "of-job"}, {"dcgm-gpu-fault", "of-host"}, {"dcgm-gpu-fault", "outside"}},
    {{"dcgm-nvlink-fault", "of-job"}, {"dcgm-nvlink-fault", "of-host"}, {"dcgm-nvlink-fault", "outside"}},
    {{"dcgm-pcie-fault", "of-job"}, {"dcgm-pcie-fault", "of-host"}, {"dcgm-pcie-fault", "outside"}},
    {{"dcgm-thermal-power", "of-job"}, {"dcgm-thermal-power", "of-host"}, {"dcgm-thermal-power", "outside"}},
};

/// nullopt: a test of the software.
std::optional<Part> PartOf(const GpuDiag& diag) {
  const std::string test = Lower(diag.test), detail = Lower(diag.detail);
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; };
  for (const std::string_view software :
       {"denylist", "blacklist", "nvml", "cuda main", "cuda toolkit", "permissions", "persistence", "environment",
        "graphics", "software", "page retirement/row remap pending"})
    if (has(test, software)) return std::nullopt;
  // An error of the diagnostic itself is a program or a setting that it lacks, unless it names the memory of a GPU.
  if (test == "error" && !has(detail, "uncorrectable") && !has(detail, "row remap") && !has(detail, "fallen off"))
    return std::nullopt;
  if (has(test, "nvlink") || has(test, "nvbandwidth") || has(detail, "nvlink")) return Part::kNvlink;
  if (has(test, "pcie") || has(detail, "pcie replay")) return Part::kPcie;
  if (has(test, "targeted power") || has(test, "targeted_power") || has(test, "pulse") ||
      has(detail, "thermal violation") || has(detail, "power brake"))
    return Part::kPower;
  return Part::kGpu;
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

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  std::map<Part, Held> by_part;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* diag = std::get_if<GpuDiag>(&timeline.events[i].what);
    if (diag == nullptr || !diag->failed) continue;
    const auto part = PartOf(*diag);
    if (!part) continue;
    Held& held = by_part[*part];
    held.events.push_back(i);
    held.of_job = held.of_job || OfJob(timeline, i);
  }
  const bool devices_known =
      std::any_of(timeline.processes.begin(), timeline.processes.end(),
                  [](const ProcessRow& row) { return row.rank && (row.nvml_dev || row.cuda_dev); });
  std::vector<Relation> out;
  for (const auto& [part, held] : by_part) {
    const auto& first = std::get<GpuDiag>(timeline.events[held.events.front()].what);
    // A GPU that no rank uses explains nothing; where the log does not say who uses which, the host's is the suspect.
    const bool outside = devices_known && !held.of_job && first.gpu;
    const Holds& holds = kParts[static_cast<std::size_t>(part)];
    Found found(outside ? holds.outside : held.of_job ? holds.of_job : holds.of_host);
    found.Say("what", first.test == "Error" ? "diagnostic stopped" : fmt::format("test {} failed", first.test));
    found.Say("gpu", first.gpu ? fmt::format(" on GPU {}", *first.gpu) : std::string());
    found.Say("detail", first.detail.empty() ? "" : ": " + Sentence(first.detail));
    for (const EventIndex event : held.events) {
      const auto& diag = std::get<GpuDiag>(timeline.events[event].what);
      const auto rank = timeline.RankOf(timeline.events[event]);
      Culprit culprit;
      if (rank) culprit = BlameRank(timeline, rank->value, "");
      culprit.why = fmt::format("failed DCGM's test {}", diag.test);
      if (!culprit.host) culprit.host = timeline.HostOf(timeline.events[event]);
      if (!culprit.gpu_index) culprit.gpu_index = diag.gpu;
      const bool known = std::any_of(found.culprits.begin(), found.culprits.end(), [&](const Culprit& c) {
        return c.rank == culprit.rank && c.host == culprit.host && c.gpu_index == culprit.gpu_index;
      });
      if (!known && (culprit.rank || culprit.host || culprit.gpu_index)) found.culprits.push_back(std::move(culprit));
      if (found.citations.size() < 4) found.citations.push_back(Cite(timeline, event, LineRole::kCause));
    }
    out.push_back(std::move(found));
  }
  return out;
}

}  // namespace gpu_diag

const Detector kGpuDiag{"dcgm-diag", "DCGM's diagnostic found a GPU broken.", gpu_diag::kFindings, &gpu_diag::Run};

}  // namespace inquest
