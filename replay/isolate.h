// Finds the path that breaks a collective: the same call again with one part of the transport switched off at a time.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/outcome.h"

namespace inquest {

/// One way of running the same call.
struct Variant {
  std::string_view id;       ///< `p2p-off`
  std::string_view changes;  ///< in words: `with peer-to-peer off`
  std::string_view path;     ///< what is at fault where this variant alone passes: `the GPUs' peer-to-peer path`
  std::string_view hint;     ///< known causes of that
  std::span<const std::pair<std::string_view, std::string_view>> env;
  std::string_view engine = "";  ///< empty: the plan's
};
/// The baseline first, then from the most general to the most special.
std::span<const Variant> Variants();

/// How often a variant broke, and what it really used.
struct VariantOutcome {
  std::string id;
  int runs = 0, broken = 0, could_not_run = 0;
  std::set<std::string> used;     ///< `P2P/IPC`, `NET/Socket`, of NCCL's own lines; empty: not known
  bool changed_nothing = false;   ///< it used the same as the baseline
  RunVerdict verdict = RunVerdict::kPassed;  ///< of its last broken run
  std::string sentence;           ///< of that
};

/// A send from one rank to another, alone.
struct PairOutcome {
  int from = 0, to = 0;
  bool broken = false;
  std::string sentence;
};

struct IsolationOutcome {
  std::vector<VariantOutcome> variants;
  std::vector<PairOutcome> pairs;
  std::string finding;  ///< `Breaks 5 of 5, 0 of 5 with peer-to-peer off: ...`
  std::string hint;     ///< empty: none
  bool interrupted = false;
};

struct IsolationSetup {
  int repeats = 5;
  /// Fresh processes each time.
  std::function<RunOutcome(const Plan&)> run;
  /// What NCCL's logs of the last run say that it used.
  std::function<std::set<std::string>()> used;
  std::function<void(std::string_view what)> progress;  ///< may be empty
};

IsolationOutcome Isolate(const Plan& plan, const IsolationSetup& setup);

/// 0: the baseline passes; 1: it breaks; 2: interrupted; 3: it could not run.
int ExitStatus(const IsolationOutcome& outcome);

}  // namespace inquest
