// What a run leaves is kept beside NCCL's logs, so that the analyzer reads both.
#include "cli/replay_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace inquest {
namespace {

/// A fault of the machines, about which the host may know more.
bool IsOfTheMachine(RunVerdict verdict) {
  return verdict != RunVerdict::kPassed && verdict != RunVerdict::kInterrupted && verdict != RunVerdict::kMismatch &&
         verdict != RunVerdict::kCouldNotRun;
}

/// Of each node: `node1.not-had.txt`.
void MoveNotes(RunOutcome& run) {
  for (const auto& [name, text] : run.dumps) {
    if (!name.ends_with(HostWitness::kNotHad)) continue;
    const std::string node = name.substr(0, name.size() - std::string_view(HostWitness::kNotHad).size());
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      run.notes.push_back(node + std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  std::erase_if(run.dumps, [](const auto& dump) { return dump.first.ends_with(HostWitness::kNotHad); });
}

}  // namespace

std::vector<RunOutcome> ReplayRuns::Bare(std::vector<Plan> plans, Pace* pace) {
  if (plans.front().engine == "nccl") plans = logs_.Attach(std::move(plans));
  for (Plan& plan : plans) plan.look_closely = false;
  return at_once_(plans, pace);
}

RunOutcome ReplayRuns::Whole(const Plan& plan) {
  if (plan.engine != "nccl") return run_(plan);
  if (!counted_) links_ = LinkCountersNow();
  counted_ = true;
  witness_.Begin();
  RunOutcome run = run_(Witnessed(logs_.Attach(plan), inherited_));
  if (IsOfTheMachine(run.verdict) && run.dumps.empty()) run.dumps = witness_.Ask();
  MoveNotes(run);
  if (!links_.empty()) {
    LinkCounters now = LinkCountersNow();
    if (const auto risen = RisenCounters(links_, now); !risen.empty())
      run.notes.push_back(fmt::format("NVLink's error counters: {}.", fmt::join(risen, ", ")));
    if (!now.empty()) links_ = std::move(now);
  }
  logs_.Keep(run.dumps);
  return run;
}

}  // namespace inquest
