// Inputs -> events -> timeline -> findings -> verdict.
#include "cli/analyze.h"

#include <fmt/format.h>

#include <algorithm>
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
          .host = std::move(read.host),
          .form = read.form};
}

/// A verdict on no bytes at all would be one on a typing mistake.
std::optional<Error> NothingCame(const std::vector<InputRead>& reads) {
  if (reads.empty() ||
      std::any_of(reads.begin(), reads.end(), [](const InputRead& read) { return read.tally.bytes > 0; }))
    return std::nullopt;
  const std::string& path = reads.front().path;
  if (reads.size() > 1)
    return Error{fmt::format("it is empty, and so are all {} files", reads.size()),
                 "give the files that hold what the ranks printed", path};
  if (path == "-")
    return Error{"nothing came",
                 "pipe in what the job printed, errors with it: COMMAND 2>&1 | inquest; or name files and folders",
                 "standard input"};
  return Error{"it is empty", "give the files that hold what the ranks printed", path};
}

/// What is read goes to both.
class TwoSinks final : public EventSink {
 public:
  TwoSinks(EventSink& one, EventSink& other) : one_(one), other_(other) {}
  void Add(Event event) override {
    one_.Add(event);
    other_.Add(std::move(event));
  }
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) override {
    one_.AddCalls(batch, begin, end, base);
    other_.AddCalls(batch, begin, end, base);
  }
  void AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos& where) override {
    one_.AddTrace(trace, origin, where);
    other_.AddTrace(trace, origin, where);
  }

 private:
  EventSink& one_;
  EventSink& other_;
};

struct WhatWasRead {
  std::vector<Input> inputs;  ///< as they were listed
  std::vector<InputSummary> summaries;
};

Result<WhatWasRead> ReadInto(EventSink& sink, const std::vector<std::string>& paths, const Sieve& sieve,
                             const ScanOptions& options) {
  Result<std::vector<Input>> inputs = ListInputs(paths);
  if (!inputs) return inputs.error();
  Result<std::vector<InputRead>> reads = ScanInputs(*inputs, sieve, options, sink);
  if (!reads) return reads.error();
  if (auto nothing = NothingCame(*reads)) return *std::move(nothing);
  WhatWasRead out{.inputs = *std::move(inputs), .summaries = {}};
  for (InputRead& read : *reads) out.summaries.push_back(Summary(read));
  return out;
}

}  // namespace

Result<Analysis> Analyze(const std::vector<std::string>& paths, const RuleBook& book, const Sieve& sieve,
                         const ScanOptions& options, std::optional<std::size_t> attempt) {
  TimelineBuilder builder;
  Result<WhatWasRead> read = ReadInto(builder, paths, sieve, options);
  if (!read) return read.error();
  Analysis analysis{
      .timeline = builder.Build(std::move(read->summaries)), .verdict = {}, .inputs = std::move(read->inputs)};
  analysis.verdict = Decide(analysis.timeline, book, attempt);
  return analysis;
}

Result<AnalysisWithDevices> AnalyzeWithDevices(const std::vector<std::string>& paths, const RuleBook& book,
                                               const Sieve& sieve, const ScanOptions& options,
                                               std::optional<std::size_t> attempt) {
  TimelineBuilder builder, devices(Devices::kWhole);
  TwoSinks both(builder, devices);
  Result<WhatWasRead> read = ReadInto(both, paths, sieve, options);
  if (!read) return read.error();
  AnalysisWithDevices out{
      .analysis = {.timeline = builder.Build(read->summaries), .verdict = {}, .inputs = std::move(read->inputs)},
      .devices = devices.Build(std::move(read->summaries))};
  out.analysis.verdict = Decide(out.analysis.timeline, book, attempt);
  return out;
}

std::optional<ToReplay> WhatToReplay(const Verdict& verdict) {
  if (!verdict.collective) return std::nullopt;
  ToReplay what{.collective = *verdict.collective};
  for (const Finding& finding : verdict.findings)
    if (TellsOfDisagreement(finding.cause, finding.strength != Strength::kHint, what.collective))
      what.disagreements.push_back(finding.claim);
  const auto names = [&](const Citation& citation) {
    return citation.text.find(what.collective.op) != std::string::npos;
  };
  const auto cited = std::ranges::find_if(verdict.evidence, names);
  if (cited != verdict.evidence.end())
    what.cited = cited->where;
  else if (!verdict.evidence.empty())
    what.cited = verdict.evidence.front().where;
  return what;
}

}  // namespace inquest
