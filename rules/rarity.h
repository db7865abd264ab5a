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

/// Offsets in the literal of four words, one for every remainder by 4: wherever the literal stands, one of the four
/// stands at a place divisible by 4. They are the rarest such words. One byte of a word may lie outside a literal of
/// five or six bytes, just before it (offset -1) or just behind it. The literal is folded.
std::array<std::int32_t, 4> RarestWords(std::string_view literal);

/// Expected work per byte of log for a literal, in cycles: words to verify and lines to scan. Only good for comparing.
double CostOf(std::string_view literal);

}  // namespace inquest
