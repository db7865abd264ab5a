// kernel_cper.cc: hardware errors that the firmware found and told the kernel (APEI, GHES).
// Format:  one block an error; all its lines begin with the error's number
//            {1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 5
//            {1}[Hardware Error]: event severity: fatal
//            {1}[Hardware Error]:  Error 0, type: fatal                    before 4.11: section: 0, severity: 1, fatal
//            {1}[Hardware Error]:   section_type: PCIe error
//            {1}[Hardware Error]:   device_id: 0000:3b:00.0
//            {1}[Hardware Error]:   vendor_id: 0x10de, device_id: 0x2330
//            {1}[Hardware Error]:   class_code: 030200
// Clock:   the head's.        Not read: sections of processors and memory, registers, TLP headers.
#include "core/pattern.h"
#include "parsers/formats/kernel.h"

namespace inquest {
namespace {

using Severity = PcieError::Severity;

std::optional<Severity> CperSeverity(std::string_view word) {
  if (word == "fatal") return Severity::kFatal;
  if (word == "recoverable") return Severity::kNonFatal;
  if (word == "corrected" || word == "info") return Severity::kCorrected;
  return std::nullopt;
}

std::string_view DriverOf(std::string_view vendor) {
  if (vendor == "10de") return "nvidia";
  if (vendor == "15b3") return "mlx5_core";
  return {};
}

}  // namespace

bool CperReader::Consume(const Record& record, const KernelHead& head, EventSink& out) {
  static const Pattern kLine(R"(^\{(\d{1,9})\}\[Hardware Error\]: *(.*)$)");
  static const Pattern kSeverity(
      R"(^(?:event severity: |Error \d+, type: |section: \d+, severity: \d+, |severity: \d+, )(\w+))");
  static const Pattern kDevice(R"(^device_id: ([0-9a-f:.]+)$)");
  static const Pattern kVendor(R"(vendor_id: 0x([0-9a-f]{4}), device_id: )");
  const auto line = kLine.Search(head.message);
  if (!line) return false;
  const std::string_view text = line->text(2);
  if (const std::int64_t number = *line->number(1); number != number_) {
    Finish(out);
    number_ = number;
    severity_.reset();
    of_pcie_ = false;
  }
  if (const auto severity = kSeverity.Search(text)) {
    Finish(out);
    severity_ = CperSeverity(severity->text(1));
    of_pcie_ = false;
  } else if (text.starts_with("section_type: ")) {
    Finish(out);
    of_pcie_ = text == "section_type: PCIe error";
  } else if (const auto device = kDevice.Search(text); device && of_pcie_ && severity_) {
    Finish(out);
    held_ = KernelEvent(record, head,
                        PcieError{.severity = *severity_,
                                  .bus_id = KernelBusId(device->text(1)),
                                  .reporter = {},
                                  .detail = "reported by the firmware",
                                  .uptime = head.uptime});
  } else if (const auto vendor = kVendor.Search(text); vendor && held_) {
    std::get<PcieError>(held_->what).reporter = std::string(DriverOf(vendor->text(1)));
  } else if (text.starts_with("class_code: 0604") && held_) {
    std::get<PcieError>(held_->what).reporter = "pcieport";
  } else if (text.starts_with("class_code: ") && held_) {
    std::string& reporter = std::get<PcieError>(held_->what).reporter;
    if (reporter.empty()) reporter = "unknown";
  }
  return true;
}

void CperReader::Finish(EventSink& out) {
  if (held_) out.Add(std::move(*held_));
  held_.reset();
}

}  // namespace inquest
