// Runs one plan once: a worker process a rank, watched from outside, and never trusted.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "replay/outcome.h"

namespace inquest {

/// What the caller lends; the room itself reads no environment and prints nothing.
struct RunSetup {
  std::string worker;            ///< path of inquest-replay-worker
  std::vector<std::string> env;  ///< NAME=VALUE, what workers inherit
  /// A few times a second, with the table as it is.
  std::function<void(const RunOutcome&)> progress = {};
  /// Once, as soon as the sentence is known: pictures, clean-up and the return take longer.
  std::function<void(const RunOutcome&)> decided = {};
  /// Runs a program that looks at a process (gdb) and returns what it printed; empty: none is run.
  std::function<std::string(const std::vector<std::string>& command, std::chrono::milliseconds limit)> run_program = {};
  /// Further texts for the picture at a deadline, by name (NCCL's RAS), while every worker still stands.
  std::function<std::map<std::string, std::string>(const RunOutcome&)> look = {};
  std::function<bool()> interrupted = {};
};

/// To be called from a thread that outlives the run; when it dies, so do the workers. When it returns, every worker is gone,
/// but for one that the kernel cannot kill, which is then named in the notes.
RunOutcome RunPlan(const Plan& plan, const RunSetup& setup);

}  // namespace inquest
