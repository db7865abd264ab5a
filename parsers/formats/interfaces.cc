// interfaces.cc: network interfaces and their addresses, as `ip`, `ifconfig` and `ethtool` show them.
// Format:  a head line for each interface, then its addresses
//            2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000
//            (ip link)
//                inet 10.3.0.17/24 brd 10.3.0.255 scope global eth0 (ip addr)
//            eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500 / inet 10.3.0.17  netmask 255.255.255.0
//            (ifconfig) eth0      Link encap:Ethernet / inet addr:10.3.0.17 / UP BROADCAST RUNNING MULTICAST  MTU:1500
//            Metric:1     (net-tools to 1.60) eth0             UP             52:54:00:11:22:33
//            <BROADCAST,MULTICAST,UP,LOWER_UP>                          (ip -br link) Settings for eth0: / Speed:
//            100000Mb/s / Link detected: yes                                                  (ethtool)
// Clock:   none.
// Not read: counters (ip -s, ethtool -S: they count from boot and name no moment), ip -br addr, ip -j, routes, IPv6 in
// ifconfig.
#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/host_tools.h"

namespace inquest {
namespace {

using std::string_view;

bool Has(string_view flags, string_view flag) {
  for (std::size_t at = flags.find(flag); at != string_view::npos; at = flags.find(flag, at + 1)) {
    const std::size_t end = at + flag.size();
    const auto is_edge = [&](std::size_t i) { return i >= flags.size() || flags[i] == ',' || flags[i] == ' '; };
    if ((at == 0 || is_edge(at - 1)) && is_edge(end)) return true;
  }
  return false;
}

std::optional<int> Mtu(const Pattern::Match& match, std::size_t group) {
  const auto number = match.number(group);
  return number && *number > 0 && *number <= 0xfffff ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

class InterfacesParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    if (states_.ConsumePrompt(record)) {
      name_.clear();
      return true;
    }
    return ConsumeIp(record, out) || ConsumeIfconfig(record, out) || ConsumeAddress(record, out) ||
           ConsumeEthtool(record, out);
  }

 private:
  void Add(const Record& record, LinkPort::State state, std::optional<int> mtu, std::optional<double> rate,
           EventSink& out) {
    states_.Add(record,
                LinkPort{.device = name_,
                         .port = 0,
                         .state = state,
                         .phys_state = {},
                         .rate_gbps = rate,
                         .mtu = mtu,
                         .sm_lid = {},
                         .link_layer = {},
                         .netdev = {}},
                out);
  }

  // An interface that is not told to be up is down; one that is up and has no carrier is, too.
  bool ConsumeIp(const Record& record, EventSink& out) {
    static const Pattern kHead(R"(^(?:\d{1,6}: )?([^\s:@]{1,32})(?:@[^\s:]+)?: <([A-Z0-9_,-]*)> mtu (\d{1,7}))");
    static const Pattern kBrief(
        R"(^([^\s:@]{1,32})(?:@\S+)? +(UP|DOWN|UNKNOWN|LOWERLAYERDOWN|DORMANT) .*<([A-Z0-9_,-]*)>\s*$)");
    const auto head = kHead.Search(record.text);
    const auto brief = head ? std::nullopt : kBrief.Search(record.text);
    if (!head && !brief) return false;
    name_ = std::string(head ? head->text(1) : brief->text(1));
    const string_view flags = head ? head->text(2) : brief->text(3);
    const bool up = Has(flags, "UP") && !Has(flags, "NO-CARRIER") &&
                    (Has(flags, "LOWER_UP") || record.text.find(" state DOWN") == string_view::npos);
    Add(record, up ? LinkPort::State::kActive : LinkPort::State::kDown, head ? Mtu(*head, 3) : std::nullopt,
        std::nullopt, out);
    return true;
  }

  bool ConsumeIfconfig(const Record& record, EventSink& out) {
    static const Pattern kHead(R"(^([^\s:]{1,32}): flags=\d+<([A-Z,]*)>  mtu (\d{1,7}))");
    static const Pattern kOldHead(R"(^([^\s:]{1,32})\s+Link encap:)");
    static const Pattern kOldFlags(R"(^\s+([A-Z][A-Z ]+?)\s+MTU:(\d{1,7}))");
    static const Pattern kAddress(R"(^\s+inet (?:addr:)?(\d{1,3}(?:\.\d{1,3}){3})\s)");
    if (const auto head = kHead.Search(record.text)) {
      name_ = std::string(head->text(1));
      Add(record,
          Has(head->text(2), "UP") && Has(head->text(2), "RUNNING") ? LinkPort::State::kActive : LinkPort::State::kDown,
          Mtu(*head, 3), std::nullopt, out);
      return true;
    }
    if (const auto head = kOldHead.Search(record.text)) {
      name_ = std::string(head->text(1));
      return true;
    }
    if (name_.empty()) return false;
    if (const auto flags = kOldFlags.Search(record.text)) {
      Add(record,
          Has(flags->text(1), "UP") && Has(flags->text(1), "RUNNING") ? LinkPort::State::kActive
                                                                      : LinkPort::State::kDown,
          Mtu(*flags, 2), std::nullopt, out);
      return true;
    }
    const auto address = kAddress.Search(record.text);
    if (!address) return false;
    states_.Add(
        record,
        PortAddress{
            .device = name_, .port = 0, .index = {}, .address = std::string(address->text(1)), .roce_version = 0},
        out);
    return true;
  }

  bool ConsumeAddress(const Record& record, EventSink& out) {
    static const Pattern kAddress(
        R"(^\s+inet6? ([0-9a-f.:]{2,45})(?:/\d{1,3}| peer ).* scope (?:global|link|host|site))");
    const auto address = kAddress.Search(record.text);
    if (!address || name_.empty()) return false;
    states_.Add(
        record,
        PortAddress{
            .device = name_, .port = 0, .index = {}, .address = std::string(address->text(1)), .roce_version = 0},
        out);
    return true;
  }

  bool ConsumeEthtool(const Record& record, EventSink& out) {
    static const Pattern kHead(R"(^Settings for ([^\s:]{1,32}):\s*$)");
    static const Pattern kSpeed(R"(^\s+Speed: (\d{1,7})Mb/s)");
    static const Pattern kLink(R"(^\s+Link detected: (yes|no)\b)");
    if (const auto head = kHead.Search(record.text)) {
      name_ = std::string(head->text(1));
      speed_.reset();
      return true;
    }
    if (name_.empty()) return false;
    if (const auto speed = kSpeed.Search(record.text)) {
      if (const auto megabits = speed->number(1)) speed_ = static_cast<double>(*megabits) / 1000;
      return true;
    }
    const auto link = kLink.Search(record.text);
    if (!link) return false;
    Add(record, link->text(1) == "yes" ? LinkPort::State::kActive : LinkPort::State::kDown, std::nullopt, speed_, out);
    return true;
  }

  HostStates states_;
  std::string name_;  ///< of the interface whose lines these are
  std::optional<double> speed_;
};

constexpr string_view kInterfacesMarks[] = {
    "> mtu ",      ">  mtu ",         ",LOWER_UP>",  "<NO-CARRIER,", " scope global", " scope link",
    " scope host", "  netmask ",      "Link encap:", "inet addr:",   "  MTU:",        "Settings for ",
    "0Mb/s",       "Link detected: ", "$ ip a",      "# ip a",       "$ ip link",     "# ip link",
    "$ ip -",      "# ip -",          "$ ifconfig",  "# ifconfig",   "$ ethtool",     "# ethtool"};

}  // namespace

extern const Format kInterfaces{.name = "interfaces",
                                .framing = Framing::kLines,
                                .component = Component::kAny,
                                .marks = kInterfacesMarks,
                                .make = &Make<InterfacesParser>};

}  // namespace inquest
