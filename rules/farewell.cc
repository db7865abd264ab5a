// How the last lines of a log weigh.
#include "rules/farewell.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "core/ascii.h"
#include "core/pattern.h"
#include "timeline/bars.h"
#include "timeline/series.h"
#include "timeline/shape.h"

namespace inquest {
namespace {

/// Lines that are looked at, at both ends: what a reader sees of a log at a glance.
constexpr std::size_t kFirst = 8, kLast = 24;
constexpr std::size_t kLeast = 8;        ///< fewer are an echo, a title, an excerpt
constexpr std::size_t kNear = 6;         ///< the last line and those shortly before it
constexpr std::size_t kWhole = 3;        ///< within which a share or the time that is left is that of the end
constexpr std::size_t kWords = 14;       ///< of a line, that tell it from others
constexpr std::size_t kOften = 3;        ///< so many lines of one kind are rows
constexpr std::size_t kElsewhere = 512;  ///< lines from all over the log, beside those
constexpr std::uint64_t kUnseen = 6;     ///< rulers and blank lines at the end say nothing
constexpr std::uint64_t kFigures = 64;   ///< lines of bare numbers, that may be a table of results

constexpr std::array<std::string_view, 17> kRelations = {
    "any-log",    "of-a-round", "worked",      "elsewhere",       "said-often", "at-once",
    "alternates", "uniform",    "new-words",   "bar-full-near",   "share-open", "share-open-near",
    "share-full", "time-left",  "round-count", "says-end-before", "whole-round"};

/// The sign of lines that are left out of sight: a batch system's or a tool's behind the program's last, and warnings
/// of Python's, which come when their buffer does.
constexpr std::string_view kOfOthers = "of-others";

/// That of a last line that says what is done next.
constexpr std::string_view kAnnounces = "announces";

/// Letters of any script, but no signs, boxes or pictures.
bool IsWordByte(unsigned char lead) {
  return IsLetter(static_cast<char>(lead)) || (lead >= 0xc3 && lead <= 0xcb) || (lead >= 0xcd && lead <= 0xe1) ||
         (lead >= 0xe3 && lead <= 0xed);
}

/// A name, a number, a path are none.
bool IsPlainWord(std::string_view token) {
  if (!token.empty() && (token.back() == '.' || token.back() == '!' || token.back() == '?')) token.remove_suffix(1);
  if (token.empty() || !IsWordByte(static_cast<unsigned char>(token.front()))) return false;
  for (std::size_t i = 0; i < token.size();) {
    const auto lead = static_cast<unsigned char>(token[i]);
    if (lead != '-' && lead != '\'' && !IsWordByte(lead)) return false;
    i += lead < 0x80 ? 1 : lead < 0xe0 ? 2 : 3;
  }
  return true;
}

std::vector<std::string> PlainWords(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty() && out.size() < kWords) {
    const std::size_t end = std::min(text.find_first_of(" \t=:,;()[]{}|<>\""), text.size());
    if (const std::string_view token = text.substr(0, end); IsPlainWord(token)) {
      out.emplace_back(token);
      for (char& c : out.back()) c = IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// Dates and times of day are a digit, and no figures.
std::string WithoutTimes(std::string_view text) {
  static const Pattern kTime(
      R"(\d{4}[-/]\d\d[-/]\d\d(?:[T ]?\d\d:\d\d:\d\d(?:[.,]\d+)?)?|(?:\b\d\d[-/]\d\d )?\b\d\d:\d\d:\d\d(?:[.,]\d+)?)");
  std::string out;
  for (auto match = kTime.Search(text); match; match = kTime.Search(text)) {
    const std::string_view time = match->text(0);
    const auto at = static_cast<std::size_t>(time.data() - text.data());
    out.append(text.substr(0, at)).append("0");
    text.remove_prefix(at + time.size());
  }
  return out += text;
}

/// One line as it is weighed.
struct Line {
  EventIndex event = 0;
  std::string text, words;  ///< `words`: what is alike in lines of one kind
};

Line LineOf(const Event& event, EventIndex index) {
  Line out{.event = index, .text = WithoutTimes(MessageOf(event)), .words = {}};
  for (const std::string& word : PlainWords(out.text)) out.words += word + ' ';
  if (out.words.empty()) out.words = ShapeOf(out.text);
  return out;
}

bool Says(const Event& event) {
  constexpr auto kLeadOfThree = 0xe3;  // scripts without letters of ASCII
  return SaysAnything(event.text) ||
         std::ranges::any_of(event.text, [](char c) { return static_cast<unsigned char>(c) >= kLeadOfThree; });
}

/// Of a traceback that is cut off nothing is made; then what is seen last is not the end.
bool SeesTheEnd(const Timeline& timeline, std::uint32_t input) {
  const auto [first, behind] = timeline.EventsOf(input);
  return first < behind && timeline.events[behind - 1].where.InputLine() + kUnseen >= timeline.inputs[input].lines;
}

/// The line of its own source that a warning of Python's shows, or TensorFlow's advice behind one.
bool IsShownByWarning(const Timeline& timeline, EventIndex index) {
  static const Pattern kWarning(R"(\.py:\d+: \w*Warning: |^Instructions for updating:)");
  const Event& event = timeline.events[index];
  if (!event.text.starts_with("  ") && !event.text.starts_with("Use ")) return false;
  while (index-- > 0)
    if (timeline.events[index].where.input == event.where.input && timeline.events[index].where != event.where)
      return kWarning.Matches(timeline.events[index].text);
  return false;
}

/// What is seen of one input.
struct View {
  std::vector<Line> lines;          ///< that say anything: the first ones, then the last ones
  std::size_t first = 0;            ///< how many are first ones
  bool whole = true;                ///< none of them was left out of sight
  std::size_t with_chatter = 0;     ///< how many there are with the chatter between them, if there is any
  std::set<std::string> elsewhere;  ///< the words of others, which are kept for whatever reason

  std::span<const Line> tail() const { return std::span(lines).subspan(first); }
  /// Those shortly before the last.
  std::span<const Line> near() const {
    const std::size_t from = lines.size() > kNear ? lines.size() - kNear : 0;
    return std::span(lines).subspan(from, lines.size() - from - 1);
  }
};

View ViewOf(const Timeline& timeline, const RuleBook& book, const Course& course, std::uint32_t input) {
  const auto others = std::ranges::find(book.farewell, kOfOthers, &FarewellSign::name);
  std::vector<EventIndex> own;
  const auto [first, behind] = timeline.EventsOf(input);
  for (EventIndex i = first; i < behind; ++i) {
    const Event& event = timeline.events[i];
    const bool again = !own.empty() && timeline.events[own.back()].where == event.where;  // one line, several events
    if (!again && Says(event)) own.push_back(i);
  }
  View out;
  // What others print all the time stands between; who ends in it was cut off there, or may have been.
  const std::size_t all = own.size();
  if (!own.empty() && !course.IsChatter(own.back()) &&
      std::erase_if(own, [&](EventIndex i) { return course.IsChatter(i); }) > 0)
    out.with_chatter = all;
  std::vector<Line> last;
  const auto take = [&](EventIndex i, std::vector<Line>& lines) {
    if (others != book.farewell.end() && (others->ShowsIn(timeline.events[i].text) || IsShownByWarning(timeline, i))) {
      out.whole = false;
      return;
    }
    Line line = LineOf(timeline.events[i], i);
    if (lines.empty() || lines.back().text != line.text) lines.push_back(std::move(line));  // ranks say it together
  };
  std::size_t begin = 0, end = own.size();
  for (; begin < end && out.lines.size() < kFirst; ++begin) take(own[begin], out.lines);
  while (end > begin && last.size() < kLast) take(own[--end], last);
  const std::size_t step = (end - begin) / kElsewhere + 1;
  for (std::size_t i = begin; i < end; i += step) out.elsewhere.insert(LineOf(timeline.events[own[i]], own[i]).words);
  out.first = last.empty() ? 0 : out.lines.size();
  out.lines.insert(out.lines.end(), std::make_move_iterator(last.rbegin()), std::make_move_iterator(last.rend()));
  return out;
}

/// `Accuracy: 9912/10000`: of what was tried so many were right, and all were tried.
bool CountsWhatWasRight(std::string_view in_front) {
  static const Pattern kRight(
      R"((?i)\b(?:acc(?:uracy)?|correct\w*|right|solved|hits?|success(?:es|ful|fully)?|passed|korrekt\w*|richtig\w*|genauigkeit|aciertos|correctas)\b|正解|正确|准确)");
  static const Pattern kLoop(R"((?i)\b(?:epochs?|ep|iter(?:ation)?s?|steps?|batch(?:es)?|episodes?|rounds?)\b)");
  return kRight.Matches(in_front) && !kLoop.Matches(in_front);
}

/// The first `12/50` of a line, in whatever words, or the `37%|` of a bar that is not drawn to its end.
std::optional<std::pair<std::int64_t, std::int64_t>> ShareIn(std::string_view text) {
  static const Pattern kPercent(R"(\b(\d{1,3})%\|)");
  const std::string_view whole = text;
  static const Pattern kShare(R"((?:^|[^\d/.])(\d{1,9}) ?(?:/|of) ?(\d{1,9})(?:$|[^\d/.]))");
  for (auto match = kShare.Search(text); match; match = kShare.Search(text)) {
    const std::int64_t at = match->number(1).value_or(0), of = match->number(2).value_or(0);
    const auto in_front = whole.substr(0, static_cast<std::size_t>(match->text(1).data() - whole.data()));
    if (of > 1 && at <= of && !CountsWhatWasRight(in_front)) return std::pair(at, of);
    text.remove_prefix(static_cast<std::size_t>(match->text(2).data() - text.data()));
  }
  if (const auto percent = kPercent.Search(whole)) return std::pair(percent->number(1).value_or(0), std::int64_t{100});
  return std::nullopt;
}

bool LeavesTime(std::string_view text) {
  static const Pattern kLeft(R"((?i)\b(?:eta|left time|remaining|time left)\b\W{0,8}(?:[0:]*[1-9]|\d+ days))");
  return kLeft.Matches(text);
}

/// What people give a loop to count to: 50, 300, 1500.
bool IsRound(std::int64_t count) {
  if (count < 10 || count % 10 != 0) return false;
  while (count % 10 == 0) count /= 10;
  return count < 10 || count == 12 || count == 15 || count == 25;
}

/// The last number of a loop in the last lines, which began at 0 or 1, is a round one.
bool CountsARoundNumber(std::span<const Line> lines) {
  static const Pattern kCount(R"((?i)\b(?:epochs?|ep|episodes?|rounds?|generations?|batch)\b\W{0,4}(\d{1,7})\b)");
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (const auto match = kCount.Search(line->text)) {
      const std::int64_t count = match->number(1).value_or(0);
      return IsRound(count) || IsRound(count + 1);
    }
  return false;
}

std::set<std::string> LongWords(std::string_view words) {
  std::set<std::string> out;
  for (std::string& word : PlainWords(words))
    if (word.size() > 2) out.insert(std::move(word));
  return out;
}

double Share(std::ptrdiff_t some, std::size_t all) {
  return all == 0 ? 0 : static_cast<double>(some) / static_cast<double>(all);
}

class Weighing {
 public:
  Weighing(const View& view, const RuleBook& book, const Course& course, bool whole_round) : view_(view), book_(book) {
    Relation("any-log", true);
    for (const FarewellSign& sign : book.farewell) {
      if (sign.text.empty() || sign.name == kOfOthers) continue;
      const auto shows = [&](const Line& line) { return sign.ShowsIn(line.text); };
      if (sign.last != 0) Show(sign.name, sign.last, shows(view.lines.back()) ? 1 : 0);
      if (sign.before != 0) Show(sign.name + "-before", sign.before, std::ranges::any_of(view.near(), shows) ? 1 : 0);
    }
    Relation("worked", course.worked());
    Relation("whole-round", whole_round);
    // Who says what he does next is not at the end of what he counts, and whatever he does is new.
    const bool announced = std::ranges::find(signs, kAnnounces, &std::pair<std::string, double>::first) != signs.end();
    Relation("round-count", !announced && CountsARoundNumber(view.tail().last(std::min(view.tail().size(), kNear))));
    Relation("says-end-before",
             std::ranges::any_of(view.near(), [&](const Line& line) { return course.SaysItEnds(line.event); }));
    Relation("of-a-round", course.IsOneOfMany(view.lines.back().event));
    Rows();
    if (!announced) NewWords();
    Bars();
    Shares();
  }
  std::vector<std::pair<std::string, double>> signs;
  double Well() const { return 1 / (1 + std::exp(-sum_)); }

 private:
  void Show(const std::string& name, double weight, double value) {
    if (value <= 0) return;
    sum_ += weight * value;
    signs.emplace_back(name, value);
  }
  void Relation(std::string_view name, double value) {
    const auto sign = std::ranges::find(book_.farewell, name, &FarewellSign::name);
    if (sign != book_.farewell.end()) Show(sign->name, sign->last, value);
  }
  void Relation(std::string_view name, bool holds) { Relation(name, holds ? 1.0 : 0.0); }

  /// Rows of a loop are alike, and alike the last one; or they take turns.
  void Rows() {
    std::map<std::string_view, std::size_t> times, in_tail;
    for (const Line& line : view_.lines) ++times[line.words];
    for (const Line& line : view_.tail()) ++in_tail[line.words];
    const std::string& last = view_.lines.back().words;
    const auto other =
        std::find_if(view_.lines.rbegin(), view_.lines.rend(), [&](const Line& line) { return line.words != last; });
    const auto at_once = static_cast<std::size_t>(other - view_.lines.rbegin());
    Relation("said-often", times[last] - at_once >= kOften);
    Relation("at-once", at_once > kOften);
    Relation("elsewhere", view_.elsewhere.contains(last));
    const auto alike = static_cast<std::ptrdiff_t>(in_tail[last]);
    const bool rows = in_tail[last] >= kOften;
    Relation("uniform", rows ? Share(alike, view_.tail().size()) : 0);
    Relation("alternates", rows && at_once == 1);
  }

  void NewWords() {
    std::set<std::string> own = LongWords(view_.lines.back().words);
    const std::size_t all = own.size();
    for (const Line& line : std::span(view_.lines).first(view_.lines.size() - 1)) Forget(own, line.words);
    for (const std::string& words : view_.elsewhere) Forget(own, words);
    Relation("new-words", Share(static_cast<std::ptrdiff_t>(own.size()), all));
  }

  /// Of the words those that are among the others, each of which a blank follows.
  static void Forget(std::set<std::string>& words, std::string_view others) {
    std::erase_if(words, [&](const std::string& word) {
      for (std::size_t at = others.find(word); at != std::string_view::npos; at = others.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || others[at - 1] == ' ') && end < others.size() && others[end] == ' ') return true;
      }
      return false;
    });
  }

  void Bars() {
    std::optional<Bar> last;
    bool full = false;
    for (const Line& line : view_.lines) {
      full = full || (last && last->count == last->of);
      last = ReadBar(line.event, line.text);
    }
    Relation("bar-full-near", full && !(last && last->count < last->of));
  }

  void Shares() {
    std::optional<std::pair<std::int64_t, std::int64_t>> last, at_the_end;
    bool left = false;
    const std::span<const Line> tail = view_.tail();
    for (std::size_t i = 0; i < tail.size(); ++i) {
      const auto share = ShareIn(tail[i].text);
      if (share) last = share;
      if (i + kWhole < tail.size()) continue;
      if (share) at_the_end = share;
      left = left || LeavesTime(tail[i].text);
    }
    // What counts from 0 ends one below.
    Relation("share-open", at_the_end && at_the_end->first < at_the_end->second);
    Relation("share-open-near", last && last->first + 1 < last->second);
    Relation("share-full", last && last->first + 1 >= last->second && last->first <= last->second);
    Relation("time-left", left);
  }

  const View& view_;
  const RuleBook& book_;
  double sum_ = 0;
};

}  // namespace

bool IsFarewellRelation(std::string_view name) { return std::ranges::find(kRelations, name) != kRelations.end(); }

std::optional<Farewell> FarewellOf(const Timeline& timeline, const RuleBook& book, const Course& course,
                                   std::uint32_t input) {
  if (book.farewell.empty() || !SeesTheEnd(timeline, input)) return std::nullopt;
  const View view = ViewOf(timeline, book, course, input);
  constexpr double kRollCall = 0.9;  ///< programs that only greet hardly ever hang behind it
  const bool whole_round = EndsAWholeRound(timeline, input);
  if (!view.lines.empty() && whole_round && IsWholeRollCall(timeline, input))
    return Farewell{.last = view.lines.back().event, .signs = {{"roll-call", 1}}, .well = kRollCall};
  // Rows of bare numbers say nothing, and are work.
  const bool rows = view.whole && timeline.inputs[input].lines >= kFirst + kLast;
  if (view.lines.empty() || (std::max(view.with_chatter, view.lines.size()) < kLeast && !rows)) return std::nullopt;
  // Many of them behind the last words are rows of what it was at.
  const std::uint64_t last_words = timeline.events[view.lines.back().event].where.InputLine();
  if (last_words + kFigures < timeline.inputs[input].lines) return std::nullopt;
  // What libraries say as they are torn down is no last word of the program's.
  const auto* message = std::get_if<LogMessage>(&timeline.events[view.lines.back().event].what);
  if (message == nullptr || message->component != Component::kAny) return std::nullopt;
  Weighing weighing(view, book, course, whole_round);
  return Farewell{.last = view.lines.back().event, .signs = std::move(weighing.signs), .well = weighing.Well()};
}

}  // namespace inquest
