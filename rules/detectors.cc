// The table of detectors.
#include "rules/detectors.h"

namespace inquest {

std::span<const Detector* const> Detectors() {
  static const Detector* const kDetectors[] = {
      &kDesync, &kWorkMismatch, &kCallDivergence, &kInitIncomplete, &kAbsentRank, &kBytesOverTime, &kExceptions, &kExits, &kDeviceMapping,
      &kGpuState, &kGpuLoad, &kGpuLinks, &kXid, &kKernelEnds, &kPcie, &kStuckTask, &kPortDown, &kFileServer, &kSilentHang,
      &kFabricPorts, &kHostLimitsDetector, &kInterfacesDetector, &kP2pState, &kEnvironmentDetector,
      &kUnmatchedWait, &kMembersMissing, &kRasCounts, &kStackDiffers, &kGpuDiag,
  };
  return kDetectors;
}

}  // namespace inquest
