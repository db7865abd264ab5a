// The command that runs the failed collective again.
#pragma once

#include <optional>
#include <string>

#include "rules/verdict.h"

namespace inquest {

/// `inquest replay --op broadcast --count 253440000 --ranks 3`; nullopt where operation, size or number of ranks is not
/// known. Made of numbers and words of our own tables: a log can name neither an option nor a command.
std::optional<std::string> ReplayCommand(const Timeline& timeline, const CollectiveRef& collective);

}  // namespace inquest
