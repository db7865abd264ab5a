// lspci.cc: access control of PCI bridges, and the links of GPUs and network cards.
// Format:  blocks of `lspci -vvv`, also as `-nnDvvvxxxx` of nvidia-bug-report.sh: the device, then its capabilities
//            17:00.0 PCI bridge: Broadcom / LSI PEX89144 PCIe Gen 5 (rev b0)
//            0000:3b:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
//            <tab><tab>LnkCap: Port #0, Speed 32GT/s, Width x16, ASPM not supported
//            <tab><tab>LnkSta: Speed 8GT/s (downgraded), Width x8 (downgraded)     (pciutils 3.6 to 3.8: also `(ok)`)
//            <tab><tab>ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
//          or the ACSCtl lines alone, as `lspci -vvv | grep ACSCtl` leaves them
// Clock:   none.        Not read: everything else; without root lspci shows no capabilities.
#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/host_tools.h"
#include "parsers/formats/kernel.h"

namespace inquest {
namespace {

struct Link {
  double speed_gt = 0;
  int width = 0;
};

std::optional<Link> ReadLink(std::string_view text) {
  static const Pattern kLink(R"(Lnk(?:Cap|Sta):\s.*?Speed (\d{1,3}(?:\.\d)?)GT/s(?: \(\w+\))?, Width x(\d{1,2})\b)");
  const auto match = kLink.Search(text);
  if (!match) return std::nullopt;
  return Link{WholeDecimal(match->text(1)).value_or(0), static_cast<int>(match->number(2).value_or(0))};
}

class LspciParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    static const Pattern kHead(
        R"(^((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (PCI bridge|3D controller|VGA compatible controller|Infiniband controller|Ethernet controller|Network controller)(?: \[[0-9a-f]{4}\])?: (.{1,200}))");
    static const Pattern kAccess(R"(ACSCtl:\s+SrcValid([+-]) TransBlk[+-] ReqRedir([+-]) CmpltRedir([+-]))");
    if (states_.ConsumePrompt(record)) return true;
    if (const auto head = kHead.Search(record.text)) {
      const std::string address(head->text(1));
      bus_id_ = KernelBusId(address.size() > 7 ? address : "0000:" + address);
      name_ = std::string(head->text(3));
      is_bridge_ = head->text(2) == "PCI bridge";
      capable_.reset();
      return true;
    }
    if (const auto access = kAccess.Search(record.text)) {
      const bool on = access->text(1) == "+" || access->text(2) == "+" || access->text(3) == "+";
      // grep leaves the lines without their devices, of which nearly all that have the capability are bridges.
      if (is_bridge_ || (bus_id_.empty() && on)) states_.Add(record, PcieAcs{bus_id_, on}, out);
      return true;
    }
    if (bus_id_.empty()) return false;
    const auto link = ReadLink(record.text);
    if (!link) return false;
    if (record.text.find("LnkCap:") != std::string_view::npos) {
      capable_ = link;
    } else if (capable_ && !is_bridge_) {
      states_.Add(record, PcieLink{bus_id_, name_, link->speed_gt, capable_->speed_gt, link->width, capable_->width},
                  out);
    }
    return true;
  }

 private:
  HostStates states_;
  std::string bus_id_, name_;
  bool is_bridge_ = false;
  std::optional<Link> capable_;
};

constexpr std::string_view kLspciMarks[] = {"ACSCtl:",
                                            "LnkCap:",
                                            "LnkSta:",
                                            " PCI bridge: ",
                                            " PCI bridge [",
                                            "3D controller",
                                            "VGA compatible controller",
                                            "Infiniband controller",
                                            "Ethernet controller",
                                            "Network controller",
                                            "$ lspci",
                                            "# lspci",
                                            "$ sudo lspci"};

}  // namespace

extern const Format kLspci{.name = "lspci",
                           .framing = Framing::kLines,
                           .component = Component::kAny,
                           .marks = kLspciMarks,
                           .make = &Make<LspciParser>};

}  // namespace inquest
