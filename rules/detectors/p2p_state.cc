// GPU peer-to-peer stands still or fails on a host whose bridges or IOMMU send such traffic through the root.
//
// What holds: lspci shows access control (ACS) on at a bridge, or the IOMMU translates and is not in pass-through, and
// the job's traffic goes over GPU peer-to-peer and failed there or stopped. Why that implies the cause: with either,
// what one device writes to another is checked and turned round at the root complex, which many boards do wrongly or
// not at all. What looks like it: most machines that are well have an IOMMU, and virtual ones ACS; so this only ever
// supports.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/ascii.h"
#include "rules/detectors.h"
#include "rules/host_states.h"

namespace inquest {
namespace p2p_state {

constexpr FindingRow kFindings[] = {
    {"peer-traffic-redirected", "failed may-hang", "setting traffic"},
    {"link-narrow", "failed stalled", "device on-host width widest"},
};
using Found = FoundIn<kFindings>;

struct Setting {
  EventIndex event = 0;
  std::string what;
};

/// What a host has that turns peer-to-peer round. ACS is the surer one.
std::optional<Setting> Redirects(const Timeline& timeline) {
  const std::set<std::string>& hosts = timeline.JobHosts();
  std::optional<Setting> found;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* access = std::get_if<PcieAcs>(&timeline.events[i].what);
    const auto* fact = std::get_if<HostFact>(&timeline.events[i].what);
    if ((access == nullptr && fact == nullptr) || !JobHostOf(timeline, hosts, timeline.events[i])) continue;
    if (access != nullptr && access->on)
      return Setting{i, fmt::format("Access control (ACS) is on at {}{}",
                                    access->bus_id.empty() ? "a PCI bridge" : "PCI bridge " + access->bus_id,
                                    OnHost(timeline.HostOf(timeline.events[i]).value_or("")))};
    if (fact == nullptr) continue;
    const bool command = fact->of == HostFact::Of::kCommandLine;
    if ((command && Contains(fact->value, "iommu=pt")) ||
        (fact->of == HostFact::Of::kIommu && fact->value != "Translated"))
      return std::nullopt;
    const bool on = (command && (Contains(fact->value, "intel_iommu=on") || Contains(fact->value, "amd_iommu=on"))) ||
                    fact->of == HostFact::Of::kIommu;
    if (on && !found)
      found = Setting{i, fmt::format("The IOMMU{} is on and not in pass-through",
                                     OnHost(timeline.HostOf(timeline.events[i]).value_or("")))};
  }
  return found;
}

std::optional<EventIndex> PeerChannels(const Timeline& timeline) {
  for (EventIndex i = 0; i < timeline.events.size(); ++i)
    if (const auto* via = std::get_if<ChannelsVia>(&timeline.events[i].what);
        via != nullptr && (via->via.rfind("P2P/", 0) == 0 || Contains(via->via, "GDRDMA")))
      return i;
  return std::nullopt;
}

/// Between GPUs that have it, peer-to-peer goes over NVLink and meets no bridge.
bool HasNvlink(const Timeline& timeline) {
  return std::any_of(timeline.events.begin(), timeline.events.end(), [](const Event& event) {
    const auto* row = std::get_if<GpuTopologyRow>(&event.what);
    return row != nullptr && std::any_of(row->peers.begin(), row->peers.end(),
                                         [](const auto& peer) { return peer.second.starts_with("NV"); });
  });
}

/// Nothing says that the job went on, ended, or failed of something of its own.
bool MayHang(const Evidence& evidence) {
  for (const Event& event : evidence.timeline.events)
    if (std::holds_alternative<ExceptionRaised>(event.what)) return false;
  return std::none_of(evidence.matches.begin(), evidence.matches.end(), [&](const LineMatch& match) {
    return evidence.book.rules[match.rule].kind == Rule::Kind::kEnding;
  });
}

// A card whose link is narrower than those of its like on the same host: a slot or a riser. Speed says nothing, an idle
// card lowers it; nor does a board whose slots are all narrow.
std::vector<Relation> FindNarrow(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  const std::set<std::string>& hosts = timeline.JobHosts();
  const auto stall = evidence.course.first_time_out();
  const auto failure = FirstLineFor(evidence, {"pcie-fault", "gpu-fault"});
  if (!stall && !failure) return {};
  std::map<std::string, int> widest;  // by host and name
  const auto key_of = [&](const Event& event, const PcieLink& link) {
    return JobHostOf(timeline, hosts, event).value_or("?") + "|" + link.name;
  };
  for (const Event& event : timeline.events)
    if (const auto* link = std::get_if<PcieLink>(&event.what))
      widest[key_of(event, *link)] = std::max(widest[key_of(event, *link)], link->width);
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* link = std::get_if<PcieLink>(&timeline.events[i].what);
    if (link == nullptr || link->width == 0 || link->width >= link->capable_width) continue;
    const auto host = JobHostOf(timeline, hosts, timeline.events[i]);
    if (!host || widest[key_of(timeline.events[i], *link)] <= link->width) continue;
    Found found(failure ? Found::Held{"link-narrow", "failed"} : Found::Held{"link-narrow", "stalled"});
    found.Say("device", link->bus_id);
    found.Say("on-host", OnHost(*host));
    found.Say("width", std::to_string(link->width));
    found.Say("widest", std::to_string(widest[key_of(timeline.events[i], *link)]));
    found.culprits = BlameHost(*host, "");
    if (!found.culprits.empty()) found.culprits.front().bus_id = link->bus_id;
    if (failure) found.citations.push_back(Cite(timeline, *failure, LineRole::kCause));
    found.citations.push_back(Cite(timeline, i, LineRole::kCause));
    return {found};
  }
  return {};
}

std::vector<Relation> FindRedirected(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  const auto setting = Redirects(timeline);
  if (!setting || HasNvlink(timeline)) return {};
  const auto failure = FirstLineFor(evidence, {"p2p-transport"});
  const auto channels = PeerChannels(timeline);
  const auto stall = evidence.course.first_time_out();
  const bool trained = std::any_of(evidence.phases.begin(), evidence.phases.end(),
                                   [](const PhaseSeen& phase) { return phase.at == Activity::kTraining; });
  if (!failure && !(channels && MayHang(evidence) && (stall || !trained))) return {};
  Found found(failure ? Found::Held{"peer-traffic-redirected", "failed"}
                      : Found::Held{"peer-traffic-redirected", "may-hang"});
  found.Say("setting", setting->what);
  found.Say("traffic", failure ? "GPU peer-to-peer traffic of the job failed" : "the job's GPUs talk peer to peer");
  found.citations.push_back(Cite(timeline, failure ? *failure : *channels, LineRole::kCause));
  found.citations.push_back(Cite(timeline, setting->event, LineRole::kCause));
  return {found};
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Relation> out = FindRedirected(evidence);
  std::vector<Relation> narrow = FindNarrow(evidence);
  out.insert(out.end(), std::make_move_iterator(narrow.begin()), std::make_move_iterator(narrow.end()));
  return out;
}

}  // namespace p2p_state

const Detector kP2pState{"p2p-state",
                         "GPU peer-to-peer fails on a host whose bridges or IOMMU send it through the root; or a PCIe "
                         "link is narrower than its like.",
                         p2p_state::kFindings, &p2p_state::Run};

}  // namespace inquest
