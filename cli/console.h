// The terminal and the environment: the only place that asks about them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "core/result.h"
#include "report/report.h"

namespace inquest {

/// How to print on standard output, by its kind, NO_COLOR, TERM, COLUMNS and what the user asked for.
TextStyle StyleOfOutput(const Options& options);
/// How to print into a file: the same on every machine, but for what the user asked for.
TextStyle StyleOfFile(const Options& options);
/// True where a progress line on standard error reaches a person.
bool ErrorIsTerminal();
bool InputIsTerminal();
bool OutputIsTerminal();

/// Writes everything. A reader that went away is no error: it has seen what it wanted.
std::optional<Error> WriteOut(std::string_view text);
void WriteErr(std::string_view text);

}  // namespace inquest
