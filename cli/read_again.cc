// The inputs of an analysis, read a second time.
#include "cli/read_again.h"

#include <algorithm>
#include <filesystem>

namespace inquest {

std::string ReadInputsAgain(const AnalysisOptions& options, const Analysis& analysis, CallTimes times,
                            EventSink& sink) {
  std::error_code unreadable;
  for (const Input& input : analysis.inputs)
    if (!std::filesystem::is_regular_file(input.path, unreadable))
      return (input.path == "-" ? "standard input" : input.path) + " cannot be read a second time";
  const auto reads = ScanInputs(analysis.inputs, *analysis.sieve,
                                {.threads = options.threads, .hosts = options.hosts, .call_times = times}, sink);
  if (!reads) return reads.error().where + ": " + reads.error().message;
  const auto is_same = [](const InputRead& read, const InputSummary& before) {
    return read.path == before.path && read.tally.bytes == before.bytes;
  };
  return std::ranges::equal(*reads, analysis.timeline.inputs, is_same) ? "" : "the inputs changed while they were read";
}

}  // namespace inquest
