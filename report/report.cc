// The table of report formats.
#include "report/report.h"

namespace inquest {

std::span<const ReportFormat> ReportFormats() {
  static constexpr ReportFormat kFormats[] = {
      {"text", [](const Timeline& timeline, const Verdict& verdict,
                  const ReportContext& context) { return RenderText(timeline, verdict, context); }},
      {"json", [](const Timeline& timeline, const Verdict& verdict,
                  const ReportContext& context) { return RenderJson(timeline, verdict, context.tool_version); }},
  };
  return kFormats;
}

const ReportFormat* FindReportFormat(std::string_view name) {
  for (const ReportFormat& format : ReportFormats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace inquest
