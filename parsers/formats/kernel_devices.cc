// kernel_devices.cc: PCI Express errors, and the other devices' lines of a kernel log, by a table.
// Format:  AER in three to five lines an error, folded; the others one line each
//            pcieport 0000:3a:01.0: AER: Uncorrected (Fatal) error received: 0000:3b:00.0
//            nvidia 0000:3b:00.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver
//            ID) nvidia 0000:3b:00.0: AER:    [ 5] SDES                   (First) mlx5_core 0000:3b:00.0 eth2: Link
//            down
// Clock:   the head's.        Not read: TLP headers, status and mask, mlx5's health registers, machine check banks.
#include <utility>

#include "core/ascii.h"
#include "core/pattern.h"
#include "parsers/formats/kernel.h"

namespace inquest {
namespace {

/// `Uncorrected (Fatal)`, `Correctable`, ...
PcieError::Severity SeverityOf(std::string_view words) {
  if (words.starts_with("Correct")) return PcieError::Severity::kCorrected;
  return Contains(words, "Non-Fatal") ? PcieError::Severity::kNonFatal : PcieError::Severity::kFatal;
}

std::optional<PcieError> ReadSlot(std::string_view message) {
  static const Pattern kContained(R"(pcieport ([0-9a-f:.]+)(?::pcie\d+)?: DPC:? containment event)");
  static const Pattern kSlot(
      R"((?:pcieport |pciehp )?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])?(?::pcie\d+)?:? ?(?:pciehp: )?Slot\(([^)]{1,16})\): (Link Down|Link Up|Card not present|Power fault))");
  PcieError error;
  error.reporter = "pcieport";
  if (const auto contained = kContained.Search(message)) {
    error.severity = PcieError::Severity::kContained;
    error.bus_id = KernelBusId(contained->text(1));
    return error;
  }
  const auto slot = kSlot.Search(message);
  if (!slot) return std::nullopt;
  error.severity = slot->text(3) == "Link Up" ? PcieError::Severity::kLinkUp : PcieError::Severity::kLinkDown;
  error.bus_id = KernelBusId(slot->text(1));
  error.detail = "Slot(" + std::string(slot->text(2)) + "): " + std::string(slot->text(3));
  return error;
}

}  // namespace

bool PcieReader::Begin(const Record& record, const KernelHead& head, PcieError error, EventSink& out) {
  Finish(out);
  error.uptime = head.uptime;
  held_ = KernelEvent(record, head, std::move(error));
  has_device_ = false;
  return true;
}

bool PcieReader::Consume(const Record& record, const KernelHead& head, EventSink& out) {
  static const Pattern kReceived(
      R"((\w+) ([0-9a-f]{4}:[0-9a-f:.]+): AER: (?:Multiple )?((?:Unc|C)orrect\w+(?: \([\w-]+\))?) error (?:message )?received(?: from|:) (\S+))");
  static const Pattern kDevice(
      R"((\w+) ([0-9a-f]{4}:[0-9a-f:.]+): (?:AER: )?PCIe Bus Error: severity=((?:Unc|C)orrect\w+(?: \([\w-]+\))?), type=([\w ]+))");
  static const Pattern kBit(R"((\w+) ([0-9a-f]{4}:[0-9a-f:.]+): (?:AER: )? +\[ ?\d+\] (.+?)(?: +\(First\))? *$)");
  if (const auto received = kReceived.Search(head.message)) {
    std::string source = KernelBusId(received->text(4));
    return Begin(record, head,
                 {.severity = SeverityOf(received->text(3)),
                  .bus_id = source.empty() ? KernelBusId(received->text(2)) : source,
                  .reporter = source.empty() ? std::string(received->text(1)) : std::string(),
                  .detail = {},
                  .uptime = {}},
                 out);
  }
  if (const auto device = kDevice.Search(head.message)) {
    PcieError error{.severity = SeverityOf(device->text(3)),
                    .bus_id = KernelBusId(device->text(2)),
                    .reporter = std::string(device->text(1)),
                    .detail = std::string(device->text(4)),
                    .uptime = head.uptime};
    if (held_ && !has_device_ && std::get<PcieError>(held_->what).severity == error.severity)
      held_->what = std::move(error);  // the port's line stays the one that is cited
    else
      Begin(record, head, std::move(error), out);
    return has_device_ = true;
  }
  if (const auto bit = kBit.Search(head.message)) {
    if (!held_) return true;
    std::string& detail = std::get<PcieError>(held_->what).detail;
    if (detail.size() < 200) detail += (detail.empty() ? "" : ", ") + std::string(bit->text(3));
    return true;
  }
  // 'AER: Device recovery successful' up to 5.8, without the capital since
  if (held_ && Contains(head.message, "evice recovery successful")) {
    std::get<PcieError>(held_->what).recovered = true;
    return true;
  }
  if (auto slot = ReadSlot(head.message)) return Begin(record, head, std::move(*slot), out);
  return Contains(head.message, " AER: ") ||
         (held_ && (Contains(head.message, "error status/mask=") || Contains(head.message, "TLP Header: ")));
}

void PcieReader::Finish(EventSink& out) {
  if (held_) out.Add(std::move(*held_));
  held_.reset();
}

// ---- one line each ---------------------------------------------------------------------------------------------

namespace {

/// `mark` must be in the line before the expression is tried; its first group is the device.
struct NoticeRow {
  std::string_view mark;
  KernelPart subsystem = KernelPart::kNone;
  KernelNews what = KernelNews::kError;
  Pattern pattern;
};

const std::vector<NoticeRow>& Rows() {
  static const std::vector<NoticeRow> kRows = [] {
    std::vector<NoticeRow> rows;
    const auto add = [&](std::string_view mark, KernelPart subsystem, KernelNews what, const char* pattern) {
      rows.push_back({mark, subsystem, what, Pattern(pattern)});
    };
    add("mlx5_core ", KernelPart::kMlx5, KernelNews::kLinkDown, R"(mlx5_core ([0-9a-f:.]+ \S+): Link down)");
    add("mlx5_core ", KernelPart::kMlx5, KernelNews::kLinkUp, R"(mlx5_core ([0-9a-f:.]+ \S+): Link up)");
    add("mlx5_core ", KernelPart::kMlx5, KernelNews::kCableUnplugged,
        R"(mlx5_core ([0-9a-f:.]+): .*Port module event: module \d+, Cable unplugged)");
    add("mlx5_core ", KernelPart::kMlx5, KernelNews::kCableError,
        R"(mlx5_core ([0-9a-f:.]+): .*Port module event\[error\]|module \d+, Cable error)");
    add("mlx5_core ", KernelPart::kMlx5, KernelNews::kHealth,
        R"(mlx5_core ([0-9a-f:.]+): .*(?:health compromised|Fatal error \d+ detected|handling bad device|Health issue observed|assert_var\[0\]))");
    add("mlx5_core ", KernelPart::kMlx5, KernelNews::kTimeOut,
        R"(mlx5_core ([0-9a-f:.]+): .*timeout\. Will cause a leak)");
    add("mlx5_core ", KernelPart::kMlx5, KernelNews::kTemperature, R"(mlx5_core ([0-9a-f:.]+): .*High temperature)");
    add(" Link ACTIVE", KernelPart::kInfiniband, KernelNews::kLinkUp, R"((\w+): Port: \d+ Link ACTIVE)");
    add(" Link DOWN", KernelPart::kInfiniband, KernelNews::kLinkDown, R"((\w+): Port: \d+ Link DOWN)");
    add(": link status definitely ", KernelPart::kBond, KernelNews::kLinkDown,
        R"(\(slave (\S+)\): link status definitely down)");
    add(": link status definitely ", KernelPart::kBond, KernelNews::kLinkUp,
        R"(\(slave (\S+)\): link status definitely up)");
    add("NETDEV WATCHDOG: ", KernelPart::kNetwork, KernelNews::kTimeOut,
        R"((?:NETDEV WATCHDOG: (\S+) \(|: transmit queue \d+ timed out))");
    add("irdma ", KernelPart::kIrdma, KernelNews::kFault,
        R"(irdma ([0-9a-f:.]+|\S+): .*(?:[Rr]eset|[Ee]rror|fail|event))");
    add("efa 0000:", KernelPart::kEfa, KernelNews::kFault,
        R"(efa ([0-9a-f:.]+): .*(?:reset|[Ee]rror|[Ff]ailed|didn't receive))");
    add("infiniband ", KernelPart::kInfiniband, KernelNews::kFault, R"(infiniband (\w+): .*(?:error|failed|fatal))");
    add(": server ", KernelPart::kNfs, KernelNews::kStall, R"((?:nfs|lockd): server (\S+) not responding)");
    add(": server ", KernelPart::kNfs, KernelNews::kRecovered, R"((?:nfs|lockd): server (\S+) OK)");
    add("Lustre", KernelPart::kLustre, KernelNews::kStall,
        R"(Lustre(?:Error)?: .*?(?:[Cc]onnection to (\S+) .*was lost|was evicted by (\S+)|timed out for))");
    add("Lustre", KernelPart::kLustre, KernelNews::kRecovered, R"(Lustre: .*?[Cc]onnection restored to (\S+))");
    add("EXT4-fs ", KernelPart::kExt4, KernelNews::kFileSystemError,
        R"(EXT4-fs (?:error \(device ([^)]+)\)|\(([^)]+)\): Remounting filesystem read-only))");
    add("XFS (", KernelPart::kXfs, KernelNews::kFileSystemError,
        R"(XFS \(([^)]+)\): (?:Corruption|Metadata|log I/O error|Please (?:umount|unmount)|.*[Ss]hut))");
    add("nvme nvme", KernelPart::kNvme, KernelNews::kTimeOut, R"(nvme (nvme\d+): I/O .*timeout)");
    add("nvme nvme", KernelPart::kNvme, KernelNews::kControllerDown,
        R"(nvme (nvme\d+): (?:controller is down|Removing after probe failure|Device not ready))");
    add("I/O error, dev ", KernelPart::kBlock, KernelNews::kIoError, R"(I/O error, dev (\w+))");
    add("mce: [Hardware Error]", KernelPart::kMachineCheck, KernelNews::kMemoryError,
        R"(mce: \[Hardware Error\]: (CPU \d+): Machine Check)");
    add("Machine check events logged", KernelPart::kMachineCheck, KernelNews::kLogged,
        R"(Machine check events logged)");
    add("EDAC MC", KernelPart::kEdac, KernelNews::kUncorrected, R"(EDAC (MC\d+): \d+ UE )");
    add("EDAC MC", KernelPart::kEdac, KernelNews::kCorrected, R"(EDAC (MC\d+): \d+ CE )");
    add("Memory failure: 0x", KernelPart::kMemory, KernelNews::kMemoryError, R"(Memory failure: (0x[0-9a-f]+): )");
    add("DMAR: [", KernelPart::kIommu, KernelNews::kFault, R"(DMAR: \[[^\]]+\] .*?[Dd]evice \[([0-9a-f:.]+)\])");
    add("DMAR: DRHD", KernelPart::kIommu, KernelNews::kFault, R"(DMAR: DRHD: handling fault)");
    add("AMD-Vi: Event logged", KernelPart::kIommu, KernelNews::kFault,
        R"((?:\w+ ([0-9a-f]{4}:[0-9a-f:.]+): )?AMD-Vi: Event logged \[\w+)");
    add("arm-smmu-v3 ", KernelPart::kIommu, KernelNews::kFault, R"(arm-smmu-v3 (\S+): event 0x)");
    add("available PCIe bandwidth", KernelPart::kPcie, KernelNews::kLinkDegraded,
        R"(([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]): [\d.]+ Gb/s available PCIe bandwidth, limited by)");
    add("retraining ", KernelPart::kPcie, KernelNews::kLinkDegraded,
        R"(([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]): (?:broken device, retraining non-functional downstream link|retraining failed))");
    add(" temperature ", KernelPart::kThermal, KernelNews::kThrottled,
        R"((CPU\d+): (?:Package|Core) temperature (?:is )?above threshold)");
    add("critical temperature reached", KernelPart::kThermal, KernelNews::kShutdown,
        R"((\S+): critical temperature reached)");
    add("Kernel panic - not syncing", KernelPart::kKernel, KernelNews::kPanic, R"(Kernel panic - not syncing)");
    add("Linux version ", KernelPart::kKernel, KernelNews::kBoot, R"(^Linux version (\S+))");
    add("nv-fabricmanager[", KernelPart::kFabricManager, KernelNews::kSaid, R"(nv-fabricmanager\[\d+\]: )");
    add("nvidia-fabricmanager.service", KernelPart::kFabricManager, KernelNews::kFailed,
        R"(nvidia-fabricmanager\.service: (?:Failed|.*status=|Main process exited))");
    add("nvidia-peermem ", KernelPart::kPeermem, KernelNews::kError, R"(nvidia-peermem .*(?:ERROR|error))");
    add("nv_peer_mem", KernelPart::kPeermem, KernelNews::kError, R"(nv_peer_mem\S* .*(?:ERROR|error))");
    return rows;
  }();
  return kRows;
}

}  // namespace

std::optional<KernelNotice> ReadKernelNotice(std::string_view message) {
  for (const NoticeRow& row : Rows()) {
    if (!Contains(message, row.mark)) continue;
    const auto match = row.pattern.Search(message);
    if (!match) continue;
    const std::string_view device = match->text(1).empty() ? match->text(2) : match->text(1);
    return KernelNotice{.subsystem = row.subsystem, .what = row.what, .device = std::string(device), .uptime = {}};
  }
  return std::nullopt;
}

}  // namespace inquest
