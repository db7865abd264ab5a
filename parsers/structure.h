// Where a block's lines end, where a mark may stand and where bytes are damaged, in one pass over the block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/code.h"

namespace inquest {

/// A block cut into pieces, numbered from 0: lines, or parts of one that a progress bar overwrote ('\r' ends a piece;
/// "\r\n" ends it once). It is cut from its head on, a stretch at a time, or a line at a time by who knows the line;
/// size() and the like speak of what is cut. Its memory is reused from block to block.
class Structure {
 public:
  /// Looks for a mark by its first byte and its third.
  explicit Structure(std::string_view mark, Code code = BestCode());

  /// The block must live as long as it is asked about, and be followed by kPadding readable bytes.
  void Begin(std::string_view block);
  /// Cuts so many bytes more, and on to the end of a piece, or to the end of the block.
  void Find(std::size_t bytes);
  /// The next pieces are whole lines without control bytes; their '\n' stand at `ends`.
  void TakeLines(std::span<const std::uint32_t> ends);
  /// Where what is not cut begins: the block's size once all is.
  std::uint32_t at() const { return last_next_; }
  bool done() const { return last_next_ == block_.size(); }

  std::size_t size() const { return size_; }
  std::uint32_t begin(std::size_t piece) const { return piece == 0 ? 0 : ends_[piece - 1] + 1; }
  /// Where the next piece begins.
  std::uint32_t next(std::size_t piece) const { return piece + 1 == size_ ? last_next_ : ends_[piece] + 1; }
  /// Without its terminator.
  std::string_view text(std::size_t piece) const {
    const std::uint32_t from = begin(piece), to = ends_[piece];
    return {block_.data() + from, to - from - (to > from && block_[to - 1] == '\r' ? 1 : 0)};
  }
  /// The line of the block that the piece is part of, from 0.
  std::uint32_t line(std::size_t piece) const;
  /// Lines that end in what is cut: the line of the piece that comes next.
  std::uint32_t lines() const { return static_cast<std::uint32_t>(count_ - returns_.size()); }
  /// The first piece of that line or of a later one; size(): none is cut. By halving: a bar that was drawn over itself
  /// may be a line of a million pieces.
  std::size_t FirstOfLine(std::uint32_t line) const;
  /// The piece that holds the byte at `offset`.
  std::size_t PieceAt(std::uint32_t offset) const;

  struct Found {
    std::uint32_t offset = 0, piece = 0;
  };
  /// Places in what the last Find() cut where the mark may stand, in order.
  std::span<const Found> found() const { return {found_.data(), found_count_}; }
  /// Pieces that hold control bytes that no text has (NUL and its like, not tab, ESC, BS, FF), in order, each once.
  const std::vector<std::uint32_t>& odd() const { return odd_; }
  /// Whether there was an ESC in what is cut.
  bool escaped() const { return escaped_; }

 private:
  void Mark(std::size_t begin, std::size_t end);
  void MarkAvx2(std::size_t begin, std::size_t end);
  void TakeMarks();
  template <class T>
  static void MakeRoom(std::vector<T>& list, std::size_t size);

  Code code_;
  char first_, third_;  ///< of the mark
  std::string_view block_;
  // Longer than what is in use, so that the fast path writes without asking whether there is room, or anything to
  // write.
  std::vector<std::uint32_t> marks_;  ///< of one stretch: places of bytes that are looked at one by one
  std::vector<std::uint32_t> ends_;   ///< of terminators: '\n', or '\r' that no '\n' follows
  std::vector<Found> found_;
  std::size_t mark_count_ = 0, count_ = 0, found_count_ = 0;  ///< in use
  std::size_t size_ = 0;
  std::uint32_t last_next_ = 0;
  bool escaped_ = false;
  std::vector<std::uint32_t> returns_;  ///< pieces that a '\r' ends
  std::vector<std::uint32_t> odd_;
};

}  // namespace inquest
