// What a case tells that the commands of its remedies ask for.
#include "rules/facts.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace inquest {
namespace {

/// `0000:3b:00` or `0000:3B:00.0` as tools take it.
std::string WithFunction(const std::string& bus_id) {
  return bus_id.find('.') == std::string::npos ? bus_id + ".0" : bus_id;
}

class Collector {
 public:
  void Add(std::string_view name, std::string value) {
    std::vector<std::string>& values = facts_[name];
    if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
  }
  bool Has(std::string_view name) const { return facts_.contains(name); }
  std::vector<std::string> Of(std::string_view name) const {
    const auto found = facts_.find(name);
    return found == facts_.end() ? std::vector<std::string>() : found->second;
  }
  Facts Take() {
    for (auto& [name, values] : facts_) std::ranges::sort(values);
    return std::move(facts_);
  }

 private:
  Facts facts_;
};

/// What only holds on one host. Of another host's it would be told of the wrong one.
constexpr std::string_view kOfHost[] = {"gpu", "hca", "pid"};
/// Said of the whole job, by whatever line.
constexpr std::string_view kMeeting = "master";

/// Where one listens, and nobody can be asked.
constexpr std::string_view kAnyAddress = "0.0.0.0";

/// The placeholder that a group of this name fills, `peer` by `peer2`; empty: none.
std::string_view PlaceOf(std::string_view group) {
  const std::string_view name = group.substr(0, group.find_last_not_of("0123456789") + 1);
  const auto place = std::ranges::find(Placeholders(), name, &Placeholder::name);
  return place == Placeholders().end() ? std::string_view() : place->name;
}

/// Names on the lines that prove the verdict, and those of the place where ranks meet, from anywhere if those do not
/// tell.
void AddNames(const Evidence& evidence, const Verdict& verdict, Collector& facts) {
  const bool gpu_known = facts.Has("gpu"), pid_known = facts.Has("pid");
  const auto of_culprit = [&](const Event& event) {
    const std::optional<std::string> host = evidence.timeline.HostOf(event);
    return std::ranges::all_of(verdict.culprits, [&](const Culprit& one) { return !one.host || one.host == host; });
  };
  const auto proves = [&](EventIndex event) {
    return std::ranges::any_of(verdict.evidence, [&](const Citation& citation) {
      return citation.event == event && citation.role == LineRole::kCause;
    });
  };
  Facts elsewhere;
  for (const LineMatch& match : evidence.matches) {
    if (evidence.book.rules[match.rule].says != Rule::Says::kNames) continue;
    const bool cited = proves(match.event);
    for (const auto& [group, value] : match.groups) {
      const std::string_view place = PlaceOf(group);
      if (place.empty() || value.empty() || value == kAnyAddress) continue;
      if (!cited) {
        if (place.starts_with(kMeeting)) elsewhere[place].push_back(value);
        continue;
      }
      const bool of_host = std::ranges::find(kOfHost, place) != std::end(kOfHost);
      const bool known = (place == "gpu" && gpu_known) || (place == "pid" && pid_known);
      if (known || (of_host && !of_culprit(evidence.timeline.events[match.event]))) continue;
      facts.Add(place, value);
      if (place == "master_port") facts.Add("port", value);
    }
  }
  for (const auto& [place, values] : elsewhere) {
    if (facts.Has(place)) continue;
    for (const std::string& value : values) facts.Add(place, value);
  }
}

/// An adapter and its interface, as a line about a port of theirs names them.
struct PortNames {
  std::string hca, netdev, address;
};

/// `mlx5_2`, `0000:3b:00.0`, `0000:3b:00.0 ens2f0np0`, `ens2f0np0`.
PortNames NamesOf(const What& what) {
  PortNames out;
  if (const auto* port = std::get_if<LinkPort>(&what)) {
    if (port->port == 0) return {{}, port->device, {}};
    return {port->device, port->netdev, {}};
  }
  const auto* notice = std::get_if<KernelNotice>(&what);
  if (notice == nullptr) return out;
  const std::size_t space = notice->device.find(' ');
  const std::string first = notice->device.substr(0, space);
  if (notice->subsystem == KernelPart::kMlx5) {
    out.address = first;
    if (space != std::string::npos) out.netdev = notice->device.substr(space + 1);
  } else if (notice->subsystem == KernelPart::kInfiniband) {
    out.hca = first;
  } else if (notice->subsystem == KernelPart::kBond || notice->subsystem == KernelPart::kNetwork) {
    out.netdev = first;
  }
  return out;
}

/// Of ports of a culprit's host: those on the lines that prove the verdict; else those that went down. The interface of
/// an adapter that is known, from whatever shows both.
void AddPorts(const Evidence& evidence, const Verdict& verdict, Collector& facts) {
  const Timeline& timeline = evidence.timeline;
  const auto of_culprit = [&](const Event& event) {
    const std::optional<std::string> host = timeline.HostOf(event);
    return std::ranges::any_of(verdict.culprits,
                               [&](const Culprit& one) { return !one.host || !host || one.host == host; });
  };
  const auto add = [&](const PortNames& names) {
    if (!names.hca.empty()) facts.Add("hca", names.hca);
    if (!names.netdev.empty()) facts.Add("netdev", names.netdev);
    if (!names.address.empty()) facts.Add("adapter", names.address);
  };
  std::set<std::pair<std::uint32_t, std::uint64_t>> proof;
  for (const Citation& citation : verdict.evidence)
    if (citation.role == LineRole::kCause) proof.emplace(citation.where.input, citation.where.line);
  const std::vector<std::string> named = facts.Of("hca");
  std::vector<PortNames> down, shown;
  for (const Event& event : timeline.events) {
    const PortNames names = NamesOf(event.what);
    if ((names.hca.empty() && names.netdev.empty() && names.address.empty()) || !of_culprit(event)) continue;
    if (proof.contains({event.where.input, event.where.line})) shown.push_back(names);
    if (!names.netdev.empty() && std::ranges::find(named, names.hca) != named.end()) facts.Add("netdev", names.netdev);
    const auto* notice = std::get_if<KernelNotice>(&event.what);
    if (notice != nullptr && notice->what == KernelNews::kLinkDown &&
        evidence.scope.Of(event) == KernelScope::Outside::kNo)
      down.push_back(names);
  }
  if (named.empty()) std::ranges::for_each(shown, add);
  if (named.empty() && shown.empty()) std::ranges::for_each(down, add);
  if (!facts.Has("adapter"))
    for (const std::string& hca : facts.Of("hca")) facts.Add("adapter", hca);
}

}  // namespace

Facts FactsOf(const Evidence& evidence, const Verdict& verdict) {
  const Timeline& timeline = evidence.timeline;
  Collector facts;
  for (const Culprit& culprit : verdict.culprits) {
    if (culprit.host) facts.Add("host", *culprit.host);
    if (culprit.rank) facts.Add("rank", std::to_string(culprit.rank->value));
    if (culprit.pid) facts.Add("pid", std::to_string(*culprit.pid));
    if (culprit.bus_id) facts.Add("bus_id", WithFunction(*culprit.bus_id));
    if (culprit.bus_id)
      facts.Add("gpu", WithFunction(*culprit.bus_id));
    else if (culprit.gpu_index)
      facts.Add("gpu", std::to_string(*culprit.gpu_index));
  }
  for (const Citation& citation : verdict.evidence)
    if (const auto* xid = citation.event < timeline.events.size()
                              ? std::get_if<XidReported>(&timeline.events[citation.event].what)
                              : nullptr)
      facts.Add("xid", std::to_string(xid->xid));
  // Of a port above the GPU where no device is known.
  for (const Citation& citation : verdict.evidence)
    if (const auto* error = citation.role == LineRole::kCause && citation.event < timeline.events.size()
                                ? std::get_if<PcieError>(&timeline.events[citation.event].what)
                                : nullptr;
        error != nullptr && !error->bus_id.empty() && !facts.Has("bus_id"))
      facts.Add("bus_id", WithFunction(error->bus_id));
  const JobTold& job = verdict.job;
  if (job.id && job.id->basis != Basis::kDerived &&
      std::ranges::find(Environments(), job.system) != Environments().end())
    facts.Add("job", job.id->value);
  AddNames(evidence, verdict, facts);
  AddPorts(evidence, verdict, facts);
  return facts.Take();
}

}  // namespace inquest
