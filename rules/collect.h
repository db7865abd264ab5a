// What to collect next: not what was given, and by the names of whom it is missing.
#pragma once

#include <string>
#include <vector>

#include "rules/verdict.h"

namespace inquest {

/// The same list in the same order, without what was given already, and with the ranks, hosts and pids that an item
/// means. `wanted` as rules and causes word it: "kernel log of every host", "py-spy dump of the absent rank".
std::vector<std::string> StillToCollect(const Timeline& timeline, const std::vector<Culprit>& culprits,
                                        std::vector<std::string> wanted);

}  // namespace inquest
