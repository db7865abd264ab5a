// Whose track is whose: a process for every host, a thread for every rank, tracks for GPUs and for processes without
// rank.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/perfetto/trace_writer.h"
#include "rules/picture.h"

namespace inquest {

class TraceTracks {
 public:
  /// Those of the picture's lanes: hosts by name, ranks in order. All outlive it.
  TraceTracks(const Timeline& timeline, const Picture& picture, TraceWriter& writer);
  /// By the number of the lane.
  TraceTrack OfLane(std::size_t lane) const { return of_lane_[lane]; }
  TraceTrack OfRank(GlobalRank rank);
  /// A process as NCCL's lines name it.
  TraceTrack OfCaller(const std::string& host, std::int64_t pid, const std::optional<GlobalRank>& rank);
  /// `rank 28`, `pid 41`.
  static std::string NameOf(std::int64_t pid, const std::optional<GlobalRank>& rank);

 private:
  TraceTrack OfHost(const std::optional<std::string>& host);
  TraceTrack NewThread(const std::optional<std::string>& host, const std::string& name);

  const Timeline& timeline_;
  TraceWriter& writer_;
  std::map<std::string, TraceTrack> hosts_;  ///< by their short names; empty: not known
  std::map<GlobalRank, TraceTrack> ranks_;
  std::map<std::pair<std::string, std::int64_t>, TraceTrack> pids_;
  std::vector<TraceTrack> of_lane_;
  std::int32_t others_ = 0;  ///< threads that are no ranks
};

}  // namespace inquest
