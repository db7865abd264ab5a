// `inquest triage DIR...`: many jobs, each judged by itself.
#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "cli/rule_set.h"
#include "cli/triage_folders.h"
#include "report/triage.h"

namespace inquest {
namespace {

unsigned CoresFor(const Options& options) {
  return options.analysis.threads > 0 ? options.analysis.threads : std::max(1U, std::thread::hardware_concurrency());
}

std::optional<Timestamp> WhenOf(const Verdict& verdict) {
  for (const Citation& citation : verdict.evidence)
    if (citation.role == LineRole::kCause && citation.at) return citation.at;
  return verdict.job.end;
}

/// Reports that inquest wrote beside the logs are no job.
bool AreReports(const Timeline& timeline) {
  return std::ranges::all_of(timeline.inputs, [](const InputSummary& input) {
    return input.form != nullptr && input.form->name == "inquest-report";
  });
}

/// nullopt: it is none.
std::optional<TriagedJob> JudgeOne(const JobInputs& job, const RuleBook& book, const Sieve& sieve,
                                   const ScanOptions& options) {
  TriagedJob out{.name = job.name, .paths = job.paths, .problem = {}, .verdict = {}, .hosts = {}, .when = {}};
  Result<Analysis> analysis = Analyze(job.paths, book, sieve, options);
  if (!analysis) {
    const Error& error = analysis.error();
    out.problem = error.where.empty() ? error.message : error.where + ": " + error.message;
    return out;
  }
  if (AreReports(analysis->timeline)) return std::nullopt;
  out.when = WhenOf(analysis->verdict);
  out.hosts = std::move(analysis->timeline.hosts);
  out.verdict = WithoutProof(std::move(analysis->verdict));
  return out;
}

// A worker a core, as long as there are jobs; cores that are left over read within the jobs. So memory is bounded by
// that of as many analyses as there are cores, and a row each.
std::vector<TriagedJob> JudgeAll(const std::vector<JobInputs>& jobs, const RuleBook& book, const Sieve& sieve,
                                 unsigned cores, std::atomic<std::uint64_t>& done) {
  const auto workers = static_cast<unsigned>(std::min<std::size_t>(cores, jobs.size()));
  const ScanOptions options{.threads = std::max(1U, cores / workers), .progress_bytes = &done};
  std::vector<std::optional<TriagedJob>> judged(jobs.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    const auto own = std::make_unique<const RuleBook>(book);  // expressions are compiled when first asked for, by one
                                                              // thread
    for (std::size_t i = next++; i < jobs.size(); i = next++) judged[i] = JudgeOne(jobs[i], *own, sieve, options);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < workers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  std::vector<TriagedJob> out;
  for (auto& job : judged)
    if (job) out.push_back(*std::move(job));
  return out;
}

std::uint64_t BytesOf(const std::vector<JobInputs>& jobs) {
  std::uint64_t total = 0;
  for (const JobInputs& job : jobs)
    if (const Result<std::vector<Input>> inputs = ListInputs(job.paths))
      for (const Input& input : *inputs) total += input.size_bytes;
  return total;
}

/// What could not be read may have failed.
int StatusOf(const TriageCounts& counts) {
  if (counts.failed > 0) return kExitFailed;
  if (counts.unread > 0 && counts.healthy + counts.undecided == 0) return kExitCouldNotRun;
  return counts.undecided + counts.unread > 0 ? kExitUndecided : kExitHealthy;
}

void Render(const Options& options, const std::vector<TriagedJob>& jobs, const TextStyle& style, const Sink& sink) {
  if (options.triage.format == "json") return RenderTriageJson(jobs, Version(), sink);
  if (options.triage.format == "jsonl") return RenderTriageLines(jobs, Version(), sink);
  sink(RenderTriage(jobs, style));
}

}  // namespace

CommandResult RunTriage(const Options& options) {
  if (options.arguments.empty())
    return CouldNotRun({"nothing to read", "name a folder of jobs: inquest triage runs/", ""});
  Result<std::vector<JobInputs>> found = FindJobs(options.arguments);
  if (!found) return CouldNotRun(found.error());
  const std::string& path = options.triage.output;
  const bool to_file = !path.empty() && path != "-";
  const ReportFile file{.path = path, .option = "--output", .mark = kTriageMark};
  if (to_file)
    if (const auto error = CheckReportFile(file, options.arguments)) return CouldNotRun(*error);
  std::variant<RuleBook, RuleErrors> loaded = LoadRuleSet(options.analysis.rules_dir);
  if (const RuleErrors* errors = std::get_if<RuleErrors>(&loaded)) return BadRules(*errors);
  const RuleBook& book = std::get<RuleBook>(loaded);
  const Result<std::unique_ptr<Sieve>> sieve = LoadSieveFor(options.analysis.rules_dir, book);
  if (!sieve) return CouldNotRun(sieve.error());

  std::atomic<std::uint64_t> done = 0;
  std::optional<Progress> progress;
  if (ErrorIsTerminal()) progress.emplace(done, BytesOf(*found));
  const auto jobs =
      std::make_shared<const std::vector<TriagedJob>>(JudgeAll(*found, book, **sieve, CoresFor(options), done));
  progress.reset();
  if (jobs->empty())
    return CouldNotRun(
        {"there are reports of inquest alone in it", "give the logs of the jobs", options.arguments.front()});

  CommandResult result{.status = StatusOf(CountsOf(*jobs)), .out = "", .err = ""};
  if (!to_file) {
    result.print = [jobs, options, style = StyleOfOutput(options)](const Sink& sink) {
      Render(options, *jobs, style, sink);
    };
    return result;
  }
  const auto error =
      WriteReportFile(file, [&](const Sink& sink) { Render(options, *jobs, StyleOfFile(options), sink); });
  return error ? CouldNotRun(*error) : result;
}

}  // namespace inquest
