// Whether a log ends behind loops that are through, in words that it had not printed before.
#pragma once

#include <optional>
#include <span>

#include "timeline/bars.h"
#include "timeline/timeline.h"

namespace inquest {

// A program that counts of how many says when a loop is through. What it prints behind its last one, once and of
// another kind than all before, with figures in it, are its results. A loop that runs again and again, once for each
// epoch, is through many times; so what counts without saying of how many must not count on, and a bar must be the only
// one of its loop. A bar that is full, behind which nothing stands, is such a line itself, where it took some minutes.

/// The line that closes the log of one input; nullopt: no loop, or one that is not through, or nothing closes it.
/// `counted`: its lines that count something, in order; `bars`: of all inputs, in order.
std::optional<EventIndex> ClosingLine(const Timeline& timeline, std::span<const EventIndex> counted,
                                      std::span<const Bar> bars);

}  // namespace inquest
