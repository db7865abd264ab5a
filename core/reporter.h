// Who tells that a process ended: its launcher, its agent, its scheduler, its shell, or a library inside it.
#pragma once

#include <cstdint>
#include <string_view>

namespace inquest {

enum class Reporter : std::uint8_t {
  kUnknown,  ///< its name is empty
  kAprun,
  kCi,
  kComposer,
  kDeepSpeed,
  kDocker,
  kFlux,
  kGasnet,
  kHorovod,
  kHtCondor,
  kJsrun,
  kLightning,
  kLsf,  ///< its report on a job that has ended
  kMindSpore,
  kMpd,
  kMpich,
  kMpiexec,
  kMpirun,
  kMpt,
  kMvapich,
  kNsys,
  kPaddle,
  kPals,
  kPdsh,
  kPlatformMpi,
  kPlexec,
  kPoe,
  kProgram,
  kPsid,
  kRealm,
  kSglang,
  kShell,
  kSlurm,  ///< its report on a job that has ended
  kSpawn,
  kSrun,
  kTgi,
  kTorchelastic,
  kVllm
};
/// `torchelastic`, `srun`, `platform-mpi`.
std::string_view Name(Reporter reporter);

}  // namespace inquest
