// Whether a log breaks off within its last line.
#include "timeline/broken_off.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ascii.h"
#include "timeline/shape.h"

namespace inquest {
namespace {

constexpr std::size_t kLines = 64;  ///< that are looked at

/// The last lines of the input that say anything, the last one first.
std::vector<std::string_view> LastLines(const Timeline& timeline, std::uint32_t input) {
  std::vector<std::string_view> out;
  const auto [first, behind] = timeline.EventsOf(input);
  for (EventIndex i = behind; i-- > first && out.size() < kLines;) {
    if (i + 1 < behind && timeline.events[i].where == timeline.events[i + 1].where) continue;  // of the line behind it
    if (const std::string_view text = MessageOf(timeline.events[i]); SaysAnything(text)) out.push_back(text);
  }
  return out;
}

/// The beginning of at least two rows above it, which go on there without a blank.
bool IsPartOfARow(std::string_view last, std::span<const std::string_view> above) {
  constexpr std::size_t kLeast = 12, kRows = 2;
  constexpr std::string_view kSentence = ".!?";
  const std::string shape = ShapeOf(last);
  if (last.size() < kLeast || kSentence.find(last.back()) != std::string_view::npos) return false;
  std::size_t rows = 0;
  for (const std::string_view line : above) {
    const std::string whole = ShapeOf(line);
    if (whole == shape) return false;
    rows += whole.size() > shape.size() && whole.starts_with(shape) && whole[shape.size()] != ' ' ? 1 : 0;
  }
  return rows >= kRows;
}

/// How many of a kind of bracket the text opens and does not close.
int Open(std::string_view text, char open, char close) {
  int depth = 0;
  for (const char c : text) depth += c == open ? 1 : c == close && depth > 0 ? -1 : 0;
  return depth;
}

/// A dictionary or a list that the line begins with, or its last words open.
bool OpensInItself(std::string_view last) {
  const std::size_t list = last.rfind('[');
  const bool in_list = list != std::string_view::npos && Open(last.substr(list), '[', ']') > 0 &&
                       last.find(')', list) == std::string_view::npos && list + 1 < last.size();
  return Open(last, '{', '}') > 0 || in_list;
}

/// A dictionary of many lines, each of which names a value.
bool IsOfAnOpenOne(const std::vector<std::string_view>& lines) {
  int closed = 0;
  for (const std::string_view line : lines) {
    const int opens = static_cast<int>(std::ranges::count(line, '{')),
              closes = static_cast<int>(std::ranges::count(line, '}'));
    if (opens > closes + closed) return line.ends_with(',') || line.ends_with('{');
    closed = std::max(0, closed + closes - opens);
    if (line.find(':') == std::string_view::npos && line.find('}') == std::string_view::npos) return false;
  }
  return false;
}

}  // namespace

bool BreaksOff(const Timeline& timeline, std::uint32_t input) {
  const std::vector<std::string_view> lines = LastLines(timeline, input);
  if (lines.empty()) return false;
  return IsPartOfARow(lines.front(), std::span(lines).subspan(1)) || OpensInItself(lines.front()) ||
         IsOfAnOpenOne(lines);
}

}  // namespace inquest
