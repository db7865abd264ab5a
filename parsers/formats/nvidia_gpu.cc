// The names of nvidia-smi's properties over its forms and versions, and one GPU's values gathered to events.
#include "parsers/formats/nvidia_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "parsers/formats/nccl.h"

namespace inquest {
namespace {

using std::string_view;
using P = GpuProperty;

constexpr std::size_t kMostGpus = 1024, kMostConditions = 64, kMostDescribed = 96;

/// `section` and `key` are those of -q, `parent` and `tag` those of -x; empty where the row is another form's.
struct GpuRow {
  P property;
  string_view query, section, key, parent, tag;
};

constexpr string_view kEcc = "ecc.errors.uncorrected.volatile.total";

constexpr GpuRow kRows[] = {
    {P::kIndex, "index", "", "", "", ""},
    {P::kIndex, "gpu_index", "", "", "", ""},
    {P::kUuid, "uuid", "", "GPU UUID", "gpu", "uuid"},
    {P::kUuid, "gpu_uuid", "", "", "", ""},
    {P::kBusId, "pci.bus_id", "PCI", "Bus Id", "pci", "pci_bus_id"},
    {P::kBusId, "gpu_bus_id", "", "", "", ""},
    {P::kName, "name", "", "Product Name", "gpu", "product_name"},
    {P::kName, "gpu_name", "", "", "", ""},
    {P::kTimestamp, "timestamp", "", "", "", ""},
    {P::kDriver, "driver_version", "", "", "", ""},
    {P::kAttached, "count", "", "", "", ""},
    {P::kPersistence, "persistence_mode", "", "Persistence Mode", "gpu", "persistence_mode"},
    {P::kMig, "mig.mode.current", "MIG Mode", "Current", "mig_mode", "current_mig"},
    {P::kPstate, "pstate", "", "Performance State", "gpu", "performance_state"},
    {P::kTemperature, "temperature.gpu", "Temperature", "GPU Current Temp", "temperature", "gpu_temp"},
    {P::kPower, "power.draw", "GPU Power Readings", "Power Draw", "gpu_power_readings", "power_draw"},
    {P::kPower, "power.draw.average", "GPU Power Readings", "Average Power Draw", "gpu_power_readings",
     "average_power_draw"},
    {P::kPower, "power.draw.instant", "GPU Power Readings", "Instantaneous Power Draw", "gpu_power_readings",
     "instant_power_draw"},
    {P::kPower, "", "Power Readings", "Power Draw", "power_readings", "power_draw"},
    {P::kPowerCap, "power.limit", "GPU Power Readings", "Current Power Limit", "gpu_power_readings",
     "current_power_limit"},
    {P::kPowerCap, "enforced.power.limit", "Power Readings", "Enforced Power Limit", "power_readings",
     "enforced_power_limit"},
    {P::kMemoryUsed, "memory.used", "FB Memory Usage", "Used", "fb_memory_usage", "used"},
    {P::kMemoryTotal, "memory.total", "FB Memory Usage", "Total", "fb_memory_usage", "total"},
    {P::kUtilization, "utilization.gpu", "Utilization", "GPU", "utilization", "gpu_util"},
    {P::kUtilization, "", "Utilization", "Gpu", "", ""},
    {P::kPcieGenMax, "pcie.link.gen.max", "PCIe Generation", "Max", "pcie_gen", "max_link_gen"},
    {P::kPcieGen, "pcie.link.gen.current", "PCIe Generation", "Current", "pcie_gen", "current_link_gen"},
    {P::kPcieGen, "pcie.link.gen.gpucurrent", "", "", "", ""},
    {P::kPcieWidthMax, "pcie.link.width.max", "Link Width", "Max", "link_widths", "max_link_width"},
    {P::kPcieWidth, "pcie.link.width.current", "Link Width", "Current", "link_widths", "current_link_width"},
    {P::kFabricState, "fabric.state", "Fabric", "State", "fabric", "state"},
    {P::kThrottleMask, "clocks_event_reasons.active", "", "", "", ""},
    {P::kThrottleMask, "clocks_throttle_reasons.active", "", "", "", ""},
    {P::kCondition, "fabric.status", "Fabric", "Status", "fabric", "status"},
    {P::kCondition, "fabric.health.summary", "Health", "Summary", "health", "summary"},
    {P::kCondition, "fabric.health.route_unhealthy", "Health", "Route Unhealthy", "health", "route_unhealthy"},
    {P::kCondition, "fabric.health.degraded_bandwidth", "Health", "Bandwidth", "health", "bandwidth"},
    {P::kCondition, kEcc, "Volatile", "SRAM Uncorrectable", "volatile", "sram_uncorrectable"},
    {P::kCondition, kEcc, "Volatile", "SRAM Uncorrectable Parity", "volatile", "sram_uncorrectable_parity"},
    {P::kCondition, kEcc, "Volatile", "SRAM Uncorrectable SEC-DED", "volatile", "sram_uncorrectable_secded"},
    {P::kCondition, kEcc, "Volatile", "DRAM Uncorrectable", "volatile", "dram_uncorrectable"},
    {P::kCondition, kEcc, "Volatile Double Bit", "Total", "volatile double_bit", "total"},
    {P::kCondition, "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", "Aggregate", "SRAM Threshold Exceeded",
     "aggregate", "sram_threshold_exceeded"},
    {P::kCondition, "retired_pages.pending", "Retired Pages", "Pending Page Blacklist", "retired_pages",
     "pending_blacklist"},
    {P::kCondition, "retired_pages.pending", "Retired Pages", "Pending", "retired_pages", "pending_retirement"},
    {P::kCondition, "remapped_rows.pending", "Remapped Rows", "Pending", "remapped_rows", "remapped_row_pending"},
    {P::kCondition, "remapped_rows.failure", "Remapped Rows", "Remapping Failure Occurred", "remapped_rows",
     "remapped_row_failure"},
    {P::kCondition, "reset_status.reset_required", "GPU Reset Status", "Reset Required", "gpu_reset_status",
     "reset_required"},
    {P::kCondition, "reset_status.drain_and_reset_recommended", "GPU Reset Status", "Drain and Reset Recommended",
     "gpu_reset_status", "drain_and_reset_recommended"},
    {P::kCondition, "gpu_recovery_action", "", "GPU Recovery Action", "gpu", "gpu_recovery_action"},
    {P::kCondition, "clocks_event_reasons.hw_slowdown", "", "HW Slowdown", "", "clocks_event_reason_hw_slowdown"},
    {P::kCondition, "clocks_event_reasons.hw_thermal_slowdown", "", "HW Thermal Slowdown", "",
     "clocks_event_reason_hw_thermal_slowdown"},
    {P::kCondition, "clocks_event_reasons.hw_power_brake_slowdown", "", "HW Power Brake Slowdown", "",
     "clocks_event_reason_hw_power_brake_slowdown"},
    {P::kCondition, "clocks_event_reasons.sw_thermal_slowdown", "", "SW Thermal Slowdown", "",
     "clocks_event_reason_sw_thermal_slowdown"},
};

/// What is for the record, of whatever a GPU is: by what name, and where -q, -x and --query-gpu have it. Counters stand
/// with their scope, since a reset clears one of them.
struct DescribedRow {
  string_view property, query, section, key, parent, tag;
};
constexpr DescribedRow kDescribedRows[] = {
    {"name", "name", "", "Product Name", "gpu", "product_name"},
    {"name", "gpu_name", "", "", "", ""},
    {"product_brand", "", "", "Product Brand", "gpu", "product_brand"},
    {"product_architecture", "", "", "Product Architecture", "gpu", "product_architecture"},
    {"serial", "serial", "", "Serial Number", "gpu", "serial"},
    {"serial", "gpu_serial", "", "", "", ""},
    {"uuid", "uuid", "", "GPU UUID", "gpu", "uuid"},
    {"uuid", "gpu_uuid", "", "", "", ""},
    {"pci.bus_id", "pci.bus_id", "PCI", "Bus Id", "pci", "pci_bus_id"},
    {"pci.bus_id", "gpu_bus_id", "", "", "", ""},
    {"board_id", "", "", "Board ID", "gpu", "board_id"},
    {"board_part_number", "", "", "Board Part Number", "gpu", "board_part_number"},
    {"gpu_part_number", "", "", "GPU Part Number", "gpu", "gpu_part_number"},
    {"fru_part_number", "", "", "FRU Part Number", "gpu", "gpu_fru_part_number"},
    {"module_id", "", "", "Module ID", "gpu", "gpu_module_id"},
    {"module_id", "platform.module_id", "Platform Info", "Module Id", "platformInfo", "module_id"},
    {"chassis_serial_number", "platform.chassis_serial_number", "Platform Info", "Chassis Serial Number",
     "platformInfo", "chassis_serial_number"},
    {"slot_number", "platform.slot_number", "Platform Info", "Slot Number", "platformInfo", "slot_number"},
    {"tray_index", "platform.tray_index", "Platform Info", "Tray Index", "platformInfo", "tray_index"},
    {"vbios_version", "vbios_version", "", "VBIOS Version", "gpu", "vbios_version"},
    {"inforom.image", "inforom.image", "Inforom Version", "Image Version", "inforom_version", "img_version"},
    {"inforom.image", "inforom.img", "", "", "", ""},
    {"inforom.oem", "inforom.oem", "Inforom Version", "OEM Object", "inforom_version", "oem_object"},
    {"inforom.ecc", "inforom.ecc", "Inforom Version", "ECC Object", "inforom_version", "ecc_object"},
    {"inforom.power", "inforom.pwr", "Inforom Version", "Power Management Object", "inforom_version", "pwr_object"},
    {"inforom.power", "inforom.power", "", "", "", ""},
    {"gsp_firmware_version", "", "", "GSP Firmware Version", "gpu", "gsp_firmware_version"},
    {"driver_version", "driver_version", "", "", "", ""},
    {"ecc.mode.current", "ecc.mode.current", "ECC Mode", "Current", "ecc_mode", "current_ecc"},
    // counters and states
    {"ecc.volatile.sram_correctable", "", "Volatile", "SRAM Correctable", "volatile", "sram_correctable"},
    {"ecc.volatile.sram_uncorrectable", "", "Volatile", "SRAM Uncorrectable", "volatile", "sram_uncorrectable"},
    {"ecc.volatile.sram_uncorrectable_parity", "", "Volatile", "SRAM Uncorrectable Parity", "volatile",
     "sram_uncorrectable_parity"},
    {"ecc.volatile.sram_uncorrectable_secded", "", "Volatile", "SRAM Uncorrectable SEC-DED", "volatile",
     "sram_uncorrectable_secded"},
    {"ecc.volatile.dram_correctable", "", "Volatile", "DRAM Correctable", "volatile", "dram_correctable"},
    {"ecc.volatile.dram_uncorrectable", "", "Volatile", "DRAM Uncorrectable", "volatile", "dram_uncorrectable"},
    {"ecc.volatile.single_bit", "", "Volatile Single Bit", "Total", "volatile single_bit", "total"},
    {"ecc.volatile.double_bit", "", "Volatile Double Bit", "Total", "volatile double_bit", "total"},
    {"ecc.volatile.corrected", "ecc.errors.corrected.volatile.total", "", "", "", ""},
    {"ecc.volatile.uncorrected", "ecc.errors.uncorrected.volatile.total", "", "", "", ""},
    {"ecc.aggregate.sram_correctable", "", "Aggregate", "SRAM Correctable", "aggregate", "sram_correctable"},
    {"ecc.aggregate.sram_uncorrectable", "", "Aggregate", "SRAM Uncorrectable", "aggregate", "sram_uncorrectable"},
    {"ecc.aggregate.sram_uncorrectable_parity", "", "Aggregate", "SRAM Uncorrectable Parity", "aggregate",
     "sram_uncorrectable_parity"},
    {"ecc.aggregate.sram_uncorrectable_secded", "", "Aggregate", "SRAM Uncorrectable SEC-DED", "aggregate",
     "sram_uncorrectable_secded"},
    {"ecc.aggregate.dram_correctable", "", "Aggregate", "DRAM Correctable", "aggregate", "dram_correctable"},
    {"ecc.aggregate.dram_uncorrectable", "", "Aggregate", "DRAM Uncorrectable", "aggregate", "dram_uncorrectable"},
    {"ecc.aggregate.sram_threshold_exceeded", "", "Aggregate", "SRAM Threshold Exceeded", "aggregate",
     "sram_threshold_exceeded"},
    {"ecc.aggregate.single_bit", "", "Aggregate Single Bit", "Total", "aggregate single_bit", "total"},
    {"ecc.aggregate.double_bit", "", "Aggregate Double Bit", "Total", "aggregate double_bit", "total"},
    {"ecc.aggregate.corrected", "ecc.errors.corrected.aggregate.total", "", "", "", ""},
    {"ecc.aggregate.uncorrected", "ecc.errors.uncorrected.aggregate.total", "", "", "", ""},
    {"retired_pages.single_bit", "retired_pages.single_bit_ecc.count", "Retired Pages", "Single Bit ECC",
     "multiple_single_bit_retirement", "retired_count"},
    {"retired_pages.double_bit", "retired_pages.double_bit.count", "Retired Pages", "Double Bit ECC",
     "double_bit_retirement", "retired_count"},
    {"retired_pages.pending", "retired_pages.pending", "Retired Pages", "Pending Page Blacklist", "retired_pages",
     "pending_blacklist"},
    {"retired_pages.pending", "", "Retired Pages", "Pending", "retired_pages", "pending_retirement"},
    {"remapped_rows.correctable", "remapped_rows.correctable", "Remapped Rows", "Correctable Error", "remapped_rows",
     "remapped_row_corr"},
    {"remapped_rows.uncorrectable", "remapped_rows.uncorrectable", "Remapped Rows", "Uncorrectable Error",
     "remapped_rows", "remapped_row_unc"},
    {"remapped_rows.pending", "remapped_rows.pending", "Remapped Rows", "Pending", "remapped_rows",
     "remapped_row_pending"},
    {"remapped_rows.failure", "remapped_rows.failure", "Remapped Rows", "Remapping Failure Occurred", "remapped_rows",
     "remapped_row_failure"},
    {"reset_status.reset_required", "reset_status.reset_required", "GPU Reset Status", "Reset Required",
     "gpu_reset_status", "reset_required"},
    {"reset_status.drain_and_reset_recommended", "reset_status.drain_and_reset_recommended", "GPU Reset Status",
     "Drain and Reset Recommended", "gpu_reset_status", "drain_and_reset_recommended"},
    {"gpu_recovery_action", "gpu_recovery_action", "", "GPU Recovery Action", "gpu", "gpu_recovery_action"},
    {"pcie.replay_counter", "", "", "Replays Since Reset", "pci", "replay_counter"},
    {"fabric.state", "fabric.state", "Fabric", "State", "fabric", "state"},
    {"fabric.status", "fabric.status", "Fabric", "Status", "fabric", "status"},
};

/// Names that changed when "throttle" became "event", and nothing else.
constexpr std::array<std::pair<string_view, string_view>, 2> kRenamed = {
    {{"clocks_throttle_reasons.", "clocks_event_reasons."}, {"clocks_throttle_reason_", "clocks_event_reason_"}}};

std::string Renamed(string_view name) {
  for (const auto& [old, now] : kRenamed)
    if (name.starts_with(old)) return std::string(now) + std::string(name.substr(old.size()));
  return std::string(name);
}

template <class Fits>
std::optional<GpuName> Find(Fits fits) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), fits);
  const auto described = std::find_if(std::begin(kDescribedRows), std::end(kDescribedRows), fits);
  const string_view name = described == std::end(kDescribedRows) ? string_view() : described->property;
  if (row != std::end(kRows))
    return GpuName{row->property, row->query.empty() ? string_view("power.draw") : row->query, name};
  return name.empty() ? std::nullopt : std::optional(GpuName{P::kDescribed, name, name});
}

std::optional<int> Whole(string_view text) {
  const auto number = GpuNumber(text);
  if (!number || *number < 0 || *number > 1e9) return std::nullopt;
  return static_cast<int>(*number);
}

/// Whether a value is what a GPU that is well shows for it.
bool IsWell(string_view query, string_view value) {
  if (IsUnavailable(value) || value.empty()) return true;
  if (query == kEcc) return GpuNumber(value).value_or(0) == 0;
  if (query == "gpu_recovery_action") return value == "None";
  if (query == "fabric.status") return value == "Success";
  if (query == "fabric.health.summary") return value != "Unhealthy";
  if (query == "fabric.health.degraded_bandwidth") return value != "Degraded" && value != "True";
  return value != "Yes" && value != "Active" && value != "True" && value != "1";
}

}  // namespace

std::optional<GpuName> GpuNameOfQuery(string_view name) {
  const std::string now = Renamed(name);
  for (const string_view total :
       {"ecc.errors.uncorrected.volatile.total", "ecc.errors.uncorrected.volatile.sram",
        "ecc.errors.uncorrected.volatile.dram", "ecc.errors.uncorrected.volatile.device_memory"})
    if (now == total) return GpuName{P::kCondition, kEcc, now == kEcc ? "ecc.volatile.uncorrected" : ""};
  return Find([&](const auto& row) { return !row.query.empty() && row.query == now; });
}

std::optional<GpuName> GpuNameOfText(string_view section, string_view key) {
  return Find([&](const auto& row) {
    return !row.key.empty() && row.key == key && (row.section.empty() || row.section == section);
  });
}

std::optional<GpuName> GpuNameOfXml(string_view parent, string_view tag) {
  const std::string now = Renamed(tag);
  return Find([&](const auto& row) {
    return !row.tag.empty() && row.tag == now && (row.parent.empty() || row.parent == parent);
  });
}

string_view Trim(string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == string_view::npos ? string_view() : text.substr(begin, end - begin + 1);
}

std::vector<string_view> Words(string_view text, std::size_t most) {
  std::vector<string_view> words;
  for (text = Trim(text); !text.empty() && words.size() < most; text = Trim(text)) {
    words.push_back(text.substr(0, text.find_first_of(" \t")));
    text.remove_prefix(words.back().size());
  }
  return words;
}

std::optional<double> GpuNumber(string_view text) {
  static constexpr std::array<string_view, 10> kUnits = {"", "%", "C", "W", "MiB", "x", "MHz", "us", "GB/s", "MB"};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc()) return std::nullopt;
  string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  return std::find(kUnits.begin(), kUnits.end(), unit) != kUnits.end() ? std::optional(value) : std::nullopt;
}

bool IsUnavailable(string_view value) {
  return value == "N/A" || value == "[N/A]" || value == "-" || value.find("Not Supported") != string_view::npos ||
         value.find("deprecated") != string_view::npos || value.find("Insufficient Permissions") != string_view::npos;
}

bool IsBrokenValue(string_view value) {
  return value.find("ERR!") != string_view::npos || value.find("Unknown Error") != string_view::npos ||
         value.find("GPU is lost") != string_view::npos || value.find("requires reset") != string_view::npos;
}

void GpuReport::Begin(const Record& record, EventSink& out) {
  Flush(out);
  gpu_.emplace();
  gpu_->driver = driver;
  gpu_->cuda = cuda;
  gpu_->attached_gpus = attached;
  gpu_->taken = taken;
  event_ = EventFrom(record, LogMessage{});
}

void GpuReport::Add(string_view property, std::string value, const Record& record) {
  if (conditions_.size() >= kMostConditions) return;
  GpuCondition condition;
  condition.property = property;
  condition.value = std::move(value);
  conditions_.push_back(EventFrom(record, std::move(condition)));
}

void GpuReport::SetCondition(string_view query, string_view value, const Record& record) {
  if (!IsWell(query, value)) Add(query, std::string(value), record);
}

// Max stands before Current in every form but CSV, whose columns are the user's. There both are on one line.
void GpuReport::ComparePcie(const Record& record) {
  const auto compare = [&](string_view property, const std::optional<int>& now, const std::optional<int>& most) {
    const bool known = std::any_of(conditions_.begin(), conditions_.end(), [&](const Event& event) {
      return std::get<GpuCondition>(event.what).property == property;
    });
    if (now && most && *now<*most&& * now> 0 && !known) Add(property, fmt::format("{} of {}", *now, *most), record);
  };
  compare("pcie.link.gen.current", gpu_->pcie_gen, gpu_->pcie_gen_max);
  compare("pcie.link.width.current", gpu_->pcie_width, gpu_->pcie_width_max);
}

void GpuReport::Set(const GpuName& name, string_view value, const Record& record) {
  if (!gpu_ && name.property == P::kDescribed) return;
  if (!gpu_) {  // a part of a report, without its head
    gpu_.emplace();
    event_ = EventFrom(record, LogMessage{});
  }
  GpuSnapshot& gpu = *gpu_;
  if (!name.described.empty() && !IsBrokenValue(value)) Hold(name.described, value, record);
  if (IsBrokenValue(value)) {
    // A power draw alone fails now and then on a GPU that is well.
    if (name.property == P::kPower || gpu.error) return;
    gpu.error = true;
    event_ = EventFrom(record, LogMessage{});
    return;
  }
  const auto text = [&](std::string& field) {
    if (!IsUnavailable(value)) field = value;
  };
  const auto first = [&](std::optional<double>& field) {
    if (!field) field = GpuNumber(value);
  };
  switch (name.property) {
    case P::kIndex:
      gpu.id.index = Whole(value);
      break;
    case P::kUuid:
      text(gpu.id.uuid);
      break;
    case P::kBusId:
      gpu.id.bus_id = ParseBusId(value).value_or(std::string());
      break;
    case P::kName:
      text(gpu.name);
      break;
    case P::kTimestamp:
      if (const auto time = ParseTime(value)) gpu.taken = time->time;
      break;
    case P::kDriver:
      text(gpu.driver);
      break;
    case P::kCuda:
      text(gpu.cuda);
      break;
    case P::kAttached:
      gpu.attached_gpus = Whole(value);
      break;
    case P::kPersistence:
      if (!IsUnavailable(value)) gpu.persistence = value == "Enabled" || value == "On";
      break;
    case P::kMig:
      gpu.mig = value == "Enabled";
      break;
    case P::kPstate:
      if (value.starts_with('P')) gpu.pstate = Whole(value.substr(1));
      break;
    case P::kTemperature:
      gpu.temperature_c = Whole(value);
      break;
    case P::kPower:
      first(gpu.power_w);
      break;
    case P::kPowerCap:
      first(gpu.power_cap_w);
      break;
    case P::kMemoryUsed:
      gpu.memory_used_mib = Whole(value);
      break;
    case P::kMemoryTotal:
      gpu.memory_total_mib = Whole(value);
      break;
    case P::kUtilization:
      gpu.utilization_percent = Whole(value);
      break;
    case P::kPcieGen:
      gpu.pcie_gen = Whole(value);
      ComparePcie(record);
      break;
    case P::kPcieGenMax:
      gpu.pcie_gen_max = Whole(value);
      ComparePcie(record);
      break;
    case P::kPcieWidth:
      gpu.pcie_width = Whole(value);
      ComparePcie(record);
      break;
    case P::kPcieWidthMax:
      gpu.pcie_width_max = Whole(value);
      ComparePcie(record);
      break;
    case P::kFabricState:
      text(gpu.fabric_state);
      if (value == "In Progress" || value == "Not Started") Add("fabric.state", std::string(value), record);
      break;
    case P::kThrottleMask: {
      std::uint64_t mask = 0;
      if (!value.starts_with("0x") ||
          std::from_chars(value.data() + 2, value.data() + value.size(), mask, 16).ec != std::errc())
        break;
      if ((mask & 0x08) != 0) Add("clocks_event_reasons.hw_slowdown", std::string(value), record);
      if ((mask & 0x20) != 0) Add("clocks_event_reasons.sw_thermal_slowdown", std::string(value), record);
      if ((mask & 0x40) != 0) Add("clocks_event_reasons.hw_thermal_slowdown", std::string(value), record);
      if ((mask & 0x80) != 0) Add("clocks_event_reasons.hw_power_brake_slowdown", std::string(value), record);
      break;
    }
    case P::kCondition:
      SetCondition(name.query, value, record);
      break;
    case P::kDescribed:
      break;
  }
}

void GpuReport::Hold(string_view property, string_view value, const Record& record) {
  if (described_.size() >= kMostDescribed || value.empty() || IsUnavailable(value)) return;
  DeviceDescribed described;
  described.property = property;
  described.value = value.substr(0, kCitedBytes);
  described_.push_back(EventFrom(record, std::move(described)));
}

void GpuReport::Describe(string_view property, string_view value, const Record& record, EventSink& out) {
  if (open()) return Hold(property, value, record);
  Hold(property, value, record);
  for (Event& event : described_) out.Add(std::move(event));
  described_.clear();
}

void GpuReport::Drop() {
  conditions_.clear();
  described_.clear();
  gpu_.reset();
}

void GpuReport::Flush(EventSink& out) {
  if (!gpu_) return;
  const GpuId& id = gpu_->id;
  std::string key = fmt::format("{}|{}|{}", id.index ? std::to_string(*id.index) : "", id.bus_id, id.uuid);
  if (seen_.size() < kMostGpus || seen_.count(key) != 0) {
    seen_.insert(std::move(key));
    for (Event& condition : conditions_) {
      std::get<GpuCondition>(condition.what).id = gpu_->id;
      out.Add(std::move(condition));
    }
    for (Event& described : described_) {
      std::get<DeviceDescribed>(described.what).id = gpu_->id;
      out.Add(std::move(described));
    }
    event_.what = std::move(*gpu_);
    out.Add(std::move(event_));
  }
  conditions_.clear();
  described_.clear();
  gpu_.reset();
}

}  // namespace inquest
