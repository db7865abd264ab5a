// Whose track is whose.
#include "report/perfetto/tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/host_name.h"

namespace inquest {
namespace {

// The viewer takes thread 0 for an idle processor's, and one that has its process' number for its main thread.
constexpr std::int32_t kFirstRank = 1'000'000, kFirstOther = 100'000'000;

std::string KeyOf(const std::optional<std::string>& host) { return host ? HostName(*host).Short() : std::string(); }

std::string NameOfLane(const Lane& lane) {
  std::string name = lane.of == Lane::Of::kDevice ? "GPU " + lane.name
                     : lane.rank                  ? TraceTracks::NameOf(0, lane.rank)
                                                  : lane.name;
  if (lane.pid && lane.of != Lane::Of::kDevice) name += fmt::format(" (pid {})", *lane.pid);
  return name + (lane.culprit ? ", culprit" : "");
}

}  // namespace

std::string TraceTracks::NameOf(std::int64_t pid, const std::optional<GlobalRank>& rank) {
  return rank ? fmt::format("rank {}", rank->value) : fmt::format("pid {}", pid);
}

TraceTracks::TraceTracks(const Timeline& timeline, const Picture& picture, TraceWriter& writer)
    : timeline_(timeline), writer_(writer), of_lane_(picture.lanes.size()) {
  std::set<std::string> hosts;
  for (const Lane& lane : picture.lanes) hosts.insert(KeyOf(lane.host));
  const bool unknown = hosts.erase("") > 0;
  for (const std::string& host : hosts) OfHost(host);
  if (unknown) OfHost(std::nullopt);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < picture.lanes.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const Lane& lane = picture.lanes[i];
    return std::pair(!lane.rank.has_value(), lane.rank.value_or(GlobalRank{}));
  });
  for (const std::size_t i : order) {
    const Lane& lane = picture.lanes[i];
    if (lane.of == Lane::Of::kHost) {
      of_lane_[i] = OfHost(lane.host);
    } else if (lane.of == Lane::Of::kDevice) {
      of_lane_[i] = writer_.NewTrack(OfHost(lane.host), NameOfLane(lane));
    } else if (lane.rank) {
      of_lane_[i] = ranks_[*lane.rank] =
          writer_.NewThread(OfHost(lane.host), kFirstRank + lane.rank->value, NameOfLane(lane));
    } else {
      of_lane_[i] = NewThread(lane.host, NameOfLane(lane));
      if (lane.pid) pids_.try_emplace({KeyOf(lane.host), *lane.pid}, of_lane_[i]);
    }
  }
}

TraceTrack TraceTracks::OfHost(const std::optional<std::string>& host) {
  const auto [it, is_new] = hosts_.try_emplace(KeyOf(host));
  if (is_new) it->second = writer_.NewProcess(it->first.empty() ? "host not known" : it->first);
  return it->second;
}

TraceTrack TraceTracks::NewThread(const std::optional<std::string>& host, const std::string& name) {
  return writer_.NewThread(OfHost(host), kFirstOther + others_++, name);
}

TraceTrack TraceTracks::OfRank(GlobalRank rank) {
  const auto [it, is_new] = ranks_.try_emplace(rank);
  if (is_new) {
    const RankRow* row = timeline_.FindRank(rank);
    const bool known = row != nullptr && row->process;
    it->second = writer_.NewThread(OfHost(known ? timeline_.processes[*row->process].host : std::nullopt),
                                   kFirstRank + rank.value, NameOf(0, rank));
  }
  return it->second;
}

TraceTrack TraceTracks::OfCaller(const std::string& host, std::int64_t pid, const std::optional<GlobalRank>& rank) {
  if (rank) return OfRank(*rank);
  const auto named = host.empty() ? std::nullopt : std::optional(host);
  const auto [it, is_new] = pids_.try_emplace({KeyOf(named), pid});
  if (is_new) it->second = NewThread(named, NameOf(pid, std::nullopt));
  return it->second;
}

}  // namespace inquest
