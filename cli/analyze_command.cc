// `inquest PATH...`: the analysis.
#include <atomic>
#include <filesystem>
#include <optional>

#include "cli/analyze.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/html_file.h"
#include "cli/nearest.h"
#include "cli/progress.h"
#include "cli/rule_set.h"
#include "replay/infer.h"
#include "report/lanes.h"
#include "report/recorded.h"
#include "report/report.h"

namespace inquest {
namespace {

/// Bytes of all inputs; 0 where one does not know its size. What cannot be read is the analysis' to report.
std::uint64_t TotalBytes(const std::vector<std::string>& paths) {
  const Result<std::vector<Input>> inputs = ListInputs(paths);
  std::uint64_t total = 0;
  for (const Input& input : inputs ? *inputs : std::vector<Input>()) {
    if (input.size_bytes == 0) return 0;
    total += input.size_bytes;
  }
  return total;
}

int StatusOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHealthy:
      return kExitHealthy;
    case Outcome::kFailed:
      return kExitFailed;
    case Outcome::kUndecided:
      break;
  }
  return kExitUndecided;
}

/// `inquest exlain`: the first argument names nothing that is there, and nearly a command.
std::optional<CommandResult> MeantAsCommand(const std::vector<std::string>& paths) {
  std::error_code unreadable;
  if (paths.empty() || paths.front().find_first_of("./-") != std::string::npos ||
      std::filesystem::exists(paths.front(), unreadable))
    return std::nullopt;
  std::vector<std::string_view> names;
  for (const Command& command : Commands().subspan(1)) names.push_back(command.name);
  const auto nearest = Nearest(paths.front(), names);
  if (!nearest) return std::nullopt;
  return CouldNotRun({"no file, folder or command is called '" + paths.front() + "'",
                      "did you mean inquest " + std::string(*nearest) + "?", ""});
}

ReportContext ContextOf(const Options& options, const Analysis& analysis) {
  ReportContext context{.text = StyleOfOutput(options), .tool_version = Version()};
  if (const auto& collective = analysis.verdict.collective)
    context.replay_command = CommandLine(PlanFrom(analysis.timeline, *collective));
  return context;
}

/// What is printed is printed, though the page cannot be written.
CommandResult Report(const Options& options, std::shared_ptr<const Analysis> analysis,
                     decltype(ReportFormat::render) render) {
  CommandResult result{.status = StatusOf(analysis->verdict.outcome), .out = "", .err = ""};
  const std::string& html = options.analysis.html;
  if (options.analysis.quiet && html.empty()) return result;
  const ReportContext context = ContextOf(options, *analysis);
  if (!html.empty())
    if (const auto error = WriteHtmlFile(html, *analysis, context)) result = CouldNotRun(*error);
  if (options.analysis.quiet) return result;
  result.print = [analysis = std::move(analysis), context, render](const Sink& sink) {
    render(analysis->timeline, analysis->verdict, context, sink);
  };
  return result;
}

}  // namespace

std::variant<Analysis, CommandResult> AnalyzeWith(const AnalysisOptions& options,
                                                  const std::vector<std::string>& paths) {
  std::variant<RuleBook, RuleErrors> loaded = LoadRuleSet(options.rules_dir);
  if (const RuleErrors* errors = std::get_if<RuleErrors>(&loaded)) return BadRules(*errors);
  const RuleBook& book = std::get<RuleBook>(loaded);
  if (!options.html.empty())
    if (const auto error = CheckHtmlFile(options.html, paths)) return CouldNotRun(*error);
  const Result<std::unique_ptr<Sieve>> sieve = LoadSieveFor(options.rules_dir, book);
  if (!sieve) return CouldNotRun(sieve.error());

  std::atomic<std::uint64_t> done = 0;
  std::optional<Progress> progress;
  if (ErrorIsTerminal() && !options.quiet) progress.emplace(done, TotalBytes(paths));
  Result<Analysis> analysis =
      Analyze(paths, book, **sieve, {.threads = options.threads, .progress_bytes = &done, .hosts = options.hosts},
              options.attempt);
  progress.reset();
  if (!analysis) return CouldNotRun(analysis.error());
  return *std::move(analysis);
}

CommandResult RunFlightRecorder(const Options& options) {
  if (options.arguments.empty())
    return CouldNotRun({"nothing to read", "name the dumps: inquest fr /tmp/nccl_trace_rank_*", ""});
  std::variant<Analysis, CommandResult> analyzed = AnalyzeWith(options.analysis, options.arguments);
  if (CommandResult* failed = std::get_if<CommandResult>(&analyzed)) return std::move(*failed);
  const auto analysis = std::make_shared<const Analysis>(std::get<Analysis>(std::move(analyzed)));
  const Recorded& recorded = *analysis->timeline.recorded;
  if (recorded.empty() && recorded.nameless > 0)
    return CouldNotRun({"nothing in the dumps says which rank wrote them, and their names do not either",
                        "let their names end with the rank, as PyTorch does: nccl_trace_rank_3",
                        options.arguments.front()});
  if (recorded.empty())
    return CouldNotRun({"no dump of a Flight Recorder, and no count of NCCL's, is among what was given",
                        "inquest PATH... reads logs; a job writes dumps with TORCH_NCCL_DUMP_ON_TIMEOUT=1",
                        options.arguments.front()});
  const bool as_table = options.format == FindReportFormat("text");
  return Report(options, analysis, as_table ? &RenderRecorded : options.format->render);
}

CommandResult RunAnalysis(const Options& options) {
  std::vector<std::string> paths = options.arguments;
  if (auto mistaken = MeantAsCommand(paths)) return *std::move(mistaken);
  if (paths.empty()) {
    if (InputIsTerminal())
      return {
          .status = kExitCouldNotRun, .out = "", .err = "inquest: nothing to read\n\n" + HelpText(*options.command)};
    paths = {"-"};
  }
  std::variant<Analysis, CommandResult> analyzed = AnalyzeWith(options.analysis, paths);
  if (CommandResult* failed = std::get_if<CommandResult>(&analyzed)) return std::move(*failed);
  const bool as_picture = options.analysis.timeline && options.format == FindReportFormat("text");
  return Report(options, std::make_shared<const Analysis>(std::get<Analysis>(std::move(analyzed))),
                as_picture ? &RenderLanes : options.format->render);
}

}  // namespace inquest
