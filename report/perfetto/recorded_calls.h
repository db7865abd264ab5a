// What ranks' own recorders kept, as slices: dump after dump, while the inputs are read again.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "core/call_trace.h"
#include "core/event.h"
#include "report/perfetto/flows.h"
#include "report/perfetto/tracks.h"

namespace inquest {

/// What came of the calls that were read again.
struct DrawnCalls {
  std::uint64_t slices = 0;
  std::uint64_t other_attempts = 0;  ///< not drawn: calls of another start of the job
  std::uint64_t left_out = 0;        ///< not drawn: of a dump that is not the first of its rank, or of too many tracks
};

// A call lasts from when it was created to when it is known to have ended: by its recorder's word, or at the latest
// with the next of its stream that its recorder saw end. Calls of a group that overlap are told apart by tracks of one
// name, which the viewer shows as one. What had not ended has no end.
class RecordedCalls {
 public:
  /// `begin` to `end`: the picture's axis. All outlive it.
  RecordedCalls(const Timeline& timeline, const Picture& picture, std::int64_t begin, std::int64_t end,
                TraceTracks& tracks, TraceWriter& writer);
  void Add(const CallTrace& trace, const Origin& origin, const SourcePos& where);
  const DrawnCalls& drawn() const { return drawn_; }
  /// Recorders' times do not compare with the picture's; the newest is put at the picture's end.
  bool is_shifted() const { return shift_ != 0; }

 private:
  struct Span {
    std::int64_t begin = 0, end = 0;
    std::uint32_t group = 0, call = 0;  ///< of the trace
    bool open = false;
  };
  std::vector<Span> SpansOf(const CallTrace& trace) const;
  std::int64_t At(std::int64_t recorded_ns) const { return recorded_ns + shift_; }

  const Timeline& timeline_;
  TraceTracks& tracks_;
  TraceWriter& writer_;
  std::int64_t begin_, end_, shift_ = 0;
  struct Group {
    std::uint32_t number = 0;  ///< into Recorded::groups
    SharedNumbers shared;
  };
  std::map<std::string, Group> groups_;  ///< by GroupKey()
  std::set<GlobalRank> ranks_;
  DrawnCalls drawn_;
};

}  // namespace inquest
