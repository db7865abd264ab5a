// `inquest PATH...`: the analysis.
#include <atomic>
#include <filesystem>
#include <optional>

#include "cli/analyze.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/html_file.h"
#include "cli/nearest.h"
#include "cli/perfetto_file.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "cli/rule_set.h"
#include "replay/infer.h"
#include "report/lanes.h"
#include "report/recorded.h"
#include "report/report.h"

namespace inquest {
namespace {

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

ReportFile FileOf(const ReportOutput& report) {
  return {.path = *report.file, .option = "--output", .mark = report.format->mark};
}

/// Why the reports may not be written where they shall be. Asked before anything is read.
std::optional<Error> CheckFiles(const Options& options, const std::vector<std::string>& inputs) {
  if (!options.analysis.html.empty())
    if (auto error = CheckHtmlFile(options.analysis.html, inputs)) return error;
  if (!options.analysis.perfetto.empty())
    if (auto error = CheckPerfettoFile(options.analysis.perfetto, inputs)) return error;
  for (const ReportOutput& report : options.reports)
    if (report.file)
      if (auto error = CheckReportFile(FileOf(report), inputs)) return error;
  return std::nullopt;
}

ReportContext ContextOf(const Options& options, const TextStyle& style, const Analysis& analysis) {
  ReportContext context{.text = style, .tool_version = Version(), .timeline_events = options.analysis.timeline_events};
  if (const auto what = WhatToReplay(analysis.verdict))
    context.replay_command = CommandLine(PlanFrom(analysis.timeline, *what));
  return context;
}

/// What is printed is printed, though a file cannot be written. `as_text` stands in for the text.
CommandResult Report(const Options& options, const std::shared_ptr<const Analysis>& analysis,
                     decltype(ReportFormat::render) as_text) {
  CommandResult result{.status = StatusOf(analysis->verdict.outcome), .out = "", .err = ""};
  const auto check = [&result](const std::optional<Error>& error) {
    if (!error) return;
    const CommandResult failed = CouldNotRun(*error);
    result.status = failed.status;
    result.err += failed.err;
  };
  const ReportContext in_file = ContextOf(options, StyleOfFile(options), *analysis);
  if (!options.analysis.html.empty()) check(WriteHtmlFile(options.analysis.html, *analysis, in_file));
  if (!options.analysis.perfetto.empty()) check(WritePerfettoFile(options.analysis, *analysis, in_file));
  for (const ReportOutput& report : options.reports) {
    const auto render =
        as_text != nullptr && report.format == FindReportFormat("text") ? as_text : report.format->render;
    const auto print = [analysis, render](const ReportContext& context, const Sink& sink) {
      render(analysis->timeline, analysis->verdict, context, sink);
    };
    if (report.file)
      check(WriteReportFile(FileOf(report), [&](const Sink& sink) { print(in_file, sink); }));
    else if (!options.analysis.quiet)
      result.print = [print, context = ContextOf(options, StyleOfOutput(options), *analysis)](const Sink& sink) {
        print(context, sink);
      };
  }
  return result;
}

}  // namespace

std::variant<Analysis, CommandResult> AnalyzeWith(const AnalysisOptions& options,
                                                  const std::vector<std::string>& paths) {
  std::variant<RuleBook, RuleErrors> loaded = LoadRuleSet(options.rules_dir);
  if (const RuleErrors* errors = std::get_if<RuleErrors>(&loaded)) return BadRules(*errors);
  const RuleBook& book = std::get<RuleBook>(loaded);
  Result<std::unique_ptr<Sieve>> sieve = LoadSieveFor(options.rules_dir, book);
  if (!sieve) return CouldNotRun(sieve.error());

  std::atomic<std::uint64_t> done = 0;
  std::optional<Progress> progress;
  if (ErrorIsTerminal() && !options.quiet) progress.emplace(done, TotalBytes(paths));
  Result<Analysis> analysis =
      Analyze(paths, book, **sieve, {.threads = options.threads, .progress_bytes = &done, .hosts = options.hosts},
              options.attempt);
  progress.reset();
  if (!analysis) return CouldNotRun(analysis.error());
  analysis->sieve = std::move(*sieve);
  return std::move(*analysis);  // `*std::move(...)` of a Result is no rvalue: it would copy the timeline
}

CommandResult RunFlightRecorder(const Options& options) {
  if (options.arguments.empty())
    return CouldNotRun({"nothing to read", "name the dumps: inquest fr /tmp/nccl_trace_rank_*", ""});
  if (const auto error = CheckFiles(options, options.arguments)) return CouldNotRun(*error);
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
  return Report(options, analysis, &RenderRecorded);
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
  if (const auto error = CheckFiles(options, paths)) return CouldNotRun(*error);
  std::variant<Analysis, CommandResult> analyzed = AnalyzeWith(options.analysis, paths);
  if (CommandResult* failed = std::get_if<CommandResult>(&analyzed)) return std::move(*failed);
  return Report(options, std::make_shared<const Analysis>(std::get<Analysis>(std::move(analyzed))),
                options.analysis.timeline ? &RenderLanes : nullptr);
}

}  // namespace inquest
