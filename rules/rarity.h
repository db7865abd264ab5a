// How rare a piece of text is in a log, and by which four-byte words a literal is found at the least cost.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace inquest {

/// The filter knows no case: every byte has bit 0x20 set, in literals as in the log. That joins letters of both cases,
/// and some marks (`@` and `` ` ``, `[` and `{`), which only lets a few lines more through.
constexpr std::uint8_t kCaseBit = 0x20;
std::string Fold(std::string_view text);

/// Shorter literals do not hold enough of a word wherever they stand.
constexpr std::size_t kShortestLiteral = 5;

/// Four bytes of the log at a place that relates to a literal. Of a literal of five or six bytes one byte may lie
/// outside, just before or just behind it: then all values of that byte are looked for.
struct Window {
  enum class Unknown : std::uint8_t { kNone, kFirst, kLast };
  std::int32_t offset = 0;  ///< of the word's first byte, from the literal's first: -1 where that byte is unknown
  Unknown unknown = Unknown::kNone;
};

/// The rarest word for every remainder that its offset may leave by 4, so that one of the four stands at a place
/// divisible by 4, wherever the literal stands. The literal is folded, of kShortestLiteral bytes or more.
std::array<Window, 4> RarestWindows(std::string_view literal);

/// Expected work per byte of log for a literal, in cycles: words to verify and lines to scan. Only good for comparing.
double CostOf(std::string_view literal);

}  // namespace inquest
