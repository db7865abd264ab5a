// A port that the job talks over is down, has no subnet manager, or lacks the GID that the job asks for.
//
// What holds: a tool shows a port down or unconfigured on a host of the job, NCCL lists that port among those that it
// uses or names it in an error, and the job's traffic failed or stood still; or NCCL_IB_GID_INDEX names an entry that the
// port's table has not, and connections were not made. Why that implies the cause: what was sent over the port cannot
// have arrived. What looks like it: a port that no rank uses, a port that was down on another day and a job that failed
// of something else: without a network error, or a stall of ranks that use the port, nothing is said.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/host_states.h"

namespace inquest {
namespace {

/// A port of a host: `mlx5_0:1`.
using PortKey = std::pair<std::string, std::string>;

struct Fabric {
  std::map<PortKey, EventIndex> down;                ///< the first line that says so
  std::map<PortKey, EventIndex> up;
  std::map<std::string, std::set<std::string>> used;  ///< by host; none where NCCL did not say
  std::map<std::string, std::vector<EventIndex>> gids;  ///< by host
  std::map<std::string, EventIndex> asked_gid;        ///< NCCL_IB_GID_INDEX, by host
};

const LinkPort& PortOf(const Timeline& timeline, EventIndex event) { return std::get<LinkPort>(timeline.events[event].what); }

Fabric Read(const Timeline& timeline) {
  const std::set<std::string> hosts = JobHosts(timeline);
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
  const std::set<std::string> hosts = JobHosts(evidence.timeline);
  for (const LineMatch& match : evidence.matches) {
    const Rule& rule = evidence.book.rules[match.rule];
    if (rule.kind != Rule::Kind::kSignature || rule.cause != "ib-fault") continue;
    const Event& event = evidence.timeline.events[match.event];
    if (JobHostOf(evidence.timeline, hosts, event) == host && StandsIn(event.text, device)) return match.event;
  }
  return std::nullopt;
}

Finding NewFinding(const std::string& rule) {
  Finding finding;
  finding.rule = rule;
  finding.cause = "ib-fault";
  finding.explains = {"collective-timeout", "remote-error", "connection-closed", "nccl-error", "nccl-return-trace", "nccl-proxy-fallout", "peer-unreachable", "rank-absent"};
  return finding;
}

bool AnyActiveOn(const Fabric& fabric, const std::string& host) {
  return std::any_of(fabric.up.begin(), fabric.up.end(), [&](const auto& entry) { return entry.first.first == host; });
}

bool ActiveElsewhere(const Fabric& fabric, const PortKey& key) {
  return std::any_of(fabric.up.begin(), fabric.up.end(), [&](const auto& entry) { return entry.first.second == key.second && entry.first.first != key.first; });
}

std::optional<Finding> JudgeDown(const Evidence& evidence, const Fabric& fabric, const PortKey& key, EventIndex shown) {
  const Timeline& timeline = evidence.timeline;
  const auto& [host, name] = key;
  const LinkPort& port = PortOf(timeline, shown);
  const auto named = ErrorNaming(evidence, host, port.device);
  const auto error = named ? named : FirstLineFor(evidence, {"ib-fault"});
  const auto stall = FirstTimeOutOf(timeline);
  const auto used = fabric.used.find(host);
  const bool in_use = named || (used != fabric.used.end() && used->second.contains(name));
  if (!error && !(stall && in_use)) return std::nullopt;
  if (used != fabric.used.end() && !in_use) return std::nullopt;
  Finding finding = NewFinding("port-down");
  if (in_use && error) {
    finding.strength = Strength::kDecisive;
    finding.confidence = named ? 0.93 : 0.9;
  } else if (in_use) {
    finding.strength = Strength::kSupporting;
    finding.confidence = 0.62;
  } else if (ActiveElsewhere(fabric, key) || !AnyActiveOn(fabric, host)) {
    finding.strength = Strength::kSupporting;
    finding.confidence = 0.64;
  } else {
    finding.strength = Strength::kHint;
    finding.confidence = 0.3;
  }
  const bool is_init = port.state == LinkPort::State::kInit;
  finding.claim = fmt::format("Port {}{} is {}{}, and {}.", name, OnHost(host), is_init ? "not configured by a subnet manager" : "down",
                              port.phys_state.empty() ? std::string() : fmt::format(" ({})", port.phys_state),
                              in_use ? "the job talks over it" : "the job's traffic over InfiniBand failed");
  finding.culprits = BlameHost(host, fmt::format("its port {} is {}", name, is_init ? "not configured" : "down"));
  finding.citations.push_back(Cite(timeline, error ? *error : *stall, "cause"));
  finding.citations.push_back(Cite(timeline, shown, "cause"));
  finding.retry = "elsewhere";
  if (is_init)
    finding.remedies = {{"Start a subnet manager, or ask why it does not see this port.", "sminfo; systemctl status opensm"}};
  else
    finding.remedies = {{"Look at cable, optics and switch port of that adapter.", "ibstat; mlxlink -d <hca> -m -c; dmesg -T | grep -iE \"mlx5.*(link|module)\""}};
  return finding;
}

// A port that runs slower than those beside it that the job uses as well: a cable or a lane that is bad. It makes a job
// slow, and is no more than a hint where one failed.
std::optional<Finding> JudgeSlow(const Evidence& evidence, const Fabric& fabric) {
  const Timeline& timeline = evidence.timeline;
  const auto error = FirstLineFor(evidence, {"ib-fault"});
  const auto shown = error ? error : FirstTimeOutOf(timeline);
  if (!shown || SawEnding(evidence)) return std::nullopt;
  std::map<std::string, double> fastest;  // by link layer
  const auto rate_of = [&](const PortKey& key, EventIndex event) {
    const auto used = fabric.used.find(key.first);
    const LinkPort& port = PortOf(timeline, event);
    return used != fabric.used.end() && used->second.contains(key.second) ? port.rate_gbps : std::nullopt;
  };
  for (const auto& [key, event] : fabric.up)
    if (const auto rate = rate_of(key, event)) fastest[PortOf(timeline, event).link_layer] = std::max(fastest[PortOf(timeline, event).link_layer], *rate);
  for (const auto& [key, event] : fabric.up) {
    const auto rate = rate_of(key, event);
    if (!rate || *rate >= fastest[PortOf(timeline, event).link_layer]) continue;
    Finding finding = NewFinding("port-slow");
    finding.explains.clear();
    finding.strength = Strength::kHint;
    finding.confidence = error ? 0.38 : 0.3;
    finding.claim = fmt::format("Port {}{} runs at {} Gb/s, the others that the job uses at {}.", key.second, OnHost(key.first), *rate, fastest[PortOf(timeline, event).link_layer]);
    finding.culprits = BlameHost(key.first, fmt::format("its port {} is slower than the others", key.second));
    finding.citations = {Cite(timeline, *shown, "cause"), Cite(timeline, event, "cause")};
    finding.remedies = {{"Look at cable and optics of that adapter.", "mlxlink -d <hca> -m -c -e"}};
    return finding;
  }
  return std::nullopt;
}

// The table is only judged where it was shown: NCCL from 2.21 on finds a fitting entry by itself, unless it is told one.
std::optional<Finding> JudgeGid(const Evidence& evidence, const Fabric& fabric, const std::string& host, EventIndex asked) {
  const Timeline& timeline = evidence.timeline;
  const auto error = FirstLineFor(evidence, {"ib-fault"});
  const auto table = fabric.gids.find(host);
  if (!error || table == fabric.gids.end()) return std::nullopt;
  const std::string& text = std::get<EnvironmentSet>(timeline.events[asked].what).value;
  int index = -1;
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
    const bool absent = gid.index != index, old_version = !absent && gid.roce_version == 1 && with_version_2.contains(name);
    // Without a version it is InfiniBand, or a tool that shows only a part of the table.
    if (!(absent && with_version_2.contains(name)) && !old_version) continue;
    Finding finding = NewFinding("gid-index");
    finding.strength = Strength::kDecisive;
    finding.confidence = absent ? 0.88 : 0.82;
    finding.claim = fmt::format("NCCL_IB_GID_INDEX asks for entry {} of the GID table{}, and {} {}.", index, OnHost(host), name,
                                absent ? "has none such" : "has there one of RoCE version 1, which routers do not carry");
    finding.culprits = BlameHost(host, absent ? "its GID table has no such entry" : "the entry is of RoCE version 1");
    finding.citations = {Cite(timeline, *error, "cause"), Cite(timeline, asked, "cause"), Cite(timeline, row.first, "cause")};
    finding.remedies = {{"Leave it to NCCL (2.21 and later), or choose the entry of version 2 with the address of this network, which may differ from host to host.",
                         "unset NCCL_IB_GID_INDEX; show_gids"}};
    finding.retry = "after-fix";
    return finding;
  }
  return std::nullopt;
}

// No log, and of all ports that are shown none is up: why else would they be shown? A port that nobody uses looks the same.
std::optional<Finding> JudgeAllDown(const Evidence& evidence, const Fabric& fabric) {
  if (evidence.timeline.logs > 0 || !fabric.up.empty() || fabric.down.empty()) return std::nullopt;
  Finding finding = NewFinding("no-port-up");
  finding.strength = Strength::kHint;
  finding.confidence = 0.4;
  finding.claim = fmt::format("Of the {} that {} shown none is active.", fabric.down.size() == 1 ? "one port" : fmt::format("{} ports", fabric.down.size()), fabric.down.size() == 1 ? "is" : "are");
  const auto& [host, name] = fabric.down.begin()->first;
  finding.culprits = BlameHost(host, fmt::format("its port {} is not active", name));
  for (const auto& [key, shown] : fabric.down)
    if (finding.citations.size() < 6) finding.citations.push_back(Cite(evidence.timeline, shown, "cause"));
  finding.remedies = {{"Look at cable, optics and switch port of that adapter, and at the subnet manager.", "ibstat; mlxlink -d <hca> -m -c; sminfo"}};
  return finding;
}

std::vector<Finding> Run(const Evidence& evidence) {
  const Fabric fabric = Read(evidence.timeline);
  std::vector<Finding> out;
  std::optional<Finding> best;
  for (const auto& [key, shown] : fabric.down) {
    auto finding = JudgeDown(evidence, fabric, key, shown);
    if (finding && best && finding->strength == best->strength && finding->confidence == best->confidence) {
      // Several ports alike: one finding that blames each host.
      const auto same = [&](const Culprit& culprit) { return !finding->culprits.empty() && culprit.host == finding->culprits.front().host; };
      if (!finding->culprits.empty() && std::none_of(best->culprits.begin(), best->culprits.end(), same)) best->culprits.push_back(finding->culprits.front());
      if (best->citations.size() < 6) best->citations.push_back(finding->citations.back());
      ++best->times;
    } else if (finding && (!best || std::pair(finding->strength, finding->confidence) > std::pair(best->strength, best->confidence))) {
      best = std::move(finding);
    }
  }
  if (best) out.push_back(std::move(*best));
  if (auto all = JudgeAllDown(evidence, fabric)) out.push_back(std::move(*all));
  if (auto slow = JudgeSlow(evidence, fabric)) out.push_back(std::move(*slow));
  for (const auto& [host, asked] : fabric.asked_gid)
    if (auto finding = JudgeGid(evidence, fabric, host, asked)) {
      out.push_back(std::move(*finding));
      break;
    }
  return out;
}

constexpr std::string_view kFindings[] = {"port-down", "port-slow", "gid-index", "no-port-up"};

}  // namespace

const Detector kFabricPorts{"fabric-ports", "A port that the job talks over is down, unconfigured, or lacks the GID that is asked for.", kFindings, &Run};

}  // namespace inquest
