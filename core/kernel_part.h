// Whom a line of the kernel is about, and what it says of them.
#pragma once

#include <cstdint>
#include <string_view>

namespace inquest {

enum class KernelPart : std::uint8_t {
  kNone,  ///< nothing known; its name is empty
  kBeegfs,
  kBlock,
  kBond,
  kCeph,
  kCifs,
  kEdac,
  kEfa,
  kExt4,
  kFabricManager,
  kFuse,
  kGpfs,
  kInfiniband,
  kIommu,
  kIrdma,
  kKernel,
  kLustre,
  kMachineCheck,
  kMemory,
  kMlx5,
  kNetwork,
  kNfs,
  kNvidia,
  kNvme,
  kNvswitch,
  kPcie,
  kPeermem,
  kThermal,
  kXfs
};
/// `mlx5`, `machine-check`.
std::string_view Name(KernelPart part);

enum class KernelNews : std::uint8_t {
  kBoot,
  kCableError,
  kCableUnplugged,
  kControllerDown,
  kCorrected,
  kDriverLoaded,
  kError,
  kFailed,
  kFault,
  kFileSystemError,
  kHealth,
  kIoError,
  kLinkDegraded,
  kLinkDown,
  kLinkUp,
  kLogged,
  kMemoryError,
  kPanic,
  kRecovered,
  kSaid,
  kShutdown,
  kStall,
  kTemperature,
  kThrottled,
  kTimeOut,
  kUncorrected
};
/// `link-down`, `i/o-error`.
std::string_view Name(KernelNews news);

}  // namespace inquest
