// From the inputs, read a second time, to a plan of the last calls of every communicator, per rank as they were made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/event_sink.h"
#include "core/result.h"
#include "replay/plan.h"
#include "timeline/callers.h"
#include "timeline/timeline.h"

namespace inquest {

struct SequenceAsked {
  int last = 1;  ///< calls of each communicator
  /// On which stream of a rank a call is: as its line says, where all lines do; all on one; one for each communicator.
  enum class Streams : std::uint8_t { kAsLogged, kOne, kOwn };
  Streams streams = Streams::kAsLogged;
};

/// One call as a source tells it.
struct ReadCall {
  std::uint32_t communicator = 0;  ///< into ReadCalls::communicators
  std::int64_t number = 0;  ///< of the communicator's collectives, or of those between two ranks: alike on all of them
  std::int64_t part = 0;    ///< of those that share a number, from 0
  Call call;
  std::optional<std::uint64_t> stream;  ///< nullopt: not told
  std::uint64_t batch = 0;              ///< those of one group call have the same; 0: alone
  SourceLine at;
};
struct ReadCommunicator {
  std::string name;
  std::vector<std::optional<std::uint32_t>> members;  ///< into ReadCalls::callers, by rank; nullopt: nothing shows it
  bool counts = true;                                 ///< its numbers are those of the log
  bool by_kind = false;  ///< known from counts of one operation: of its order among others nothing is known
};
/// All that one source says, before the last calls are chosen. Callers are processes or ranks.
struct ReadCalls {
  std::vector<ReadCommunicator> communicators;
  std::vector<JobPlace> callers;
  std::vector<std::vector<ReadCall>> calls;  ///< by caller, in the order in which it made them
  std::vector<std::string> notes;            ///< what is assumed of them
};
struct ChosenCalls {
  Sequence sequence;
  std::vector<std::uint32_t> callers;  ///< into ReadCalls::callers, by rank of the replay
};
/// The last calls of each communicator, from the same number on all its members: so many as are asked for of the member
/// that made most, and more where another lacks more. Fails where nothing is left, or where a member of a communicator
/// shows no calls.
Result<ChosenCalls> LastOf(const ReadCalls& read, const SequenceAsked& asked);

/// Takes what ScanInputs reads. Prefers NCCL's COLL lines, which tell all; then what recorders kept (neither roots nor
/// reductions nor streams); then counts of RAS or Inspector.
class SequenceReader final : public EventSink {
 public:
  /// `timeline`: of the same inputs; outlives it.
  SequenceReader(const Timeline& timeline, const SequenceAsked& asked);
  void Add(Event event) override;
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) override;
  void AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos& where) override;
  /// All was read. Fails where no source shows calls.
  Result<Plan> Finish();

 private:
  struct Logged {
    std::uint64_t communicator = 0;  ///< its number in the ledger
    std::optional<std::uint64_t> number;
    CallDescriptor what;
    std::uint64_t stream = 0;
    std::uint32_t op_count = 0;
    SourcePos where;
  };
  using PairKey = std::tuple<std::uint64_t, std::string, std::int32_t>;  ///< communicator, operation, peer

  void Prune(std::uint32_t process);
  ReadCalls OfLines();
  ReadCalls OfRecorders() const;
  ReadCalls OfCounts() const;

  const Timeline& timeline_;
  SequenceAsked asked_;
  Callers callers_;
  std::map<std::uint64_t, const CommunicatorRow*> rows_;  ///< by number
  std::map<std::uint64_t, std::uint64_t> first_;          ///< by number of the communicator: calls before are not kept
  std::map<std::uint32_t, std::vector<Logged>> logged_;   ///< by process of the timeline
  std::map<std::uint32_t, std::map<PairKey, std::uint64_t>> pairs_;  ///< by process: sends and receives so far
  std::map<std::uint32_t, std::size_t> prune_at_;
  std::map<std::uint64_t, std::set<std::uint32_t>> op_counts_;  ///< by communicator: a few, to see whether they count
  struct Recorded {
    CallTrace trace;
    SourcePos where;
  };
  std::map<int, Recorded> traces_;  ///< by rank
  bool too_many_ = false;
};

}  // namespace inquest
