// What the program knows of an input format, and how one reads it.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/event_sink.h"

namespace inquest {

/// How a format is framed: line by line, or the whole file as one record.
enum class Framing : std::uint8_t { kLines, kDocument };

/// One per stream (one writer in one file); owns the state of an unfinished message. Gets only lines that hold one
/// of its marks (and, for Framing::kDocument, the whole file), never every line of the log.
class Parser {
 public:
  virtual ~Parser() = default;
  /// True: the record was ours, and what it says went to `out`.
  virtual bool Consume(const Record& record, EventSink& out) = 0;
  /// Whether a line without a mark, within Format::follow lines of one that was ours, may be ours too.
  virtual bool Expects(std::string_view) const { return true; }
  /// The stream ended, perhaps in the middle of a message.
  virtual void Finish(EventSink&) {}
};

struct Folding;

/// All that the program knows of a parser.
struct Format {
  std::string_view name;
  Framing framing = Framing::kLines;
  /// What the lines are: kNccl, kC10, ... or kAny.
  Component component = Component::kAny;
  /// Literals, one of which is in every record of ours; rare in other text, five bytes or more.
  std::span<const std::string_view> marks;
  /// Lines behind a marked one of ours that are offered as well: the rows of a table, the frames of a stack. At most
  /// kMostFollow.
  std::uint32_t follow = 0;
  /// What lines of ours begin with that say nothing: bare of an envelope, and without a mark of another format, they
  /// are claimed unread. Of a format that follows nothing.
  std::span<const std::string_view> silent = {};
  /// How lines that are too many to be events are folded (parsers/fold.h); of one format at most.
  const Folding* fold = nullptr;
  std::unique_ptr<Parser> (*make)();
};

template <class P>
std::unique_ptr<Parser> Make() {
  return std::make_unique<P>();
}

/// The most that a format may follow.
inline constexpr std::uint32_t kMostFollow = 64;

/// Every format, in the order in which a record is offered to them.
std::span<const Format* const> Formats();

}  // namespace inquest
