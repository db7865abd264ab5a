// Escape sequences of terminals, and how they look once something has spelt them out.
#include "parsers/escapes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/ascii.h"

namespace inquest {
namespace {

using std::string_view;

bool IsParameter(char c) { return c >= ' ' && c < '@'; }

/// Bytes of ESC at `at` in that spelling; 0: there is none.
std::size_t IntroducerSize(string_view text, EscapeSpelling spelling) {
  switch (spelling) {
    case EscapeSpelling::kByte:
      return text.starts_with('\x1b') ? 1 : 0;
    case EscapeSpelling::kCaret:
      return text.starts_with("^[") ? 2 : 0;
    case EscapeSpelling::kOctal:
      return text.starts_with("#033") ? 4 : 0;
    case EscapeSpelling::kSlash:
      for (const string_view one : {string_view("\\x1b"), string_view("\\x1B"), string_view("\\033"),
                                    string_view("\\u001b"), string_view("\\u001B")})
        if (text.starts_with(one)) return one.size();
      return 0;
    case EscapeSpelling::kGone:
    case EscapeSpelling::kC1:
      return 0;
  }
  return 0;
}

char FirstByte(EscapeSpelling spelling) {
  switch (spelling) {
    case EscapeSpelling::kByte:
      return '\x1b';
    case EscapeSpelling::kCaret:
      return '^';
    case EscapeSpelling::kOctal:
      return '#';
    case EscapeSpelling::kSlash:
      return '\\';
    case EscapeSpelling::kGone:
      return '[';
    case EscapeSpelling::kC1:
      return '\x9b';
  }
  return '\x1b';
}

/// `[`, parameters, a final byte; what is no final byte is of the line.
std::size_t CsiSize(string_view text) {
  std::size_t i = 0;
  while (i < text.size() && IsParameter(text[i])) ++i;
  return i < text.size() && text[i] >= '@' && text[i] <= '~' ? i + 1 : i;
}

std::size_t OscSize(string_view text, string_view escape) {
  const std::size_t bell = text.find('\a'), string_end = text.find(std::string(escape) + "\\");
  if (bell == kNowhere && string_end == kNowhere) return text.size();
  return bell < string_end ? bell + 1 : string_end + escape.size() + 1;
}

/// Colour and nothing else behind a byte: `[0m`, `[1;31m`, `[38;5;12m`, `[K`. What is left where the escape itself is
/// gone.
std::size_t BareSize(string_view text) {
  // `[missing ranks: 0]` begins as a reset does.
  if (text.size() > 2 && text[1] == 'm' && text[2] >= 'a' && text[2] <= 'z') return 0;
  if (text.size() > 1 && (text[1] == 'm' || text[1] == 'K')) return 2;
  std::size_t i = 1, digits = 0;
  for (; i < text.size() && ((text[i] >= '0' && text[i] <= '9') || ((text[i] == ';' || text[i] == ':') && digits > 0));
       ++i) {
    digits = text[i] == ';' || text[i] == ':' ? 1 : digits + 1;
    if (digits > 4) return 0;
  }
  return i > 1 && i < text.size() && (text[i] == 'm' || text[i] == 'K') ? i + 1 : 0;
}

/// Bytes of the sequence that `text` begins with; 0: it is none.
std::size_t SequenceSize(string_view text, EscapeSpelling spelling) {
  if (spelling == EscapeSpelling::kGone) return text.starts_with('[') ? BareSize(text) : 0;
  if (spelling == EscapeSpelling::kC1) return text.starts_with('\x9b') ? BareSize(text) : 0;
  const std::size_t escape = IntroducerSize(text, spelling);
  if (escape == 0) return 0;
  if (text.size() == escape) return spelling == EscapeSpelling::kByte ? escape : 0;
  const char kind = text[escape];
  if (kind == '[') return escape + 1 + CsiSize(text.substr(escape + 1));
  if (kind == ']') return escape + 1 + OscSize(text.substr(escape + 1), text.substr(0, escape));
  if (spelling != EscapeSpelling::kByte) return 0;  // of the spelt ones, only what surely is one
  if (kind == '_' || kind == 'P' || kind == '^' || kind == 'X')
    return escape + 1 + OscSize(text.substr(escape + 1), text.substr(0, escape));
  if (kind >= ' ' && kind <= '/') return std::min(escape + 2, text.size());  // `ESC ( B`
  return kind >= '0' && kind <= '~' ? escape + 1 : escape;
}

}  // namespace

void AppendWithoutEscapes(string_view line, EscapeSpelling spelling, std::string& out) {
  const char first = FirstByte(spelling);
  while (!line.empty()) {
    const std::size_t at = std::min(line.find(first), line.size());
    out += line.substr(0, at);
    line.remove_prefix(at);
    if (line.empty()) return;
    if (spelling == EscapeSpelling::kOctal && line.starts_with("#011")) {
      out += '\t';
      line.remove_prefix(4);
      continue;
    }
    const std::size_t size = SequenceSize(line, spelling);
    if (size == 0) out += line[0];
    line.remove_prefix(std::max<std::size_t>(size, 1));
  }
}

void AppendLinesWithoutEscapes(string_view text, std::string& out) {
  while (!text.empty()) {
    const std::size_t escape = text.find('\x1b');
    if (escape == kNowhere) {
      out += text;
      return;
    }
    const std::size_t end = std::min(text.find_first_of("\r\n", escape), text.size());
    out += text.substr(0, escape);
    AppendWithoutEscapes(text.substr(escape, end - escape), EscapeSpelling::kByte, out);
    text.remove_prefix(end);
  }
}

std::size_t CountEscapes(string_view text, EscapeSpelling spelling, std::size_t enough) {
  std::size_t count = 0;
  const char first = FirstByte(spelling);
  for (std::size_t at = text.find(first); at != kNowhere && count < enough; at = text.find(first, at + 1))
    count += SequenceSize(text.substr(at, 256), spelling) > 0 ? 1 : 0;
  return count;
}

}  // namespace inquest
