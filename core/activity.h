// What a process may be at, as its lines or its stack tell.
#pragma once

#include <cstdint>
#include <string_view>

namespace inquest {

enum class Activity : std::uint8_t {
  kNone,  ///< nothing that is known; its name is empty
  kJoining,
  kLoading,
  kDataPreparation,
  kCompile,
  kTraining,
  kEvaluation,
  kCheckpoint,
  kServing,
  kDone,        ///< a piece of work was through
  kRecovered,   ///< what had gone wrong was mended
  kProgress,    ///< some counter moved
  kBar,         ///< so did a bar
  kRows,        ///< something is counted or measured
  kCollective,  ///< inside NCCL or a process group
  kTurn,        ///< in a barrier behind which another process goes first
  kDeviceWait,  ///< for the GPU
};
/// `data-preparation`, `device-wait`.
std::string_view Name(Activity activity);

}  // namespace inquest
