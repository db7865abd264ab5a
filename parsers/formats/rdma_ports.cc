// rdma_ports.cc: ports of InfiniBand and RoCE devices, as the tools of rdma-core, iproute2 and Mellanox show them.
// Format:  blocks of `name: value` lines below the name of a device, or one line a port
//            ibstat        CA 'mlx5_0' / Port 1: / State: Active / Physical state: LinkUp / Rate: 400 / SM lid: 1
//            ibstatus      Infiniband device 'mlx5_0' port 1 status: / state: 4: ACTIVE / rate: 400 Gb/sec (4X NDR)
//            ibv_devinfo   hca_id: mlx5_0 / port: 1 / state: PORT_ACTIVE (4) / active_mtu: 4096 (5) / GID[  3]: ...,
//            RoCE v2 rdma link     link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth2   (iproute2 to 4.19:
//            `0/1: mlx5_0/1: ...`) show_gids     mlx5_0  1  3  0000:0000:0000:0000:0000:ffff:0a03:0011  10.3.0.17  v2
//            eth2
// Clock:   none.
// Not read: GUIDs, firmware, capabilities, counters (perfquery, rdma statistic), devices without a port, JSON (rdma
// -j).
#include <array>
#include <utility>

#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/host_tools.h"

namespace inquest {
namespace {

using std::string_view;

// The spellings of four programs, by their first letters in lower case.
LinkPort::State StateOf(string_view word) {
  std::string lower;
  for (const char c : word.substr(0, 16)) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  string_view state = lower;
  if (state.starts_with("port_")) state.remove_prefix(5);
  if (state.starts_with("down")) return LinkPort::State::kDown;
  if (state.starts_with("init") || state.starts_with("armed")) return LinkPort::State::kInit;
  return state.starts_with("active") ? LinkPort::State::kActive : LinkPort::State::kNotPrinted;
}

std::optional<int> Small(const Pattern::Match& match, std::size_t group) {
  const auto number = match.number(group);
  return number && *number >= 0 && *number <= 0xffffff ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

class RdmaPortsParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    if (states_.ConsumePrompt(record)) {
      Close(out);
      device_.clear();
      return true;
    }
    return ConsumeLinkLine(record, out) || ConsumeHead(record, out) || ConsumeGid(record, out) ||
           ConsumeField(record.text, record);
  }
  void Finish(EventSink& out) override { Close(out); }

 private:
  bool ConsumeLinkLine(const Record& record, EventSink& out) {
    static const Pattern kLink(
        R"((?:^link |^\d+/\d+: |^)([\w.-]{1,64})/(\d{1,3}):? (?:.* )?state (\w+) physical_state (\w+)(?: netdev (\S{1,32}))?)");
    static const Pattern kManager(R"(\bsm_lid (\d+))");
    const auto match = kLink.Search(record.text);
    if (!match) return false;
    Close(out);
    LinkPort port{.device = std::string(match->text(1)),
                  .port = Small(*match, 2).value_or(0),
                  .state = StateOf(match->text(3)),
                  .phys_state = std::string(match->text(4)),
                  .rate_gbps = {},
                  .mtu = {},
                  .sm_lid = {},
                  .link_layer = {},
                  .netdev = std::string(match->text(5))};
    if (const auto manager = kManager.Search(record.text)) port.sm_lid = Small(*manager, 1);
    if (port.port > 0) states_.Add(record, std::move(port), out);
    return true;
  }

  /// The name of a device, or the number of a port.
  bool ConsumeHead(const Record& record, EventSink& out) {
    static const Pattern kDevice(R"(^(?:CA:? '|hca_id:\s+)([\w.-]{1,64})'?\s*$)");
    static const Pattern kStatus(R"(^Infiniband device '([\w.-]{1,64})' port (\d{1,3}) status:)");
    static const Pattern kPort(R"(^\s*(?:Port (\d{1,3}):|port:\s+(\d{1,3}))\s*$)");
    if (const auto device = kDevice.Search(record.text)) {
      Close(out);
      device_ = std::string(device->text(1));
      // `ibstat mlx5_0 1` prints no number of the port.
      if (record.text.starts_with("CA: ")) Open(record, 1);
      return true;
    }
    if (const auto status = kStatus.Search(record.text)) {
      Close(out);
      device_ = std::string(status->text(1));
      Open(record, Small(*status, 2).value_or(0));
      return true;
    }
    const auto port = kPort.Search(record.text);
    if (!port) return false;
    Close(out);
    Open(record, Small(*port, port->has(1) ? 1 : 2).value_or(0));
    return true;
  }

  bool ConsumeGid(const Record& record, EventSink& out) {
    static const Pattern kRow(
        R"(^([\w.-]{1,64})\s+(\d{1,3})\s+(\d{1,4})\s+([0-9a-f]{4}(?::[0-9a-f]{4}){7})\s+(?:\d+\.\d+\.\d+\.\d+\s+)?(?:[vV]([12])\b)?)");
    static const Pattern kOfPort(R"(^\s+GID\[\s*(\d{1,4})\]:\s+([0-9a-f:.]{2,64})(?:, (?:RoCE v([12])|.*))?)");
    PortAddress gid;
    if (const auto row = kRow.Search(record.text)) {
      gid = {.device = std::string(row->text(1)),
             .port = Small(*row, 2).value_or(0),
             .index = Small(*row, 3),
             .address = std::string(row->text(4)),
             .roce_version = 0};
      if (row->has(5)) gid.roce_version = row->text(5) == "2" ? 2 : 1;
    } else if (const auto entry = kOfPort.Search(record.text); entry && port_) {
      gid = {.device = port_->device,
             .port = port_->port,
             .index = Small(*entry, 1),
             .address = std::string(entry->text(2)),
             .roce_version = 0};
      if (entry->has(3)) gid.roce_version = entry->text(3) == "2" ? 2 : 1;
    } else {
      return false;
    }
    states_.Add(record, std::move(gid), out);
    return true;
  }

  /// A value of the port that is open. The line to cite is the one that says its state.
  bool ConsumeField(string_view text, const Record& record) {
    static const Pattern kState(R"(^\s*(?:State: |state:\s+(?:\d: ?)?)(\w+))");
    static const Pattern kPhysical(R"(^\s*(?:Physical state: |phys state:\s+\d: ?|phys_state:\s+)(\w[\w ]{0,40}))");
    static const Pattern kRate(R"(^\s*(?:Rate: |rate:\s+)(\d{1,5}(?:\.\d)?)\b)");
    static const Pattern kWidth(R"(^\s*active_width:\s+(\d{1,2})X)");
    static const Pattern kSpeed(R"(^\s*active_speed:\s+(\d{1,4}\.\d) Gbps)");
    static const Pattern kMtu(R"(^\s*active_mtu:\s+(\d{3,5}) )");
    static const Pattern kManager(R"(^\s*(?:SM lid: |sm[ _]lid:\s+)(?:0x([0-9a-f]{1,4})|(\d{1,5}))\s*$)");
    static const Pattern kLayer(R"(^\s*(?:Link layer: |link_layer:\s+)(\w+))");
    if (!port_) return false;
    if (const auto physical = kPhysical.Search(text)) {
      port_->phys_state = std::string(physical->text(1));
    } else if (const auto state = kState.Search(text)) {
      port_->state = StateOf(state->text(1));
      cited_ = EventFrom(record, LogMessage{});
    } else if (const auto rate = kRate.Search(text)) {
      port_->rate_gbps = WholeDecimal(rate->text(1));
    } else if (const auto width = kWidth.Search(text)) {
      width_ = Small(*width, 1);
    } else if (const auto speed = kSpeed.Search(text)) {
      if (const auto lane = WholeDecimal(speed->text(1)); lane && width_) port_->rate_gbps = *lane * *width_;
    } else if (const auto mtu = kMtu.Search(text)) {
      port_->mtu = Small(*mtu, 1);
    } else if (const auto manager = kManager.Search(text)) {
      port_->sm_lid =
          manager->has(1) ? (manager->text(1).find_first_not_of('0') == string_view::npos ? 0 : 1) : Small(*manager, 2);
    } else if (const auto layer = kLayer.Search(text)) {
      port_->link_layer = std::string(layer->text(1));
    } else {
      return false;
    }
    return true;
  }

  void Open(const Record& record, int number) {
    if (device_.empty() || number < 1) return;
    port_ = LinkPort{.device = device_,
                     .port = number,
                     .state = {},
                     .phys_state = {},
                     .rate_gbps = {},
                     .mtu = {},
                     .sm_lid = {},
                     .link_layer = {},
                     .netdev = {}};
    cited_ = EventFrom(record, LogMessage{});
    width_.reset();
  }

  void Close(EventSink& out) {
    if (port_ && port_->state != LinkPort::State::kNotPrinted) {
      const Record cited{cited_.text, cited_.origin, cited_.at, cited_.where};
      states_.Add(cited, std::move(*port_), out);
    }
    port_.reset();
  }

  HostStates states_;
  std::string device_;
  std::optional<LinkPort> port_;  ///< whose block is being read
  std::optional<int> width_;
  Event cited_;
};

// `CA '` is too short for a mark: a device's name begins with one of these letters.
constexpr string_view kRdmaPortsMarks[] = {"CA 'm",
                                           "CA 'i",
                                           "CA 'r",
                                           "CA 'b",
                                           "CA 'h",
                                           "CA 'e",
                                           "CA 's",
                                           "CA 'q",
                                           "CA 'o",
                                           "CA 'u",
                                           "CA: '",
                                           "Port 1:",
                                           "Port 2:",
                                           "State: Active",
                                           "State: Down",
                                           "State: Init",
                                           "State: Armed",
                                           "Physical state: ",
                                           "\tRate: ",
                                           "    Rate: ",
                                           "SM lid: ",
                                           "Link layer: ",
                                           "Infiniband device '",
                                           " 4: ACTIVE",
                                           "\t4: ACTIVE",
                                           " 1: DOWN",
                                           "\t1: DOWN",
                                           " 2: INIT",
                                           "\t2: INIT",
                                           " 3: ARMED",
                                           "\t3: ARMED",
                                           "phys state:",
                                           " Gb/sec (",
                                           "sm lid:",
                                           "link_layer:",
                                           "hca_id:",
                                           "port:\t",
                                           "port:   ",
                                           "PORT_ACTIVE (",
                                           "PORT_DOWN (",
                                           "PORT_INIT (",
                                           "PORT_ARMED (",
                                           "active_mtu:",
                                           "sm_lid:",
                                           "active_width:",
                                           "active_speed:",
                                           "phys_state:",
                                           "GID[ ",
                                           " physical_state ",
                                           "\t\tv1\t",
                                           "\t\tv2\t",
                                           " \tv1\t",
                                           " \tv2\t",
                                           "\tfe80:0000:",
                                           " fe80:0000:",
                                           ":0000:ffff:",
                                           "$ ibstat",
                                           "# ibstat",
                                           "$ ibv_devinfo",
                                           "# ibv_devinfo",
                                           "$ rdma link",
                                           "# rdma link",
                                           "$ show_gids",
                                           "# show_gids"};

}  // namespace

extern const Format kRdmaPorts{.name = "rdma-ports",
                               .framing = Framing::kLines,
                               .component = Component::kAny,
                               .marks = kRdmaPortsMarks,
                               .make = &Make<RdmaPortsParser>};

}  // namespace inquest
