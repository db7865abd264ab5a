// The table of report formats.
#include "report/report.h"

namespace inquest {

std::span<const ReportFormat> ReportFormats() {
  static constexpr ReportFormat kFormats[] = {
      {"text", "",
       [](const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink) {
         sink(RenderText(timeline, verdict, context));
       }},
      {"json", "\"schema\": \"inquest-verdict-1\"",
       [](const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink) {
         RenderJson(timeline, verdict, context.tool_version, sink, context.timeline_events.value_or(0));
       }},
      {"jsonl", "\"schema\": \"inquest-events-1\"", &RenderJsonLines},
      {"markdown", "<!-- inquest: ",
       [](const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink) {
         sink(RenderMarkdown(timeline, verdict, context));
       }},
      {"junit", "<testsuites name=\"inquest\"",
       [](const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink) {
         sink(RenderJunit(timeline, verdict, context));
       }},
      {"github", "",
       [](const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink) {
         sink(RenderGithub(timeline, verdict, context));
       }},
      {"sarif", "\"name\": \"inquest\"", &RenderSarif},
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
