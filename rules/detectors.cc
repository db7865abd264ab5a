// The table of detectors.
#include "rules/detectors.h"

namespace inquest {

// The list in detectors.h is closed, since a line more would compile all detectors anew: a later one is defined
// `extern const Detector` and declared here.

extern const Detector kCrashPlace, kDeclared, kLastWordsDetector, kP2pTest, kRecordedCalls, kRefusedSave, kStoreBarrier,
    kUnsubmittedTensors;

std::span<const Detector* const> Detectors() {
  static const Detector* const kDetectors[] = {
      &kRecordedCalls,
      &kDesync,
      &kWorkMismatch,
      &kCallDivergence,
      &kInitIncomplete,
      &kAbsentRank,
      &kBytesOverTime,
      &kExceptions,
      &kExits,
      &kCrashPlace,
      &kDeviceMapping,
      &kGpuState,
      &kGpuLoad,
      &kGpuLinks,
      &kXid,
      &kKernelEnds,
      &kPcie,
      &kStuckTask,
      &kPortDown,
      &kFileServer,
      &kSilentHang,
      &kFabricPorts,
      &kHostLimitsDetector,
      &kInterfacesDetector,
      &kP2pState,
      &kEnvironmentDetector,
      &kUnmatchedWait,
      &kMembersMissing,
      &kRasCounts,
      &kStackDiffers,
      &kGpuDiag,
      &kUnsubmittedTensors,
      &kP2pTest,
      &kRefusedSave,
      &kStoreBarrier,
      &kDeclared,
      &kLastWordsDetector,
  };
  return kDetectors;
}

std::vector<Finding> FindingsOf(const Detector& detector, const Evidence& evidence) {
  std::vector<Finding> out;
  for (Relation& relation : detector.run(evidence)) out.push_back(Tell(evidence.book, std::move(relation)));
  return out;
}

}  // namespace inquest
