// Ranks that still run on this node, and the files that they said they would write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace inquest {

/// Processes that hold a GPU open, ascending; at most 64. Looks at open files alone: the memory map of a process that
/// hangs in the driver can hang whoever reads it.
std::vector<std::int64_t> ProcessesOnGpus(const std::string& proc = "/proc");

struct RunningRank {
  std::int64_t pid = 0;                  ///< here
  std::int64_t own_pid = 0;              ///< as it knows itself, in its container
  std::vector<std::string> environment;  ///< `NAME=value`
};

/// Paths, as the rank would open them, of its NCCL_DEBUG_FILE and its Flight Recorder dump. They need not exist.
std::vector<std::string> FilesNamedBy(const RunningRank& rank, std::string_view hostname);

/// Flight Recorder dumps in their usual places, written in the last day: their ranks may be gone.
std::vector<std::string> RecentDumps(const std::vector<std::string>& folders);
/// Those places, for a user with that environment.
std::vector<std::string> DumpFolders(const std::vector<std::string>& environment);

}  // namespace inquest
