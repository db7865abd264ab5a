// The ranks of one host: what a run asks of a node, and what it hears from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/result.h"
#include "replay/links.h"
#include "replay/outcome.h"
#include "replay/wire.h"

namespace inquest {

// ---- asked of a node ------------------------------------------------------------------------------------------------
struct RankOrder {
  int rank = 0;
  std::vector<std::string> launcher = {};       ///< words in front of the worker
  std::map<std::string, std::string> env = {};  ///< beside StartOrder::env
  StartWork work = {};
};
struct StartOrder {
  std::map<std::string, std::string> env = {};  ///< of every rank, beside what the node's workers inherit
  std::vector<RankOrder> ranks = {};
  int on_host = 0;  ///< ranks of all nodes on this one's host, which share its memory
};

/// A picture of the ranks that are alive. Answered by one NodeSaw with the same id.
struct LookOrder {
  int id = 0;
  bool threads = false;
  bool sockets = false;
  std::chrono::milliseconds apart{};  ///< between two looks at the sockets
  std::vector<int> backtraces = {};   ///< of these ranks, in this order, while `limit` lasts
  std::chrono::milliseconds limit{};
  bool texts = false;  ///< NodeSetup::look
  std::optional<int> dump_signal =
      {};  ///< sent last, for what libraries print then: a text `proxy.rankN.txt` of each rank
};

// ---- heard from it --------------------------------------------------------------------------------------------------
struct RankSpawned {
  static constexpr std::string_view kKind = "spawned";
  int rank = 0;
  std::int64_t pid = 0;
};
struct RankNotSpawned {
  static constexpr std::string_view kKind = "not-spawned";
  int rank = 0;
  std::string error;  ///< a sentence without its end
};
struct RankSaid {  ///< all but heartbeats that hold nothing new
  static constexpr std::string_view kKind = "said";
  int rank = 0;
  ToSupervisor message;
};
struct RankEnded {
  static constexpr std::string_view kKind = "ended";
  int rank = 0;
  std::optional<int> exit_code, signal;
  std::string output;    ///< the end of what it printed
  std::string why = {};  ///< where somebody else than the collective ended it: `the kernel's OOM killer ...`
};
struct RankStopped {  ///< told once
  static constexpr std::string_view kKind = "stopped";
  int rank = 0;
  std::string why;  ///< `stopped (SIGSTOP or its like, state T)`
};
struct RankSight {
  int rank = 0;
  std::string process_state;
  std::vector<ThreadState> threads;
  std::string backtrace;
};
struct NodeSaw {
  static constexpr std::string_view kKind = "saw";
  int id = 0;  ///< of the order; 0: of the node's own accord, when a rank failed
  std::vector<RankSight> ranks = {};
  std::vector<SocketSight> sockets = {};
  std::map<std::string, std::string> texts = {};
  bool more = false;  ///< a part of it; others follow
};
struct NodeLost {  ///< nothing will be heard from it any more
  static constexpr std::string_view kKind = "lost";
  std::string why;           ///< `its connection was closed`
  bool interrupted = false;  ///< somebody ended it, as it says itself
};

struct NodeEvent {
  std::chrono::steady_clock::time_point at{};  ///< by the clock of who reads it
  std::variant<RankSpawned, RankNotSpawned, RankSaid, RankEnded, RankStopped, NodeSaw, NodeLost> what;
};

class Node {
 public:
  virtual ~Node() = default;
  /// Readable when Take has something to give.
  virtual int fd() const = 0;
  /// What happened since the last call; never waits. To be called every tenth of a second: a node looks for silence in
  /// it.
  virtual std::vector<NodeEvent> Take() = 0;
  /// Begins a run; what was left of another is forgotten. A rank that cannot be spawned is the last one that is tried.
  virtual void Start(const StartOrder& order) = 0;
  virtual void Tell(int rank, const ToWorker& message) = 0;
  virtual void Look(const LookOrder& order) = 0;
  virtual void Kill(const std::vector<int>& ranks) = 0;
  /// Of what libraries logged there, which comes before a RankEnded: while it grows, the end is on its way.
  virtual std::uint64_t log_bytes() const { return 0; }
};

using ProbeEngine =
    std::function<Result<EngineProbe>(const std::string& engine, const std::map<std::string, std::string>& options)>;

/// A rank that lives, for who looks at it from outside.
struct LiveRank {
  int rank = 0;
  std::int64_t pid = 0;
  std::map<std::string, std::string> env;  ///< what the plan sets for it: NCCL_RAS_ADDR
};

/// What the caller lends to the node of its own host; the room itself reads no environment and prints nothing.
struct NodeSetup {
  std::string worker;            ///< path of inquest-replay-worker
  std::vector<std::string> env;  ///< NAME=VALUE, what workers inherit
  /// Runs a program that looks at a process (gdb) and returns what it printed; empty: none is run. From another thread.
  std::function<std::string(const std::vector<std::string>& command, std::chrono::milliseconds limit)> run_program = {};
  /// Further texts for the picture at a deadline, by file name (NCCL's RAS), while every worker still stands. From
  /// another thread.
  std::function<std::map<std::string, std::string>(const std::vector<LiveRank>& ranks)> look = {};
};

}  // namespace inquest
