// The last calls of several communicators, as each rank made them: what a replay of more than one call runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "replay/call.h"
#include "replay/source_line.h"

namespace inquest {

/// Ranks that call together.
struct SequenceCommunicator {
  std::string name;        ///< as the logs have it: `comm 0x5c1e77d0`, `group 0 (default_pg)`
  std::vector<int> ranks;  ///< of the replay, by rank in the communicator
  std::uint32_t id = 0;    ///< the same on all ranks
  std::uint32_t span = 1;  ///< numbers of its steps are below

  /// The place in it of a rank that is in it.
  int PlaceOf(int rank) const { return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin()); }
};

/// One call of one rank. Fields of Call that name ranks are those of the communicator.
struct SequenceStep {
  std::uint32_t communicator = 0;  ///< into the communicators beside it
  std::uint32_t call = 0;          ///< into the calls beside it
  std::uint32_t stream = 0;        ///< steps of one run in order, those of two at once; of the rank alone, from 0
  std::uint32_t batch = 0;         ///< steps of one stream in a row that are one group call have the same; 0: alone
  /// Steps of two ranks that meet have the same: of a communicator's collectives, or of the sends from one rank of it
  /// to one other.
  std::uint32_t number = 0;
  std::int64_t called = 1;            ///< its number as the logs have it, which parts of one block share
  bool checked = false;               ///< all members ask for the same, so that the data can be verified
  std::optional<SourceLine> at = {};  ///< where the log says it; stays with the plan
};

/// What one rank does of it.
struct SequenceWork {
  std::vector<SequenceCommunicator> communicators;  ///< those that it is in, by id
  std::vector<Call> calls;
  std::vector<SequenceStep> steps;  ///< in the order in which it makes them
};

struct Sequence {
  std::vector<SequenceCommunicator> communicators;  ///< by id
  std::vector<Call> calls;                          ///< each once
  std::vector<std::vector<SequenceStep>> steps;     ///< by rank, in the order in which it made them
  std::string rule;                                 ///< which calls these are: `the last 3 of every communicator`

  std::size_t size() const;
};

/// How far one stream of a rank is: the first `completed` of its steps are done, those up to `begun` are not.
struct StreamProgress {
  std::uint32_t begun = 0, completed = 0;
  bool operator==(const StreamProgress&) const = default;
};
/// By stream.
using SequenceProgress = std::vector<StreamProgress>;

/// Whom a step meets: the communicator's id, -1 and -1 or sender and receiver, the number.
using Meeting = std::tuple<std::uint32_t, int, int, std::uint32_t>;
Meeting MeetingOf(const Sequence& sequence, const SequenceStep& step);
/// Ranks of the replay that have a part in it.
std::vector<int> PartiesOf(const Sequence& sequence, const SequenceStep& step);

/// `all-reduce #3 of comm 0x5c1e`, `send from rank 0 to rank 1 #2 of group 4 (pp)`.
std::string InWords(const Sequence& sequence, const SequenceStep& step);
/// The same with what it asks for: `all-reduce #3 of comm 0x5c1e (1024 float32, sum)`.
std::string InWordsWhole(const Sequence& sequence, const SequenceStep& step);
/// `the last 3 calls of every communicator: 12 calls of 2 ranks on 2 communicators`.
std::string Describe(const Sequence& sequence);

/// A meeting of which not all parties do the same, or some never come.
struct Disagreement {
  Meeting meeting;
  std::string sentence;    ///< with a capital and a full stop
  std::vector<int> ranks;  ///< those in the minority, or that never come
  bool lacks = false;      ///< some never come; the others may agree
};
/// In the order of the first rank that has it.
std::vector<Disagreement> DisagreementsOf(const Sequence& sequence);

/// Fills in what follows from the rest: `checked`.
void Complete(Sequence& sequence);
/// What those ranks make of it among themselves: without communicators of which none or one of them is, and without
/// sends to or from others; a root that is not among them is the first. May be of no call. `ranks`: ascending.
Sequence SubsetOf(const Sequence& sequence, const std::vector<int>& ranks);
SequenceWork WorkOf(const Sequence& sequence, int rank);
/// Why it cannot be run; empty: it can.
std::string WhyInvalid(const Sequence& sequence);

/// Of a rank's orders, which another process sent: indices are in range.
std::string WhyInvalid(const SequenceWork& work, int rank);

/// By stream, the steps of a rank in it, into `steps`.
std::vector<std::vector<std::uint32_t>> ByStream(const std::vector<SequenceStep>& steps);

}  // namespace inquest
