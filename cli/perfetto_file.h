// The trace for Perfetto, as a file beside what is printed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/analyze.h"
#include "cli/options.h"
#include "report/report.h"

namespace inquest {

/// Why the trace may not be written there: it is one of the inputs, and no trace of ours. Asked before anything is
/// read.
std::optional<Error> CheckPerfettoFile(const std::string& path, const std::vector<std::string>& inputs);

/// Reads the inputs again for their calls, where all are files.
std::optional<Error> WritePerfettoFile(const AnalysisOptions& options, const Analysis& analysis,
                                       const ReportContext& context);

}  // namespace inquest
