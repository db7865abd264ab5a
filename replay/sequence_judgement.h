// Who waits for whom in a sequence that does not go on: a cycle, a call that some never make, calls that differ.
#pragma once

#include <chrono>

#include "replay/judgement.h"

namespace inquest {

/// After a deadline, of ranks that are in a pass of the plan's sequence.
Judgement JudgeSequence(const RunOutcome& run, const Plan& plan, std::chrono::milliseconds waited);

/// What the ranks do not agree on, of what not all have behind them; what somebody is in first, at most two. Each with
/// a blank in front; empty: nothing.
std::string NameDisagreements(const RunOutcome& run, const Plan& plan);

/// Where ranks stand: a row for each call that one is in.
std::vector<Waiting> WaitingIn(const RunOutcome& run, const Plan& plan);

}  // namespace inquest
