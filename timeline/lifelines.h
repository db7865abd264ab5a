// What every process of the job did over time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/breaks.h"
#include "timeline/course.h"
#include "timeline/timeline.h"

namespace inquest {

/// One kind of work of one process: from the line that tells of it to the line that tells of the next, or to its last.
struct Interval {
  Activity at = Activity::kNone;
  EventIndex begin = 0, last = 0;
  std::optional<EventIndex> end;  ///< nullopt: still open when the process was last heard
  std::uint64_t times = 1;        ///< lines that told of it
  std::optional<int> percent;     ///< the last that was printed
};

/// Something that befell a process.
struct LifeMark {
  EventIndex event = 0;
  std::string_view kind;  ///< `timed-out`, `exception`, `exit`, `signal`, `stopped`, `complaint`, `device`
};

/// How a process or the job ended, and whose word that is.
struct LifeEnd {
  enum class How : std::uint8_t { kUnknown, kWell, kExitCode, kSignal, kRaised, kTimedOut, kStopped };
  How how = How::kUnknown;
  std::optional<EventIndex> event;
  std::string said_by;                  ///< `itself`, a launcher, `scheduler`, `kernel`; empty: unknown
  std::optional<Because> because = {};  ///< of whom it stood still or ended; nullopt: of nobody, as far as is known
};
std::string_view Name(LifeEnd::How how);

/// What one process did. Lines that name neither rank nor pid are of their input's nameless writer.
struct Lifeline {
  std::optional<GlobalRank> rank;
  std::optional<std::string> host;
  std::optional<std::int64_t> pid;
  std::uint32_t input = 0;  ///< where it was first heard
  std::string writer;       ///< the launcher's tag of a process without rank and pid
  EventIndex first = 0, last = 0;
  std::vector<Interval> intervals;  ///< in order
  std::vector<LifeMark> marks;      ///< in order; at most kMostMarks, the first and the last
  std::uint64_t marks_left_out = 0;
  LifeEnd end;
};

/// One of every process that was heard of, by rank, then by input and line. `told` in order of events.
std::vector<Lifeline> DrawLifelines(const Timeline& timeline, std::span<const Told> told);

}  // namespace inquest
