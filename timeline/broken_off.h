// Whether a log breaks off within its last line: it was cut, by whoever copied it or by whatever ended its writer.
#pragma once

#include <cstdint>

#include "timeline/timeline.h"

namespace inquest {

// What a reader sees at once: the last line is the beginning of a row that stands whole above it, and ends within a
// word or a number; or what it opened is not closed, be it in the line itself or in a dictionary of many lines. What
// looks like it: a heading that rows continue behind a blank; intervals such as [0, 1); brackets of a sentence that
// goes on in the next line.

/// The last line that is seen of the input is no whole line. False too where nothing shows it.
bool BreaksOff(const Timeline& timeline, std::uint32_t input);

}  // namespace inquest
