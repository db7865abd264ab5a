// What somebody did to all lines of a log after it was written, found in its head, and undone line by line: colour that
// was spelt out, lines cut at the width of a terminal, objects of a collector, numbers of `grep -n`, times, names of
// pods and files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsers/escapes.h"
#include "parsers/exported_line.h"
#include "parsers/line_head.h"

namespace inquest {

/// One change, and how it is undone.
struct Change {
  enum class Kind { kEscapes, kEntities, kWidth, kObjects, kArray, kData, kHead };
  Kind kind = Kind::kHead;
  EscapeSpelling spelling = EscapeSpelling::kByte;
  std::size_t width = 0;                     ///< kWidth: columns
  std::vector<std::string> beginnings = {};  ///< kWidth: how lines begin that no other goes on in, sorted
  LineHead head = {};
  bool hosts = false, writers = false;  ///< kObjects, kHead: they name several, and so tell who wrote a line
};

/// A line on its way back.
struct RestoredLine {
  std::string text;
  RestoredHead head;
};

// The outermost change is found first, undone in a sample of the lines, and then the next is looked for in what is
// left. A change is believed if nearly all lines have its shape *and* something is read better without it: a rank's
// tag, a traceback, NCCL's prefix, which were hidden behind it. So what a program prints by itself in front of its own
// lines stays.
class Restoration {
 public:
  /// `head`: the first bytes of the input; `whole`: there are no others. nullopt: nothing was done to it.
  static std::optional<Restoration> Find(std::string_view head, bool whole);
  /// Undoes the changes up to the one of width, or all. False: the line is none of the log.
  bool Begin(RestoredLine& line);
  /// And those behind it.
  bool End(RestoredLine& line);
  /// Whether the physical line `next` goes on in the line that ended in `last`, which has been through Begin().
  bool GoesOn(std::string_view last, std::string_view next) const;
  /// Whether lines may become fewer.
  bool drops_lines() const { return width_ < changes_.size() || drops_; }
  bool joins() const { return width_ < changes_.size(); }

 private:
  explicit Restoration(std::vector<Change> changes);
  bool Undo(const Change& change, RestoredLine& line);
  void CountNames(Change& change, const std::vector<std::string>& lines);

  std::vector<Change> changes_;
  std::size_t width_;  ///< place of the change of width; the end where there is none
  bool drops_ = false;
  ExportedLines exported_;
};

}  // namespace inquest
