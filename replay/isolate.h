// Finds the path that breaks a collective: the same call again with one part of the transport switched off at a time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "replay/outcome.h"
#include "replay/pairs.h"
#include "replay/recipes.h"

namespace inquest {

/// How often a variant broke, and what it really used.
struct VariantOutcome {
  std::string id;
  int runs = 0, broken = 0, could_not_run = 0;
  std::set<std::string> used;                ///< `P2P/IPC`, `NET/Socket`, of NCCL's own lines; empty: not known
  bool changed_nothing = false;              ///< it used the same as the baseline
  RunVerdict verdict = RunVerdict::kPassed;  ///< of its last broken run
  std::string sentence;                      ///< of that
};

/// The same call among some of the ranks alone.
struct SubsetOutcome {
  std::vector<int> ranks;  ///< of the plan, ascending
  bool broken = false;
  bool could_not_run = false;
  std::string sentence = {};  ///< of its last run, by the subset's own numbers
};

struct IsolationOutcome {
  std::vector<VariantOutcome> variants;  ///< the baseline first, of all ranks; the others of `part`
  PairsOutcome pairs;
  std::vector<SubsetOutcome> subsets;  ///< in the order they were run
  std::vector<int> part;               ///< the ranks that it takes to break; empty: all, or not known
  std::string finding;                 ///< `Breaks 5 of 5, 0 of 5 with peer-to-peer off: ...`
  std::string hint;                    ///< empty: none
  bool interrupted = false;
  int deadlines = 0;  ///< whole ones that were waited for, in all
  std::chrono::nanoseconds took{};
  std::optional<std::chrono::nanoseconds> named_at = {};  ///< when `part` was known
};

struct IsolationSetup {
  int repeats = 5;
  RunPlans run;
  /// What NCCL's logs of the last run say that it used.
  std::function<std::set<std::string>()> used;
  /// The RDMA ports that they say it had to choose from: `mlx5_0:1`. May be empty.
  std::function<std::vector<std::string>()> cards = {};
  Environment inherited = {};    ///< what workers inherit: settings of NCCL that are not the plan's
  std::optional<int> nccl = {};  ///< version, as ncclGetVersion gives it
  std::function<void(std::string_view what)> progress;  ///< may be empty
};

IsolationOutcome Isolate(const Plan& plan, const IsolationSetup& setup);

/// 0: the baseline passes; 1: it breaks; 2: interrupted; 3: it could not run.
int ExitStatus(const IsolationOutcome& outcome);

}  // namespace inquest
