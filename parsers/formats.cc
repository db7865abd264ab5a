// The table of input formats, in the order in which a record is offered to them.
#include "parsers/formats.h"

#include <algorithm>

namespace inquest {

// Declared here alone, so that one more format compiles two files anew: its own, and this one.
extern const Format kNccl, kWatchdog, kC10dErrors, kTorchelastic, kElasticErrorFile, kTraceback, kLaunchers, kKernelLog,
    kCrash, kCrashStack, kFramework, kNvidiaSmi, kNvidiaQuery, kNvidiaCsv, kNvidiaLinks, kNvidiaMonitor, kNvidiaProc,
    kNvidiaBugReport, kRdmaPorts, kInterfaces, kHostLimits, kEnvironment, kLspci, kBundleManifest, kDcgmJson,
    kDcgmTable, kFabricManager, kNcclInspector, kNcclRas, kNcclRasJson, kStacks;

std::span<const Format* const> Formats() {
  static const Format* const kFormats[] = {
      &kNccl,        &kWatchdog,      &kC10dErrors,       &kTorchelastic,   &kTraceback,
      &kLaunchers,   &kKernelLog,     &kCrashStack,       &kCrash,          &kFramework,
      &kNvidiaSmi,   &kNvidiaProc,    &kNvidiaBugReport,  &kNvidiaQuery,    &kNvidiaCsv,
      &kNvidiaLinks, &kNvidiaMonitor, &kRdmaPorts,        &kInterfaces,     &kHostLimits,
      &kEnvironment, &kLspci,         &kElasticErrorFile, &kBundleManifest, &kFabricManager,
      &kDcgmTable,   &kDcgmJson,      &kNcclRas,          &kNcclRasJson,    &kNcclInspector,
      &kStacks,
  };
  return kFormats;
}

const MarkTable& Marks() {
  static const MarkTable kTable = [] {
    MarkTable table;
    for (const Format* format : Formats()) {
      if (format->framing != Framing::kLines) continue;
      for (std::string_view mark : format->marks) {
        table.marks.push_back(mark);
        table.formats.push_back(format);
      }
    }
    return table;
  }();
  return kTable;
}

const Format& BulkFormat() {
  static const Format& kBulk =
      **std::ranges::find_if(Formats(), [](const Format* format) { return format->fold != nullptr; });
  return kBulk;
}

}  // namespace inquest
