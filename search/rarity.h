// How rare a piece of text is in a log, and by which of its words a literal is found at the least cost.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace inquest {

constexpr std::size_t kWordBytes = 4;

/// The filter knows no case: every byte has bit 0x20 set, in literals as in the log. That joins letters of both cases,
/// and some marks (`@` and `` ` ``, `[` and `{`), which only lets a few lines more through.
constexpr std::uint8_t kCaseBit = 0x20;
std::string Fold(std::string_view text);

/// Shorter literals do not hold enough of a word wherever they stand.
constexpr std::size_t kShortestLiteral = 5;

/// A word of a literal, and the six bytes that end or begin with it. Both count from the literal's first byte. One byte
/// may lie outside a literal of five or six bytes, just before it or just behind it.
struct Window {
  std::int32_t word = 0, six = 0;  ///< six == word - 2 or six == word
};
constexpr std::size_t kSixBytes = 6;

/// Four windows, one for every remainder by 4: wherever the literal stands, the word of one of the four stands at a
/// place divisible by 4. They are the rarest such windows. The literal is folded.
std::array<Window, 4> RarestWindows(std::string_view literal);

/// Expected work per byte of log for a literal, in cycles: words to verify and lines to scan. Only good for comparing.
double CostOf(std::string_view literal);

}  // namespace inquest
