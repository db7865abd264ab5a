// One name for failures that are the same, whichever rank, host and run they were on.
#pragma once

#include <string>

#include "rules/verdict.h"

namespace inquest {

// Of the cause, the rule that decided, the exception with the place in the program that raised it, the operation that
// hung; where nothing decided, of the words of the line that shows most. No rank, host, pid, time, address, folder,
// number of a step or of a call is in it.
/// 16 hexadecimal digits; empty: the job ended well.
std::string FingerprintOf(const Timeline& timeline, const Verdict& verdict);

}  // namespace inquest
