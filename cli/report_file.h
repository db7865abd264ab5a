// A report as a file: written whole or not at all, and never in the place of an input.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "report/report.h"

namespace inquest {

/// What the user asked for: `option` is how, for messages; `mark` stands near the top of every report of its kind,
/// empty where nothing tells it from a log.
struct ReportFile {
  std::string path;
  std::string_view option, mark;
};

/// Why it may not be written there: it is one of the inputs, and no earlier report of its kind. Asked before anything
/// is read.
std::optional<Error> CheckReportFile(const ReportFile& file, const std::vector<std::string>& inputs);

/// What stands there keeps its place until all of the report is written, but for a pipe or a device.
std::optional<Error> WriteReportFile(const ReportFile& file, const std::function<void(const Sink&)>& print);

}  // namespace inquest
