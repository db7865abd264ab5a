// Calls as NCCL prints them, as slices: line after line, while the inputs are read again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "report/perfetto/line_places.h"
#include "report/perfetto/recorded_calls.h"
#include "report/perfetto/tracks.h"
#include "timeline/callers.h"

namespace inquest {

// NCCL prints a line when a call is enqueued and none when it ends: a call lasts until its process makes the next on
// the same communicator. The last has an end only where the communicator or the process came to a good one. Lines of
// one printed second are spread over it, since nothing finer is known. The k-th call of each member is one collective
// where the birth of all members was seen, as the ledger has it; sends and receives differ by nature and have no flow.
class NcclCalls {
 public:
  /// All outlive it.
  NcclCalls(const Timeline& timeline, const Picture& picture, const LinePlaces& places, TraceTracks& tracks,
            TraceWriter& writer);
  /// Whatever else the inputs say: births and deaths of communicators, and who is there.
  void Add(Event event);
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base);
  /// All were read.
  void Finish();
  const DrawnCalls& drawn() const { return drawn_; }

 private:
  /// One communicator on one process.
  struct Member {
    TraceTrack track;
    std::optional<std::int64_t> last;      ///< when its last call began
    bool open = false;                     ///< that call has no end yet
    std::string name;                      ///< of the communicator
    std::uint64_t shared = 0;              ///< so many first calls are made by two members or more
    std::optional<std::int64_t> well_end;  ///< when its process ended well
  };
  /// Number of the communicator, host, pid, pointer.
  using Key = std::tuple<std::uint64_t, std::string, std::int64_t, std::uint64_t>;

  void Place(const CallBatch& batch, const SourcePos& base);
  Member* MemberOf(const CallBatch& batch, std::uint32_t comm, std::uint64_t communicator);
  void Close(Member& member, std::int64_t ns);

  const Timeline& timeline_;
  const LinePlaces& places_;
  TraceTracks& tracks_;
  TraceWriter& writer_;
  Callers callers_;
  std::map<std::uint64_t, const CommunicatorRow*> rows_;     ///< by number
  std::map<GlobalRank, std::int64_t> well_ends_;             ///< of ranks that ended well
  std::map<Key, Member> members_;                            ///< none moves
  std::vector<std::int64_t> ns_;                             ///< of the batch's calls
  std::vector<std::pair<std::uint64_t, Member*>> of_batch_;  ///< by communicator of the batch, and its number
  std::vector<TraceNote> notes_;
  DrawnCalls drawn_;
};

}  // namespace inquest
