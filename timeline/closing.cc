// Whether a log ends behind loops that are through.
#include "timeline/closing.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "core/pattern.h"
#include "timeline/goal.h"
#include "timeline/shape.h"

namespace inquest {
namespace {

constexpr std::chrono::minutes kLongBar(2);
constexpr std::size_t kLastCounted = 4096;  ///< lines that are looked at, from the end

/// Whether the loops of an input are through, and which of its bars was the last.
struct Loops {
  bool any = false, through = true;
  const Bar* last_bar = nullptr;
};

void AddBars(std::uint32_t input, const Timeline& timeline, std::span<const Bar> bars, Loops& loops) {
  std::map<std::string_view, const Bar*> last;
  for (const Bar& bar : bars) {
    if (timeline.events[bar.event].where.input != input) continue;
    const Bar*& before = last[bar.loop];
    if (before != nullptr && bar.count < before->count) loops.through = false;  // it was begun anew
    before = loops.last_bar = &bar;
  }
  for (const auto& [loop, bar] : last) {
    loops.any = true;
    loops.through = loops.through && bar->count == bar->of;
  }
}

/// A counter that begins at 0 ends one below.
bool IsFull(const Counter& counter, bool from_zero) {
  return counter.of && (counter.at == *counter.of || (from_zero && counter.at + 1 == *counter.of));
}

void AddCounters(const Timeline& timeline, std::span<const EventIndex> counted, Loops& loops) {
  struct Seen {
    std::optional<Counter> last;
    std::uint64_t first = 0;
    bool fell = false;
  };
  std::map<Counter::Unit, Seen> seen;
  for (const EventIndex event : counted)
    for (const Counter& counter : CountersIn(MessageOf(timeline.events[event]))) {
      Seen& unit = seen[counter.unit];
      if (!unit.last) unit.first = counter.at;
      unit.fell = unit.fell || (unit.last && counter.at < unit.last->at);
      unit.last = counter;
    }
  for (const auto& [unit, of] : seen) {
    loops.any = true;
    loops.through = loops.through && !of.fell && of.last && IsFull(*of.last, of.first == 0);
  }
}

/// `12/50` in whatever words.
bool HasOpenShare(std::string_view text) {
  static const Pattern kShare(R"(\b(\d{1,9}) ?/ ?(\d{1,9})\b)");
  for (auto match = kShare.Search(text); match; match = kShare.Search(text)) {
    if (match->number(1).value_or(0) < match->number(2).value_or(0)) return true;
    text.remove_prefix(static_cast<std::size_t>(match->text(2).data() - text.data()) + match->text(2).size());
  }
  return false;
}

/// The last line of the input that says anything; Python's warnings, of two lines each, do not.
std::optional<EventIndex> LastWord(const Timeline& timeline, std::uint32_t input) {
  static const Pattern kWarning(R"(\.py:\d+: \w*Warning: )");
  std::optional<EventIndex> behind;  // what may be the line that a warning shows
  for (auto i = static_cast<EventIndex>(timeline.events.size()); i-- > 0;) {
    const Event& event = timeline.events[i];
    if (event.where.input != input || !SaysAnything(event.text)) continue;
    if (kWarning.Matches(event.text))
      behind.reset();
    else if (behind)
      break;
    else if (event.text.starts_with("  "))
      behind = i;
    else
      return i;
  }
  return behind;
}

bool TellsResult(std::string_view text) {
  static const Pattern kFigure(R"((?i)[a-z%)\]'"][^a-z\d]{1,12}\d{1,9}\.\d)");
  static const Pattern kOfAStep(R"((?i)\bwarning\b|\bversions?\b|\b(?:it|iter|step|batch)/s\b|\beta\b|[^/\s]\.py:\d)");
  return kFigure.Matches(text) && !kOfAStep.Matches(text) && CountersIn(text).empty() && !HasOpenShare(text);
}

}  // namespace

std::optional<EventIndex> ClosingLine(const Timeline& timeline, std::span<const EventIndex> counted,
                                      std::span<const Bar> bars) {
  if (counted.empty()) return std::nullopt;
  const std::uint32_t input = timeline.events[counted.front()].where.input;
  Loops loops;
  AddBars(input, timeline, bars, loops);
  AddCounters(timeline, counted.last(std::min(counted.size(), kLastCounted)), loops);
  if (!loops.any || !loops.through || HasOpenShare(MessageOf(timeline.events[counted.back()]))) return std::nullopt;
  const std::optional<EventIndex> last = LastWord(timeline, input);
  if (!last) return std::nullopt;
  const Event& closing = timeline.events[*last];
  if (loops.last_bar != nullptr && closing.where == timeline.events[loops.last_bar->event].where)
    return loops.last_bar->elapsed >= kLongBar ? last : std::nullopt;
  if (*last <= counted.back() || !std::holds_alternative<LogMessage>(closing.what) || !TellsResult(MessageOf(closing)))
    return std::nullopt;
  const std::string shape = ShapeOf(closing.text);
  const bool again = std::ranges::any_of(timeline.events, [&](const Event& other) {
    return other.where.input == input && other.where != closing.where && ShapeOf(other.text) == shape;
  });
  return again ? std::nullopt : last;
}

}  // namespace inquest
