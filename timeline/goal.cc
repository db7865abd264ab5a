// Whether what a program counted came to the number at which it ends, as its configuration or its own rows say.
#include "timeline/goal.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/ascii.h"
#include "core/pattern.h"
#include "timeline/shape.h"

namespace inquest {
namespace {

using Unit = Counter::Unit;

/// Rows of one value: of every rank one, where all print.
struct CountedRows {
  std::uint64_t at = 0, count = 0;
  EventIndex first = 0, last = 0;
};

/// What the row counts in the unit; nullopt: nothing, or a part of it that is not full, or it tells no result.
std::optional<std::uint64_t> CountOf(std::string_view text, Unit unit) {
  static const Pattern kResult(R"(\d\.\d)");
  if (!kResult.Matches(text)) return std::nullopt;
  std::optional<std::uint64_t> out;
  for (const Counter& counter : CountersIn(text)) {
    if (counter.unit == unit && !out)
      out = counter.at;
    else if (counter.of && counter.at != *counter.of)
      return std::nullopt;
  }
  return out;
}

/// The numbers that the configuration gives, where it gives one only: rows that count epochs in a configuration's words
/// give many.
struct Goals {
  std::optional<std::uint64_t> epochs, steps;
  bool from_zero = false;
};

Goals GoalsIn(std::span<const Told> told) {
  std::set<std::uint64_t> epochs, steps, from;
  for (const Told& line : told) {
    if (line.what != Told::What::kGoal) continue;
    (line.goal == Goal::kEpochs ? epochs : line.goal == Goal::kSteps ? steps : from).insert(line.number);
  }
  epochs.erase(0);
  steps.erase(0);
  Goals out;
  if (epochs.size() == 1) out.epochs = *epochs.begin();
  if (steps.size() == 1) out.steps = *steps.begin();
  out.from_zero = from.size() == 1 && from.contains(0);
  return out;
}

/// What else is counted behind a row may speak of it: the checkpoint of the epoch, a bar that is full, its row of
/// figures, which begins with it.
bool SpeaksOf(std::string_view text, Unit unit, std::uint64_t at) {
  const std::vector<Counter> counters = CountersIn(text);
  static const Pattern kFigures(R"(^\s*(\d{1,12})(?:\s+-?\d[\d.e+-]*)+\s*$)");
  if (const auto figures = counters.empty() ? kFigures.Search(text) : std::nullopt)
    return static_cast<std::uint64_t>(figures->number(1).value_or(0)) == at;
  const auto is_unit = [&](const Counter& counter) { return counter.unit == unit; };
  return std::ranges::any_of(counters, is_unit) &&
         std::ranges::all_of(counters, [&](const Counter& counter) { return !is_unit(counter) || counter.at == at; });
}

/// Rows of the unit at the end of the counted lines, by value, the last three values; none, if something else
/// was counted behind them. `full`: bars that are.
std::vector<CountedRows> LastRows(const Timeline& timeline, std::span<const EventIndex> counted,
                                  const std::set<EventIndex>& full, Unit unit) {
  constexpr std::size_t kValues = 3;
  std::vector<CountedRows> out;  // the last value first
  for (auto it = counted.rbegin(); it != counted.rend(); ++it) {
    const auto at = CountOf(MessageOf(timeline.events[*it]), unit);
    if (!at) continue;
    if (out.empty() || out.back().at != *at) {
      if (out.size() == kValues) break;
      out.push_back({*at, 0, *it, *it});
    }
    out.back().first = *it;
    ++out.back().count;
  }
  if (out.empty()) return out;
  const auto behind = std::ranges::upper_bound(counted, out.front().last);
  const bool only_it = std::all_of(behind, counted.end(), [&](EventIndex event) {
    return full.contains(event) || SpeaksOf(MessageOf(timeline.events[event]), unit, out.front().at);
  });
  return only_it ? out : std::vector<CountedRows>();
}

/// By its clock it was printed with what follows, and not with what stands in front.
bool IsOfNext(const Event& before, const Event& event, const Event& next) {
  constexpr int kTimesNearer = 4;
  const auto is_known = [&](const Event& other) { return other.at && event.at && other.at->date == event.at->date; };
  return is_known(before) && is_known(next) &&
         (next.at->at - event.at->at) * kTimesNearer < event.at->at - before.at->at;
}

/// Lines between two values that belong to the first of them: those behind it, but for the head of the next.
std::uint64_t LinesBehind(const Timeline& timeline, std::uint32_t input, const CountedRows& first,
                          const CountedRows& next, Unit unit) {
  const auto line_of = [&](EventIndex i) { return timeline.events[i].where.line; };
  std::uint64_t lines = line_of(next.first) - line_of(first.last) - 1;
  for (EventIndex i = next.last + 1; i-- > 0 && lines > 0;) {
    const Event& event = timeline.events[i];
    if (event.where.input != input || event.where.line >= line_of(next.first)) continue;
    if (event.where.line <= line_of(first.last)) break;
    if (!SpeaksOf(MessageOf(event), unit, next.at) &&
        !IsOfNext(timeline.events[first.last], event, timeline.events[next.first]))
      break;
    --lines;
  }
  return lines;
}

/// Whether all that was printed between two lines is known: of a long log it is not.
bool IsKnownBetween(const Timeline& timeline, std::uint32_t input, std::uint64_t from, std::uint64_t to) {
  constexpr std::uint64_t kBlank = 3;  ///< lines from one to the next, with blank ones between
  const auto [begin, end] = timeline.EventsOf(input);
  for (EventIndex i = begin; i < end && from < to; ++i) {
    const std::uint64_t line = timeline.events[i].where.line;
    if (line <= from) continue;
    if (line > from + kBlank) return false;
    from = line;
  }
  return from >= to;
}

}  // namespace

std::vector<Counter> CountersIn(std::string_view text) {
  static const Pattern kCounter(
      R"re((?i)(\bbest[^\d.;]{0,30})?\b(epoch|(?:global.?)?step|iter(?:ation)?|update)s?\b['"]?[\s:=#\[(]{0,12}(\d{1,12})(\.\d+)?(?:\s*(?:/|\bof\b)\s*(\d{1,12}))?)re");
  std::vector<Counter> out;
  std::string_view rest = text.substr(0, kReadOfRow);
  for (auto match = kCounter.Search(rest); match; match = kCounter.Search(rest)) {
    const char unit = match->text(2).front();
    if (!match->has(1) && !match->has(4))  // nor a share of an epoch, rounded
      out.push_back(Counter{
          unit == 'e' || unit == 'E' ? Unit::kEpoch : Unit::kStep,
          static_cast<std::uint64_t>(match->number(3).value_or(0)),
          match->has(5) ? std::optional(static_cast<std::uint64_t>(match->number(5).value_or(0))) : std::nullopt});
    rest.remove_prefix(static_cast<std::size_t>(match->text(3).data() - rest.data()) + match->text(3).size());
  }
  return out;
}

// The last three values are as far apart from each other, as many rows tell the last as the one before, and as much
// follows it (a test, a checkpoint) as followed that one: so the program was through with it. A counter that begins at
// 0 ends one below its goal; that it does has to be said.
AtGoal RowAtGoal(const Timeline& timeline, std::span<const Told> told, std::span<const EventIndex> counted) {
  AtGoal out;
  if (counted.empty()) return out;
  const std::uint32_t input = timeline.events[counted.front()].where.input;
  if (input >= timeline.inputs.size()) return out;
  const Goals goals = GoalsIn(told);
  if (!goals.epochs && !goals.steps) return out;
  const auto line_of = [&](EventIndex i) { return timeline.events[i].where.line; };
  std::set<EventIndex> full;
  for (const Told& line : told)
    if (line.percent == 100) full.insert(line.event);
  for (const auto& [unit, goal] : {std::pair(Unit::kEpoch, goals.epochs), std::pair(Unit::kStep, goals.steps)}) {
    if (!goal) continue;
    const std::vector<CountedRows> rows = LastRows(timeline, counted, full, unit);
    if (rows.empty()) continue;
    bool is_known = true;
    if (rows.size() >= 3) {
      const CountedRows &last = rows[0], &before = rows[1], &third = rows[2];
      const std::uint64_t stride = last.at - before.at;
      const bool regular = last.at > before.at && before.at - third.at == stride && last.count >= before.count;
      const bool reached =
          last.at == *goal || (unit == Unit::kEpoch && goals.from_zero && stride == 1 && last.at + 1 == *goal);
      if (regular && reached &&
          timeline.inputs[input].lines >= line_of(last.last) + LinesBehind(timeline, input, before, last, unit))
        out.row = last.last;
      else  // how much follows a row of a long log, nobody knows
        is_known = !reached || IsKnownBetween(timeline, input, line_of(before.last), line_of(last.first));
    }
    out.counts = out.counts || is_known;
  }
  return out;
}

}  // namespace inquest
