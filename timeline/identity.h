// Who is who: host:pid, rank, device, communicator, from all inputs together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/event.h"
#include "timeline/timeline.h"

namespace inquest {

/// Processes as they are met. Two events are of one process where host and pid agree; without a host, where pid and
/// input agree; without a pid, where the rank agrees.
class Processes {
 public:
  static constexpr std::uint32_t kNone = ~0u;
  /// The process that wrote the event, made known if it is new; kNone where the event says too little.
  std::uint32_t Meet(const Event& event);
  std::uint32_t Meet(const CallBatch::Process& process);
  std::vector<ProcessRow> rows;

 private:
  std::uint32_t Row(const std::string& host, std::int64_t pid);
  // Looked up for every process of every block: by what the log says, without a copy of it.
  using Pid = std::pair<std::string_view, std::int64_t>;  ///< of a host
  struct HashOfPid {
    using is_transparent = void;
    std::size_t operator()(const Pid& key) const { return std::hash<std::string_view>()(key.first) ^ static_cast<std::size_t>(static_cast<std::uint64_t>(key.second) * 0x9e3779b97f4a7c15U); }
  };
  struct SamePid {
    using is_transparent = void;
    bool operator()(const Pid& a, const Pid& b) const { return a == b; }
  };
  std::unordered_map<std::pair<std::string, std::int64_t>, std::uint32_t, HashOfPid, SamePid> by_pid_;
  friend void ResolveIdentity(Timeline& timeline, Processes processes);
};

/// Fills hosts, processes, ranks, world size and versions of a timeline whose events and communicators are there.
void ResolveIdentity(Timeline& timeline, Processes processes);

/// Gives events that name neither host nor process the host of their input's folder.
void GiveHosts(Timeline& timeline);

/// Gives lines that print no year the year of the dated line nearest to them, so that they compare.
void GiveYears(std::vector<Event>& events);

/// Fills first and last event, last collective and final state of every rank.
void DescribeRanks(Timeline& timeline);

}  // namespace inquest
