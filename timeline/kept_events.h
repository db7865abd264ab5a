// Holds the events that the timeline is built from, within a bound that does not depend on the length of the log.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/event.h"
#include "timeline/left_out.h"
#include "timeline/repeat_table.h"
#include "timeline/timeline.h"

namespace inquest {

/// A plain line, of which no rule knows anything.
inline bool IsContext(const Event& event) {
  const auto* message = std::get_if<LogMessage>(&event.what);
  return message != nullptr && message->hits.empty();
}

/// What of the devices is held: what can be argued from, or all that was logged of them, each line of it.
enum class Devices : std::uint8_t { kArgued, kWhole };

// What is kept. Events that say the same (kind, writer, meaning) are folded: the first few and the last. Plain lines
// are kept around telling ones, at both ends of each input, and of each writer the last few of those and of samples;
// where blocks end decides none of it. All of that follows the size of the job. A log can also be hostile, or be years
// of one service: everything in it is new. Then the bytes are bounded, by one rule. Events stand on shelves, one for
// each kind and rule. When a shelf has more than a large job fills it with, it gives way; when all together are full,
// the longest do until they are level: repeats first, then the middle; what came first and what came last stays, and
// what went is counted. So noise of one kind pushes out no other kind, a real job's events stay whole, and as events
// come in the order of inputs and lines, the same input leaves the same out.
class KeptEvents {
 public:
  /// `bytes`: of all shelves; `line_bytes`: of the last lines.
  explicit KeptEvents(std::size_t bytes, std::size_t line_bytes, Devices devices = Devices::kArgued);
  void AddContext(Event&& event);
  void AddTelling(Event&& event);
  /// What is kept, in input and line order; the rest is added to `left_out`. `inputs`: as long as they are. Spent
  /// afterwards.
  std::vector<Event> Take(const std::vector<InputSummary>& inputs, LeftOut& left_out);
  /// Sequence numbers of which some rank's time-out was left out, by their hash.
  const Forgotten& waits_left_out() const { return waits_left_out_; }

 private:
  struct Mark {
    std::uint64_t key = 0;
    std::uint32_t bytes = 0;
    std::uint16_t shelf = 0;
    bool repeat = false;
  };
  struct Shelf {
    std::string_view kind;
    std::uint64_t weight = 1, most = 0, bytes = 0, repeat_bytes = 0, events = 0, left_out = 0;
  };
  struct Writer {
    std::deque<Event> lines;
    std::uint64_t spoke = 0;  ///< the number of its last line
  };

  void Append(Event&& event, std::uint64_t key, bool repeat);
  void Place(Event&& event);
  std::uint16_t ShelfOf(const Event& event);
  void Thin();
  void KeepNear(Event&& event);
  void AddLast(Event event);
  void AddSpread(const Event& event);
  /// What is remembered of one input says nothing of the next.
  void Enter(std::uint32_t input);
  void EndInput();
  void ThinLast();

  std::size_t bytes_limit_, line_limit_;
  Devices devices_;
  std::vector<Event> events_;         ///< each stays in its place, so that leaving some out moves no others
  std::vector<Mark> marks_;           ///< of the events
  std::vector<std::uint32_t> order_;  ///< in which they came: places in `events_`
  std::vector<std::uint32_t> free_;   ///< places whose events were left out
  std::vector<Shelf> shelves_;
  std::unordered_map<std::uint32_t, std::uint16_t> shelf_by_key_;
  RepeatTable repeats_;
  Forgotten waits_left_out_;
  std::size_t bytes_ = 0;
  std::deque<Event> nearby_;   ///< plain lines of the input being read that nothing has asked for yet, the last of it
  std::deque<Event> passed_;   ///< the last of them that the line behind them did not ask for
  std::deque<Event> late_;     ///< plain lines near telling ones, the last of those that are too many
  std::vector<Event> tails_;   ///< of the inputs that were read
  std::vector<Event> spread_;  ///< plain lines of the input being read, as far apart as they can be, and of those read
  std::size_t spread_from_ = 0;         ///< the first of them of the input being read
  std::uint64_t spread_gap_ = 1;        ///< lines between two of them
  SourcePos telling_;                   ///< of the last telling line
  bool told_ = false;                   ///< there was one
  std::optional<std::uint32_t> input_;  ///< being read
  std::size_t context_kept_ = 0;
  std::unordered_map<std::string, Writer> writers_;
  std::size_t line_bytes_ = 0, ring_;
  std::uint64_t lines_seen_ = 0, writers_left_out_ = 0;
};

}  // namespace inquest
