// A GPU's link, PCIe or NVLink, is worse than those of the GPUs beside it.
//
// What holds: one GPU's PCIe link is narrower or slower than it could be, an NVLink of it is inactive or counts errors,
// or its row of the topology shows no NVLink, and its neighbours of the same kind, or all boards of its kind, have what
// it lacks. Why that implies the cause: equal cards in equal slots differ only by a fault. What looks like it: a PCIe
// generation that drops while a GPU idles, a board that gives every card eight lanes, cards that are bridged in pairs,
// GPUs that have no NVLink at all.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/gpu_view.h"
#include "rules/host_states.h"
#include "rules/thresholds.h"

namespace inquest {
namespace gpu_links {

constexpr FindingRow kFindings[] = {
    {"pcie-width-reduced", "job-failed seen-only", "gpu value"},
    {"pcie-speed-reduced", "job-failed seen-only", "gpu value"},
    {"nvlink-inactive", "job-failed seen-only", "gpu what"},
    {"nvlink-counts-errors", "counted", "gpu value"},
    {"nvlink-missing-in-topology", "job-failed seen-only", "gpus whom usual"},
    {"p2p-missing-in-topology", "job-failed seen-only", "gpus whom usual"},
};
using Found = FoundIn<kFindings>;

struct Lacking {
  const GpuSeen* gpu;
  EventIndex event;
};

Found FoundOf(const Evidence& evidence, const GpuHost& host, const std::vector<Lacking>& lacking, Found::Held held) {
  Found found(held);
  std::set<const GpuSeen*> blamed;
  for (const Lacking& l : lacking) {
    if (blamed.insert(l.gpu).second) found.culprits.push_back(BlameGpu(evidence.timeline, host, *l.gpu, ""));
    if (found.citations.size() < 6) found.citations.push_back(Cite(evidence.timeline, l.event, LineRole::kCause));
  }
  found.Say("gpu", NameOf(host, *lacking.front().gpu));
  return found;
}

struct Weight {
  Found::Held job_failed, seen_only;
};
constexpr Weight kWidth{{"pcie-width-reduced", "job-failed"}, {"pcie-width-reduced", "seen-only"}};
constexpr Weight kSpeed{{"pcie-speed-reduced", "job-failed"}, {"pcie-speed-reduced", "seen-only"}};
constexpr Weight kInactive{{"nvlink-inactive", "job-failed"}, {"nvlink-inactive", "seen-only"}};
constexpr Weight kNoNvlink{{"nvlink-missing-in-topology", "job-failed"}, {"nvlink-missing-in-topology", "seen-only"}};
constexpr Weight kNoPeers{{"p2p-missing-in-topology", "job-failed"}, {"p2p-missing-in-topology", "seen-only"}};
Found::Held Of(const Weight& weight, bool failed) { return failed ? weight.job_failed : weight.seen_only; }

// ---- PCIe ------------------------------------------------------------------------------------------------------

bool IsUnderLoad(const GpuSnapshot& gpu) {
  return gpu.utilization_percent.value_or(0) >= thresholds::kUnderLoadPercent;
}

void FindPcie(const Evidence& evidence, const GpuHost& host, bool failed, std::vector<Relation>& out) {
  for (const std::string_view property : {"pcie.link.width.current", "pcie.link.gen.current"}) {
    const bool width = property == "pcie.link.width.current";
    std::vector<Lacking> lacking;
    std::size_t whole = 0;
    std::string value;
    for (const GpuSeen& gpu : host.gpus) {
      const auto &now = width ? gpu.state.pcie_width : gpu.state.pcie_gen,
                 &most = width ? gpu.state.pcie_width_max : gpu.state.pcie_gen_max;
      if (!now || !most) continue;
      if (*now >= *most) ++whole;
      // The generation falls when a GPU has nothing to do, and some cards give up lanes with it.
      else if (IsUnderLoad(gpu.state) || (width && gpu.state.pcie_gen && gpu.state.pcie_gen == gpu.state.pcie_gen_max))
        for (const auto& condition : gpu.conditions)
          if (condition.what->property == property && !IsOfOtherJob(evidence.timeline, host, gpu)) {
            lacking.push_back({&gpu, condition.event});
            value = condition.what->value;
            break;
          }
    }
    if (lacking.empty() || lacking.size() > whole) continue;  // where most are so, the board is built so
    Found found = FoundOf(evidence, host, lacking, Of(width ? kWidth : kSpeed, failed));
    found.Say("value", value);
    out.push_back(std::move(found));
  }
}

// ---- NVLink ----------------------------------------------------------------------------------------------------

/// Boards on which every NVLink of a GPU leads to a switch. Others are wired in pairs or in part, by their maker's
/// choice.
bool AllLinksWired(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("PCIe") || has("PCIE") || has("NVL")) return false;
  return has("A100-SXM") || has("A800-SXM") || has("H100") || has("H800") || has("H200") || has("H20") || has("B200") ||
         has("B300");
}

void FindNvlinkStates(const Evidence& evidence, const GpuHost& host, bool failed, std::vector<Relation>& out) {
  std::map<std::string, int> most;
  for (const GpuSeen& gpu : host.gpus)
    if (gpu.state.nvlinks_active) most[gpu.state.name] = std::max(most[gpu.state.name], *gpu.state.nvlinks_active);
  std::vector<Lacking> lacking;
  std::size_t whole = 0;
  for (const GpuSeen& gpu : host.gpus) {
    if (!gpu.state.nvlinks_active) continue;
    const bool in_part = *gpu.state.nvlinks_active > 0 && gpu.state.nvlinks_inactive.value_or(0) > 0;
    if (*gpu.state.nvlinks_active == most[gpu.state.name] && !(in_part && AllLinksWired(gpu.state.name)))
      ++whole;
    else if (gpu.state.nvlinks_inactive.value_or(0) > 0 && !IsOfOtherJob(evidence.timeline, host, gpu))
      for (const auto& condition : gpu.conditions)
        if (condition.what->property == "nvlink.state") lacking.push_back({&gpu, condition.event});
  }
  const bool wired = !lacking.empty() && std::all_of(lacking.begin(), lacking.end(), [](const Lacking& l) {
    return l.gpu->state.nvlinks_active.value_or(0) > 0 && AllLinksWired(l.gpu->state.name);
  });
  if (lacking.empty() || (whole == 0 && !wired)) return;
  Found found = FoundOf(evidence, host, lacking, Of(kInactive, failed));
  found.Say("what", whole > 0 ? "NVLinks of it are inactive that are active on other GPUs of the host"
                              : "some of its NVLinks are inactive, and a board of its kind uses them all");
  out.push_back(std::move(found));
}

void FindNvlinkErrors(const Evidence& evidence, const GpuHost& host, std::vector<Relation>& out) {
  std::vector<Lacking> lacking;
  std::string value;
  for (const GpuSeen& gpu : host.gpus)
    for (const auto& condition : gpu.conditions)
      if (condition.what->property == "nvlink.errors" && !IsOfOtherJob(evidence.timeline, host, gpu)) {
        if (value.empty()) value = condition.what->value;
        lacking.push_back({&gpu, condition.event});
      }
  if (lacking.empty()) return;
  Found found = FoundOf(evidence, host, lacking, {"nvlink-counts-errors", "counted"});
  found.Say("value", value);
  out.push_back(std::move(found));
}

// ---- topology --------------------------------------------------------------------------------------------------

bool IsNvlink(const std::string& cell) { return cell.starts_with("NV"); }

/// The GPUs that are in every pair which lacks what all the other pairs have: one GPU, or the two of one pair.
std::vector<int> Outsiders(const std::map<std::pair<int, int>, std::string>& pairs, const std::string& usual) {
  std::map<int, std::size_t> lacks;
  std::size_t lacking = 0;
  for (const auto& [pair, cell] : pairs) {
    if (cell == usual) continue;
    ++lacking;
    ++lacks[pair.first];
    ++lacks[pair.second];
  }
  std::vector<int> out;
  for (const auto& [gpu, count] : lacks)
    if (count == lacking) out.push_back(gpu);
  return lacking == 1 || out.size() == 1 ? out : std::vector<int>();
}

void FindTopology(const Evidence& evidence, const GpuHost& host, bool failed, std::vector<Relation>& out) {
  std::map<std::pair<int, int>, std::string> nvlink, p2p;
  std::map<int, EventIndex> rows;
  for (const auto& row : host.topology)
    for (const auto& [peer, cell] : row.what->peers) {
      const auto pair = std::minmax(row.what->index, peer);
      const bool capability =
          cell == "OK" || cell == "NS" || cell == "CNS" || cell == "TNS" || cell == "GNS" || cell == "DR";
      (capability ? p2p : nvlink)[{pair.first, pair.second}] = cell;
      if (!IsNvlink(cell) && cell != "OK") rows.try_emplace(row.what->index, row.event);
      rows.try_emplace(row.what->index, row.event);
    }
  const auto judge = [&](const std::map<std::pair<int, int>, std::string>& pairs, bool of_nvlink) {
    std::set<int> gpus;
    std::map<std::string, std::size_t> kinds;
    for (const auto& [pair, cell] : pairs) {
      gpus.insert({pair.first, pair.second});
      ++kinds[cell];
    }
    if (gpus.size() < 4 || kinds.size() < 2 || pairs.size() != gpus.size() * (gpus.size() - 1) / 2) return;
    std::string usual;
    std::vector<int> outsiders;
    for (const auto& [kind, count] : kinds)
      if (2 * count >= pairs.size() && (of_nvlink ? IsNvlink(kind) : kind == "OK") && outsiders.empty()) {
        usual = kind;
        outsiders = Outsiders(pairs, kind);
      }
    if (outsiders.empty()) return;
    Found found(Of(of_nvlink ? kNoNvlink : kNoPeers, failed));
    for (const int index : outsiders) {
      const auto gpu =
          std::find_if(host.gpus.begin(), host.gpus.end(), [&](const GpuSeen& g) { return g.state.id.index == index; });
      Culprit culprit;
      if (gpu != host.gpus.end())
        culprit = BlameGpu(evidence.timeline, host, *gpu, "");
      else
        culprit.why = "the topology lacks its link";
      if (!culprit.host) culprit.host = host.host;
      culprit.gpu_index = index;
      found.culprits.push_back(std::move(culprit));
      found.citations.push_back(Cite(evidence.timeline, rows.at(index), LineRole::kCause));
    }
    found.Say("gpus", fmt::format("GPU{} {}", PluralS(outsiders.size()), FoldRanks(outsiders)));
    found.Say("whom", outsiders.size() > 1 ? "each other" : "the others");
    found.Say("usual", usual);
    out.push_back(std::move(found));
  };
  judge(nvlink, true);
  judge(p2p, false);
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Relation> out;
  const bool failed = SawFailure(evidence);
  for (const GpuHost& host : ReadGpus(evidence.timeline)) {
    FindPcie(evidence, host, failed, out);
    FindNvlinkStates(evidence, host, failed, out);
    FindTopology(evidence, host, failed, out);
    if (failed) FindNvlinkErrors(evidence, host, out);
  }
  return out;
}

}  // namespace gpu_links

const Detector kGpuLinks{"gpu-links", "A GPU's link, PCIe or NVLink, is worse than those of the GPUs beside it.",
                         gpu_links::kFindings, &gpu_links::Run};

}  // namespace inquest
