// Whose lines a kernel log's are: its host, and the process that a line of it speaks of.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "timeline/timeline.h"

namespace inquest {

/// The longest host of the job that a path names, the nearest part of it first.
std::optional<std::string> JobHostIn(std::string path, const std::set<std::string>& hosts);

/// Names the hosts of kernel logs and joins their events to processes. Of a timeline whose processes are resolved.
void JoinKernel(Timeline& timeline);

}  // namespace inquest
