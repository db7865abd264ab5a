// Exceptions that a program caught: it wrote their traceback with its own logger, and its logger wrote on.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/chatter.h"
#include "timeline/timeline.h"

namespace inquest {

/// Lines of one input, both included.
struct LineSpan {
  std::uint32_t input = 0;
  std::uint64_t begin = 0, end = 0;
  bool Holds(const SourcePos& where) const { return input == where.input && begin <= where.line && where.line <= end; }
};

// `logging` prints a record and behind it the traceback (logger.exception): the exception was caught, whatever became
// of it. Where records of that logger follow that are no complaints, four or more, the process did not die of it. Of
// several ranks one may be dead while the others write with the same logger, so nothing is said of them.

/// From the record in front to the last line of the traceback, in order.
std::vector<LineSpan> LoggedAndOutlived(const Timeline& timeline, const Chatter& chatter);

}  // namespace inquest
