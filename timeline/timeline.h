// One immutable picture of the job: who is who, what happened when, which collective hung.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/call_batch.h"
#include "core/event.h"
#include "core/input_form.h"
#include "core/rank_set.h"
#include "timeline/left_out.h"
#include "timeline/recorded.h"

namespace inquest {

/// The rule of a rank that a line without a `[rankN]:` prefix names in its own words.
inline constexpr std::string_view kBracketRule = "[Rank n] of a line without a [rankN]: prefix";

/// Processes by host (empty: not known) and pid: looked up by what the log says, without a copy of it.
struct HashOfPid {
  using is_transparent = void;
  std::size_t operator()(const std::pair<std::string_view, std::int64_t>& key) const {
    return std::hash<std::string_view>()(key.first) ^
           static_cast<std::size_t>(static_cast<std::uint64_t>(key.second) * 0x9e3779b97f4a7c15U);
  }
};
struct SamePid {
  using is_transparent = void;
  bool operator()(const std::pair<std::string_view, std::int64_t>& a,
                  const std::pair<std::string_view, std::int64_t>& b) const {
    return a == b;
  }
};
using ProcessByPid = std::unordered_map<std::pair<std::string, std::int64_t>, std::uint32_t, HashOfPid, SamePid>;

/// Index into Timeline::events.
using EventIndex = std::uint32_t;

/// One input as it was read.
struct InputSummary {
  std::string path;  ///< as given; `-` for standard input
  std::uint64_t bytes = 0, lines = 0, claimed = 0, plain = 0, damaged = 0;
  std::vector<std::string> kinds;               ///< names of the formats seen in it, sorted
  std::string problem = {};                     ///< why it was not read whole; empty: it was
  std::optional<Known<std::string>> host = {};  ///< of the folder it is in, or given
  const InputForm* form = nullptr;              ///< what it is, where it is known to be no log
  std::string clock = {};  ///< how lines that count from boot were dated, or that they were not; empty: there are none
};

/// One process of the job, keyed by host and pid where both are known, else by its rank.
struct ProcessRow {
  std::optional<std::string> host;
  std::optional<std::int64_t> pid;
  std::optional<Known<GlobalRank>> rank;
  std::optional<LocalRank> local_rank;
  std::optional<int> cuda_dev, nvml_dev;
  std::optional<std::string> bus_id;
};

/// One rank of the job. `process` refers to Timeline::processes.
struct RankRow {
  GlobalRank rank;
  std::optional<std::uint32_t> process;
  std::optional<std::string> host;  ///< that all its lines were said to come from
  std::optional<EventIndex> first_event, last_event;
  std::string last_collective;  ///< `ALLREDUCE #4410 (timed out)`, `AllReduce call 211`; empty: none seen
  std::string final_state;  ///< `timed out`, `exited with 1`, `killed by signal 9`, `raised ValueError`, `ended well`;
                            ///< empty: unknown
};

/// One communicator over all its ranks. Key: NCCL's id where printed, else derived from its parent.
struct CommunicatorRow {
  std::optional<Known<std::uint64_t>> comm_id;
  int nranks = 0;
  struct Member {
    std::optional<GroupRank> rank;  ///< nullopt: no Init line of it was seen
    std::uint32_t process = 0;      ///< into Timeline::processes
    bool started = false, completed = false, ended = false, aborted = false;
    std::uint64_t calls = 0;  ///< collective calls counted on it
    std::optional<std::uint64_t> last_op_count;
    CallDescriptor last_call;
    SourcePos last_call_at;
    std::string last_call_text;
    std::optional<Timestamp> last_call_time;
    std::optional<SourcePos> init_at;  ///< its last Init line
    std::optional<EventIndex> init_event;
  };
  std::uint64_t number = 0;     ///< in the order in which communicators were met; never given twice
  std::vector<Member> members;  ///< by rank, those of unknown rank first; ranks never seen are missing
  bool whole_history = true;    ///< every member's Init was seen, so that counts compare
  /// No Init was seen, but opCount shows that all members are seen from one call on, which had this one. Their ranks
  /// are then the numbers of their devices.
  std::optional<std::uint64_t> seen_from;
  /// The k-th calls of its members are one call.
  bool compares() const { return whole_history || seen_from; }

  /// The first call number (from 0) at which members asked for different things.
  struct Divergence {
    std::uint64_t number = 0;
    struct Side {
      CallDescriptor call;
      std::vector<int> ranks;  ///< of the communicator, ascending
      SourcePos where;         ///< of the first rank's line
      std::string text;
    };
    std::vector<Side> sides;  ///< largest first; ties by lowest rank
  };
  std::optional<Divergence> divergence;
};

/// A framework's process group as far as the logs name it.
struct GroupRow {
  std::string name;  ///< guid or id as printed; empty: the default group
  std::string desc;  ///< `default_pg`, `mesh_dp`
  struct Member {
    std::optional<GroupRank> group_rank;
    std::optional<std::int64_t> last_enqueued, last_completed, failed_work;
    std::optional<EventIndex> status_event;
  };
  std::map<GlobalRank, Member> members;
  RankSet declared;  ///< all its members, as a rank's recorder lists them; empty: not known
  /// Some line says which it is.
  bool named() const { return !name.empty() || !desc.empty(); }
  /// All ranks are in it, or nothing says that it is another.
  bool is_default() const { return name.empty() || name == "0" || desc == "default_pg" || desc == "undefined"; }
};

/// One operation that did not end, matched over its participants.
struct CollectiveRow {
  std::uint32_t group = 0;  ///< into Timeline::groups
  bool whole = true;        ///< no waiter was left out
  bool recorded = false;    ///< known from the ranks' own recorders alone
  bool guessed = false;     ///< some waiters are of this group at a guess: their lines name none
  WorkFields work;          ///< of the majority
  struct Waiter {
    GlobalRank rank;
    std::optional<GroupRank> group_rank;
    Known<GlobalRank> known;  ///< how the rank is known: the prefix, or `[Rank n]` alone
    WorkFields work;
    std::optional<Timestamp> at;           ///< when it timed out
    std::optional<Timestamp> enqueued_at;  ///< at minus ran_ms
    std::optional<std::int64_t> ran_ms;
    EventIndex event = 0;
  };
  std::vector<Waiter> waiters;  ///< by rank
};

/// Ranks by what a line knows of its place: a local rank, and perhaps a host.
class ByLocalRank {
 public:
  struct Ranks {
    std::optional<GlobalRank> first;
    bool several = false;
  };
  void Add(const ProcessRow& row);
  /// Ranks of the processes with this local rank; where a host is given, of those there or on no host that is known.
  Ranks Of(LocalRank local, const std::optional<std::string>& host) const;
  /// Some process' rank is not its local rank.
  bool differ() const { return differ_; }

 private:
  std::map<std::pair<LocalRank, std::string>, Ranks> by_place_;  ///< empty: of processes without a host
  std::map<LocalRank, Ranks> anywhere_;
  bool differ_ = false;
};

/// One for all timelines without.
const std::shared_ptr<const Recorded>& NoRecords();

struct Timeline {
  std::vector<InputSummary> inputs;
  std::size_t logs = 0;       ///< inputs that are more than what tools print of a host
  std::vector<Event> events;  ///< in input and line order
  std::vector<std::string> hosts;
  std::size_t job_hosts = 0;  ///< those that a process of the job named, and not only a tool's output
  std::vector<ProcessRow> processes;
  std::vector<RankRow> ranks;  ///< by rank
  std::vector<CommunicatorRow> communicators;
  std::vector<GroupRow> groups;
  std::vector<CollectiveRow> collectives;                  ///< earliest first where the clocks say so, else by line
  std::shared_ptr<const Recorded> recorded = NoRecords();  ///< never null; empty: no rank's recorder was given
  bool recorded_fits = true;                               ///< no more speaks against those recorders than for them
  std::optional<Known<int>> world_size;
  LeftOut left_out;
  Forgotten waits_left_out;                                  ///< operations of time-outs, by HashOfWait
  std::map<std::string, std::vector<std::string>> versions;  ///< "nccl" -> {"2.21.5"}, "cuda", "driver", "pytorch"

  /// The process of an event's writer; of a kernel's line, the process that it speaks of.
  std::optional<std::uint32_t> ProcessOf(const Event& event) const;
  /// The rank that wrote an event, by its own origin or by its process; of a kernel's line, the rank that it speaks of.
  std::optional<Known<GlobalRank>> RankOf(const Event& event) const;
  std::optional<std::string> HostOf(const Event& event) const;
  /// Of one input, as places in `events`: the first, and the one behind the last.
  std::pair<EventIndex, EventIndex> EventsOf(std::uint32_t input) const;
  const RankRow* FindRank(GlobalRank rank) const;
  /// How many ranks the job has at least: those that were seen, or its size where that is told and is more.
  std::size_t KnownRanks() const;
  /// Whether what stands there is of the attempt that this is a timeline of.
  bool Holds(const SourcePos& where) const;
  /// Hosts that a process of the job names.
  const std::set<std::string>& ProcessHosts() const { return *process_hosts; }
  /// The same; where no process names its host, all hosts that anything names.
  const std::set<std::string>& JobHosts() const { return *job_host_names; }

  /// before, after, same moment, or unordered: clocks of two hosts or lines without time need not decide. Within one
  /// input, line order decides where times are missing.
  std::partial_ordering Order(EventIndex a, EventIndex b) const;

  // Filled by the builder for the queries above.
  std::vector<std::pair<SourcePos, SourcePos>> held = {};  ///< by input, from where and to before where; empty: all
  std::shared_ptr<const std::set<std::string>> process_hosts = std::make_shared<std::set<std::string>>();
  std::shared_ptr<const std::set<std::string>> job_host_names = process_hosts;
  std::shared_ptr<const ProcessByPid> process_by_pid =
      std::make_shared<ProcessByPid>();  ///< of all attempts, however often one is looked at
  std::map<SourcePos, std::uint32_t> process_by_kernel_line;
  ByLocalRank by_local_rank;
};

/// A PCI address without its function: a GPU has one that computes.
std::string WithoutFunction(const std::string& bus_id);
/// Both addresses without their function; an empty one is no device's.
bool SameDevice(const std::string& a, const std::string& b);
/// `0-27, 29-63`.
std::string FoldRanks(const RankSet& ranks);
std::string FoldRanks(std::vector<int> ranks);

}  // namespace inquest
