// nvidia_proc.cc: what the NVIDIA driver says of itself and its GPUs below /proc/driver/nvidia, and the head of the
// report of nvidia-bug-report.sh, which holds that.
// Format:  `key: <tab> value` lines, a GPU after the other; its address stands in the middle
//            Model:           NVIDIA H100 80GB HBM3
//            GPU UUID:        GPU-0f1e2d3c-...
//            Video BIOS:      96.00.74.00.01
//            Bus Location:    0000:5d:00.0
//            GPU Firmware:    535.129.03
//          NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023
//          nvidia-bug-report.sh Version: 31831145
// Clock:   none.        Not read: interrupts, DMA, power states, the other sections of a report, which have formats of
// their own.
#include <vector>

#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/kernel.h"
#include "parsers/formats/nvidia_gpu.h"

namespace inquest {
namespace {

using std::string_view;

constexpr int kMostDescribed = 4096;  ///< of a stream

// Facts are held until the next GPU comes: an address stands in the middle of them.
class NvidiaProcParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    static const Pattern kKey(
        R"(^(Model|GPU UUID|Video BIOS|Bus Location|GPU Firmware):[ \t]*\t[ \t]*(\S.{0,200}?)[ \t]*$)");
    static const Pattern kVersion(R"(^NVRM version: NVIDIA .*Kernel Module.*?  (\d+\.[\d.]+)\b)");
    if (const auto version = kVersion.Search(record.text)) {
      Flush(out);
      Hold("driver_version", version->text(1), record);
      Flush(out);
      return true;
    }
    const auto match = kKey.Search(record.text);
    if (!match) return false;
    const string_view key = match->text(1), value = match->text(2);
    if (key == "Model") {
      Flush(out);
      Hold("name", value, record);
    } else if (key == "GPU UUID") {
      if (value.find('?') == string_view::npos) id_.uuid = value;  // an unasked GPU's is all question marks
      if (!id_.uuid.empty()) Hold("uuid", value, record);
    } else if (key == "Video BIOS") {
      if (value.find('?') == string_view::npos) Hold("vbios_version", value, record);
    } else if (key == "GPU Firmware") {
      Hold("gsp_firmware_version", value, record);
    } else {
      id_.bus_id = KernelBusId(value);
      Hold("pci.bus_id", value, record);
    }
    return true;
  }
  void Finish(EventSink& out) override { Flush(out); }

 private:
  void Hold(string_view property, string_view value, const Record& record) {
    if (IsUnavailable(value) || kept_ == kMostDescribed) return;
    ++kept_;
    held_.push_back(
        EventFrom(record, DeviceDescribed{.id = {}, .property = std::string(property), .value = std::string(value)}));
  }
  void Flush(EventSink& out) {
    for (Event& event : held_) {
      std::get<DeviceDescribed>(event.what).id = id_;
      out.Add(std::move(event));
    }
    held_.clear();
    id_ = {};
  }

  std::vector<Event> held_;
  GpuId id_;
  int kept_ = 0;
};

class NvidiaBugReportParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    static const Pattern kVersion(R"(^nvidia-bug-report\.sh Version: (\d{1,20})\s*$)");
    if (record.text.starts_with("Start of NVIDIA bug report log file")) return true;
    const auto version = kVersion.Search(record.text);
    if (!version) return false;
    out.Add(EventFrom(
        record,
        DeviceDescribed{.id = {}, .property = "nvidia-bug-report.version", .value = std::string(version->text(1))}));
    return true;
  }
};

constexpr string_view kProcMarks[] = {"Model: \t\t ",      "GPU UUID: \t ",     "Video BIOS: \t ",
                                      "Bus Location: \t ", "GPU Firmware: \t ", "NVRM version: NVIDIA"};
constexpr string_view kReportMarks[] = {"Start of NVIDIA bug report log file", "nvidia-bug-report.sh Version: "};

}  // namespace

extern const Format kNvidiaProc{.name = "nvidia-proc",
                                .framing = Framing::kLines,
                                .component = Component::kSmi,
                                .marks = kProcMarks,
                                .make = &Make<NvidiaProcParser>};
extern const Format kNvidiaBugReport{.name = "nvidia-bug-report",
                                     .framing = Framing::kLines,
                                     .component = Component::kSmi,
                                     .marks = kReportMarks,
                                     .make = &Make<NvidiaBugReportParser>};

}  // namespace inquest
