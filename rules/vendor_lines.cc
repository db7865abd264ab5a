// What a line of the record of devices is to a vendor's case: a property, an error or notice, a state.
#include "rules/vendor_lines.h"

#include <algorithm>
#include <iterator>

#include "rules/vendor_parts.h"

namespace inquest {
namespace {

using std::string_view;

constexpr CaseProperty kProperties[] = {
    {"machine", "Machine and BIOS"},
    {"kernel", "Kernel"},
    {"driver_version", "Driver"},
    {"cuda_version", "CUDA, as the driver has it"},
    {"hca_firmware_version", "Firmware of a network adapter"},
    {"nvidia-bug-report.version", "nvidia-bug-report.sh"},
    {"name", "Product"},
    {"product_brand", "Brand"},
    {"product_architecture", "Architecture"},
    {"serial", "Serial number"},
    {"uuid", "UUID"},
    {"pci.bus_id", "PCI address"},
    {"module_id", "Module"},
    {"board_id", "Board ID"},
    {"board_part_number", "Board part number"},
    {"gpu_part_number", "GPU part number"},
    {"fru_part_number", "FRU part number"},
    {"chassis_serial_number", "Chassis serial number"},
    {"slot_number", "Slot"},
    {"tray_index", "Tray"},
    {"vbios_version", "VBIOS"},
    {"inforom.image", "InfoROM image"},
    {"inforom.oem", "InfoROM OEM object"},
    {"inforom.ecc", "InfoROM ECC object"},
    {"inforom.power", "InfoROM power object"},
    {"gsp_firmware_version", "GSP firmware"},
    {"ecc.mode.current", "ECC mode", true},
    {"ecc.volatile.corrected", "Corrected ECC errors since the driver was loaded", true},
    {"ecc.volatile.uncorrected", "Uncorrected ECC errors since the driver was loaded", true},
    {"ecc.volatile.single_bit", "Single bit ECC errors, volatile", true},
    {"ecc.volatile.double_bit", "Double bit ECC errors, volatile", true},
    {"ecc.volatile.sram_correctable", "SRAM correctable, volatile", true},
    {"ecc.volatile.sram_uncorrectable", "SRAM uncorrectable, volatile", true},
    {"ecc.volatile.sram_uncorrectable_parity", "SRAM uncorrectable parity, volatile", true},
    {"ecc.volatile.sram_uncorrectable_secded", "SRAM uncorrectable SEC-DED, volatile", true},
    {"ecc.volatile.dram_correctable", "DRAM correctable, volatile", true},
    {"ecc.volatile.dram_uncorrectable", "DRAM uncorrectable, volatile", true},
    {"ecc.aggregate.corrected", "Corrected ECC errors of its life", true},
    {"ecc.aggregate.uncorrected", "Uncorrected ECC errors of its life", true},
    {"ecc.aggregate.single_bit", "Single bit ECC errors, aggregate", true},
    {"ecc.aggregate.double_bit", "Double bit ECC errors, aggregate", true},
    {"ecc.aggregate.sram_correctable", "SRAM correctable, aggregate", true},
    {"ecc.aggregate.sram_uncorrectable", "SRAM uncorrectable, aggregate", true},
    {"ecc.aggregate.sram_uncorrectable_parity", "SRAM uncorrectable parity, aggregate", true},
    {"ecc.aggregate.sram_uncorrectable_secded", "SRAM uncorrectable SEC-DED, aggregate", true},
    {"ecc.aggregate.dram_correctable", "DRAM correctable, aggregate", true},
    {"ecc.aggregate.dram_uncorrectable", "DRAM uncorrectable, aggregate", true},
    {"ecc.aggregate.sram_threshold_exceeded", "SRAM threshold exceeded", true},
    {"retired_pages.single_bit", "Pages retired for single bit errors", true},
    {"retired_pages.double_bit", "Pages retired for double bit errors", true},
    {"retired_pages.pending", "Page retirement pending", true},
    {"remapped_rows.correctable", "Rows remapped for correctable errors", true},
    {"remapped_rows.uncorrectable", "Rows remapped for uncorrectable errors", true},
    {"remapped_rows.pending", "Row remapping pending", true},
    {"remapped_rows.failure", "Row remapping failed", true},
    {"reset_status.reset_required", "Reset required", true},
    {"reset_status.drain_and_reset_recommended", "Drain and reset recommended", true},
    {"gpu_recovery_action", "Recovery action", true},
    {"pcie.replay_counter", "PCI Express replays since reset", true},
    {"fabric.state", "Fabric state", true},
    {"fabric.status", "Fabric status", true},
};

/// Storage is no part that a GPU's vendor is asked about.
bool IsStorage(KernelPart part) {
  static constexpr KernelPart kStorage[] = {KernelPart::kNfs, KernelPart::kLustre, KernelPart::kExt4,
                                            KernelPart::kXfs, KernelPart::kNvme,   KernelPart::kBlock};
  return std::ranges::find(kStorage, part) != std::end(kStorage);
}

}  // namespace

const CaseProperty* FindCaseProperty(string_view name) {
  const auto row = std::ranges::find(kProperties, name, &CaseProperty::name);
  return row == std::end(kProperties) ? nullptr : row;
}

std::string ComparedValue(string_view property, const std::string& value) {
  const std::string address = property == "pci.bus_id" ? AddressIn(value) : std::string();
  return address.empty() ? Lower(value) : address;
}

std::optional<std::pair<string_view, std::string>> HostPropertyOf(const What& what) {
  if (const auto* fact = std::get_if<HostFact>(&what); fact != nullptr && fact->of == HostFact::Of::kKernel)
    return std::pair(string_view("kernel"), fact->value);
  const auto* notice = std::get_if<KernelNotice>(&what);
  if (notice != nullptr && notice->subsystem == KernelPart::kNvidia && notice->what == KernelNews::kDriverLoaded)
    return std::pair(string_view("driver_version"), notice->device);
  return std::nullopt;
}

std::optional<CaseLine> CaseLineOf(const What& what) {
  CaseLine line;
  if (const auto* xid = std::get_if<XidReported>(&what)) {
    line.kind = "xid";
    line.xid = xid->xid;
    line.bus_id = xid->bus_id;
  } else if (const auto* sxid = std::get_if<SxidReported>(&what)) {
    line.kind = "sxid";
    line.sxid = sxid->sxid;
    line.bus_id = sxid->bus_id;
  } else if (const auto* fault = std::get_if<DriverFault>(&what)) {
    line.kind = "nvidia";
    line.bus_id = fault->bus_id;
  } else if (const auto* error = std::get_if<PcieError>(&what)) {
    line.kind = "pcie";
    line.bus_id = error->bus_id;
  } else if (const auto* detail = std::get_if<KernelDetail>(&what)) {
    line.kind = Name(detail->subsystem);
  } else if (const auto* notice = std::get_if<KernelNotice>(&what);
             notice != nullptr && !IsStorage(notice->subsystem)) {
    line.kind = Name(notice->subsystem);
    line.bus_id = AddressIn(notice->device.substr(0, notice->device.find(' ')));
  } else {
    return std::nullopt;
  }
  return line;
}

std::optional<CaseLine> CaseStateOf(const What& what) {
  CaseLine line;
  if (const auto* condition = std::get_if<GpuCondition>(&what))
    line.kind = condition->property;
  else if (std::holds_alternative<GpuDiag>(what))
    line.kind = "dcgmi diag";
  else if (const auto* seen = std::get_if<GpuSnapshot>(&what); seen != nullptr && seen->error)
    line.kind = "unreadable";
  else
    return std::nullopt;
  return line;
}

bool SaysSwitches(const What& what) {
  if (std::holds_alternative<SxidReported>(what)) return true;
  if (const auto* detail = std::get_if<KernelDetail>(&what)) return detail->subsystem == KernelPart::kNvswitch;
  if (const auto* notice = std::get_if<KernelNotice>(&what)) return notice->subsystem == KernelPart::kFabricManager;
  const auto* described = std::get_if<DeviceDescribed>(&what);
  return described != nullptr && described->property == "fabric.state";
}

bool SaysNetwork(const What& what) {
  const auto* notice = std::get_if<KernelNotice>(&what);
  return notice != nullptr && notice->what != KernelNews::kLinkUp &&
         (notice->subsystem == KernelPart::kMlx5 || notice->subsystem == KernelPart::kInfiniband ||
          notice->subsystem == KernelPart::kIrdma || notice->subsystem == KernelPart::kEfa);
}

}  // namespace inquest
