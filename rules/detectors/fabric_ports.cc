// A port that the job talks over is down, has no subnet manager, or lacks the GID that the job asks for.
//
// What holds: a tool shows a port down or unconfigured on a host of the job, NCCL lists that port among those that it
// uses or names it in an error, and the job's traffic failed or stood still; or NCCL_IB_GID_INDEX names an entry that
// the port's table has not, and connections were not made. Why that implies the cause: what was sent over the port
// cannot have arrived. What looks like it: a port that no rank uses, a port that was down on another day and a job that
// failed of something else: without a network error, or a stall of ranks that use the port, nothing is said.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/host_states.h"

namespace inquest {
namespace fabric_ports {

constexpr FindingRow kFindings[] = {
    {"port-down", "named in-use down-here-only stalled beside-others",
     "port on-host state use unconfigured without-link"},
    {"port-slow", "network-error stalled", "port on-host rate others-rate"},
    {"gid-index", "absent old-version", "index on-host port"},
    {"no-port-up", "no-log", "ports port"},
};
using Found = FoundIn<kFindings>;

/// A port of a host: `mlx5_0:1`.
using PortKey = std::pair<std::string, std::string>;

struct Fabric {
  std::map<PortKey, EventIndex> down;  ///< the first line that says so
  std::map<PortKey, EventIndex> up;
  std::map<std::string, std::set<std::string>> used;    ///< by host; none where NCCL did not say
  std::map<std::string, std::vector<EventIndex>> gids;  ///< by host
  std::map<std::string, EventIndex> asked_gid;          ///< NCCL_IB_GID_INDEX, by host
};

const LinkPort& PortOf(const Timeline& timeline, EventIndex event) {
  return std::get<LinkPort>(timeline.events[event].what);
}

Fabric Read(const Timeline& timeline) {
  const std::set<std::string>& hosts = timeline.JobHosts();
  Fabric fabric;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    const auto* port = std::get_if<LinkPort>(&event.what);
    const auto* used = std::get_if<NetworkUsed>(&event.what);
    const auto* gid = std::get_if<PortAddress>(&event.what);
    const auto* variable = std::get_if<EnvironmentSet>(&event.what);
    if (port == nullptr && used == nullptr && gid == nullptr && variable == nullptr) continue;
    const auto host = JobHostOf(timeline, hosts, event);
    if (!host) continue;
    if (port != nullptr && port->port > 0) {
      const PortKey key{*host, fmt::format("{}:{}", port->device, port->port)};
      if (port->state == LinkPort::State::kActive) fabric.up.emplace(key, i);
      // A port of Ethernet has no subnet manager to wait for.
      const bool unconfigured = port->state == LinkPort::State::kInit && port->link_layer != "Ethernet";
      if (port->state == LinkPort::State::kDown || unconfigured) fabric.down.emplace(key, i);
    } else if (used != nullptr && used->use == NetworkUsed::Use::kRdma) {
      fabric.used[*host].insert(used->devices.begin(), used->devices.end());
    } else if (gid != nullptr && gid->index) {
      fabric.gids[*host].push_back(i);
    } else if (variable != nullptr && variable->name == "NCCL_IB_GID_INDEX") {
      fabric.asked_gid.emplace(*host, i);
    }
  }
  // Shown both ways, it was seen before and after; which was first is not known.
  std::erase_if(fabric.down, [&](const auto& entry) { return fabric.up.contains(entry.first); });
  return fabric;
}

/// The network error that names a device: `hca mlx5_2`, `mlx5_2:1 Got async event`, `on dev mlx5_2:1`.
std::optional<EventIndex> ErrorNaming(const Evidence& evidence, const std::string& host, const std::string& device) {
  const std::set<std::string>& hosts = evidence.timeline.JobHosts();
  for (const LineMatch& match : evidence.matches) {
    const Rule& rule = evidence.book.rules[match.rule];
    if (rule.kind != Rule::Kind::kSignature || rule.cause != "ib-fault") continue;
    const Event& event = evidence.timeline.events[match.event];
    if (JobHostOf(evidence.timeline, hosts, event) == host && StandsIn(event.text, device)) return match.event;
  }
  return std::nullopt;
}

bool AnyActiveOn(const Fabric& fabric, const std::string& host) {
  return std::any_of(fabric.up.begin(), fabric.up.end(), [&](const auto& entry) { return entry.first.first == host; });
}

bool ActiveElsewhere(const Fabric& fabric, const PortKey& key) {
  return std::any_of(fabric.up.begin(), fabric.up.end(), [&](const auto& entry) {
    return entry.first.second == key.second && entry.first.first != key.first;
  });
}

/// In order of weight: of several ports the one that weighs most is told.
constexpr Found::Held kDown[] = {{"port-down", "beside-others"},
                                 {"port-down", "stalled"},
                                 {"port-down", "down-here-only"},
                                 {"port-down", "in-use"},
                                 {"port-down", "named"}};
struct Down {
  std::size_t weight;  ///< into kDown
  Found found;
};

std::optional<Down> JudgeDown(const Evidence& evidence, const Fabric& fabric, const PortKey& key, EventIndex shown) {
  const Timeline& timeline = evidence.timeline;
  const auto& [host, name] = key;
  const LinkPort& port = PortOf(timeline, shown);
  const auto named = ErrorNaming(evidence, host, port.device);
  const auto error = named ? named : FirstLineFor(evidence, {"ib-fault"});
  const auto stall = evidence.course.first_time_out();
  const auto used = fabric.used.find(host);
  const bool in_use = named || (used != fabric.used.end() && used->second.contains(name));
  if (!error && !(stall && in_use)) return std::nullopt;
  if (used != fabric.used.end() && !in_use) return std::nullopt;
  std::size_t weight = 0;
  if (in_use)
    weight = named ? 4 : error ? 3 : 1;
  else if (ActiveElsewhere(fabric, key) || !AnyActiveOn(fabric, host))
    weight = 2;
  Found found(kDown[weight]);
  const bool is_init = port.state == LinkPort::State::kInit;
  found.Say("port", name);
  found.Say("on-host", OnHost(host));
  found.Say("state", (is_init ? "not configured by a subnet manager" : "down") +
                         (port.phys_state.empty() ? std::string() : fmt::format(" ({})", port.phys_state)));
  found.Say("use", in_use ? "the job talks over it" : "the job's traffic over InfiniBand failed");
  if (is_init)
    found.Say("unconfigured", "yes");
  else
    found.Say("without-link", "yes");
  found.culprits = BlameHost(host, fmt::format("its port {} is {}", name, is_init ? "not configured" : "down"));
  found.citations.push_back(Cite(timeline, error ? *error : *stall, LineRole::kCause));
  found.citations.push_back(Cite(timeline, shown, LineRole::kCause));
  return Down{weight, std::move(found)};
}

// A port that runs slower than those beside it that the job uses as well: a cable or a lane that is bad. It makes a job
// slow, and is no more than a hint where one failed.
std::optional<Found> JudgeSlow(const Evidence& evidence, const Fabric& fabric) {
  const Timeline& timeline = evidence.timeline;
  const auto error = FirstLineFor(evidence, {"ib-fault"});
  const auto shown = error ? error : evidence.course.first_time_out();
  if (!shown) return std::nullopt;
  std::map<std::string, double> fastest;  // by link layer
  const auto rate_of = [&](const PortKey& key, EventIndex event) {
    const auto used = fabric.used.find(key.first);
    const LinkPort& port = PortOf(timeline, event);
    return used != fabric.used.end() && used->second.contains(key.second) ? port.rate_gbps : std::nullopt;
  };
  for (const auto& [key, event] : fabric.up)
    if (const auto rate = rate_of(key, event))
      fastest[PortOf(timeline, event).link_layer] = std::max(fastest[PortOf(timeline, event).link_layer], *rate);
  for (const auto& [key, event] : fabric.up) {
    const auto rate = rate_of(key, event);
    if (!rate || *rate >= fastest[PortOf(timeline, event).link_layer]) continue;
    Found found(error ? Found::Held{"port-slow", "network-error"} : Found::Held{"port-slow", "stalled"});
    found.Say("port", key.second);
    found.Say("on-host", OnHost(key.first));
    found.Say("rate", fmt::format("{}", *rate));
    found.Say("others-rate", fmt::format("{}", fastest[PortOf(timeline, event).link_layer]));
    found.culprits = BlameHost(key.first, "");
    found.citations = {Cite(timeline, *shown, LineRole::kCause), Cite(timeline, event, LineRole::kCause)};
    return found;
  }
  return std::nullopt;
}

// The table is only judged where it was shown: NCCL from 2.21 on finds a fitting entry by itself, unless it is told
// one.
std::optional<Found> JudgeGid(const Evidence& evidence, const Fabric& fabric, const std::string& host,
                              EventIndex asked) {
  const Timeline& timeline = evidence.timeline;
  const auto error = FirstLineFor(evidence, {"ib-fault"});
  const auto table = fabric.gids.find(host);
  if (!error || table == fabric.gids.end()) return std::nullopt;
  const std::string& text = std::get<EnvironmentSet>(timeline.events[asked].what).value;
  int index = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (bad != std::errc() || end != text.data() + text.size() || index < 0) return std::nullopt;
  const auto used = fabric.used.find(host);
  std::map<std::string, std::pair<EventIndex, const PortAddress*>> entry;  // by port: the entry asked for, or any other
  std::set<std::string> with_version_2;
  for (const EventIndex i : table->second) {
    const auto& gid = std::get<PortAddress>(timeline.events[i].what);
    const std::string name = fmt::format("{}:{}", gid.device, gid.port);
    if (used != fabric.used.end() && !used->second.contains(name)) continue;
    const auto known = entry.find(name);
    if (known == entry.end() || gid.index == index) entry[name] = {i, &gid};
    if (gid.roce_version == 2) with_version_2.insert(name);
  }
  for (const auto& [name, row] : entry) {
    const PortAddress& gid = *row.second;
    const bool absent = gid.index != index,
               old_version = !absent && gid.roce_version == 1 && with_version_2.contains(name);
    // Without a version it is InfiniBand, or a tool that shows only a part of the table.
    if (!(absent && with_version_2.contains(name)) && !old_version) continue;
    Found found(absent ? Found::Held{"gid-index", "absent"} : Found::Held{"gid-index", "old-version"});
    found.Say("index", std::to_string(index));
    found.Say("on-host", OnHost(host));
    found.Say("port", name);
    found.culprits = BlameHost(host, "");
    found.citations = {Cite(timeline, *error, LineRole::kCause), Cite(timeline, asked, LineRole::kCause),
                       Cite(timeline, row.first, LineRole::kCause)};
    return found;
  }
  return std::nullopt;
}

// No log, and of all ports that are shown none is up: why else would they be shown? A port that nobody uses looks the
// same.
std::optional<Found> JudgeAllDown(const Evidence& evidence, const Fabric& fabric) {
  if (evidence.timeline.logs > 0 || !fabric.up.empty() || fabric.down.empty()) return std::nullopt;
  Found found({"no-port-up", "no-log"});
  found.Say("ports",
            fabric.down.size() == 1 ? "one port that is" : fmt::format("{} ports that are", fabric.down.size()));
  const auto& [host, name] = fabric.down.begin()->first;
  found.Say("port", name);
  found.culprits = BlameHost(host, "");
  for (const auto& [key, shown] : fabric.down)
    if (found.citations.size() < 6) found.citations.push_back(Cite(evidence.timeline, shown, LineRole::kCause));
  return found;
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Fabric fabric = Read(evidence.timeline);
  std::vector<Relation> out;
  std::optional<Down> best;
  for (const auto& [key, shown] : fabric.down) {
    auto down = JudgeDown(evidence, fabric, key, shown);
    if (down && best && down->weight == best->weight) {
      // Several ports alike: one finding that blames each host.
      const Found& found = down->found;
      const auto same = [&](const Culprit& culprit) {
        return !found.culprits.empty() && culprit.host == found.culprits.front().host;
      };
      if (!found.culprits.empty() && std::none_of(best->found.culprits.begin(), best->found.culprits.end(), same))
        best->found.culprits.push_back(found.culprits.front());
      if (best->found.citations.size() < 6) best->found.citations.push_back(found.citations.back());
      ++best->found.times;
    } else if (down && (!best || down->weight > best->weight)) {
      best = std::move(down);
    }
  }
  if (best) out.push_back(std::move(best->found));
  if (auto all = JudgeAllDown(evidence, fabric)) out.push_back(std::move(*all));
  if (auto slow = JudgeSlow(evidence, fabric)) out.push_back(std::move(*slow));
  for (const auto& [host, asked] : fabric.asked_gid)
    if (auto found = JudgeGid(evidence, fabric, host, asked)) {
      out.push_back(std::move(*found));
      break;
    }
  return out;
}

}  // namespace fabric_ports

const Detector kFabricPorts{"fabric-ports",
                            "A port that the job talks over is down, unconfigured, or lacks the GID that is asked for.",
                            fabric_ports::kFindings, &fabric_ports::Run};

}  // namespace inquest
