// Who is who: host:pid, rank, device, communicator, from all inputs together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/call_batch.h"
#include "core/event.h"
#include "timeline/timeline.h"

namespace inquest {

/// Empty: it is not known.
inline std::string WriterHost(const Event& event) {
  return event.origin.host ? event.origin.host->value : std::string();
}

/// Processes as they are met. Two events are of one process where host and pid agree; without a host, where pid and
/// input agree; without a pid, where the rank agrees.
class Processes {
 public:
  static constexpr std::uint32_t kNone = ~0u;
  /// The process that wrote the event, made known if it is new; kNone where the event says too little.
  std::uint32_t Meet(const Event& event);
  std::uint32_t Meet(const CallBatch::Process& process);
  /// Forgets processes that said the least and have been silent for longest, until there are no more than `most` beside
  /// those to be `kept` (by number). New numbers by old ones; kNone: forgotten.
  std::vector<std::uint32_t> Thin(std::size_t most, const std::vector<bool>& kept);
  /// nullopt: it was not met, or is forgotten.
  std::optional<std::uint32_t> Find(std::string_view host, std::int64_t pid) const;
  std::vector<ProcessRow> rows;

 private:
  struct Heard {
    std::uint64_t times = 0, last = 0;
  };
  std::uint32_t Row(const std::string& host, std::int64_t pid);
  ProcessByPid by_pid_;
  std::vector<Heard> heard_;  ///< of the rows
  std::uint64_t now_ = 0;
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
