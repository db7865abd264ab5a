// The trace for Perfetto, as a file beside what is printed.
#include "cli/perfetto_file.h"

#include <algorithm>
#include <filesystem>

#include "cli/report_file.h"
#include "report/perfetto/perfetto.h"
#include "report/perfetto/trace_writer.h"

namespace inquest {
namespace {

namespace fs = std::filesystem;

ReportFile FileOf(const std::string& path) { return {.path = path, .option = "--perfetto", .mark = kTraceMark}; }

/// Empty: all of it was read, and is what it was.
std::string ReadInputsAgain(const AnalysisOptions& options, const Analysis& analysis, EventSink& sink) {
  std::error_code unreadable;
  for (const Input& input : analysis.inputs)
    if (!fs::is_regular_file(input.path, unreadable))
      return (input.path == "-" ? "standard input" : input.path) + " cannot be read a second time";
  const auto reads =
      ScanInputs(analysis.inputs, *analysis.sieve,
                 {.threads = options.threads, .hosts = options.hosts, .call_times = CallTimes::kRead}, sink);
  if (!reads) return reads.error().where + ": " + reads.error().message;
  const auto is_same = [](const InputRead& read, const InputSummary& before) {
    return read.path == before.path && read.tally.bytes == before.bytes;
  };
  return std::ranges::equal(*reads, analysis.timeline.inputs, is_same) ? "" : "the inputs changed while they were read";
}

}  // namespace

std::optional<Error> CheckPerfettoFile(const std::string& path, const std::vector<std::string>& inputs) {
  return CheckReportFile(FileOf(path), inputs);
}

std::optional<Error> WritePerfettoFile(const AnalysisOptions& options, const Analysis& analysis,
                                       const ReportContext& context) {
  return WriteReportFile(FileOf(options.perfetto), [&](const Sink& sink) {
    const auto again = [&](EventSink& calls) { return ReadInputsAgain(options, analysis, calls); };
    RenderPerfetto(analysis.timeline, analysis.verdict, context, again, sink);
  });
}

}  // namespace inquest
