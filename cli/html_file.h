// The report for a browser, as a file beside what is printed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/analyze.h"
#include "report/report.h"

namespace inquest {

/// Why the page may not be written there: it is one of the inputs, and no page of ours. Asked before anything is read.
std::optional<Error> CheckHtmlFile(const std::string& path, const std::vector<std::string>& inputs);

/// Reads the inputs again round the lines that the page cites, where they are plain files that have not changed.
std::optional<Error> WriteHtmlFile(const std::string& path, const Analysis& analysis, const ReportContext& context);

}  // namespace inquest
