// The inputs of an analysis, read a second time for what its timeline does not keep: every call.
#pragma once

#include <string>

#include "cli/analyze.h"
#include "cli/options.h"
#include "core/event_sink.h"

namespace inquest {

/// Empty: all of it was read, and is what it was; else why not. What cannot be read twice, as standard input, is not
/// read at all.
std::string ReadInputsAgain(const AnalysisOptions& options, const Analysis& analysis, CallTimes times, EventSink& sink);

}  // namespace inquest
