// What the hosts of one job declare of themselves differs, and the job failed before it came to its work.
//
// What holds: NCCL on two hosts prints two versions of itself, or talks over one network here and over another one
// there (RDMA, sockets, a plugin), and something failed or was given up while nothing had been done yet. Why that
// implies the cause: ranks of one communicator must speak one protocol over one kind of network; NCCL learns it only
// when they meet. What looks like it: two jobs in what was given; hosts that differ and worked together for a while,
// which shows that they can.
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/host_states.h"

namespace inquest {
namespace declared {

constexpr FindingRow kFindings[] = {
    {"nccl-versions-differ", "failed-at-start", "first on-first other on-other"},
    {"networks-differ", "failed-at-start", "network few other-network many"},
};
using Found = FoundIn<kFindings>;

using ByHost = std::map<std::string, EventIndex>;

/// What each host printed last of a kind.
template <class T>
ByHost Latest(const Timeline& timeline, bool (*counts)(const T&)) {
  const std::set<std::string>& hosts = timeline.JobHosts();
  ByHost out;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* what = std::get_if<T>(&timeline.events[i].what);
    if (what == nullptr || !counts(*what)) continue;
    if (const auto host = JobHostOf(timeline, hosts, timeline.events[i]); host && !host->empty()) out[*host] = i;
  }
  return out;
}

void FindVersions(const Timeline& timeline, std::vector<Relation>& out) {
  const ByHost versions =
      Latest<NcclVersion>(timeline, [](const NcclVersion& version) { return !version.version.empty(); });
  const auto of = [&](EventIndex event) -> const std::string& {
    return std::get<NcclVersion>(timeline.events[event].what).version;
  };
  const auto other = std::find_if(versions.begin(), versions.end(),
                                  [&](const auto& entry) { return of(entry.second) != of(versions.begin()->second); });
  if (other == versions.end()) return;
  Found found({"nccl-versions-differ", "failed-at-start"});
  found.Say("first", of(versions.begin()->second));
  found.Say("on-first", OnHost(versions.begin()->first));
  found.Say("other", of(other->second));
  found.Say("on-other", OnHost(other->first));
  found.citations = {Cite(timeline, versions.begin()->second, LineRole::kCause),
                     Cite(timeline, other->second, LineRole::kCause)};
  out.push_back(std::move(found));
}

/// What carries NCCL's messages on a host: by the name that NCCL gives it, or by the devices that it lists.
std::string CarriedBy(const Event& event) {
  const auto& used = std::get<NetworkUsed>(event.what);
  if (used.use == NetworkUsed::Use::kChosen) return used.devices.front();
  return used.use == NetworkUsed::Use::kRdma ? "IB" : "Socket";
}

void FindNetworks(const Timeline& timeline, std::vector<Relation>& out) {
  using Use = NetworkUsed::Use;
  ByHost networks = Latest<NetworkUsed>(timeline, [](const NetworkUsed& used) { return used.use == Use::kChosen; });
  networks.merge(Latest<NetworkUsed>(timeline, [](const NetworkUsed& used) { return used.use == Use::kRdma; }));
  networks.merge(Latest<NetworkUsed>(timeline, [](const NetworkUsed& used) { return used.use == Use::kSocket; }));
  std::map<std::string, ByHost> by_network;
  for (const auto& [host, event] : networks) by_network[CarriedBy(timeline.events[event])].emplace(host, event);
  if (by_network.size() < 2) return;
  const auto fewer = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  // Of as many hosts each, those without what makes a network fast are named first.
  const auto sockets = by_network.find("Socket");
  const auto fewest = std::ranges::min_element(by_network, fewer), most = std::ranges::max_element(by_network, fewer);
  const bool even = fewest->second.size() == most->second.size();
  const auto few = even && sockets != by_network.end() ? sockets : fewest;
  const auto many = even && few == most ? std::next(by_network.begin()) : most;
  Found found({"networks-differ", "failed-at-start"});
  const auto names = [](const ByHost& hosts) {
    std::vector<std::string> named;
    for (const auto& [host, event] : hosts)
      if (named.size() < 4) named.push_back(host);
    return fmt::format("{}{}", fmt::join(named, ", "),
                       hosts.size() > named.size() ? fmt::format(" and {} more", hosts.size() - named.size()) : "");
  };
  found.Say("network", few->first);
  found.Say("few", names(few->second));
  found.Say("other-network", many->first);
  found.Say("many", names(many->second));
  if (!even)
    for (const auto& [host, event] : few->second)
      for (Culprit& culprit : BlameHost(host, "")) found.culprits.push_back(std::move(culprit));
  found.citations = {Cite(timeline, few->second.begin()->second, LineRole::kCause),
                     Cite(timeline, many->second.begin()->second, LineRole::kCause)};
  out.push_back(std::move(found));
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Relation> out;
  const auto since = evidence.course.since();
  if (!since || evidence.course.WorkedBefore(*since)) return out;
  FindVersions(evidence.timeline, out);
  FindNetworks(evidence.timeline, out);
  return out;
}

}  // namespace declared

extern const Detector kDeclared{"declared", "What the hosts of one job declare of themselves differs.",
                                declared::kFindings, &declared::Run};

}  // namespace inquest
