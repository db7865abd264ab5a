// A trace of Perfetto's, written packet by packet: tracks, slices, instants, flows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "core/ids.h"
#include "report/report.h"

namespace inquest {

/// A track's number in the trace; from 1.
using TraceTrack = Strong<struct TraceTrackTag, std::uint64_t>;

/// What is told beside an event. The name is a literal of ours; a text may be a log's, is made visible and cut.
struct TraceNote {
  std::string_view name;
  std::variant<std::int64_t, std::uint64_t, double, bool, std::string_view> value;
};

struct TraceEvent {
  std::string_view name, category;  ///< the name may be a log's
  std::span<const TraceNote> notes = {};
  std::optional<std::uint64_t> flow = {};  ///< events of one flow are joined, in the order of their times
};

// One sequence of packets, numbers and names of fields as in protos/perfetto/trace of github.com/google/perfetto.
// Names, categories and texts that come again are written once and named by numbers then; how many are remembered has
// a bound, and those beyond are written where they stand. Whoever writes to a track keeps its slices in order: an end
// belongs to the last begin of its track, and no time of a track is before the one in front of it.
class TraceWriter {
 public:
  /// Times are nanoseconds; what lies before `zero` is written as if it were at it.
  TraceWriter(const Sink& sink, std::int64_t zero);

  /// That times count from 1970.
  void SetRealTime(std::int64_t ns);
  /// `about` is what the viewer shows when it is asked what the track is; a literal of ours, or empty.
  TraceTrack NewProcess(std::string_view name, std::string_view about = {});
  TraceTrack NewThread(TraceTrack process, std::int32_t number, std::string_view name);
  /// Stands beside its parent where that is a process or a thread. Tracks of one name and parent are shown as one.
  TraceTrack NewTrack(TraceTrack parent, std::string_view name);

  void Begin(TraceTrack track, std::int64_t ns, const TraceEvent& event);
  void End(TraceTrack track, std::int64_t ns);
  void Instant(TraceTrack track, std::int64_t ns, const TraceEvent& event);
  /// Hands over what is written and still held.
  void Flush();

 private:
  enum class Kind : std::uint8_t { kBegin = 1, kEnd = 2, kInstant = 3 };
  struct HashOfText {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct SameText {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const { return a == b; }
  };
  /// Texts by what was given, before it was made visible.
  struct Table {
    std::unordered_map<std::string, std::uint64_t, HashOfText, SameText> numbers;
    std::uint32_t field = 0;  ///< of InternedData
  };

  void PutEvent(Kind kind, TraceTrack track, std::int64_t ns, const TraceEvent* event);
  void PutPacket();
  /// nullopt: there are too many; it is to be written where it stands.
  std::optional<std::uint64_t> NumberOf(Table& table, std::string_view text);
  std::uint64_t At(std::int64_t ns) const;

  const Sink& sink_;
  std::int64_t zero_;
  std::uint64_t tracks_ = 0;
  std::unordered_map<std::uint64_t, std::int32_t> processes_;  ///< numbers of tracks that are processes
  std::string held_, packet_, interned_;
  Table names_, categories_, notes_, texts_;
};

/// Stands near the top of every trace that inquest writes.
inline constexpr std::string_view kTraceMark = "inquest-trace-1";

}  // namespace inquest
