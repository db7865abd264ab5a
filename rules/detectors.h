// The table of detectors: rules that need more than one line. Each is a file under detectors/, in a namespace of that
// name: all of them have `kFindings`, `Found` and `Run`, and several are compiled at once.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rules/evidence.h"
#include "rules/relation.h"

namespace inquest {

struct Detector {
  std::string_view id;
  std::string_view summary;              ///< one sentence
  std::span<const FindingRow> findings;  ///< each has its file under rules/findings/
  std::vector<Relation> (*run)(const Evidence& evidence);
};

std::span<const Detector* const> Detectors();

/// What a detector found, with the meaning that the files of its findings give it.
std::vector<Finding> FindingsOf(const Detector& detector, const Evidence& evidence);

extern const Detector kAbsentRank, kBytesOverTime, kCallDivergence, kDesync, kDeviceMapping, kEnvironmentDetector,
    kExceptions, kExits, kFabricPorts, kFileServer, kGpuDiag, kGpuLinks, kGpuLoad, kGpuState, kHostLimitsDetector,
    kInitIncomplete, kInterfacesDetector, kKernelEnds, kMembersMissing, kP2pState, kPcie, kPortDown, kRasCounts,
    kSilentHang, kStackDiffers, kStuckTask, kUnmatchedWait, kWorkMismatch, kXid;

}  // namespace inquest
