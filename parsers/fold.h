// How a bulk format is read: lines too many to be events, folded where their block is scanned.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/call_batch.h"
#include "core/code.h"
#include "core/event.h"
#include "parsers/structure.h"

namespace inquest {

/// What the first look at a line says.
enum class LineClass : std::uint8_t {
  kPlain,   ///< not of a bulk format
  kFolded,  ///< taken: nothing is left to do
  kKnown,   ///< one of thousands that say nothing: kept only where a rule asks for it
  kKept,    ///< worth a second look
  kTorn,    ///< damaged
};

/// What a folder makes of a block.
struct Folded {
  CallBatch calls;
  /// An event that stands for many lines.
  struct Sum {
    std::uint32_t line = 0;  ///< of the first, in the block
    std::string text;        ///< of the first, without its envelope
    Origin origin;
    What what;
  };
  std::vector<Sum> sums;
};

/// One per thread; what comes again it may remember from block to block. Lines are followed by kPadding readable bytes.
class Folder {
 public:
  struct Line {
    std::string_view text;
    std::uint32_t mark = 0;    ///< where Folding::mark stands
    std::uint32_t number = 0;  ///< in the block
    std::uint32_t piece = 0;
    std::uint32_t hash = 0;  ///< for the folder's own first look
    LineClass what = LineClass::kPlain;
  };
  virtual ~Folder() = default;
  virtual void Begin() = 0;
  /// Takes the lines of a block from `at` on, as long as they are ones that were seen before, but for their numbers:
  /// whole lines without control bytes. Appends where the '\n' of each stands. `number`, `piece`: of the first.
  virtual void TakeKnown(std::string_view block, std::size_t at, std::uint32_t number, std::uint32_t piece,
                         std::vector<std::uint32_t>& ends) = 0;
  /// Takes what it can, and says of each line what it is. A few at once: what one asks for is fetched while others are
  /// looked at.
  virtual void Take(std::span<Line> lines) = 0;
  /// The block ended, and `pieces` are what its lines are in.
  virtual Folded End(const Structure& pieces) = 0;
};

/// All that the program knows of a bulk format's lines; its Format has the rest.
struct Folding {
  /// In every line, with not much in front of it. Three bytes or more, of which the first and the third are rare.
  std::string_view mark;
  std::size_t shortest = 0;  ///< bytes of a line
  std::unique_ptr<Folder> (*make)(Code code);
  /// A line from where its own head begins: what stands in front, a collector put there.
  std::string_view (*without_foreign_head)(std::string_view text);
  /// Who wrote a line, by the head of this format that it may begin with, for whatever is made of the line. False: it
  /// begins with none.
  bool (*read_origin)(std::string_view text, Origin& origin);
};

}  // namespace inquest
