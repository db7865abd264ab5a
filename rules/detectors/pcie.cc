// A PCIe link under a device of the job failed.
//
// What holds: a port or a device reported a fatal error, the link went down or was cut off by the port, not long before
// the failure. Why that implies the cause: the device behind it is gone for the driver, seconds before it says so. What
// looks like it: errors of links that the job does not use, as of a disk; corrected errors, which a retry mends; the
// other end of an Xid 79 that has no PCIe error before it.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/thresholds.h"

namespace inquest {
namespace pcie {

constexpr FindingRow kFindings[] = {
    {"pcie-link-broken", "gpu network port other", "device on-host detail"},
    {"pcie-error-mended", "mended"},
};
using Found = FoundIn<kFindings>;

using Severity = PcieError::Severity;

/// How much a link matters to the job.
enum class Whose : std::uint8_t { kOther, kPort, kNetwork, kGpu };

bool IsBreak(const PcieError& error) {
  if (error.recovered || error.severity == Severity::kCorrected) return false;
  return error.severity == Severity::kFatal || error.severity == Severity::kContained ||
         error.severity == Severity::kLinkDown || error.detail.find("SDES") != std::string::npos ||
         error.detail.find("Surprise Down") != std::string::npos;
}

/// Whether the NVIDIA driver lost a GPU of that log soon after: the port above it has an address of its own.
bool GpuLostAfter(const Timeline& timeline, const std::vector<EventIndex>& losses, EventIndex error) {
  const Event& before = timeline.events[error];
  return std::any_of(losses.begin(), losses.end(), [&](EventIndex loss) {
    const Event& event = timeline.events[loss];
    if (event.where.input != before.where.input || event.where < before.where) return false;
    const auto up = UptimeOf(before.what), down = UptimeOf(event.what);
    if (up && down) return *down - *up < thresholds::kLinkThenDriver;
    return !event.at || !before.at || event.at->at - before.at->at < thresholds::kLinkThenDriver;
  });
}

/// Where a GPU was lost.
std::vector<EventIndex> Losses(const Timeline& timeline) {
  std::vector<EventIndex> losses;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* xid = std::get_if<XidReported>(&timeline.events[i].what);
    const auto* fault = std::get_if<DriverFault>(&timeline.events[i].what);
    if ((xid != nullptr && xid->xid == 79) || (fault != nullptr && fault->how == DriverFault::How::kFallenOffBus))
      losses.push_back(i);
  }
  return losses;
}

Whose WhoseIs(const Timeline& timeline, const std::vector<EventIndex>& losses, EventIndex index,
              const PcieError& error) {
  if (error.reporter == "nvidia" || timeline.ProcessOf(timeline.events[index]) || GpuLostAfter(timeline, losses, index))
    return Whose::kGpu;
  if (error.reporter.starts_with("mlx5") || error.reporter == "efa" || error.reporter == "irdma" ||
      error.reporter == "bnxt_en")
    return Whose::kNetwork;
  return error.reporter.empty() || error.reporter == "pcieport" || error.reporter == "pciehp" ? Whose::kPort
                                                                                              : Whose::kOther;
}

struct Break {
  EventIndex event = 0;
  Whose whose = Whose::kOther;
};

std::string NameOf(const Timeline& timeline, const Break& broken) {
  const auto& error = std::get<PcieError>(timeline.events[broken.event].what);
  const std::string_view what = broken.whose == Whose::kGpu && error.reporter == "nvidia" ? "GPU"
                                : broken.whose == Whose::kNetwork                         ? "network card"
                                : error.reporter == "pcieport" || error.reporter.empty()  ? "port"
                                                                                          : "device";
  return error.bus_id.empty() ? fmt::format("a {}", what) : fmt::format("{} {}", what, error.bus_id);
}

Culprit Blame(const Timeline& timeline, const Break& broken, const std::string& why) {
  const Event& event = timeline.events[broken.event];
  const auto rank = timeline.RankOf(event);
  Culprit culprit = rank ? BlameRank(timeline, rank->value, why) : Culprit();
  culprit.why = why;
  if (!culprit.host) culprit.host = timeline.HostOf(event);
  if (const auto& error = std::get<PcieError>(event.what);
      !error.bus_id.empty() && (rank || broken.whose == Whose::kGpu))
    culprit.bus_id = error.bus_id;
  return culprit;
}

/// By whose link it is.
constexpr Found::Held kBroken[] = {{"pcie-link-broken", "other"},
                                   {"pcie-link-broken", "port"},
                                   {"pcie-link-broken", "network"},
                                   {"pcie-link-broken", "gpu"}};

Found FoundOf(const Evidence& evidence, std::vector<Break> breaks) {
  const Timeline& timeline = evidence.timeline;
  const Whose most = std::max_element(breaks.begin(), breaks.end(), [](const Break& a, const Break& b) {
                       return a.whose < b.whose;
                     })->whose;
  std::erase_if(breaks, [&](const Break& broken) { return broken.whose != most; });
  Found found(kBroken[static_cast<std::size_t>(most)]);
  found.times = breaks.size();
  const auto& first = std::get<PcieError>(timeline.events[breaks.front().event].what);
  const std::string detail = first.detail.empty() ? std::string() : fmt::format(" ({})", first.detail);
  std::set<std::pair<std::string, std::optional<GlobalRank>>> blamed;
  for (const Break& broken : breaks) {
    if (found.citations.size() < 4) found.citations.push_back(Cite(timeline, broken.event, LineRole::kCause));
    Culprit culprit =
        Blame(timeline, broken, fmt::format("its PCIe link broke: {}{}", NameOf(timeline, broken), detail));
    const auto key = std::pair(culprit.host.value_or(""), culprit.rank);
    const bool covered = !culprit.rank && std::any_of(blamed.begin(), blamed.end(),
                                                      [&](const auto& other) { return other.first == key.first; });
    if ((culprit.host || culprit.rank) && !covered && blamed.insert(key).second)
      found.culprits.push_back(std::move(culprit));
  }
  const auto host = timeline.HostOf(timeline.events[breaks.front().event]);
  found.Say("device", NameOf(timeline, breaks.front()));
  found.Say("on-host", host ? " on " + *host : "");
  found.Say("detail", detail);
  return found;
}

Found Mended(const Evidence& evidence, const std::vector<EventIndex>& mended) {
  Found found({"pcie-error-mended", "mended"});
  found.times = mended.size();
  found.citations.push_back(Cite(evidence.timeline, mended.front(), LineRole::kCause));
  if (const auto host = evidence.timeline.HostOf(evidence.timeline.events[mended.front()])) {
    Culprit culprit;
    culprit.host = host;
    found.culprits.push_back(std::move(culprit));
  }
  return found;
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Break> breaks;
  std::vector<EventIndex> mended;
  const std::vector<EventIndex> losses = Losses(evidence.timeline);
  for (EventIndex i = 0; i < evidence.timeline.events.size(); ++i) {
    const Event& event = evidence.timeline.events[i];
    const auto* error = std::get_if<PcieError>(&event.what);
    if (error == nullptr || error->severity == Severity::kLinkUp ||
        evidence.scope.Of(event) != KernelScope::Outside::kNo)
      continue;
    if (IsBreak(*error))
      breaks.push_back({i, WhoseIs(evidence.timeline, losses, i, *error)});
    else
      mended.push_back(i);
  }
  // A port that reports for a device which the job does not use, a few lines further on, is that device's.
  for (Break& port : breaks) {
    const SourcePos& where = evidence.timeline.events[port.event].where;
    const auto is_its = [&](const Break& other) {
      const SourcePos& at = evidence.timeline.events[other.event].where;
      return other.whose == Whose::kOther && at.input == where.input && at.line >= where.line &&
             at.line < where.line + thresholds::kOnePcieReport;
    };
    if (port.whose == Whose::kPort && std::any_of(breaks.begin(), breaks.end(), is_its)) port.whose = Whose::kOther;
  }
  std::vector<Relation> out;
  if (!breaks.empty()) out.push_back(FoundOf(evidence, std::move(breaks)));
  if (!mended.empty()) out.push_back(Mended(evidence, mended));
  return out;
}

}  // namespace pcie

const Detector kPcie{"pcie", "A PCIe link under a device of the job failed.", pcie::kFindings, &pcie::Run};

}  // namespace inquest
