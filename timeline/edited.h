// Programs that were edited between two of their failures.
#pragma once

#include <utility>
#include <vector>

#include "timeline/timeline.h"

namespace inquest {

/// Pairs of exceptions of one program among the events [begin, end) of an input: behind the first, and in front of the
/// second, it was started again. Its module calls the same function from another line, and never again from the line
/// before: who mends a program and starts it anew in the same log leaves that trace, whatever the program prints. Where
/// one program writes, so does a module that stops at another line than before, with something printed in between. In
/// order.
std::vector<std::pair<EventIndex, EventIndex>> EditsBetween(const Timeline& timeline, EventIndex begin, EventIndex end);

}  // namespace inquest
