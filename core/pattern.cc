// Expressions by RE2, in the version of Debian 12 and in those built on Abseil.
#include "core/pattern.h"

#include <re2/re2.h>
#if __has_include(<re2/stringpiece.h>)
#include <re2/stringpiece.h>
#endif

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace inquest {
namespace {

#if __has_include(<re2/stringpiece.h>)
using Piece = re2::StringPiece;
#else
using Piece = absl::string_view;
#endif

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

/// Bytes, not characters: a log may hold anything, and in UTF-8 mode `.*` would stop at the first broken byte. `\w`
/// and `\d` are ASCII in either mode, a literal such as `█` is its three bytes, and the sieve sees bytes as well.
re2::RE2::Options Options() {
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  options.set_never_nl(false);
  options.set_max_mem(std::int64_t{64} << 20);
  return options;
}

/// What bytes cannot do: a class or a quantifier would take the last byte of a character for the whole.
std::optional<std::string> UnsafeCharacter(std::string_view expression) {
  bool in_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '\\') {
      ++i;
    } else if (in_class) {
      if (c == ']') in_class = false;
      if (!IsAscii(c)) return "a character outside ASCII stands inside [...]";
    } else if (c == '[') {
      in_class = true;
      // The first `]` of a class is a member of it.
      if (expression.substr(i + 1, 1) == "^") ++i;
      if (expression.substr(i + 1, 1) == "]") ++i;
    } else if (i > 0 && !IsAscii(expression[i - 1]) && (c == '*' || c == '+' || c == '?' || c == '{')) {
      return "a character outside ASCII is repeated";
    }
  }
  return std::nullopt;
}

Result<std::unique_ptr<re2::RE2>> CompileExpression(std::string_view expression) {
  if (auto unsafe = UnsafeCharacter(expression)) return Error{*unsafe, "write it as a group, such as (?:é|è)", {}};
  auto compiled = std::make_unique<re2::RE2>(Piece(expression.data(), expression.size()), Options());
  if (!compiled->ok()) return Error{compiled->error(), "see https://github.com/google/re2/wiki/Syntax", {}};
  return compiled;
}

/// Where the class or the group that begins at `at` ends: behind its bracket. npos: it does not.
std::size_t EndOfClass(std::string_view expression, std::size_t at) {
  at += expression.substr(at + 1, 1) == "^" ? 2 : 1;
  if (expression.substr(at, 1) == "]") ++at;  // the first one is a member
  for (; at < expression.size(); ++at) {
    if (expression[at] == '\\') ++at;
    else if (expression.substr(at, 2) == "[:") at = std::min(expression.find(":]", at + 2), expression.size() - 2) + 1;
    else if (expression[at] == ']') return at + 1;
  }
  return std::string_view::npos;
}
std::size_t EndOfGroup(std::string_view expression, std::size_t at) {
  for (int depth = 0; at < expression.size();) {
    const char c = expression[at];
    if (c == '[') {
      at = EndOfClass(expression, at);
      continue;
    }
    if (c == '\\') ++at;
    if (c == '(') ++depth;
    ++at;
    if (c == ')' && --depth == 0) return at;
  }
  return std::string_view::npos;
}

/// `(?i)`, `(?s-i:`: letters may be of another case than they are written in.
bool TurnsCaseOff(std::string_view group) {
  if (!group.starts_with("(?") || group.starts_with("(?P<") || group.starts_with("(?<")) return false;
  const std::string_view flags = group.substr(2, group.find_first_of(":)") - 2);
  return flags.find('i') != std::string_view::npos;
}

}  // namespace

std::string RequiredLiteral(std::string_view expression) {
  constexpr std::string_view kCode = "pPxQECG0123456789";  // escapes of more than one character, and those of no fixed meaning
  std::string longest, run;
  const auto end_run = [&] {
    if (run.size() > longest.size()) longest = run;
    run.clear();
  };
  for (std::size_t at = 0; at < expression.size();) {
    const char c = expression[at];
    if (c == '|' || c == ')') return "";
    if (c == '*' || c == '?' || c == '{') {
      if (!run.empty()) run.pop_back();
      end_run();
      at = c == '{' ? expression.find('}', at) : at;
      if (at == std::string_view::npos) return "";
      ++at;
    } else if (c == '(' || c == '[') {
      end_run();
      const std::size_t end = c == '(' ? EndOfGroup(expression, at) : EndOfClass(expression, at);
      if (end == std::string_view::npos || (c == '(' && TurnsCaseOff(expression.substr(at, end - at)))) return "";
      at = end;
    } else if (c == '\\') {
      if (at + 1 == expression.size() || kCode.find(expression[at + 1]) != std::string_view::npos) return "";
      if (std::isalnum(static_cast<unsigned char>(expression[at + 1])) != 0) end_run();
      else run += expression[at + 1];
      at += 2;
    } else if (c == '.' || c == '^' || c == '$' || c == '+') {
      end_run();
      ++at;
    } else {
      run += c;
      ++at;
    }
  }
  end_run();
  return longest;
}

std::optional<std::int64_t> Pattern::Match::number(std::size_t group) const {
  const std::string_view digits = text(group);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// Most texts lack the literal of most patterns: those need no automaton, nor even the expression compiled.
struct Pattern::Compiled {
  std::string expression, literal;
  std::once_flag once;
  std::unique_ptr<re2::RE2> regex;
  std::vector<std::string> names;

  explicit Compiled(std::string_view text) : expression(text), literal(RequiredLiteral(text)) {}
  void Set(std::unique_ptr<re2::RE2> compiled) {
    regex = std::move(compiled);
    names.resize(static_cast<std::size_t>(regex->NumberOfCapturingGroups()) + 1);
    for (const auto& [index, name] : regex->CapturingGroupNames()) names[static_cast<std::size_t>(index)] = name;
  }
  const re2::RE2& Get() {
    std::call_once(once, [this] {
      if (regex) return;
      auto compiled = CompileExpression(expression);
      if (!compiled) std::fprintf(stderr, "%s: %s\n", expression.c_str(), compiled.error().message.c_str());
      INQUEST_CHECK(compiled.has_value());
      Set(std::move(*compiled));
    });
    return *regex;
  }
  bool MayMatch(std::string_view text) const {
    return literal.empty() || (!text.empty() && ::memmem(text.data(), text.size(), literal.data(), literal.size()) != nullptr);
  }
};

Pattern::Pattern(const char* expression) : compiled_(std::make_unique<Compiled>(expression)) {}
Pattern::Pattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::Compile(std::string_view expression) {
  auto regex = CompileExpression(expression);
  if (!regex) return regex.error();
  auto compiled = std::make_unique<Compiled>(expression);
  compiled->Set(std::move(*regex));
  return Pattern(std::move(compiled));
}

const std::vector<std::string>& Pattern::group_names() const {
  compiled_->Get();
  return compiled_->names;
}

std::optional<Pattern::Match> Pattern::Search(std::string_view text) const {
  if (!compiled_->MayMatch(text)) return std::nullopt;
  // A group that took no part has null data; an empty one must not.
  const Piece searched(text.data() != nullptr ? text.data() : "", text.size());
  const re2::RE2& regex = compiled_->Get();
  std::vector<Piece> found(compiled_->names.size());
  if (!regex.Match(searched, 0, searched.size(), re2::RE2::UNANCHORED, found.data(), static_cast<int>(found.size()))) return std::nullopt;
  Match match;
  match.groups_.reserve(found.size());
  for (const Piece& piece : found) match.groups_.emplace_back(piece.data(), piece.size());
  return match;
}

bool Pattern::Matches(std::string_view text) const {
  if (!compiled_->MayMatch(text)) return false;
  const Piece searched(text.data() != nullptr ? text.data() : "", text.size());
  return compiled_->Get().Match(searched, 0, searched.size(), re2::RE2::UNANCHORED, nullptr, 0);
}

}  // namespace inquest
