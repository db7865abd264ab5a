// nvidia_query.cc: what `nvidia-smi -q` says of each GPU, as text or (-x) as XML.
// Format:  titles and `key : value` lines, told apart by the last title; or one XML element a line. Values are the same
// words
//            GPU 00000000:5D:00.0
//                Remapped Rows
//                    Pending                                        : Yes
//            <gpu id="00000000:5D:00.0"> <remapped_rows> <remapped_row_pending>Yes</remapped_row_pending>
//          XML is read by the line, as the driver prints it: reports are cut, pasted below error lines and between
//          those of a job, and nothing of a document type, an entity or an encoding is ever needed.
// Clock:   `Timestamp`, the host's local time; it says when one looked, not when it began.
// Not read: clocks, encoder sessions, vGPU. Board data, versions and counters are for the record alone.
#include <algorithm>
#include <array>

#include "core/ascii.h"
#include "parsers/formats.h"
#include "parsers/formats/nccl.h"
#include "parsers/formats/nvidia_gpu.h"

namespace inquest {
namespace {

using std::string_view;

constexpr std::size_t kLongestTitle = 48, kDeepest = 16;

std::string WithoutEntities(string_view text) {
  static constexpr std::array<std::pair<string_view, char>, 5> kEntities = {
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};
  std::string out;
  while (!text.empty()) {
    const auto entity =
        std::find_if(kEntities.begin(), kEntities.end(), [&](const auto& row) { return text.starts_with(row.first); });
    out += entity == kEntities.end() ? text.front() : entity->second;
    text.remove_prefix(entity == kEntities.end() ? 1 : entity->first.size());
  }
  return out;
}

bool IsTitle(string_view text) {
  const auto fits = [](char c) { return IsLetter(c) || IsDigit(c) || c == ' ' || c == '/'; };
  return !text.empty() && text.size() <= kLongestTitle && text.front() >= 'A' && text.front() <= 'Z' &&
         std::all_of(text.begin(), text.end(), fits);
}

class NvidiaQueryParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    const string_view line = Trim(record.text);
    if (line.starts_with('<')) return ConsumeXml(line, record, out);
    if (line.find("==NVSMI LOG==") != kNowhere) return BeginReport(out);
    const std::size_t colon = line.ends_with(" :") ? line.size() - 2 : line.find(" : ");
    if (colon != kNowhere) return ConsumeValue(Trim(line.substr(0, colon)), Trim(line.substr(colon + 2)), record, out);
    return ConsumeTitle(line, record, out);
  }
  void Finish(EventSink& out) override { EndGpu(out); }

 private:
  bool BeginReport(EventSink& out) {
    EndGpu(out);
    report_ = {};
    section_.clear();
    in_report_ = true;
    return true;
  }
  void EndGpu(EventSink& out) {
    EmitProcess(out);
    report_.Flush(out);
  }
  void BeginGpu(string_view bus_id, const Record& record, EventSink& out) {
    EndGpu(out);
    report_.Begin(record, out);
    report_.gpu().id.bus_id = ParseBusId(bus_id).value_or(std::string());
    in_report_ = true;
  }

  // ---- text ----------------------------------------------------------------------------------------------------

  bool ConsumeTitle(string_view line, const Record& record, EventSink& out) {
    if (line.starts_with("GPU ") && ParseBusId(line.substr(4)) && line.find(':') != kNowhere) {
      BeginGpu(line.substr(4), record, out);
      section_.clear();
      return true;
    }
    if (!IsTitle(line)) {
      section_.clear();
      return false;
    }
    if (line == "Volatile" || line == "Aggregate") scope_ = line;
    section_ = line == "Double Bit" || line == "Single Bit" ? scope_ + " " + std::string(line) : std::string(line);
    return in_report_;
  }

  bool ConsumeValue(string_view key, string_view value, const Record& record, EventSink& out) {
    if (key == "Driver Version" || key == "KMD Version")
      return SetTop(report_.driver, "driver_version", value, record, out);
    if (key == "CUDA Version" || key == "CUDA UMD Version")
      return SetTop(report_.cuda, "cuda_version", value, record, out);
    if (key == "Attached GPUs") {
      if (const auto count = GpuNumber(value)) report_.attached = static_cast<int>(std::clamp(*count, 0.0, 1e6));
      return true;
    }
    if (key == "Timestamp") {
      if (const auto time = ParseTime(value)) report_.taken = time->time;
      return in_report_;
    }
    if (key == "Process ID") return BeginProcess(value, record, out);
    if (process_) return SetProcess(key, value, out);
    const auto name = GpuNameOfText(section_, key);
    if (name) report_.Set(*name, value, record);
    return IsOurs(name) || in_report_;
  }

  /// What is for the record alone does not make a line one of a report.
  static bool IsOurs(const std::optional<GpuName>& name) { return name && name->property != GpuProperty::kDescribed; }

  bool SetTop(std::string& field, string_view described, string_view value, const Record& record, EventSink& out) {
    if (!IsUnavailable(value)) field = value;
    if (in_report_) report_.Describe(described, value, record, out);
    return in_report_;
  }

  // ---- processes -----------------------------------------------------------------------------------------------

  bool BeginProcess(string_view value, const Record& record, EventSink& out) {
    EmitProcess(out);
    const auto pid = GpuNumber(value);
    if (!pid || *pid < 0 || *pid > 1e10) return false;
    process_ = GpuProcess{.id = report_.open() ? report_.gpu().id : GpuId{},
                          .pid = static_cast<std::int64_t>(*pid),
                          .type = "C",
                          .name = {},
                          .memory_mib = {}};
    process_event_ = EventFrom(record, LogMessage{});
    return true;
  }
  bool SetProcess(string_view key, string_view value, EventSink& out) {
    if (key == "Type" || key == "type") process_->type = value;
    if (key == "Name" || key == "process_name") process_->name = WithoutEntities(value.substr(0, kCitedBytes));
    if (key != "Used GPU Memory" && key != "used_memory") return true;
    if (const auto mib = GpuNumber(value); mib && *mib >= 0 && *mib < 1e9)
      process_->memory_mib = static_cast<std::int64_t>(*mib);
    EmitProcess(out);
    return true;
  }
  void EmitProcess(EventSink& out) {
    if (!process_) return;
    process_event_.what = std::move(*process_);
    out.Add(std::move(process_event_));
    process_.reset();
  }

  // ---- XML -----------------------------------------------------------------------------------------------------

  /// `<gpu id="00000000:5D:00.0">`: what stands between the quotes.
  static string_view IdOf(string_view tag) {
    const std::size_t begin = tag.find('"'), end = tag.rfind('"');
    return begin == kNowhere || end <= begin ? string_view() : tag.substr(begin + 1, end - begin - 1);
  }

  bool ConsumeXml(string_view line, const Record& record, EventSink& out) {
    bool ours = in_report_;
    while (!line.empty()) {
      const std::size_t close = line.find('>');
      if (line.front() != '<' || close == kNowhere || close < 2) return ours;
      const string_view tag = line.substr(1, close - 1);
      line.remove_prefix(close + 1);
      const std::size_t next = std::min(line.find('<'), line.size());
      ours = ConsumeTag(tag, Trim(line.substr(0, next)), line.substr(next), record, out) || ours;
      line.remove_prefix(next);
    }
    return ours;
  }

  bool ConsumeTag(string_view tag, string_view text, string_view behind, const Record& record, EventSink& out) {
    if (tag.starts_with('?') || tag.starts_with('!')) return tag.find("nvidia_smi_log") != kNowhere;
    if (tag.starts_with('/')) {
      const auto opened = std::find(open_.rbegin(), open_.rend(), tag.substr(1));
      if (opened != open_.rend()) open_.erase(opened.base() - 1, open_.end());
      if (tag == "/gpu") EndGpu(out);
      if (tag == "/nvidia_smi_log") in_report_ = false;
      return tag == "/gpu" || tag == "/nvidia_smi_log";
    }
    if (tag.ends_with('/')) return false;
    const string_view name = tag.substr(0, tag.find(' '));
    if (name == "nvidia_smi_log") {
      open_.clear();
      return BeginReport(out);
    }
    if (name == "gpu") BeginGpu(IdOf(tag), record, out);
    const bool whole = !text.empty() && behind.starts_with("</") && behind.substr(2).starts_with(name);
    if (whole) return SetElement(name, text, record, out);
    if (open_.size() < kDeepest) open_.emplace_back(name);
    return name == "gpu";
  }

  bool SetElement(string_view name, string_view text, const Record& record, EventSink& out) {
    if (open_.size() < kDeepest) open_.emplace_back(name);  // its end follows on the line
    const string_view parent = open_.size() > 1 ? string_view(open_[open_.size() - 2]) : string_view();
    const string_view grand = open_.size() > 2 ? string_view(open_[open_.size() - 3]) : string_view();
    if (name == "driver_version") return SetTop(report_.driver, name, text, record, out);
    if (name == "cuda_version") return SetTop(report_.cuda, name, text, record, out);
    if (name == "attached_gpus") return ConsumeValue("Attached GPUs", text, record, out);
    if (name == "timestamp") return ConsumeValue("Timestamp", text, record, out);
    if (name == "pid") return BeginProcess(text, record, out);
    if (process_) return SetProcess(name, text, out);
    const bool of_bits = parent == "double_bit" || parent == "single_bit";
    const auto property =
        GpuNameOfXml(of_bits ? std::string(grand) + " " + std::string(parent) : std::string(parent), name);
    if (property) report_.Set(*property, text, record);
    return IsOurs(property);
  }

  GpuReport report_;
  bool in_report_ = false;
  std::string section_, scope_;
  std::vector<std::string> open_;
  std::optional<GpuProcess> process_;
  Event process_event_;
};

// Titles and keys from which everything that is read is not far.
constexpr string_view kNvidiaQueryMarks[] = {"==NVSMI LOG==",
                                             "Attached GPUs",
                                             "GPU 0000",
                                             "GPU UUID",
                                             "Performance State",
                                             "Clocks Event Reasons",
                                             "Clocks Throttle Reasons",
                                             "HW Slowdown",
                                             "HW Thermal Slowdown",
                                             "HW Power Brake Slowdown",
                                             "SW Thermal Slowdown",
                                             "GPU Link Info",
                                             "PCIe Generation",
                                             "FB Memory Usage",
                                             "BAR1 Memory Usage",
                                             "ECC Errors",
                                             "SRAM Uncorrectable",
                                             "DRAM Uncorrectable",
                                             "SRAM Threshold Exceeded",
                                             "Retired Pages",
                                             "Pending Page Blacklist",
                                             "Remapped Rows",
                                             "Remapping Failure Occurred",
                                             "GPU Reset Status",
                                             "Reset Required",
                                             "GPU Recovery Action",
                                             "Power Readings",
                                             "GPU Current Temp",
                                             "    Fabric",
                                             "MIG Mode",
                                             "    Processes",
                                             "Process ID  ",
                                             "Used GPU Memory  ",
                                             "nvidia_smi_log",
                                             "<gpu id=\"",
                                             "<driver_version>",
                                             "<product_name>",
                                             "<current_mig>",
                                             "<gpu_reset_status>",
                                             "<gpu_recovery_action>",
                                             "<pci_bus_id>",
                                             "<pcie_gen>",
                                             "<link_widths>",
                                             "_reason_hw_",
                                             "_reason_sw_thermal",
                                             "<fb_memory_usage>",
                                             "<gpu_util>",
                                             "<ecc_errors>",
                                             "<volatile>",
                                             "<aggregate>",
                                             "<retired_pages>",
                                             "<remapped_row",
                                             "<gpu_temp>",
                                             "power_readings>",
                                             "<fabric>",
                                             "<process_info>"};

}  // namespace

extern const Format kNvidiaQuery{.name = "nvidia-smi-q",
                                 .framing = Framing::kLines,
                                 .component = Component::kSmi,
                                 .marks = kNvidiaQueryMarks,
                                 .follow = 32,
                                 .make = &Make<NvidiaQueryParser>};

}  // namespace inquest
