// What the program can do, one function a command. Each returns what is to be printed; main.cc prints it.
#pragma once

#include "cli/options.h"

namespace inquest {

CommandResult RunAnalysis(const Options& options);
CommandResult RunRules(const Options& options);
CommandResult RunExplain(const Options& options);
CommandResult RunCollect(const Options& options);
CommandResult RunReplay(const Options& options);
CommandResult RunCompletion(const Options& options);

}  // namespace inquest
