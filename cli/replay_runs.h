// The runs of a replay: those of NCCL with its own logs, and with all that this host says of one that failed.
#pragma once

#include <functional>

#include "cli/nccl_logs.h"
#include "cli/replay_witnesses.h"
#include "replay/outcome.h"
#include "replay/recipes.h"

namespace inquest {

class ReplayRuns {
 public:
  /// All outlive it. `run`: RunPlan with its nodes.
  ReplayRuns(std::function<RunOutcome(const Plan&)> run, const Environment& inherited, NcclLogs& logs,
             HostWitness& witness)
      : run_(std::move(run)), inherited_(inherited), logs_(logs), witness_(witness) {}

  /// With NCCL's logs alone: one of many runs.
  RunOutcome Bare(const Plan& plan);
  /// With the dumps of a hang, what the host says after any failure, and what rose of NVLink's error counters.
  RunOutcome Whole(const Plan& plan);

 private:
  std::function<RunOutcome(const Plan&)> run_;
  const Environment& inherited_;
  NcclLogs& logs_;
  HostWitness& witness_;
  LinkCounters links_;  ///< before the next run; empty: there are none
  bool counted_ = false;
};

}  // namespace inquest
