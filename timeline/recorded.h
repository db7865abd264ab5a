// What the ranks' own recorders kept of their calls, matched over the ranks of every process group.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/call_trace.h"
#include "core/event.h"
#include "core/rank_set.h"

namespace inquest {

/// One call of one rank.
struct RecordedCall {
  std::uint32_t group = 0;  ///< into Recorded::groups
  std::uint32_t form = 0;   ///< into Recorded::forms
  std::int64_t seq = 0;
  std::int64_t created_ns = 0;  ///< 0: not recorded
  CallTrace::State state = CallTrace::State::kScheduled;
  CallTrace::Peer to = CallTrace::Peer::kNone;
  std::optional<GlobalRank> peer;  ///< of a send or receive
  bool pairwise = false, coalesced = false, gave_up = false;
  SourcePos where;   ///< its dump; `line` is its place among the entries, from 1
  std::string site;  ///< `train_step at train.py:88`; empty: not recorded
};

/// What one rank recorded of one group.
struct RecordedMember {
  GlobalRank rank;
  std::int64_t first = 0, last = 0;            ///< numbers of its collectives, as far back as its recorder reached
  std::optional<std::int64_t> last_completed;  ///< nullopt: none of those
  bool calls = false;                          ///< there is any collective; else the numbers above mean nothing
  std::optional<std::int64_t> lost;            ///< it may have made all up to here, and its ring holds none of them
  /// Where it first called something else than whoever was read before it.
  struct Deviation {
    std::int64_t seq = 0;
    std::uint32_t form = 0;
    std::optional<std::uint32_t> next_form;
    SourcePos where;
    std::string site;
  };
  std::optional<Deviation> deviation;
};

struct RecordedGroup {
  /// Who says it: the ranks' own recorders; or NCCL's RAS or Inspector, which count the calls of a communicator by
  /// operation, so that `name` is its hash, `desc` the operation, and numbers are of that.
  enum class Source : std::uint8_t { kRecorders, kRas, kInspector };
  Source source = Source::kRecorders;
  std::string name, desc;
  std::vector<int> ranks;               ///< global, by group rank; empty: not recorded
  bool mixed = false;                   ///< its numbers differ from rank to rank
  std::vector<RecordedMember> members;  ///< by rank: those whose recorder holds anything of it
  /// The first number at which members called different things. Largest side first; ties by the lowest rank.
  struct Divergence {
    std::int64_t seq = 0;
    struct Side {
      std::uint32_t form = 0;
      std::optional<std::uint32_t> next_form;  ///< under the next number
      RankSet ranks;
      SourcePos where;  ///< of one of them
      std::string site;
    };
    std::vector<Side> sides;
  };
  std::optional<Divergence> divergence;
  const RecordedMember* Find(GlobalRank rank) const;
  /// Its members: as recorded, else those whose recorders hold anything of it.
  RankSet Members() const;
  /// `0 (default_pg)`; of a communicator, its hash.
  std::string InWords() const;
};

/// One rank's recorder.
struct RecordedRank {
  GlobalRank rank;
  std::uint32_t input = 0;
  std::uint64_t entries = 0;
  std::vector<RecordedCall> open;    ///< that had not ended, oldest first; the newest of very many are left out
  std::optional<RecordedCall> last;  ///< the newest of all
  std::int64_t latest_ns = 0;        ///< the newest moment in it
  bool timed = false;                ///< it was told when calls start
  bool torn = false;                 ///< its dump is not whole: the newest may be missing
  bool counted = false;              ///< no dump of it: it is known from counts of its calls alone
};

struct Recorded {
  std::vector<RecordedGroup> groups;  ///< in the order in which they were read
  std::vector<RecordedRank> ranks;    ///< by rank
  std::vector<CallForm> forms;
  std::int64_t timeout_ms = 0;  ///< 0: not recorded
  bool gave_up = false;         ///< some watchdog gave up on a call
  std::uint64_t nameless = 0;   ///< dumps of which nothing says the rank
  std::string version;          ///< of the first dump
  bool empty() const { return ranks.empty(); }
  /// Ranks whose recorders were given.
  RankSet Given() const;
  /// How long ranks had waited in what had not ended when others made their newest call; nullopt: not recorded.
  std::optional<std::chrono::nanoseconds> LongestWait() const;
  /// A watchdog gave up, or some call waited for minutes: else the recorders may have been asked while the job ran.
  bool Hung() const;
  const RecordedRank* Find(GlobalRank rank) const;
};

/// `all_reduce of 1048576 x Float`, `reduce_scatter of 8388608 into 1048576 x BFloat16`.
std::string InWords(const CallForm& form);
/// `all_reduce of 1 x Float #61 of group 0 (default_pg): scheduled, given up; train_step at train.py:88`.
std::string LineOf(const Recorded& recorded, const RecordedCall& call);
/// The watchdog's name of a recorded operation: `ALLREDUCE` of `all_reduce`.
std::string WorkName(const std::string& op);

}  // namespace inquest
