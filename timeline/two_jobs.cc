// Whether what was given holds two jobs at once.
#include "timeline/two_jobs.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/host_name.h"

namespace inquest {
namespace {

/// The host that a line of a rank names, and the rank.
std::optional<std::pair<GlobalRank, std::string>> PlaceIn(const Timeline& timeline, const Event& event) {
  if (IsOfKernel(event.what) || IsOfHost(event.what) || !event.origin.host ||
      event.origin.host->basis < Basis::kEnvelope)
    return std::nullopt;
  const auto rank = timeline.RankOf(event);
  if (!rank || rank->basis < Basis::kFileName) return std::nullopt;
  std::string host = HostName(event.origin.host->value).Short();
  if (host.empty() || HostName(host).is_address()) return std::nullopt;
  return std::pair(rank->value, std::move(host));
}

}  // namespace

std::optional<TwoJobs> FindTwoJobs(const Timeline& timeline, std::span<const NamedJob> named) {
  std::map<GlobalRank, std::map<std::string, EventIndex>> places;  // the first line of a rank on each host
  std::map<std::string, EventIndex> ids;
  for (const NamedJob& job : named) ids.try_emplace(job.id, job.event);
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    if (auto place = PlaceIn(timeline, timeline.events[i]))
      places[place->first].try_emplace(std::move(place->second), i);
  }
  std::optional<TwoJobs> found;
  const auto hold = [&](std::optional<GlobalRank> rank, const std::map<std::string, EventIndex>& seen) {
    std::vector<std::pair<EventIndex, std::string>> in_order;
    for (const auto& [what, event] : seen) in_order.emplace_back(event, what);
    std::ranges::sort(in_order);
    const auto &first = in_order[0], &other = in_order[1];
    if (!found || other.first < found->other_event)
      found = TwoJobs{rank, first.second, other.second, first.first, other.first, {}};
  };
  if (ids.size() > 1) hold(std::nullopt, ids);
  RankSet ranks;
  for (const auto& [rank, hosts] : places) {
    const auto other_kind = [&kind = hosts.begin()->first](const auto& host) {
      return HostName(host.first).Kind() != HostName(kind).Kind();
    };
    if (hosts.size() < 2 || std::ranges::any_of(hosts, other_kind)) continue;
    hold(rank, hosts);
    ranks.Add(rank.value);
  }
  if (found) found->ranks = std::move(ranks);
  return found;
}

}  // namespace inquest
