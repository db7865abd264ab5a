// A network port of a job's host went down while the job ran.
//
// What holds: the kernel reported a link that went down, a cable or a queue of a network card that hung, after boot and
// not long before the failure. Why that implies the cause: what the transport had under way over that port fails or
// waits, on this host and on its peers alike, and the peers print as much as the host itself. What looks like it: ports
// that nobody uses, which go up and down at boot; a flap that ended long before; a port that an administrator takes
// down afterwards.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/thresholds.h"

namespace inquest {
namespace port_down {

constexpr FindingRow kFindings[] = {
    {"port-went-down", "complained-of waited seen-only", "ports what"},
};
using Found = FoundIn<kFindings>;

bool IsOfNetwork(const KernelNotice& notice) {
  switch (notice.subsystem) {
    case KernelPart::kMlx5:
    case KernelPart::kInfiniband:
    case KernelPart::kBond:
    case KernelPart::kNetwork:
    case KernelPart::kIrdma:
      return true;
    default:
      return false;
  }
}
bool WentDown(const KernelNotice& notice) {
  switch (notice.what) {
    case KernelNews::kLinkDown:
    case KernelNews::kCableUnplugged:
    case KernelNews::kCableError:
    case KernelNews::kTimeOut:
      return IsOfNetwork(notice);
    default:
      return false;
  }
}

/// One port of one host.
struct Port {
  std::string host, device;
  std::vector<EventIndex> down;
  bool came_back = false;  ///< after the last time that it went down
};

std::string Name(const Port& port) {
  return fmt::format("port {}{}", port.device.empty() ? "of a card" : port.device,
                     port.host.empty() ? "" : " of " + port.host);
}

std::map<std::pair<std::string, std::string>, Port> PortsOf(const Evidence& evidence) {
  std::map<std::pair<std::string, std::string>, Port> ports;
  for (EventIndex i = 0; i < evidence.timeline.events.size(); ++i) {
    const Event& event = evidence.timeline.events[i];
    const auto* notice = std::get_if<KernelNotice>(&event.what);
    if (notice == nullptr || !IsOfNetwork(*notice) || evidence.scope.Of(event) != KernelScope::Outside::kNo ||
        (notice->uptime && *notice->uptime < thresholds::kPortsComeUp))
      continue;
    const std::string host = evidence.timeline.HostOf(event).value_or("");
    Port& port = ports[{host.empty() ? std::to_string(event.where.input) : host, notice->device}];
    port.host = host;
    port.device = notice->device;
    if (WentDown(*notice)) {
      port.down.push_back(i);
      port.came_back = false;
    }
    if (notice->what == KernelNews::kLinkUp) port.came_back = true;
  }
  std::erase_if(ports, [](const auto& port) { return port.second.down.empty(); });
  return ports;
}

/// Whether the job itself complains of its network, or waits for somebody.
struct Complaints {
  bool of_fabric = false, of_time = false;
};
Complaints ComplaintsOf(const Evidence& evidence) {
  Complaints out;
  for (const LineMatch& match : evidence.matches) {
    const Rule& rule = evidence.book.rules[match.rule];
    if (!IsOfKernel(evidence.timeline.events[match.event].what))
      out.of_fabric = out.of_fabric || rule.cause == "ib-fault" || rule.cause == "peer-unreachable";
  }
  out.of_time = !evidence.timeline.collectives.empty();
  return out;
}

std::vector<Relation> Run(const Evidence& evidence) {
  const auto ports = PortsOf(evidence);
  if (ports.empty()) return {};
  const Complaints complaints = ComplaintsOf(evidence);
  Found found({"port-went-down", "seen-only"});
  if (complaints.of_fabric)
    found.Grade({"port-went-down", "complained-of"});
  else if (complaints.of_time)
    found.Grade({"port-went-down", "waited"});
  found.times = 0;
  std::vector<std::string> names;
  std::set<std::string> hosts;
  bool flapped = true;
  for (const auto& [key, port] : ports) {
    names.push_back(Name(port));
    flapped = flapped && port.came_back;
    found.times += port.down.size();
    if (found.citations.size() < 6)
      found.citations.push_back(Cite(evidence.timeline, port.down.front(), LineRole::kCause));
    if (port.host.empty() || !hosts.insert(port.host).second) continue;
    Culprit culprit;
    culprit.host = port.host;
    culprit.why = Name(port) + (port.came_back ? " went down and came back" : " went down");
    found.culprits.push_back(std::move(culprit));
  }
  found.Say("what", flapped ? "went down and came back" : "went down");
  found.Say("ports", names.size() > 3 ? fmt::format("{} network ports", names.size())
                                      : fmt::format("The {}", fmt::join(names, " and the ")));
  return {std::move(found)};
}

}  // namespace port_down

const Detector kPortDown{"port-went-down", "A network port of a job's host went down while the job ran.",
                         port_down::kFindings, &port_down::Run};

}  // namespace inquest
