// The runs of a replay: those of NCCL with its own logs, and with all that this host says of one that failed.
#pragma once

#include <functional>

#include "cli/nccl_logs.h"
#include "cli/replay_witnesses.h"
#include "replay/outcome.h"
#include "replay/pairs.h"
#include "replay/recipes.h"

namespace inquest {

class ReplayRuns {
 public:
  /// All outlive it. `run`: RunPlan with its nodes; `at_once`: RunAtOnce.
  ReplayRuns(std::function<RunOutcome(const Plan&)> run, RunPlans at_once, const Environment& inherited, NcclLogs& logs,
             HostWitness& witness)
      : run_(std::move(run)), at_once_(std::move(at_once)), inherited_(inherited), logs_(logs), witness_(witness) {}

  /// With NCCL's logs alone: some of many runs, at once.
  std::vector<RunOutcome> Bare(std::vector<Plan> plans, Pace* pace);
  /// With the dumps of a hang, what the host says after any failure, and what rose of NVLink's error counters.
  RunOutcome Whole(const Plan& plan);

 private:
  std::function<RunOutcome(const Plan&)> run_;
  RunPlans at_once_;
  const Environment& inherited_;
  NcclLogs& logs_;
  HostWitness& witness_;
  LinkCounters links_;  ///< before the next run; empty: there are none
  bool counted_ = false;
};

}  // namespace inquest
