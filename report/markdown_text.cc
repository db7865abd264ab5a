// Text of a log as a part of Markdown.
#include "report/markdown_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/ascii.h"
#include "report/terminal.h"

namespace inquest {
namespace {

constexpr std::string_view kApart = "&#8203;";

bool IsWord(char c) { return IsDigit(c) || IsLetter(c) || c == '_' || c == '-' || c == '+'; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
bool StartsWith(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) { return a == Lower(b); });
}

/// `:tada:`, `://`: what a colon at the head of `text` begins.
bool BeginsMore(std::string_view text) {
  if (text.substr(1).starts_with("//")) return true;
  std::size_t end = 1;
  while (end < text.size() && IsWord(text[end])) ++end;
  return end > 1 && !IsDigit(text[1]) && end < text.size() && text[end] == ':';
}

/// What stands for the first character of `text`; `before` is the one in front of it, 0 at the begin of all.
std::string Escaped(std::string_view text, char before) {
  const char c = text.front(), next = text.size() > 1 ? text[1] : '\0';
  const auto apart = [](std::string_view head) { return std::string(head) + std::string(kApart); };
  switch (c) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '$':  // a backslash would not keep GitHub from reading a formula
      return "<span>$</span>";
    case '@':
      return apart("@");
    case '&':
      return IsWord(next) ? apart("&amp;") : "&amp;";
    case '#':
    case '!':
    case '%':
      return IsWord(next) || next == '"' ? apart({&c, 1}) : std::string(1, c);
    case '~':
      return IsWord(next) || next == '"' ? apart("\\~") : "\\~";
    case '\\':
    case '`':
    case '*':
    case '_':
    case '[':
    case ']':
      return {'\\', c};
    case ':':
      return BeginsMore(text) ? apart(":") : ":";
    case '-':  // GH-123
      return IsDigit(next) && (before == 'H' || before == 'h') ? apart("-") : "-";
    case 'w':
    case 'W':
      return StartsWith(text, "www.") && !IsLetter(before) && !IsDigit(before) ? apart({&c, 1}) : std::string(1, c);
    default:
      return {c};
  }
}

/// At the begin of a paragraph or an item: of a list, a heading, a rule, a command of the forge.
bool BeginsBlock(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits > 0 && digits < text.size() && (text[digits] == '.' || text[digits] == ')'))
    return digits + 1 == text.size() || text[digits + 1] == ' ';
  return !text.empty() && std::string_view("-+=/#~").find(text.front()) != std::string_view::npos;
}

std::size_t LongestRun(std::string_view text, char of) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == of ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace

std::string EscapeMarkdown(std::string_view log_text) {
  std::string clean = Sanitize(log_text);
  clean.erase(0, clean.find_first_not_of(' '));
  const std::string_view text = clean;
  std::string out(BeginsBlock(text) ? kApart : std::string_view());
  for (std::size_t i = 0; i < text.size(); ++i) out += Escaped(text.substr(i), i == 0 ? '\0' : text[i - 1]);
  return out;
}

std::string CodeSpan(std::string_view text) {
  if (text.empty()) return "` `";
  const std::string shown = Reveal(text);
  const std::string fence(LongestRun(shown, '`') + 1, '`');
  const bool is_padded = shown.front() == '`' || shown.back() == '`' || (shown.front() == ' ' && shown.back() == ' ');
  const std::string_view pad = is_padded ? " " : "";
  return fence + std::string(pad) + shown + std::string(pad) + fence;
}

std::string Fenced(std::string_view text, std::string_view language, std::string_view indent) {
  const std::string shown = Reveal(text);
  constexpr std::size_t kShortest = 3;
  const std::string fence(std::max(LongestRun(shown, '`') + 1, kShortest), '`');
  return fmt::format("{0}{1}{2}\n{0}{3}\n{0}{1}\n", indent, fence, language, shown);
}

}  // namespace inquest
