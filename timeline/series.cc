// Whether a log is a series of short runs, and its last round of them is whole.
#include "timeline/series.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/ascii.h"
#include "core/pattern.h"
#include "timeline/shape.h"

namespace inquest {
namespace {

constexpr std::size_t kMostLines = 2048, kMostTokens = 16;
constexpr std::uint64_t kBlank = 4;  ///< empty lines, which are not kept
constexpr std::size_t kLeastOfARound = 3, kMostOfARound = 64, kLeastRows = 8;
constexpr std::size_t kMostBehind = 32;  ///< lines that a row may have behind it

struct SeriesLine {
  std::string_view text;    ///< the event's
  std::string shape, form;  ///< `shape`: but for numbers and blanks; `form`: which of its words are numbers
  std::vector<std::string_view> tokens;
};

bool IsNumber(std::string_view token) {
  const std::size_t first = token.find_first_not_of("([-+");
  return first != kNowhere && IsDigit(token[first]);
}

SeriesLine LineOf(std::string_view text) {
  SeriesLine line{.text = text, .shape = {}, .form = {}, .tokens = {}};
  for (std::size_t at = text.find_first_not_of(" \t"); at != kNowhere && line.tokens.size() < kMostTokens;) {
    const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
    line.tokens.push_back(text.substr(at, end - at));
    line.form += IsNumber(line.tokens.back()) ? 'n' : 'w';
    line.shape += ShapeOf(line.tokens.back()) + ' ';
    at = text.find_first_not_of(" \t", end);
  }
  return line;
}

std::string FirstWord(const SeriesLine& line) {
  return line.tokens.empty() ? std::string() : ShapeOf(line.tokens.front());
}

/// The lines of the input that are no rulers and not empty; nullopt: some are not seen, or there are too many.
std::optional<std::vector<SeriesLine>> LinesOf(const Timeline& timeline, std::uint32_t input) {
  std::vector<SeriesLine> out;
  std::optional<SourcePos> last;
  const auto [first, behind] = timeline.EventsOf(input);
  for (EventIndex i = first; i < behind; ++i) {
    const Event& event = timeline.events[i];
    if (last && *last == event.where) continue;
    if (event.where.line > (last ? last->line : 0) + kBlank) return std::nullopt;
    last = event.where;
    const std::string_view text = MessageOf(event);
    const bool says = std::ranges::any_of(text, [](char c) { return IsLetter(c) || IsDigit(c); });
    if (says) out.push_back(LineOf(text));
    if (out.size() > kMostLines) return std::nullopt;
  }
  return last ? std::optional(std::move(out)) : std::nullopt;
}

/// After how many rows the same values come again, all of them other ones; 0: they do not.
std::size_t RoundOf(const std::vector<std::string_view>& values) {
  for (std::size_t round = kLeastOfARound; round <= std::min(kMostOfARound, values.size() / 2); ++round) {
    bool again = true;
    for (std::size_t i = round; again && i < values.size(); ++i) again = values[i] == values[i - round];
    if (again)
      return std::set(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(round)).size() == round ? round : 0;
  }
  return 0;
}

/// 0, 1, 2, ... or 1, 2, 3, ...: ranks, GPUs, layers, or the steps of a loop.
bool CountsUp(const std::vector<std::string_view>& values, std::size_t round) {
  const auto digits = [](std::string_view token) {
    const std::size_t first = std::min(token.find_first_of("0123456789"), token.size());
    return token.substr(first, token.find_first_not_of("0123456789", first) - first);
  };
  const auto is_from = [&](std::size_t first) {
    for (std::size_t i = 0; i < round; ++i)
      if (digits(values[i]) != std::to_string(first + i)) return false;
    return true;
  };
  return is_from(0) || is_from(1);
}

/// The rows of one form go round in one of their columns, and the last round is whole.
bool GoesRound(const std::vector<SeriesLine>& lines, const std::vector<std::size_t>& rows) {
  if (rows.size() < kLeastRows) return false;
  std::vector<std::string_view> values;
  for (std::size_t column = 0; column < lines[rows.front()].tokens.size(); ++column) {
    values.clear();
    for (const std::size_t row : rows) values.push_back(lines[row].tokens[column]);
    const std::size_t round = RoundOf(values);
    if (round != 0 && values.size() % round == 0 && !CountsUp(values, round)) return true;
  }
  return false;
}

/// The line that always came behind one like the last, and by which the series began; nullopt: none did.
std::optional<std::size_t> HeadOf(const std::vector<SeriesLine>& lines) {
  std::optional<std::string> head;
  std::size_t first_last = 0;  // of those like the last
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    if (lines[i].shape != lines.back().shape) continue;
    const std::string behind = FirstWord(lines[i + 1]);
    if (head && *head != behind) return std::nullopt;
    if (!head) first_last = i;
    head = behind;
  }
  for (std::size_t i = 0; i < first_last; ++i)
    if (FirstWord(lines[i]) == *head) return i;
  return std::nullopt;
}

/// The whole log is runs of one program, one behind the other: each begins with a line like its first, which counts
/// nothing, and has a line like its last in front of the next one's. One that was cut off anywhere ends so once in as
/// many times as a run has lines.
bool IsWholeRuns(const std::vector<SeriesLine>& lines, std::size_t head) {
  constexpr std::size_t kLeastRuns = 3, kLeastOfARun = 4, kNotice = 1;  // `nohup: ignoring input`
  if (head > kNotice) return false;
  const std::string first_word = FirstWord(lines[head]);
  std::vector<std::string_view> numbers;  // of the lines that begin a run, the first
  std::size_t runs = 0, begin = head;
  for (std::size_t i = head; i < lines.size(); ++i) {
    const bool begins = FirstWord(lines[i]) == first_word,
               behind = i > head && lines[i - 1].shape == lines.back().shape;
    if (i > head && begins != behind) return false;
    if (!begins) continue;
    if (i > head && i - begin < kLeastOfARun) return false;
    begin = i;
    ++runs;
    const auto number = std::ranges::find_if(lines[i].tokens, IsNumber);
    if (number != lines[i].tokens.end()) numbers.push_back(*number);
  }
  return runs >= kLeastRuns && (numbers.size() < runs || !CountsUp(numbers, runs));
}

/// Each of so many ranks greeted as often as the others, and nobody said anything else that counts: `Hello from process
/// 3 of 8`.
bool IsRollCall(const std::vector<SeriesLine>& lines) {
  static const Pattern kGreeting(R"((?i)\b(?:hello|greetings|hi|hey|hallo|bonjour|hola|ciao)\b)");
  static const Pattern kOfHowMany(R"(\b(\d{1,6}) ?(?:of|out of|/) ?(?:a total of )?(\d{1,6})\b)");
  constexpr std::size_t kOthers = 3;            ///< of so many lines one may be a scheduler's or a compiler's
  std::map<std::int64_t, std::size_t> greeted;  // by rank, how often
  std::int64_t size = 0;
  std::size_t others = 0;
  bool is_last = false;
  for (const SeriesLine& line : lines) {
    const auto match = kGreeting.Matches(line.text) ? kOfHowMany.Search(line.text) : std::nullopt;
    is_last = match.has_value();
    if (!match) {
      ++others;
      continue;
    }
    const std::int64_t of = match->number(2).value_or(0);
    if (size != 0 && of != size) return false;
    size = of;
    ++greeted[match->number(1).value_or(0)];
  }
  if (size < 2 || !is_last || static_cast<std::int64_t>(greeted.size()) != size) return false;
  const bool from_0 = greeted.begin()->first == 0 && greeted.rbegin()->first == size - 1,
             from_1 = greeted.begin()->first == 1 && greeted.rbegin()->first == size;
  const std::size_t times = greeted.begin()->second;
  return (from_0 || from_1) && others * kOthers <= lines.size() + kLeastOfARound * kOthers &&
         std::ranges::all_of(greeted, [&](const auto& rank) { return rank.second == times; });
}

}  // namespace

bool IsWholeRollCall(const Timeline& timeline, std::uint32_t input) {
  const auto lines = LinesOf(timeline, input);
  return lines && IsRollCall(*lines);
}

bool EndsAWholeRound(const Timeline& timeline, std::uint32_t input) {
  static const Pattern kCounted(
      R"((?i)\b(?:epoch|ep|step|iteration|iter|batch|round|episode|rank|worker|layer|loss|global_step)s?\b\W{0,4}\d)");
  const auto lines = LinesOf(timeline, input);
  if (!lines) return false;
  if (IsRollCall(*lines)) return true;
  if (lines->size() < 2 * kLeastRows) return false;
  const auto head = HeadOf(*lines);
  if (!head) return false;
  if (std::ranges::none_of(*lines, [](const SeriesLine& line) { return kCounted.Matches(line.text); }) &&
      IsWholeRuns(*lines, *head))
    return true;
  std::map<std::string_view, std::vector<std::size_t>> rows;  // by form
  std::set<std::string_view> heads;
  const std::string first_word = FirstWord((*lines)[*head]);
  std::size_t last_head = *head;
  for (std::size_t i = *head; i < lines->size(); ++i) {
    const SeriesLine& line = (*lines)[i];
    if (kCounted.Matches(line.text)) return false;
    if (FirstWord(line) == first_word) {
      heads.insert(line.text);
      last_head = i;
    } else {
      rows[line.form].push_back(i);
    }
  }
  if (heads.size() < 2) return false;
  return std::ranges::any_of(rows, [&](const auto& form) {
    return form.second.back() > last_head && form.second.back() + kMostBehind > lines->size() &&
           GoesRound(*lines, form.second);
  });
}

}  // namespace inquest
