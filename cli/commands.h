// What the program can do, one function a command. Each returns what is to be printed; main.cc prints it.
#pragma once

#include <variant>

#include "cli/analyze.h"
#include "cli/options.h"

namespace inquest {

CommandResult RunAnalysis(const Options& options);
/// The analysis alone, with what the options say of rules and threads; a CommandResult where it could not run.
std::variant<Analysis, CommandResult> AnalyzeWith(const AnalysisOptions& options,
                                                  const std::vector<std::string>& paths);
CommandResult RunFlightRecorder(const Options& options);
CommandResult RunTriage(const Options& options);
CommandResult RunEvidence(const Options& options);
CommandResult RunRules(const Options& options);
CommandResult RunExplain(const Options& options);
CommandResult RunSchema(const Options& options);
CommandResult RunCollect(const Options& options);
CommandResult RunReplay(const Options& options);
CommandResult RunCompletion(const Options& options);
CommandResult RunHelp(const Options& options);
CommandResult RunVersion(const Options& options);

}  // namespace inquest
