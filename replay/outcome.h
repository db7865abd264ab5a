// What a run showed: how far each rank came, what the links did, and the verdict in words.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "replay/engine.h"
#include "replay/plan.h"

namespace inquest {

enum class RunVerdict : std::uint8_t {
  kPassed,
  kHung,      ///< a deadline passed; `ranks` did not come along, or all of them wait
  kLinkDead,  ///< a deadline passed and a connection holds bytes that do not move
  kRankDied,
  kRankStopped,  ///< alive, and frozen: SIGSTOP, a debugger, the cgroup freezer
  kMismatch,     ///< the ranks asked for different calls
  kWrongData,
  kEngineError,  ///< the library itself reported an error
  kNodeLost,     ///< the agent of a node, or the way to it, is gone
  kInterrupted,
  kCouldNotRun,  ///< before any rank was asked to communicate
};
std::string_view Name(RunVerdict verdict);

/// When a rank began the step that ends in a phase, and when it reached it, since the start of the run. The last
/// iteration of a repeated one.
struct PhaseTime {
  int iteration = 0;
  std::chrono::nanoseconds begun{};
  std::optional<std::chrono::nanoseconds> reached = {};
};

/// What /proc says of one thread when the picture was taken. Empty text: not readable.
struct ThreadState {
  std::int64_t tid = 0;
  std::string name, state, wchan, syscall, stack;
};

struct RankOutcome {
  int rank = 0, node = 0;
  std::string host;
  std::int64_t pid = 0;
  std::map<Phase, PhaseTime> phases;
  Step doing;                                   ///< the step in progress: the rank has not reached it
  Step last;                                    ///< the last one reached
  std::string process_state;                    ///< `S (sleeping)` at the end; empty: gone or not looked at
  std::optional<int> exit_code, signal;         ///< neither: it lived until the supervisor ended it
  std::chrono::nanoseconds ended_at{};          ///< of exit_code or signal
  std::string ended_by = {};                    ///< what ended it that is no part of the collective: the OOM killer
  bool spoke = false;                           ///< its worker said hello
  std::vector<std::chrono::nanoseconds> times;  ///< of each completed iteration
  std::string stopped;                          ///< why it stands still: `stopped (SIGSTOP)`; empty: it does not
  SequenceProgress progress;                    ///< of a sequence: by stream, in this pass
  std::optional<Call> asked;                    ///< what it asked for, where the plan wants another call
  std::string error;                            ///< the engine's
  std::optional<WrongData> wrong_data;
  std::vector<std::string> describe;  ///< Session::Describe
  bool verifies = true;               ///< Session::verifies
  std::vector<ThreadState> threads;   ///< where a picture was taken
  std::string backtrace;              ///< gdb's, where it is installed
  std::string output;                 ///< the end of what the process printed
};

/// One TCP connection between two ranks, seen from its sender; byte counts are the kernel's.
struct LinkRow {
  int from = 0, to = 0;
  std::string from_address, to_address;
  std::uint64_t acked = 0;        ///< bytes that the receiver's host acknowledged
  std::uint64_t received = 0;     ///< bytes that arrived at the other end
  std::uint64_t queued = 0;       ///< bytes that wait at the sender, sent or not
  std::uint64_t unread = 0;       ///< bytes that wait at the receiver for its process
  std::uint32_t retransmits = 0;  ///< of the oldest segment in a row
  std::chrono::milliseconds since_ack{};
  bool connected = true;
  bool moves = false;                     ///< between two looks
  std::optional<std::int64_t> lost = {};  ///< segments that were sent and did not arrive; nullopt: not known
};

/// One node of several.
struct NodeOutcome {
  std::string name;          ///< `node 1 (hostb)`
  std::string lost;          ///< why nothing is heard from it any more; empty: it is there
  bool interrupted = false;  ///< somebody ended it
  std::chrono::nanoseconds lost_at{};
};

struct Bandwidth {
  std::uint64_t bytes = 0;  ///< nccl-tests' size
  /// Of the slowest rank in each iteration. The first counts for the others only where it is alone.
  std::chrono::nanoseconds first{}, best{}, mean{};
  double algorithm = 0, bus = 0;  ///< GB/s, by the mean
};

/// Names a rank or a link that the verdict blames.
struct Blamed {
  std::optional<int> rank;
  std::optional<int> to;  ///< of a link: `rank` -> `to`
};

/// A call of a sequence that a rank is in, and whom it waits for.
struct Waiting {
  int rank = 0, stream = 0;
  int step = 0;                       ///< of the rank's calls, from 1
  std::string call;                   ///< `all-reduce #3 of comm 0x5c1e (1024 float32, sum)`
  std::vector<int> for_ranks, never;  ///< that have it ahead of them, and that have it not at all
  std::optional<SourceLine> at = {};  ///< where the log says it
};

/// What ended a run from outside, on this host.
enum class Interruption : std::uint8_t {
  kNone,
  kSignal,
  kCallerGone,  ///< who started it has ended
  kReaderGone,  ///< nobody reads what it prints
};

struct RunOutcome {
  RunVerdict verdict = RunVerdict::kCouldNotRun;
  std::string sentence;            ///< `Rank 2 did not enqueue #1; ranks 0, 1 did.`
  std::vector<std::string> notes;  ///< `rank 2 was 4.0 s late at comm-init`
  std::vector<Blamed> blamed;
  Interruption interruption = Interruption::kNone;
  bool is_hurried = false;               ///< a deadline ended it that was shorter than the plan's
  std::vector<int> cycle;                ///< of a sequence: each waits for the next, the last for the first
  std::vector<Waiting> waiting;          ///< of a sequence that did not pass: by rank and stream
  std::vector<RankOutcome> ranks;        ///< by rank
  std::vector<NodeOutcome> nodes;        ///< by node; empty: this host alone
  std::vector<LinkRow> links;            ///< where a picture was taken
  std::map<std::string, int> listeners;  ///< who listens at an address, `10.0.0.2:4711`: libraries name one another so
  std::optional<Bandwidth> bandwidth;
  std::map<std::string, std::string> dumps;  ///< other texts of the picture by file name: `ras.rank0.json`
  std::chrono::nanoseconds took{};
  std::chrono::nanoseconds event_at{};    ///< of the death, error, or deadline that ended it, since the start
  std::chrono::nanoseconds decided_at{};  ///< when the sentence was known
  std::chrono::nanoseconds
      leaving{};  ///< from asking the ranks to leave, or to abort, until all had gone or were killed
};

/// One combination of arguments and how its runs ended.
struct TrialOutcome {
  Plan plan;  ///< without sweeps
  RunOutcome run;
  std::set<std::string> used = {};  ///< transports, of NCCL's own lines: `P2P/IPC`
  std::string log_says = {};        ///< the analyzer's verdict over the logs of this run; empty: nothing wrong, or none
};

/// 0 passed, 1 reproduced, 2 could not decide, 3 could not run.
int ExitStatus(const std::vector<TrialOutcome>& trials);

}  // namespace inquest
