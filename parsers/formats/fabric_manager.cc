// fabric_manager.cc: the log of NVIDIA's fabric manager, /var/log/fabricmanager.log.
// Format:  one line a message, with its level and thread; a GPU's fatal error goes on in lines of its own fields
//            [Apr 05 2031 06:07:08] [ERROR] [tid 841] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus
//            id 00000000:86:00.0 physical id 3 port 33
// Clock:   the line's own, local time.
// Not read: what messages without a number mean, which is for rules to say; the fields below a GPU's fatal error.
#include <string>

#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/kernel.h"

namespace inquest {
namespace {

/// `Apr 05 2031 06:07:08`: the year stands where syslog has the clock.
std::optional<Timestamp> ReadTime(std::string_view text) {
  static const Pattern kTime(R"(^\[([A-Z][a-z]{2} [ \d]\d) (\d{4}) (\d\d:\d\d:\d\d)\])");
  const auto match = kTime.Search(text);
  if (!match) return std::nullopt;
  // A weekday is what makes the reader take a year; which one, nobody checks.
  const auto parsed = ParseTime("Mon " + std::string(match->text(1)) + " " + std::string(match->text(3)) + " " +
                                std::string(match->text(2)));
  return parsed ? std::optional(parsed->time) : std::nullopt;
}

std::optional<SxidReported> ReadSwitchError(std::string_view text) {
  static const Pattern kError(
      R"(detected NVSwitch (fatal|non-fatal) error (\d{1,6}) on (?:fid \d+ )?(?:on )?(?:NVSwitch )?(?:pci bus id ([0-9A-Fa-f:.]+))?)");
  static const Pattern kSwitch(R"(physical id (\d+))"), kPort(R"( port (\d{1,4})\b)");
  const auto match = kError.Search(text);
  if (!match) return std::nullopt;
  SxidReported sxid;
  sxid.sxid = static_cast<int>(match->number(2).value_or(0));
  sxid.severity = match->text(1) == "fatal" ? SxidReported::Severity::kFatal : SxidReported::Severity::kNonFatal;
  sxid.bus_id = KernelBusId(match->text(3));
  if (const auto number = kSwitch.Search(text))
    sxid.device = "NVSwitch with physical id " + std::string(number->text(1));
  if (const auto port = kPort.Search(text)) sxid.link = static_cast<int>(port->number(1).value_or(0));
  sxid.detail = std::string(text.substr(text.find("detected NVSwitch")));
  return sxid;
}

class FabricManagerParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    static const Pattern kLine(R"(\[([A-Z]+)\] \[tid \d+\] )");
    const auto line = kLine.Search(record.text);
    if (!line) return false;
    std::optional<What> what;
    if (auto sxid = ReadSwitchError(record.text))
      what = *std::move(sxid);
    else if (line->text(1) == "ERROR" || line->text(1) == "FATAL")
      what =
          KernelNotice{.subsystem = KernelPart::kFabricManager, .what = KernelNews::kSaid, .device = {}, .uptime = {}};
    if (!what) return true;
    Event event = EventFrom(record, *std::move(what));
    if (const auto at = ReadTime(record.text)) event.at = at;
    out.Add(std::move(event));
    return true;
  }
};

constexpr std::string_view kFabricManagerMarks[] = {"] [tid "};

}  // namespace

extern const Format kFabricManager{.name = "fabric-manager",
                                   .framing = Framing::kLines,
                                   .component = Component::kKernel,
                                   .marks = kFabricManagerMarks,
                                   .make = &Make<FabricManagerParser>};

}  // namespace inquest
