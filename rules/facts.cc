// What a case tells that the commands of its remedies ask for.
#include "rules/facts.h"

#include <algorithm>

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
  Facts Take() {
    for (auto& [name, values] : facts_) std::ranges::sort(values);
    return std::move(facts_);
  }

 private:
  Facts facts_;
};

}  // namespace

Facts FactsOf(const Timeline& timeline, const Verdict& verdict) {
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
  if (verdict.job.id && verdict.job.system == "slurm") facts.Add("job", verdict.job.id->value);
  return facts.Take();
}

}  // namespace inquest
