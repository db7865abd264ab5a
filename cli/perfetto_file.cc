// The trace for Perfetto, as a file beside what is printed.
#include "cli/perfetto_file.h"

#include "cli/read_again.h"
#include "cli/report_file.h"
#include "report/perfetto/perfetto.h"
#include "report/perfetto/trace_writer.h"

namespace inquest {
namespace {

ReportFile TraceFileOf(const std::string& path) { return {.path = path, .option = "--perfetto", .mark = kTraceMark}; }

}  // namespace

std::optional<Error> CheckPerfettoFile(const std::string& path, const std::vector<std::string>& inputs) {
  return CheckReportFile(TraceFileOf(path), inputs);
}

std::optional<Error> WritePerfettoFile(const AnalysisOptions& options, const Analysis& analysis,
                                       const ReportContext& context) {
  return WriteReportFile(TraceFileOf(options.perfetto), [&](const Sink& sink) {
    const auto again = [&](EventSink& calls) { return ReadInputsAgain(options, analysis, CallTimes::kRead, calls); };
    RenderPerfetto(analysis.timeline, analysis.verdict, context, again, sink);
  });
}

}  // namespace inquest
