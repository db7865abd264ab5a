// `node017: ` (pdsh, clush).
#include <algorithm>
#include <array>

#include "core/host_name.h"
#include "parsers/envelopes/front.h"
#include "parsers/message_head.h"

namespace inquest {
namespace {

using std::string_view;

/// What tools print about a host, as pdsh and clush hand it on: behind the host's name, lines in any order of hosts.
bool LooksLikeState(string_view text) {
  static constexpr std::array<string_view, 18> kHeads = {"CA '",
                                                         "hca_id:\t",
                                                         "Infiniband device '",
                                                         "link mlx",
                                                         "link ib",
                                                         "link roce",
                                                         "link bnxt",
                                                         "link rdma",
                                                         "max locked memory ",
                                                         "open files  ",
                                                         "max user processes ",
                                                         "Max locked memory ",
                                                         "Max open files ",
                                                         "Max processes ",
                                                         "Filesystem  ",
                                                         "tmpfs  ",
                                                         "shm  ",
                                                         "BOOT_IMAGE="};
  static constexpr std::array<string_view, 18> kIndented = {
      "CA type: ",    "Port ",   "State: ",       "Physical state: ", "Rate: ",        "SM lid: ",
      "Link layer: ", "port:\t", "state:\t",      "phys_state:\t",    "link_layer:\t", "sm_lid:\t",
      "active_",      "GID[",    "phys state:\t", "sm lid:\t",        "rate:\t",       "default gid:\t"};
  if (text.starts_with('\t')) {
    text.remove_prefix(std::min(text.find_first_not_of('\t'), text.size()));
    return StartsWithAny(text, kIndented);
  }
  if (StartsWithAny(text, kHeads)) return true;
  return !text.empty() && IsDigit(text[0]) && text.find(": <") < 40 && text.find("> mtu ") != kNowhere;  // ip link
}

/// A name that a compute node may have: nearly all carry a digit or a dash, and pdsh cuts them at the first dot. What
/// has dots is a Python module's logger. DeepSpeed's hostfile may call the host that it starts from localhost.
bool IsHostName(string_view name) {
  if (name.starts_with("rank") && CountDigits(name.substr(4)) == name.size() - 4) return false;
  if (name.empty() || name.size() > 64 || !(IsLower(name[0]) || IsDigit(name[0])) || CountDigits(name) == name.size())
    return false;
  const bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c) || c == '-'; });
  return plain && std::any_of(name.begin(), name.end(), [](char c) { return IsDigit(c) || c == '-'; });
}

/// `node017: ` (pdsh).
bool PeelHost(Front& front) {
  const std::size_t colon = front.text.substr(0, 68).find(": ");
  if (colon == kNowhere || colon + 2 == front.text.size()) return false;
  const string_view name = front.text.substr(0, colon), rest = front.text.substr(colon + 2);
  if (!HostName(name).is_ipv4() && name != "localhost" &&
      !(IsHostName(name) && (LooksLikeLog(rest) || StartsWithTag(rest) || LooksLikeState(rest))))
    return false;
  front.SetHost(name);
  front.text = rest;
  return true;
}

}  // namespace

extern const Envelope kPdsh{.peel = &PeelHost};

}  // namespace inquest
