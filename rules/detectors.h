// The table of detectors: rules that need more than one line.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rules/evidence.h"

namespace inquest {

struct Detector {
  std::string_view id;
  std::string_view summary;  ///< one sentence
  std::span<const std::string_view> findings;  ///< the rule ids that its findings carry
  std::vector<Finding> (*run)(const Evidence& evidence);
};

std::span<const Detector* const> Detectors();

extern const Detector kAbsentRank, kBytesOverTime, kCallDivergence, kDesync, kDeviceMapping, kEnvironmentDetector, kExceptions, kExits, kFabricPorts,
    kFileServer, kGpuDiag, kGpuLinks, kGpuLoad, kGpuState, kHostLimitsDetector, kInitIncomplete, kInterfacesDetector, kKernelEnds, kMembersMissing, kP2pState, kPcie,
    kPortDown, kRasCounts, kSilentHang, kStackDiffers, kStuckTask, kUnmatchedWait, kWorkMismatch, kXid;

}  // namespace inquest
