// NCCL was told of an interface that the host has not, chose one that is down, or hosts chose networks that do not
// meet.
//
// What holds: a host's list of interfaces lacks the name that NCCL_SOCKET_IFNAME asks for, or shows the one that NCCL
// chose as down; or the hosts of one job bootstrap with addresses of different private networks; and connections
// failed. Why that implies the cause: an address that others cannot reach makes each of them wait or give up. What
// looks like it: names that differ from host to host on one network, and a list of interfaces that is incomplete: it
// counts only with its loopback.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/host_states.h"

namespace inquest {
namespace interfaces {

constexpr FindingRow kFindings[] = {
    {"interface-missing", "listed", "asked on-host names"},
    {"interface-down", "shown", "name on-host"},
    {"hosts-on-different-networks", "unreachable failed", "first-host first-network other-host other-network"},
    {"mtu-differs", "shown", "small small-host large large-host"},
    {"virtual-interface-among-real", "unreachable silent", "virtual real on-host"},
};
using Found = FoundIn<kFindings>;

struct Shown {
  std::map<std::string, EventIndex> names;  ///< interfaces, by name: the line to cite
  std::set<std::string> down;
};

struct Job {
  std::map<std::string, Shown> shown;               ///< by host
  std::map<std::string, EventIndex> asked, chosen;  ///< by host: NCCL_SOCKET_IFNAME; the bootstrap's interface
};

Job Read(const Timeline& timeline) {
  const std::set<std::string>& hosts = timeline.JobHosts();
  Job job;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    const auto* port = std::get_if<LinkPort>(&event.what);
    const auto* variable = std::get_if<EnvironmentSet>(&event.what);
    const auto* used = std::get_if<NetworkUsed>(&event.what);
    if (port == nullptr && variable == nullptr && used == nullptr) continue;
    const auto host = JobHostOf(timeline, hosts, event);
    if (!host) continue;
    if (port != nullptr && port->port == 0) {
      job.shown[*host].names.emplace(port->device, i);
      if (port->state == LinkPort::State::kDown) job.shown[*host].down.insert(port->device);
    }
    if (variable != nullptr && variable->name == "NCCL_SOCKET_IFNAME") job.asked.emplace(*host, i);
    if (used != nullptr && used->use == NetworkUsed::Use::kBootstrap) job.chosen.emplace(*host, i);
  }
  return job;
}

/// Whether an interface is what `eth,ib0`, `=eth0`, `^docker,lo` asks for.
bool Fits(std::string_view asked, const std::string& name) {
  const bool without = asked.starts_with('^');
  if (without) asked.remove_prefix(1);
  const bool exact = asked.starts_with('=');
  if (exact) asked.remove_prefix(1);
  bool found = false;
  while (!asked.empty()) {
    std::string_view one = asked.substr(0, asked.find(','));
    asked.remove_prefix(std::min(one.size() + 1, asked.size()));
    one = one.substr(0, one.find(':'));
    found = found || (!one.empty() && (exact ? name == one : std::string_view(name).starts_with(one)));
  }
  return found != without;
}

void FindMissing(const Evidence& evidence, const Job& job, std::vector<Relation>& out) {
  const Timeline& timeline = evidence.timeline;
  const auto failure = FirstLineFor(evidence, {"interface-selection", "peer-unreachable", "rendezvous"});
  if (!failure) return;
  for (const auto& [host, asked] : job.asked) {
    const auto shown = job.shown.find(host);
    const std::string& value = std::get<EnvironmentSet>(timeline.events[asked].what).value;
    if (shown == job.shown.end() || !shown->second.names.contains("lo") || shown->second.names.size() < 2) continue;
    if (std::any_of(shown->second.names.begin(), shown->second.names.end(),
                    [&](const auto& name) { return Fits(value, name.first); }))
      continue;
    Found found({"interface-missing", "listed"});
    std::vector<std::string> names;
    for (const auto& [name, event] : shown->second.names)
      if (names.size() < 8) names.push_back(name);
    found.Say("asked", value.substr(0, 64));
    found.Say("on-host", OnHost(host));
    found.Say("names", fmt::format("{}", fmt::join(names, ", ")));
    found.culprits = BlameHost(host, "");
    found.citations = {Cite(timeline, *failure, LineRole::kCause), Cite(timeline, asked, LineRole::kCause),
                       Cite(timeline, shown->second.names.begin()->second, LineRole::kContext)};
    out.push_back(std::move(found));
    return;
  }
}

void FindDown(const Evidence& evidence, const Job& job, std::vector<Relation>& out) {
  const Timeline& timeline = evidence.timeline;
  const auto failure = FirstLineFor(evidence, {"peer-unreachable", "interface-selection", "rendezvous"});
  if (!failure) return;
  for (const auto& [host, chosen] : job.chosen) {
    const std::string& name = std::get<NetworkUsed>(timeline.events[chosen].what).devices.front();
    const auto shown = job.shown.find(host);
    if (shown == job.shown.end() || !shown->second.down.contains(name)) continue;
    Found found({"interface-down", "shown"});
    found.Say("name", name);
    found.Say("on-host", OnHost(host));
    found.culprits = BlameHost(host, "");
    found.citations = {Cite(timeline, *failure, LineRole::kCause), Cite(timeline, chosen, LineRole::kCause),
                       Cite(timeline, shown->second.names.at(name), LineRole::kCause)};
    out.push_back(std::move(found));
    return;
  }
}

/// Which of the networks that are not routed among each other an address is of; empty: of none of them.
std::string_view NetworkOf(const std::string& address) {
  int a = 0, b = 0;
  const char* const end = address.data() + address.size();
  const auto first = std::from_chars(address.data(), end, a);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.' ||
      std::from_chars(first.ptr + 1, end, b).ec != std::errc())
    return {};
  if (a == 10) return "10.0.0.0/8";
  if (a == 172 && b >= 16 && b < 32) return "172.16.0.0/12";
  if (a == 192 && b == 168) return "192.168.0.0/16";
  if (a == 169 && b == 254) return "169.254.0.0/16";
  if (a == 100 && b >= 64 && b < 128) return "100.64.0.0/10";
  return a == 127 ? "127.0.0.0/8" : std::string_view();
}

void FindApart(const Evidence& evidence, const Job& job, std::vector<Relation>& out) {
  const Timeline& timeline = evidence.timeline;
  std::map<std::string_view, std::pair<std::string, EventIndex>> networks;
  for (const auto& [host, chosen] : job.chosen) {
    const auto network = NetworkOf(std::get<NetworkUsed>(timeline.events[chosen].what).address);
    if (!network.empty()) networks.emplace(network, std::pair(host, chosen));
  }
  const bool complete = std::any_of(timeline.events.begin(), timeline.events.end(), [](const Event& event) {
    const auto* init = std::get_if<CommInit>(&event.what);
    return init != nullptr && init->complete && init->nranks > 1;
  });
  if (networks.size() < 2 || complete || !SawFailure(evidence)) return;
  const auto failure = FirstLineFor(evidence, {"peer-unreachable"});
  Found found(failure ? Found::Held{"hosts-on-different-networks", "unreachable"}
                      : Found::Held{"hosts-on-different-networks", "failed"});
  const auto& [first, second] = std::pair(*networks.begin(), *std::next(networks.begin()));
  found.Say("first-host", OnHost(first.second.first));
  found.Say("first-network", std::string(first.first));
  found.Say("other-host", OnHost(second.second.first));
  found.Say("other-network", std::string(second.first));
  if (failure) found.citations.push_back(Cite(timeline, *failure, LineRole::kCause));
  for (const auto& [network, chosen] : networks)
    found.citations.push_back(Cite(timeline, chosen.second, LineRole::kCause));
  out.push_back(std::move(found));
}

// Hosts whose interfaces let packets of different sizes through: what one sends large the other never gets, if the path
// does not cut it. Most networks do, so it is a hint.
void FindMtu(const Evidence& evidence, const Job& job, std::vector<Relation>& out) {
  const Timeline& timeline = evidence.timeline;
  const auto stall = evidence.course.first_time_out();
  const auto failure = stall ? stall : FirstLineFor(evidence, {"peer-unreachable"});
  std::map<int, std::pair<std::string, EventIndex>> by_mtu;
  for (const auto& [host, chosen] : job.chosen) {
    const auto shown = job.shown.find(host);
    if (shown == job.shown.end()) continue;
    const auto event = shown->second.names.find(std::get<NetworkUsed>(timeline.events[chosen].what).devices.front());
    if (event == shown->second.names.end()) continue;
    if (const auto mtu = std::get<LinkPort>(timeline.events[event->second].what).mtu)
      by_mtu.emplace(*mtu, std::pair(host, event->second));
  }
  if (!failure || by_mtu.size() < 2) return;
  Found found({"mtu-differs", "shown"});
  const auto& [small, one] = *by_mtu.begin();
  const auto& [large, other] = *by_mtu.rbegin();
  found.Say("small", std::to_string(small));
  found.Say("small-host", OnHost(one.first));
  found.Say("large", std::to_string(large));
  found.Say("large-host", OnHost(other.first));
  found.citations = {Cite(timeline, *failure, LineRole::kCause), Cite(timeline, one.second, LineRole::kCause),
                     Cite(timeline, other.second, LineRole::kCause)};
  out.push_back(std::move(found));
}

/// Of a container's or a tunnel's network: it ends at the host.
bool IsVirtual(const std::string& name) {
  static const Pattern kVirtual(
      R"(^(?:docker\d|veth|br-|virbr|vnet\d|cni|flannel|cali|vxlan|tunl\d|kube|weave|lxc|lxd|podman\d|nerdctl\d|cilium))");
  return kVirtual.Matches(name);
}

// NCCL up to 2.7 spreads its channels over all interfaces that it found, so those over a container's bridge reach
// nobody while the others do. Channels over sockets and no communicator that was ever complete show that some were
// needed.
void FindVirtual(const Evidence& evidence, std::vector<Relation>& out) {
  const Timeline& timeline = evidence.timeline;
  std::optional<EventIndex> chosen, over;
  std::string name, real;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const What& what = timeline.events[i].what;
    if (const auto* init = std::get_if<CommInit>(&what); init != nullptr && init->complete && init->nranks > 1) return;
    if (const auto* via = std::get_if<ChannelsVia>(&what);
        via != nullptr && via->via.starts_with("NET/Socket") && !over)
      over = i;
    const auto* used = std::get_if<NetworkUsed>(&what);
    if (used == nullptr || used->use == NetworkUsed::Use::kRdma || used->devices.size() < 2) continue;
    const auto found = std::find_if(used->devices.begin(), used->devices.end(), &IsVirtual);
    const auto other = std::find_if_not(used->devices.begin(), used->devices.end(), &IsVirtual);
    if (found == used->devices.end() || other == used->devices.end()) continue;
    if (chosen && used->use != NetworkUsed::Use::kSocket) continue;
    chosen = i;
    name = *found;
    real = *other;
  }
  if (!chosen || !over) return;
  const auto trained = [](const PhaseSeen& phase) {
    return phase.at == Activity::kTraining || phase.at == Activity::kEvaluation;
  };
  if (std::any_of(evidence.phases.begin(), evidence.phases.end(), trained)) return;
  const auto failure = FirstLineFor(evidence, {"peer-unreachable"});
  Found found(failure ? Found::Held{"virtual-interface-among-real", "unreachable"}
                      : Found::Held{"virtual-interface-among-real", "silent"});
  const auto host = timeline.HostOf(timeline.events[*chosen]);
  found.Say("virtual", name);
  found.Say("real", real);
  found.Say("on-host", OnHost(host.value_or("")));
  if (host) found.culprits = BlameHost(*host, "");
  found.citations = {Cite(timeline, *chosen, LineRole::kCause), Cite(timeline, *over, LineRole::kCause)};
  if (failure) found.citations.push_back(Cite(timeline, *failure, LineRole::kCause));
  out.push_back(std::move(found));
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Job job = Read(evidence.timeline);
  std::vector<Relation> out;
  FindMissing(evidence, job, out);
  FindDown(evidence, job, out);
  FindApart(evidence, job, out);
  FindMtu(evidence, job, out);
  FindVirtual(evidence, out);
  return out;
}

}  // namespace interfaces

const Detector kInterfacesDetector{"interfaces",
                                   "NCCL was told of an interface that is not there, chose one that is down, or hosts "
                                   "chose networks that do not meet.",
                                   interfaces::kFindings, &interfaces::Run};

}  // namespace inquest
