// Expressions by RE2, in the version of Debian 12 and in those built on Abseil.
#include "core/pattern.h"

#include <re2/re2.h>
#if __has_include(<re2/stringpiece.h>)
#include <re2/stringpiece.h>
#endif

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "core/expression.h"

namespace inquest {
namespace {

#if __has_include(<re2/stringpiece.h>)
using Piece = re2::StringPiece;
#else
using Piece = absl::string_view;
#endif

using Kind = ExpressionPiece::Kind;

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
  const auto pieces = PiecesOf(expression);
  bool in_class = false, wide = false;
  for (const ExpressionPiece& piece : pieces.value_or(std::vector<ExpressionPiece>())) {
    if (piece.Is(Kind::kTimes) && wide) return "a character outside ASCII is repeated";
    wide = piece.Is(Kind::kCharacter) && !IsAscii(piece.text.front());
    if (in_class && wide) return "a character outside ASCII stands inside [...]";
    if (piece.Is(Kind::kClassBegin) || piece.Is(Kind::kClassEnd)) in_class = piece.Is(Kind::kClassBegin);
  }
  return std::nullopt;
}

Result<std::unique_ptr<re2::RE2>> CompileExpression(std::string_view expression) {
  if (auto unsafe = UnsafeCharacter(expression)) return Error{*unsafe, "write it as a group, such as (?:é|è)", {}};
  auto compiled = std::make_unique<re2::RE2>(Piece(expression.data(), expression.size()), Options());
  if (!compiled->ok()) return Error{compiled->error(), "see https://github.com/google/re2/wiki/Syntax", {}};
  return compiled;
}

}  // namespace

std::string RequiredLiteral(std::string_view expression) {
  constexpr std::string_view kCode =
      "pPxQECG0123456789";  // escapes of more than one character, and those of no fixed meaning
  const auto pieces = PiecesOf(expression);
  if (!pieces) return "";
  std::string longest, run;
  const auto end_run = [&] {
    if (run.size() > longest.size()) longest = run;
    run.clear();
  };
  int depth = 0;  // of groups and classes: what stands inside them may not stand in the text
  for (const ExpressionPiece& piece : *pieces) {
    if (SetsCase(piece)) return "";
    if (piece.Is(Kind::kEscape) && kCode.find(piece.text[1]) != std::string_view::npos && depth == 0) return "";
    if (piece.Is(Kind::kBar) && depth == 0) return "";
    if (piece.Is(Kind::kGroupEnd) || piece.Is(Kind::kClassEnd)) --depth;
    const bool stands =
        depth == 0 && (piece.Is(Kind::kCharacter) ||
                       (piece.Is(Kind::kEscape) && std::isalnum(static_cast<unsigned char>(piece.text[1])) == 0));
    if (stands)
      run += piece.Is(Kind::kEscape) ? piece.text.substr(1) : piece.text;
    else if (piece.Is(Kind::kTimes) && piece.least == 0 && depth == 0 && !run.empty())
      run.pop_back();  // a character outside ASCII is never repeated
    if (piece.Is(Kind::kGroupBegin) || piece.Is(Kind::kClassBegin)) ++depth;
    if (!stands) end_run();
  }
  end_run();
  return longest;
}

namespace {

/// What every match begins with.
struct Front {
  bool anchored = false;  ///< at the text's begin alone
  bool digit = false;
  std::string literal;
};

Front FrontOf(std::string_view expression) {
  Front front;
  // What RequiredLiteral() knows nothing of has no front either: alternatives, letters of any case, codes.
  if (RequiredLiteral(expression).empty() && !expression.starts_with('^')) return front;
  const auto pieces = PiecesOf(expression);
  if (!pieces) return front;
  int depth = 0;
  for (const ExpressionPiece& piece : *pieces) {
    if (piece.Is(Kind::kGroupEnd)) --depth;
    if (SetsCase(piece) || piece.Is(Kind::kFlags) || (piece.Is(Kind::kBar) && depth == 0)) return front;
    if (piece.Is(Kind::kGroupBegin)) ++depth;
  }
  for (std::size_t i = 0; i < pieces->size(); ++i) {
    const ExpressionPiece& piece = (*pieces)[i];
    const bool optional = i + 1 < pieces->size() && (*pieces)[i + 1].Is(Kind::kTimes) && (*pieces)[i + 1].least == 0;
    const bool escape = piece.Is(Kind::kEscape) && std::isalnum(static_cast<unsigned char>(piece.text[1])) == 0;
    if (i == 0 && piece.text == "^") {
      front.anchored = true;
    } else if ((piece.Is(Kind::kCharacter) || escape) && !optional) {
      front.literal += escape ? piece.text.substr(1) : piece.text;
    } else {
      front.digit = front.literal.empty() && piece.Is(Kind::kEscape) && piece.text == "\\d" && !optional;
      break;
    }
  }
  return front;
}

}  // namespace

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
  Front front;
  std::once_flag once;
  std::unique_ptr<re2::RE2> regex;
  std::vector<std::string> names;

  explicit Compiled(std::string_view text) : expression(text), literal(RequiredLiteral(text)), front(FrontOf(text)) {}
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
    if (front.anchored && !front.literal.empty() && !text.starts_with(front.literal)) return false;
    if (front.anchored && front.digit && (text.empty() || text[0] < '0' || text[0] > '9')) return false;
    return literal.empty() ||
           (!text.empty() && ::memmem(text.data(), text.size(), literal.data(), literal.size()) != nullptr);
  }
  /// A match begins where its front stands: from there RE2 is several times faster than at looking for the place
  /// itself.
  bool Match(std::string_view text, Piece* groups, int count) {
    constexpr int kMostPlaces = 4;
    constexpr std::size_t kShortestFront = 3;
    const re2::RE2& compiled = Get();
    const Piece searched(text.data() != nullptr ? text.data() : "",
                         text.size());  // a group that took no part has null data; an empty one must not
    std::size_t at = 0;
    if (!front.anchored && front.literal.size() >= kShortestFront) {
      for (int place = 0; place < kMostPlaces; ++place, ++at) {
        at = text.find(front.literal, at);
        if (at == std::string_view::npos) return false;
        if (compiled.Match(searched, at, searched.size(), re2::RE2::ANCHOR_START, groups, count)) return true;
      }
    }
    return compiled.Match(searched, at, searched.size(), re2::RE2::UNANCHORED, groups, count);
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
  constexpr std::size_t kUsual = 8;
  std::array<Piece, kUsual> few;
  std::vector<Piece> many;
  compiled_->Get();
  const std::size_t count = compiled_->names.size();
  if (count > kUsual) many.resize(count);
  Piece* const found = count > kUsual ? many.data() : few.data();
  if (!compiled_->Match(text, found, static_cast<int>(count))) return std::nullopt;
  Match match;
  match.groups_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) match.groups_.emplace_back(found[i].data(), found[i].size());
  return match;
}

bool Pattern::Matches(std::string_view text) const {
  return compiled_->MayMatch(text) && compiled_->Match(text, nullptr, 0);
}

}  // namespace inquest
