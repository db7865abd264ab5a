// Finds the lines of a block that contain one of many literals, several times faster than a search for all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/rarity.h"

namespace inquest {

// The argument why no line is lost. A literal that occurs in a block covers, if it has seven bytes or more, a whole
// four-byte word at a place divisible by four, whatever the place it starts at; which of its words that is depends on
// the remainder of that place only. So one word is chosen for each of the four remainders (RarestWindows), and it
// suffices to look at one word in four:
//   1. Probe: fold the word, hash it, and ask a small bitmap. A chosen word always passes; of others one in a hundred.
//   2. Verify: a table of the chosen words gives the literals that have it, and these are compared with the text.
//   3. Mark: the line around a literal that is there is a candidate, and the search goes on behind the line.
// A literal of five or six bytes may cover only three bytes of such a word; the fourth is then any byte, and all 128
// folded values are entered. Places count from the start of the block, and words that stick out of its end are filled
// with zeros. Lines that are reported for nothing cost time only: whoever asks for lines searches them.

/// Immutable once made; any number of threads may use it.
class WindowFilter {
 public:
  /// The literals are folded, of kShortestLiteral bytes or more.
  explicit WindowFilter(std::vector<std::string> literals);

  struct Line {
    std::uint32_t begin = 0, end = 0;  ///< without the '\n' or '\r' that ends it
  };
  /// Appends the lines of `block` (less than 4 GiB) that contain a literal, in order, each once. '\r' ends a line, too.
  void FindLines(std::string_view block, std::vector<Line>& lines) const;

  const std::vector<std::string>& literals() const { return literals_; }

  /// The bitmap, as the probes want it: each word sets two bits of one cell.
  struct Bitmap {
    std::vector<std::uint32_t> cells;
    std::uint32_t cell_shift = 0;  ///< hash >> cell_shift is the cell
  };
  static constexpr std::uint32_t kHashFactor = 0x9E3779B1U;

 private:
  /// Where a word may stand in a literal.
  struct Entry {
    std::uint32_t word;
    std::int32_t offset;
    std::uint32_t literal;
  };
  void Insert(std::uint32_t literal, const Window& window, std::vector<Entry>& entries) const;
  void Index(const std::vector<Entry>& entries);
  /// The start, from `earliest` on, of a literal that covers the word at `at`.
  std::optional<std::size_t> FindAround(std::string_view block, std::size_t at, std::uint32_t word, std::size_t earliest) const;

  std::vector<std::string> literals_;
  Bitmap bitmap_;
  std::vector<std::uint32_t> first_;  ///< by cell: its first entry; one more at the end
  std::vector<Entry> entries_;        ///< by cell
};

}  // namespace inquest
