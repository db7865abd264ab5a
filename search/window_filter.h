// Finds the lines of a block that contain one of many literals, several times faster than a search for all of them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/code.h"
#include "search/rarity.h"

namespace inquest {

// The argument why no line is lost. A literal of seven bytes or more covers, wherever it stands in a block, a whole
// word of four bytes at a place divisible by four; which of its words that can be depends on the remainder of its own
// place by four only. So one word is chosen for each remainder (RarestWindows), and it suffices to look at one word in
// four:
//   1. Probe: fold the word, hash it, ask a small bitmap. A chosen word always passes.
//   2. Ask a second bitmap for the six bytes that begin or end with the word. For each chosen word one of the two was
//      entered, so it always passes; a word that is common in the log passes with the right neighbours only.
//   3. Verify: a table from words to literals; these are compared with the text.
//   4. The line around a literal that is there is a candidate, and the search goes on behind that line.
// What is entered may hold one byte that lies outside the literal, if that has five or six bytes; then all 128 folded
// values of that byte are entered. Places count from the start of the block; a word that sticks out of its end is
// filled with zeros, and where the six bytes would stick out, they are not asked for. A line that is found for nothing
// costs time only, since who asks for lines searches them.

/// Immutable once made; any number of threads may use it.
class WindowFilter {
 public:
  /// Folded, of kShortestLiteral bytes or more, with their RarestWindows: finding these takes longer than all the rest,
  /// so that they are best kept with the literal.
  struct Literal {
    std::string text;
    std::array<Window, 4> windows;
  };
  explicit WindowFilter(const std::vector<Literal>& literals, Code code = BestCode());

  /// Where a word may stand in a literal.
  struct Entry {
    std::uint64_t context = 0, known = 0;  ///< the word and two bytes on either side; known: those in the literal
    std::uint32_t text = 0, size = 0;      ///< the literal, in texts
    std::int64_t offset = 0;               ///< of the word in it
  };
  /// All that a filter asks: plain arrays, so that they can lie in the binary, ready for use.
  struct Tables {
    std::span<const std::uint32_t> cells;  ///< answers "may this word be ours": each word sets two bits of one cell
    std::span<const std::uint64_t> sixes;  ///< a bit for each value of a hash of six bytes
    std::span<const std::uint32_t> first;  ///< by cell: its first in slots; one more at the end
    std::span<const std::uint32_t> slots;  ///< by cell: which entries
    std::span<const Entry> entries;
    std::string_view texts;  ///< all literals, one behind the other
  };
  /// Of tables that another filter gave; they must live as long as this one.
  explicit WindowFilter(const Tables& tables, Code code = BestCode());
  /// They live as long as the filter.
  const Tables& tables() const { return tables_; }

  struct Line {
    std::uint32_t begin = 0, end = 0;  ///< without the '\n' or '\r' that ends it
  };
  /// Appends the lines of `block` (less than 4 GiB) that contain a literal, in order, each once. '\r' ends a line, too.
  void FindLines(std::string_view block, std::vector<Line>& lines) const;

  /// What the probe asks.
  struct WordBitmap {
    const std::uint32_t* cells = nullptr;
    std::uint32_t cell_shift = 0;  ///< hash >> cell_shift is the cell
  };

 private:
  struct Storage;  ///< of tables that were made here
  WindowFilter(std::shared_ptr<const Storage> storage, Code code);
  /// Looks at whole groups of words, the first of which stands at `place` of the block. Writes the places of those that
  /// may be ours, and up to a group of rubbish behind them; returns how many may be ours.
  using Probe = std::size_t (*)(const WordBitmap& bitmap, const char* text, std::size_t groups, std::uint32_t place,
                                std::uint32_t* places);
  static Probe ProbeFor(Code code);
  /// Of `count` places, those whose neighbours fit; returns how many.
  std::size_t KeepFitting(std::string_view block, std::uint32_t* places, std::size_t count) const;
  /// Appends the lines of literals that are there; returns up to where the block is decided.
  std::size_t Verify(std::string_view block, std::span<const std::uint32_t> places, std::size_t decided,
                     std::vector<Line>& lines) const;
  /// A literal that covers the word at `at` and starts at `earliest` or later; null if there is none.
  const Entry* EntryAt(std::string_view block, std::size_t at, std::size_t earliest) const;

  Tables tables_;
  std::shared_ptr<const Storage> storage_;
  Probe probe_;
  WordBitmap words_;
  std::uint32_t six_shift_ = 0;  ///< hash >> six_shift_ is the bit
};

}  // namespace inquest
