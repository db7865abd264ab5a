// Whether a loop whose rows say themselves of how many they are came to its last round, and was through with it.
#include "timeline/last_round.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ascii.h"
#include "core/pattern.h"
#include "timeline/shape.h"

namespace inquest {
namespace {

constexpr std::size_t kLettersBehind = 12;
constexpr std::uint64_t kMostBehind = 64;  ///< lines that a program may say at its end
constexpr std::size_t kFewRows = 6;        ///< of fewer it is not said what most rounds print

/// A row as it counts.
struct Row {
  std::string loop;                   ///< what stands in front of the counts, and of how many
  std::vector<std::uint64_t> at, of;  ///< the outermost first
  std::string words;                  ///< behind them: the first letters
  SourcePos where;

  std::uint64_t Linear() const {
    std::uint64_t out = 0;
    for (std::size_t k = 0; k < at.size(); ++k) out = out * of[k] + at[k];
    return out;
  }
};

struct Loop {
  std::vector<Row> rows;  ///< the last four
  Row first;
  std::vector<std::uint64_t> least, most;  ///< of each count
  std::vector<std::uint64_t> lines;        ///< of its rows
  EventIndex end = 0;                      ///< the last of them, which may say again what the one before said
  std::size_t known = 0;                   ///< rows that differ
  bool begun_anew = false;

  const Row& Back(std::size_t k) const { return rows[rows.size() - k]; }
  /// Each of the last rows is kept. The last may come sooner, where not every count is printed, and prints as much.
  bool EachIsKnown() const {
    const auto stride = [&](std::size_t k) { return Back(k).Linear() - Back(k + 1).Linear(); };
    const auto apart = [&](std::size_t k) { return Back(k).where.line - Back(k + 1).where.line; };
    return stride(1) == stride(2) ||
           (rows.size() > 3 && stride(2) == stride(3) && stride(1) < stride(2) && apart(1) >= apart(2));
  }
  /// The last row's counts are all at their ends. What counts from 0 ends one below; so does what is only shown there.
  bool IsFull() const {
    const Row& last = rows.back();
    for (std::size_t k = 0; k < last.at.size(); ++k) {
      const bool from_zero = k == 0 ? first.at[k] == 0 : least[k] == 0 || least[k] == most[k];
      if (last.at[k] != last.of[k] && !(from_zero && last.at[k] + 1 == last.of[k])) return false;
    }
    return true;
  }
};

/// `Epoch 3/30`, `Epoch [3/30], Step [100/600]`, `[2/30][359/360]`; nullopt: it counts nothing, or parts of one.
std::optional<Row> ReadRow(std::string_view text) {
  static const Pattern kNamed(
      R"re((?i)\b(?:epochs?|episodes?|rounds?|folds?|generations?|iter(?:ation)?s?|(?:global.?)?steps?)\b\W{0,4}(\d{1,9})\s*(?:/|\bof\b)\s*(\d{1,9})\b)re");
  static const Pattern kTwice(R"re([\[(] *(\d{1,9}) */ *(\d{1,9}) *[\])]\W{0,2}[\[(] *\d{1,9} */ *\d{1,9} *[\])])re");
  static const Pattern kBracketed(R"re([\[(] *(\d{1,9}) */ *(\d{1,9}) *[\])])re");
  auto first = kNamed.Search(text);
  if (!first) first = kTwice.Search(text);
  if (!first) return std::nullopt;
  Row out;
  const auto front = static_cast<std::size_t>(first->text(1).data() - text.data());
  out.loop = ShapeOf(text.substr(0, front));
  std::string_view rest = text.substr(front);
  for (auto match = std::move(first); match;) {
    const auto at = match->number(1), of = match->number(2);
    if (!at || !of || *of < 1 || *at > *of) return std::nullopt;
    out.at.push_back(static_cast<std::uint64_t>(*at));
    out.of.push_back(static_cast<std::uint64_t>(*of));
    out.loop += '/' + std::string(match->text(2));
    rest.remove_prefix(static_cast<std::size_t>(match->text(2).data() - rest.data()) + match->text(2).size());
    match = kNamed.Search(rest);
    if (!match) match = kBracketed.Search(rest);
  }
  if (std::ranges::all_of(out.of, [](std::uint64_t of) { return of < 2; })) return std::nullopt;
  for (const char c : rest)
    if (out.words.size() < kLettersBehind && IsLetter(c)) out.words += c;
  return out;
}

/// By their names.
std::map<std::string, Loop> LoopsOf(const Timeline& timeline, EventIndex begin, EventIndex end) {
  std::map<std::string, Loop> out;
  for (EventIndex i = begin; i < end; ++i) {
    const Event& event = timeline.events[i];
    if (!std::holds_alternative<LogMessage>(event.what)) continue;
    const std::string_view text = MessageOf(event).substr(0, kReadOfRow);
    if (text.find('/') == std::string_view::npos && text.find("of") == std::string_view::npos) continue;
    auto row = ReadRow(text);
    if (!row) continue;
    row->where = event.where;
    Loop& loop = out[row->loop];
    loop.end = i;
    loop.lines.push_back(row->where.line);
    if (!loop.rows.empty() && loop.rows.back().at == row->at) continue;
    if (loop.rows.empty()) {
      loop.first = *row;
      loop.least = loop.most = row->at;
    }
    loop.begun_anew = loop.begun_anew || (!loop.rows.empty() && row->at < loop.rows.back().at);
    for (std::size_t k = 0; k < row->at.size(); ++k) {
      loop.least[k] = std::min(loop.least[k], row->at[k]);
      loop.most[k] = std::max(loop.most[k], row->at[k]);
    }
    ++loop.known;
    loop.rows.push_back(*std::move(row));
    if (loop.rows.size() > 4) loop.rows.erase(loop.rows.begin());
  }
  return out;
}

using Shapes = std::set<std::string>;

/// What the rounds of a loop print besides its rows, and what stands in front of the first row and behind the last.
struct Printed {
  Shapes in_front, each, behind;

  /// The row stands behind what its round prints, not at its head: so it does in the first and in the last.
  bool RowCloses() const {
    const auto shared = [&](const Shapes& other) {
      return std::ranges::count_if(each, [&](const std::string& shape) { return other.contains(shape); });
    };
    return shared(in_front) * 2 > static_cast<std::ptrdiff_t>(each.size()) && shared(behind) == 0;
  }
};

Printed PrintedBy(const Timeline& timeline, const Loop& loop, EventIndex begin, EventIndex end) {
  const Row &last = loop.Back(1), &before = loop.Back(2), &third = loop.Back(3);
  Printed out;
  Shapes in_third;
  std::map<std::string, std::size_t> rounds;
  for (EventIndex i = begin; i < end; ++i) {
    const Event& event = timeline.events[i];
    const std::uint64_t line = event.where.line;
    if (!SaysAnything(event.text) || std::ranges::binary_search(loop.lines, line)) continue;
    std::string shape = ShapeOf(MessageOf(event).substr(0, kReadOfRow));
    if (line > last.where.line) {
      out.behind.insert(std::move(shape));
    } else if (line < loop.first.where.line) {
      out.in_front.insert(std::move(shape));
    } else if (line < last.where.line) {
      // Both rounds before; and, as a long log is kept in samples, three of four.
      if (++rounds[shape] * 4 >= loop.known * 3 && loop.known >= kFewRows) out.each.insert(shape);
      if (line > before.where.line && in_third.contains(shape))
        out.each.insert(std::move(shape));
      else if (line > third.where.line && line < before.where.line)
        in_third.insert(std::move(shape));
    }
  }
  return out;
}

}  // namespace

AtGoal LastOfAll(const Timeline& timeline, std::uint32_t input) {
  const auto [begin, end] = timeline.EventsOf(input);
  const std::map<std::string, Loop> loops = LoopsOf(timeline, begin, end);
  // Loops within it are begun anew in each of its rounds, and stand at their ends with it.
  const Loop* outer = nullptr;
  for (const auto& [name, loop] : loops)
    if (!loop.begun_anew && (outer == nullptr || loop.end > outer->end)) outer = &loop;
  if (outer == nullptr || outer->rows.size() < 3 || !outer->IsFull()) return {};
  EventIndex end_of_all = outer->end;
  for (const auto& [name, loop] : loops) {
    if (loop.end > outer->end && !loop.IsFull()) return {};
    end_of_all = std::max(end_of_all, loop.end);
  }
  const Loop& loop = *outer;
  const Row &last = loop.Back(1), &before = loop.Back(2);
  if (last.words != before.words) return {};
  const std::uint64_t round = last.where.line - before.where.line,
                      left = timeline.inputs[input].lines - last.where.InputLine();
  const Printed printed = PrintedBy(timeline, loop, begin, end);
  if (printed.RowCloses()) return left <= kMostBehind ? AtGoal{.counts = true, .row = end_of_all} : AtGoal();
  const bool each_is_known = loop.EachIsKnown();
  if (each_is_known && (left + 1 < round || left > round + kMostBehind)) return {};
  const bool whole = std::ranges::includes(printed.behind, printed.each);
  if (!each_is_known && whole) return {};
  return {.counts = !printed.each.empty(), .row = whole ? std::optional(end_of_all) : std::nullopt};
}

}  // namespace inquest
