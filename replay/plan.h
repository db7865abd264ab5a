// What will be run again, and how every argument of it is known.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "replay/call.h"
#include "replay/phase.h"
#include "replay/sequence.h"
#include "replay/source_line.h"

namespace inquest {

/// That a replay can start; a log may speak of any number.
inline constexpr int kMostRanks = 1024;

/// A value, how it is known, and what else it could be.
template <class T>
struct Argument {
  T value{};
  Basis basis = Basis::kAssumed;
  std::string rule = {};              ///< by which it was derived or assumed, or the option that gave it: one clause
  std::optional<SourceLine> at = {};  ///< of an observed value, or of what it was derived from
  std::vector<T> sweep = {};          ///< values to try, `value` first; empty: that one alone
};

/// Time that each step may take, from the step before it, on each rank.
struct Deadlines {
  std::chrono::milliseconds each{60'000};
  std::map<Phase, std::chrono::milliseconds> of = {};  ///< those that differ
  std::chrono::milliseconds abort{1'000};              ///< for the library to end by itself, once all is known
  std::chrono::milliseconds For(Phase phase) const {
    const auto found = of.find(phase);
    return found == of.end() ? each : found->second;
  }
};

/// What a test makes a rank do wrong; see Faults in docs/replay.md.
struct Fault {
  enum class Kind : std::uint8_t { kHang, kDelay, kStop, kKill, kExit, kAlter, kCorrupt, kAbortHangs, kUnchecked };
  int rank = 0;
  Kind kind = Kind::kHang;
  Step before = {Phase::kEnqueued, 1};  ///< kHang to kExit: instead of, or before, reaching this
  std::chrono::milliseconds delay{};    ///< kDelay
  std::optional<Call> call = {};        ///< kAlter: what the rank asks for
};

/// Where a rank was in the job. What no line says is empty.
struct JobPlace {
  std::optional<int> rank = {};  ///< the job's number of it
  std::string host = {}, bus_id = {};
  std::optional<int> device = {};  ///< among those that the process saw
  std::optional<SourceLine> at = {};
};

/// One place of a rank.
struct RankPlace {
  int node = 0;                            ///< counted from 0
  std::vector<std::string> launcher = {};  ///< words in front of the worker: `ip netns exec node1`; must exec, not fork
  std::map<std::string, std::string> env = {};      ///< beside Plan::env, for this rank alone
  std::map<std::string, std::string> options = {};  ///< beside Plan::options
  JobPlace was = {};                                ///< of the rank of the job that it stands for
};

/// So many ranks, one after the other, on that node.
struct NodeShare {
  int node = 0, ranks = 0;
};

struct Plan {
  Argument<Operation> operation;
  Argument<std::uint64_t> count;  ///< elements, as NCCL counts them for that operation
  Argument<Datatype> datatype{.value = Datatype::kFloat32};
  Argument<RedOp> redop{.value = RedOp::kSum};
  Argument<int> root{.value = 0};
  Argument<int> peer{.value = 1};
  Argument<bool> in_place{.value = false};
  Argument<int> ranks;  ///< 0: not known
  int at_least = 0;     ///< ranks that the logs name, where they do not say how many there are
  Argument<int> nodes{.value = 1, .rule = "this host alone"};
  std::vector<NodeShare> shares = {};  ///< in the order of ranks; empty: all here
  std::vector<std::uint64_t> splits = {};
  /// Many calls of several communicators instead of the one call that the arguments above make.
  std::optional<Sequence> sequence = {};

  std::string engine = "gloo";
  std::map<std::string, std::string> options = {};  ///< of the engine
  std::map<std::string, std::string> env = {};      ///< for every worker, beside what it inherits: the job's NCCL_*
  std::vector<RankPlace> places = {};               ///< by rank; empty: all alike, here
  std::optional<int> dump_signal = {};  ///< at which the library prints what it has in hand; sent at a deadline
  bool look_closely = true;             ///< off where the verdict alone counts: no backtraces and texts at a deadline
  int iterations = 1;
  bool warm_up = true;
  bool compare_descriptors = true;  ///< off by the fault `unchecked`: what the library itself makes of a mismatch
  Deadlines deadlines = {};
  std::vector<Fault> faults = {};

  /// Whether a log or an option names one.
  bool has_operation() const { return operation.basis != Basis::kAssumed; }
  /// Whether there is anything to run: an operation, or a sequence.
  bool has_calls() const { return sequence || has_operation(); }

  std::vector<std::string> notes =
      {};  ///< what a reader must know beforehand: `the log shows the first tensor's size only`
  std::vector<std::string> cannot =
      {};  ///< why a replay cannot show what happened: `rank 3 never called it`; it is run all the same
};

/// The call with the first value of every argument.
Call CallOf(const Plan& plan);
/// What is run, in words: of the call, or of the sequence.
std::string TitleOf(const Plan& plan);
/// The plan's sequence; of one call, that one on one communicator.
Sequence SequenceOf(const Plan& plan);
/// One plan for each combination of values to try, the likeliest first; no sweep is left in them. At most `limit`.
std::vector<Plan> Combinations(const Plan& plan, std::size_t limit);

/// What the options say; each replaces what was inferred.
struct GivenArguments {
  std::optional<Operation> operation = {};
  std::optional<std::uint64_t> count = {};
  std::optional<Datatype> datatype = {};
  std::optional<RedOp> redop = {};
  std::optional<int> root = {}, peer = {}, ranks = {};
};
Plan WithGiven(Plan plan, const GivenArguments& given);

/// Whether it can be run: every argument is known, and they fit together.
std::optional<Error> WhyNotRunnable(const Plan& plan);

/// One argument for a report: `dtype`, `float32`, `assumed: PyTorch's default`.
struct ArgumentLine {
  std::string_view name;
  std::string value, origin;
  Basis basis = Basis::kAssumed;
  std::vector<std::string> sweep;
};
/// Those that the operation uses, in a fixed order.
std::vector<ArgumentLine> Arguments(const Plan& plan);

}  // namespace inquest
