// How expressions are spelt in RE2's syntax: the one reader of it. What a piece means is for who asks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inquest {

/// A piece of an expression; one behind the other they are the whole of it.
struct ExpressionPiece {
  enum class Kind : std::uint8_t {
    kCharacter,   ///< that stands for itself: one byte, or those of one character of UTF-8
    kEscape,      ///< a backslash and what it escapes: `\s`, `\.`; of `\x41` and `\Q` only these two bytes
    kAny,         ///< `.`
    kAnchor,      ///< `^`, `$`
    kBar,         ///< `|`
    kTimes,       ///< `*`, `+?`, `{2,3}`
    kGroupBegin,  ///< `(`, `(?:`, `(?i-s:`, `(?P<name>`
    kGroupEnd,    ///< `)`
    kFlags,       ///< `(?i)`, for what follows in the group
    kClassBegin,  ///< `[`, `[^`; kCharacter and kEscape behind it are members until kClassEnd
    kClassName,   ///< `[:alpha:]`
    kClassEnd,    ///< `]`
  };
  Kind kind = Kind::kCharacter;
  std::string_view text;
  std::size_t least = 1;  ///< of kTimes
  bool once = false;      ///< of kTimes: at most once
  bool Is(Kind what) const { return kind == what; }
};

/// nullopt: a bracket that nothing closes, a backslash at the end, or syntax that RE2 has not. Views into the
/// expression.
std::optional<std::vector<ExpressionPiece>> PiecesOf(std::string_view expression);

/// `(?i)`, `(?s-i:`: letters may be of another case than they are written in.
bool SetsCase(const ExpressionPiece& piece);

/// The text as an expression that matches it and nothing else.
std::string QuoteExpression(std::string_view text);

}  // namespace inquest
