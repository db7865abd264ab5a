// The table of input formats.
#pragma once

#include <vector>

#include "parsers/parser.h"

namespace inquest {

extern const Format kNccl, kWatchdog, kC10dErrors, kTorchelastic, kElasticErrorFile, kTraceback, kLaunchers, kKernelLog, kCrash, kFramework, kNvidiaSmi,
    kNvidiaQuery, kNvidiaCsv, kNvidiaLinks, kNvidiaMonitor, kRdmaPorts, kInterfaces, kHostLimits, kEnvironment, kLspci, kBundleManifest,
    kDcgmJson, kDcgmTable, kFabricManager, kNcclInspector, kNcclRas, kNcclRasJson, kStacks;

/// The marks of all line formats, in table order: `mark_format[i]` is the format of `marks[i]`.
struct MarkTable {
  std::vector<std::string_view> marks;
  std::vector<const Format*> formats;
};
const MarkTable& Marks();

}  // namespace inquest
