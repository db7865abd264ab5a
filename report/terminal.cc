// Decodes UTF-8, drops what a terminal would obey or hide, and counts columns.
#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace inquest {
namespace {

struct Decoded {
  char32_t code = 0;
  std::size_t size = 1;
  bool valid = false;
};

Decoded Decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {};
  char32_t code = lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, size, true};
}

struct Span {
  char32_t first, last;
};
/// `spans`: ascending.
template <std::size_t n>
bool In(const Span (&spans)[n], char32_t code) {
  const Span* const span = std::lower_bound(std::begin(spans), std::end(spans), code,
                                            [](const Span& s, char32_t wanted) { return s.last < wanted; });
  return span != std::end(spans) && span->first <= code;
}

/// Controls, and what turns, hides or joins text: soft hyphen, fillers, zero-width, bidirectional, separators, tags.
constexpr Span kDropped[] = {{0x00, 0x1f},     {0x7f, 0x9f},      {0xad, 0xad},     {0x61c, 0x61c},   {0x115f, 0x1160},
                             {0x17b4, 0x17b5}, {0x180b, 0x180f},  {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                             {0x3164, 0x3164}, {0xfe00, 0xfe0f},  {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
                             {0xfffe, 0xffff}, {0xe0000, 0xe0fff}};
constexpr Span kNoColumn[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x64b, 0x65f},
                              {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe20, 0xfe2f}};
constexpr Span kTwoColumns[] = {{0x1100, 0x115e},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},  {0xac00, 0xd7a3},
                                {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff01, 0xff60},  {0xffe0, 0xffe6},
                                {0x1f300, 0x1f64f}, {0x1f680, 0x1faff}, {0x20000, 0x3fffd}};

int ColumnsOf(char32_t code) {
  if (code < std::begin(kNoColumn)->first) return 1;
  return In(kNoColumn, code) ? 0 : In(kTwoColumns, code) ? 2 : 1;
}

bool Between(std::string_view text, std::size_t at, int first, int last) {
  return at < text.size() && static_cast<unsigned char>(text[at]) >= first &&
         static_cast<unsigned char>(text[at]) <= last;
}

/// Behind the parameters and the final byte of a control sequence whose introducer ends at `at`.
std::size_t SkipControlSequence(std::string_view text, std::size_t at) {
  while (Between(text, at, 0x20, 0x3f)) ++at;
  return Between(text, at, 0x40, 0x7e) ? at + 1 : at;
}

/// Behind the terminator of a string such as a hyperlink's; an unterminated one hides nothing, so that a log cannot
/// swallow the rest of its line.
std::size_t SkipControlString(std::string_view text, std::size_t at) {
  for (std::size_t end = at; end < text.size(); ++end) {
    if (text[end] == '\a') return end + 1;
    if (text.substr(end).starts_with("\x1b\\") || text.substr(end).starts_with("\xc2\x9c")) return end + 2;
  }
  return at;
}

/// Behind the escape sequence whose ESC stands at `at` - 1.
std::size_t SkipEscape(std::string_view text, std::size_t at) {
  if (at >= text.size()) return at;
  if (text[at] == '[') return SkipControlSequence(text, at + 1);
  if (std::string_view("]P^_X").find(text[at]) != std::string_view::npos) return SkipControlString(text, at + 1);
  while (Between(text, at, 0x20, 0x2f)) ++at;
  return Between(text, at, 0x30, 0x7e) ? at + 1 : at;
}

/// Bytes of the longest prefix that takes at most `width` columns.
std::size_t PrefixBytes(std::string_view text, int width) {
  std::size_t at = 0;
  for (int columns = 0; at < text.size();) {
    const Decoded next = Decode(text.substr(at));
    columns += ColumnsOf(next.code);
    if (columns > width) break;
    at += next.size;
  }
  return at;
}

}  // namespace

std::string Sanitize(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Decoded next = Decode(text.substr(at));
    const std::string_view bytes = text.substr(at, next.size);
    at += next.size;
    if (!next.valid) {
      clean += "\xef\xbf\xbd";
    } else if (next.code == '\t' || next.code == '\n' || next.code == '\r') {
      clean += ' ';
    } else if (next.code == 0x1b) {
      at = SkipEscape(text, at);
    } else if (next.code == 0x9b) {
      at = SkipControlSequence(text, at);
    } else if (next.code == 0x90 || next.code == 0x98 || (next.code >= 0x9d && next.code <= 0x9f)) {
      at = SkipControlString(text, at);
    } else if (!In(kDropped, next.code)) {
      clean += bytes;
    }
  }
  return clean;
}

std::string Reveal(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Decoded next = Decode(text.substr(at));
    const char32_t code = next.code;
    if (!next.valid) {
      shown += "\xef\xbf\xbd";
    } else if (code == '\t') {
      shown += ' ';
    } else if (code < 0x20 || code == 0x7f) {  // U+2400 and on
      const char32_t picture = code == 0x7f ? 0x21 : code;
      shown += {'\xe2', '\x90', static_cast<char>(0x80 + picture)};
    } else if (In(kDropped, code)) {
      shown += fmt::format("<U+{:04X}>", static_cast<std::uint32_t>(code));
    } else {
      shown += text.substr(at, next.size);
    }
    at += next.size;
  }
  return shown;
}

int Columns(std::string_view text) {
  int columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Decoded next = Decode(text.substr(at));
    columns += ColumnsOf(next.code);
    at += next.size;
  }
  return columns;
}

std::string Cut(std::string_view text, int width) {
  if (Columns(text) <= width) return std::string(text);
  return std::string(text.substr(0, PrefixBytes(text, width - 1))) + "…";
}

std::string Telling(const std::string& line, int width, int rows) {
  std::string text = line.substr(0, line.find_last_not_of(' ') + 1);
  if (Columns(text) <= width) return text;
  text.erase(std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }), text.end());
  if (Columns(text) <= rows * width) return text;
  std::string_view rest = text;
  for (const auto& [mark, skipped] :
       {std::pair<std::string_view, std::size_t>{"NCCL WARN ", 0}, {"NCCL INFO ", 0}, {"]:[E", 2}, {"]:[W", 2}}) {
    if (const std::size_t at = rest.find(mark); at != std::string_view::npos) rest.remove_prefix(at + skipped);
  }
  while (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos || end > 100) break;
    rest.remove_prefix(end + 1);
    while (rest.starts_with(' ') || rest.starts_with(':')) rest.remove_prefix(1);
  }
  return rest.empty() || rest.size() == text.size() ? text : "…" + std::string(rest);
}

std::string Shortened(std::string_view line, int width) { return Cut(Telling(Reveal(line), width, 1), width); }

std::vector<std::string> Wrap(std::string_view text, int width, int rows) {
  std::vector<std::string> lines;
  while (static_cast<int>(lines.size()) + 1 < rows && Columns(text) > width) {
    std::size_t end = PrefixBytes(text, width);
    const std::size_t space = text.substr(0, end + 1).rfind(' ');
    // A break far to the left wastes the row: log lines hold words without spaces, long as the line.
    if (space != std::string_view::npos && Columns(text.substr(0, space)) * 2 > width) end = space;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  lines.push_back(Cut(text, width));
  return lines;
}

}  // namespace inquest
