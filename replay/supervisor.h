// Runs one plan once: a worker process a rank, on one node or several, watched from outside, and never trusted.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "replay/node.h"
#include "replay/outcome.h"
#include "replay/pace.h"

namespace inquest {

/// What the caller lends; the room itself reads no environment and prints nothing.
struct RunSetup {
  NodeSetup local;                      ///< of this host
  std::vector<std::string> nodes = {};  ///< what to call each of several: `node 1 (hostb)`
  std::vector<std::string> hosts = {};  ///< of each of several: equal for those on one
  /// A few times a second, with the table as it is.
  std::function<void(const RunOutcome&)> progress = {};
  /// Once, as soon as the sentence is known: pictures, clean-up and the return take longer.
  std::function<void(const RunOutcome&)> decided = {};
  std::function<Interruption()> interrupted = {};
  /// Deadlines are cut to what it says, and it learns what a pass took; outlives the run. nullptr: the plan's alone.
  Pace* pace = nullptr;
};

/// On this host alone. To be called from a thread that outlives the run; when it dies, so do the workers. When it
/// returns, every worker is gone, but for one that the kernel cannot kill, which is then named in the notes.
RunOutcome RunPlan(const Plan& plan, const RunSetup& setup);
/// On these nodes, which RankPlace::node counts from 0.
RunOutcome RunPlan(const Plan& plan, const RunSetup& setup, std::span<Node* const> nodes);

}  // namespace inquest
