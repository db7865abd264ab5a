// Expressions by RE2, in the version of Debian 12 and in those built on Abseil.
#include "core/pattern.h"

#include <re2/re2.h>
#if __has_include(<re2/stringpiece.h>)
#include <re2/stringpiece.h>
#endif

#include <charconv>

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

}  // namespace

std::optional<std::int64_t> Pattern::Match::number(std::size_t group) const {
  const std::string_view digits = text(group);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

Pattern::Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::Compile(std::string_view expression) {
  if (auto unsafe = UnsafeCharacter(expression)) return Error{*unsafe, "write it as a group, such as (?:é|è)", {}};
  Pattern pattern;
  pattern.expression_ = std::make_unique<re2::RE2>(Piece(expression.data(), expression.size()), Options());
  if (!pattern.expression_->ok()) {
    return Error{pattern.expression_->error(), "see https://github.com/google/re2/wiki/Syntax", {}};
  }
  pattern.names_.resize(static_cast<std::size_t>(pattern.expression_->NumberOfCapturingGroups()) + 1);
  for (const auto& [index, name] : pattern.expression_->CapturingGroupNames()) {
    pattern.names_[static_cast<std::size_t>(index)] = name;
  }
  return pattern;
}

Pattern::Pattern(const char* expression) {
  auto compiled = Compile(expression);
  if (!compiled) std::fprintf(stderr, "%s: %s\n", expression, compiled.error().message.c_str());
  INQUEST_CHECK(compiled.has_value());
  *this = std::move(*compiled);
}

std::optional<Pattern::Match> Pattern::Search(std::string_view text) const {
  // A group that took no part has null data; an empty one must not.
  const Piece searched(text.data() != nullptr ? text.data() : "", text.size());
  std::vector<Piece> found(names_.size());
  if (!expression_->Match(searched, 0, searched.size(), re2::RE2::UNANCHORED, found.data(),
                          static_cast<int>(found.size()))) {
    return std::nullopt;
  }
  Match match;
  match.groups_.reserve(found.size());
  for (const Piece& piece : found) match.groups_.emplace_back(piece.data(), piece.size());
  return match;
}

bool Pattern::Matches(std::string_view text) const {
  const Piece searched(text.data() != nullptr ? text.data() : "", text.size());
  return expression_->Match(searched, 0, searched.size(), re2::RE2::UNANCHORED, nullptr, 0);
}

}  // namespace inquest
