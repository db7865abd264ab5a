// What a case tells that the commands of its remedies ask for.
#include "rules/facts.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

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
  Facts Take() {
    for (auto& [name, values] : facts_) std::ranges::sort(values);
    return std::move(facts_);
  }

 private:
  Facts facts_;
};

/// What only holds on one host. Of another host's it would be told of the wrong one.
constexpr std::string_view kOfHost[] = {"gpu", "hca"};
/// Said of the whole job, by whatever line.
constexpr std::string_view kMeeting = "master";

/// The placeholder that a group of this name fills, `peer` by `peer2`; empty: none.
std::string_view PlaceOf(std::string_view group) {
  const std::string_view name = group.substr(0, group.find_last_not_of("0123456789") + 1);
  const auto place = std::ranges::find(Placeholders(), name, &Placeholder::name);
  return place == Placeholders().end() ? std::string_view() : place->name;
}

/// Names on the lines that prove the verdict, and those of the place where ranks meet, from anywhere if those do not
/// tell.
void AddNames(const Evidence& evidence, const Verdict& verdict, Collector& facts) {
  const bool gpu_known = facts.Has("gpu");
  const auto of_culprit = [&](const Event& event) {
    const std::optional<std::string> host = evidence.timeline.HostOf(event);
    return std::ranges::all_of(verdict.culprits, [&](const Culprit& one) { return !one.host || one.host == host; });
  };
  const auto proves = [&](EventIndex event) {
    return std::ranges::any_of(verdict.evidence, [&](const Citation& citation) {
      return citation.event == event && citation.role == "cause";
    });
  };
  Facts elsewhere;
  for (const LineMatch& match : evidence.matches) {
    if (evidence.book.rules[match.rule].phase_kind != "names") continue;
    const bool cited = proves(match.event);
    for (const auto& [group, value] : match.groups) {
      const std::string_view place = PlaceOf(group);
      if (place.empty() || value.empty()) continue;
      if (!cited) {
        if (place.starts_with(kMeeting)) elsewhere[place].push_back(value);
        continue;
      }
      const bool of_host = std::ranges::find(kOfHost, place) != std::end(kOfHost);
      if (of_host && ((place == "gpu" && gpu_known) || !of_culprit(evidence.timeline.events[match.event]))) continue;
      facts.Add(place, value);
      if (place == "master_port") facts.Add("port", value);
    }
  }
  for (const auto& [place, values] : elsewhere) {
    if (facts.Has(place)) continue;
    for (const std::string& value : values) facts.Add(place, value);
  }
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
  const JobTold& job = verdict.job;
  if (job.id && job.id->basis != Basis::kDerived &&
      std::ranges::find(Environments(), job.system) != Environments().end())
    facts.Add("job", job.id->value);
  AddNames(evidence, verdict, facts);
  return facts.Take();
}

}  // namespace inquest
