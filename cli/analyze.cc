// Inputs -> events -> timeline -> findings -> verdict.
#include "cli/analyze.h"

#include <utility>

#include "timeline/builder.h"

namespace inquest {
namespace {

InputSummary Summary(InputRead& read) {
  return {.path = std::move(read.path),
          .bytes = read.tally.bytes,
          .lines = read.tally.lines,
          .claimed = read.tally.claimed,
          .plain = read.tally.plain,
          .damaged = read.tally.damaged,
          .kinds = std::move(read.kinds),
          .problem = std::move(read.problem),
          .host = std::move(read.host)};
}

}  // namespace

Result<Analysis> Analyze(const std::vector<std::string>& paths, const RuleBook& book, const Sieve& sieve,
                         const ScanOptions& options, std::optional<std::size_t> attempt) {
  Result<std::vector<Input>> inputs = ListInputs(paths);
  if (!inputs) return inputs.error();
  TimelineBuilder builder;
  Result<std::vector<InputRead>> reads = ScanInputs(*inputs, sieve, options, builder);
  if (!reads) return reads.error();
  std::vector<InputSummary> summaries;
  for (InputRead& read : *reads) summaries.push_back(Summary(read));
  Analysis analysis{.timeline = builder.Build(std::move(summaries)), .verdict = {}};
  analysis.verdict = Decide(analysis.timeline, book, attempt);
  return analysis;
}

}  // namespace inquest
