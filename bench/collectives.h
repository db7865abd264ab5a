// The NCCL part of a job's log: Init lines, then every collective that every rank enqueues.
#pragma once

#include <string>
#include <vector>

#include "bench/job.h"

namespace inquest::bench {

/// A fully sharded training job: all ranks in one communicator, and one more per host for tensor parallelism. Every
/// step is the same loop of operations; a rank may run a few operations ahead of the slowest.
class Collectives {
 public:
  explicit Collectives(const Job& job);

  /// Version, network, Init START and COMPLETE of both communicators, channels.
  void WriteInit(LogWriter& log) const;
  /// Every rank goes on by two operations on average, in another order each time.
  void WriteRound(LogWriter& log);
  /// Every rank reaches the next operation of all ranks; the culprit stops before it. Returns that operation.
  Work WriteEnd(LogWriter& log);

 private:
  struct Step {         // one operation of the loop
    bool world = true;  // of all ranks, else of the host's
    std::string_view call, work;
    std::uint64_t count = 1;
    int datatype = 9, reduction = 0;
  };
  struct Rank {
    std::string head;                // up to the operation's name
    std::vector<std::string> tails;  // by step: from ` sendbuff` to the line's end
    std::uint64_t position = 0;      // operations printed
    std::uint64_t world_calls = 0, host_calls = 0;
    bool has_proxy = true;  // its opCount advances; from NCCL 2.27 on that is not so on every rank
    std::uint64_t world_comm = 0, host_comm = 0;
  };

  void WriteUntil(Rank& rank, std::uint64_t position, LogWriter& log);

  Job job_;
  Random random_;
  std::vector<Step> steps_;
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> order_;
  std::uint64_t base_ = 0;
};

}  // namespace inquest::bench
