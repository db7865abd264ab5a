// sock_diag, as `ss -ti` uses it: queues and byte counts of both ends of each connection, joined by their addresses.
#include "replay/links.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <set>
#include <system_error>
#include <thread>
#include <tuple>

#include "replay/proc.h"
#include "replay/spawn.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;

enum TcpState : unsigned { kEstablished = 1, kSynSent = 2, kListen = 10 };

struct Endpoint {
  std::string address;  ///< the kernel's bytes
  std::uint16_t port = 0;
  auto operator<=>(const Endpoint&) const = default;
};

struct SocketRow {
  Endpoint local, remote;
  unsigned state = 0;
  std::uint64_t inode = 0, receive_queue = 0, send_queue = 0, acked = 0, received = 0;
  std::uint32_t retransmits = 0;
  milliseconds since_ack{};
  std::uint64_t segments_out = 0, segments_in = 0;
  std::string net = {};
};
using Sockets = std::map<std::uint64_t, SocketRow>;  // by inode

std::string Text(const Endpoint& endpoint) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool four = endpoint.address.size() == 4;
  ::inet_ntop(four ? AF_INET : AF_INET6, endpoint.address.data(), text.data(), text.size());
  return four ? fmt::format("{}:{}", text.data(), endpoint.port) : fmt::format("[{}]:{}", text.data(), endpoint.port);
}

Endpoint EndpointOf(unsigned char family, const __be32* address, __be16 port) {
  const auto* bytes = reinterpret_cast<const char*>(address);
  constexpr std::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);  // an IPv4 address in an IPv6 socket
  std::string text(bytes, family == AF_INET ? 4 : 16);
  if (text.starts_with(kMapped)) text.erase(0, kMapped.size());
  return {std::move(text), ntohs(port)};
}

SocketRow RowOf(const inet_diag_msg& message, std::size_t length) {
  SocketRow row{.local = EndpointOf(message.idiag_family, message.id.idiag_src, message.id.idiag_sport),
                .remote = EndpointOf(message.idiag_family, message.id.idiag_dst, message.id.idiag_dport),
                .state = message.idiag_state,
                .inode = message.idiag_inode,
                .receive_queue = message.idiag_rqueue,
                .send_queue = message.idiag_wqueue};
  const char* attributes = reinterpret_cast<const char*>(&message + 1);
  for (std::size_t at = 0; at + sizeof(rtattr) <= length;) {
    rtattr attribute;
    std::memcpy(&attribute, attributes + at, sizeof attribute);
    if (attribute.rta_len < sizeof attribute || at + attribute.rta_len > length) break;
    if (attribute.rta_type == INET_DIAG_INFO) {
      tcp_info info{};  // an older kernel has less of it, a newer one more
      std::memcpy(&info, attributes + at + sizeof attribute,
                  std::min(sizeof info, attribute.rta_len - sizeof attribute));
      row.acked = info.tcpi_bytes_acked;
      row.received = info.tcpi_bytes_received;
      row.retransmits = std::max<std::uint32_t>(info.tcpi_retransmits, info.tcpi_backoff);
      row.since_ack = milliseconds(info.tcpi_last_ack_recv);
      row.segments_out = info.tcpi_segs_out;
      row.segments_in = info.tcpi_segs_in;
    }
    at += (attribute.rta_len + 3U) & ~3U;
  }
  return row;
}

/// Adds the TCP sockets of one family in the thread's network namespace.
void Dump(unsigned char family, const std::string& net, Sockets& sockets) {
  const OwnedFd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  struct {
    nlmsghdr header;
    inet_diag_req_v2 body;
  } request{};
  request.header = {.nlmsg_len = sizeof request,
                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                    .nlmsg_seq = 0,
                    .nlmsg_pid = 0};
  request.body.sdiag_family = family;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_ext = 1U << (INET_DIAG_INFO - 1);
  request.body.idiag_states = ~0U;
  const timeval limit{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::send(netlink.get(), &request, sizeof request, 0) < 0) return;
  alignas(nlmsghdr) std::array<char, 64 * 1024> piece;
  while (true) {
    const ssize_t got = ::recv(netlink.get(), piece.data(), piece.size(), 0);
    if (got <= 0) return;
    for (std::size_t at = 0; at + sizeof(nlmsghdr) <= static_cast<std::size_t>(got);) {
      const auto& header = *reinterpret_cast<const nlmsghdr*>(piece.data() + at);
      if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR || header.nlmsg_len < sizeof(nlmsghdr))
        return;
      if (header.nlmsg_len >= sizeof(nlmsghdr) + sizeof(inet_diag_msg)) {
        const auto& message = *reinterpret_cast<const inet_diag_msg*>(&header + 1);
        SocketRow row = RowOf(message, header.nlmsg_len - sizeof(nlmsghdr) - sizeof(inet_diag_msg));
        row.net = net;
        if (row.inode != 0) sockets[row.inode] = row;
      }
      at += NLMSG_ALIGN(header.nlmsg_len);
    }
  }
}

ino_t NamespaceOf(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

/// Of the host and the namespace together: equal where a loopback address means the same.
std::string NetName(ino_t inode) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return fmt::format("{}/{}", boot, inode);
}

/// The sockets of every network namespace that a rank lives in.
Sockets Look(const std::map<int, pid_t>& pid_of_rank) {
  std::map<ino_t, pid_t> namespaces;
  for (const auto& [rank, pid] : pid_of_rank) namespaces.emplace(NamespaceOf(fmt::format("/proc/{}/ns/net", pid)), pid);
  const ino_t own = NamespaceOf("/proc/thread-self/ns/net");
  Sockets sockets;
  for (const auto& [inode, pid] : namespaces) {
    const auto dump = [&, net = NetName(inode)] {
      Dump(AF_INET, net, sockets);
      Dump(AF_INET6, net, sockets);
    };
    if (inode == own) {
      dump();
      continue;
    }
    const OwnedFd other(::open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!other.is_open()) continue;
    try {
      std::thread([&] {  // a namespace is entered by a thread, for good
        if (::setns(other.get(), CLONE_NEWNET) == 0) dump();
      })
          .join();
    } catch (const std::system_error&) {  // no thread can be had
    }
  }
  return sockets;
}

bool IsLoopback(const std::string& endpoint) { return endpoint.starts_with("127.") || endpoint.starts_with("[::1]"); }

LinkRow RowFrom(const SocketSight& sender, int to, const SocketSight* receiver) {
  LinkRow row{.from = sender.rank, .to = to, .from_address = sender.local, .to_address = sender.remote};
  row.acked = sender.acked_later;
  row.queued = sender.queued;
  row.retransmits = sender.retransmits;
  row.since_ack = sender.since_ack;
  row.connected = sender.state == SocketSight::State::kConnected;
  row.moves = sender.acked_later != sender.acked;
  if (receiver != nullptr) {
    row.received = receiver->received_later;
    row.unread = receiver->unread_later;
    if (sender.segments_out > 0 && receiver->segments_in > 0)
      row.lost = static_cast<std::int64_t>(sender.segments_out) - static_cast<std::int64_t>(receiver->segments_in);
    row.moves =
        row.moves || receiver->received_later != receiver->received || receiver->unread_later != receiver->unread;
  }
  return row;
}

}  // namespace

std::string NetOfThisThread() { return NetName(NamespaceOf("/proc/thread-self/ns/net")); }

std::vector<SocketSight> LookAtSockets(const std::map<int, pid_t>& pid_of_rank, milliseconds apart) {
  std::map<std::uint64_t, int> rank_of_inode;
  for (const auto& [rank, pid] : pid_of_rank) {
    for (const std::uint64_t inode : SocketsOf(pid)) rank_of_inode.emplace(inode, rank);
  }
  const Sockets first = Look(pid_of_rank);
  std::this_thread::sleep_for(apart);
  const Sockets second = apart.count() > 0 ? Look(pid_of_rank) : Sockets();
  std::vector<SocketSight> sights;
  for (const auto& [inode, row] : first) {
    const auto rank = rank_of_inode.find(inode);
    if (rank == rank_of_inode.end()) continue;
    const auto found = second.find(inode);
    const SocketRow& later = found == second.end() ? row : found->second;
    using State = SocketSight::State;
    sights.push_back({.rank = rank->second,
                      .net = row.net,
                      .local = Text(row.local),
                      .remote = Text(row.remote),
                      .state = row.state == kListen      ? State::kListening
                               : later.state == kSynSent ? State::kConnecting
                                                         : State::kConnected,
                      .acked = row.acked,
                      .received = row.received,
                      .unread = row.receive_queue,
                      .acked_later = later.acked,
                      .received_later = later.received,
                      .unread_later = later.receive_queue,
                      .queued = later.send_queue,
                      .retransmits = later.retransmits,
                      .since_ack = later.since_ack,
                      .segments_out = later.segments_out,
                      .segments_in = later.segments_in});
  }
  return sights;
}

LinkPicture LinksBetween(const std::vector<SocketSight>& sockets) {
  // A loopback address means something in its own namespace alone.
  const auto place = [](const SocketSight& socket, const std::string& endpoint) {
    return std::pair(IsLoopback(endpoint) ? socket.net : "", endpoint);
  };
  using Place = std::pair<std::string, std::string>;
  std::map<std::pair<Place, Place>, const SocketSight*> by_ends;
  std::map<Place, int> listeners;
  for (const SocketSight& socket : sockets) {
    if (socket.state == SocketSight::State::kListening)
      listeners.emplace(place(socket, socket.local), socket.rank);
    else
      by_ends.emplace(std::pair(place(socket, socket.local), place(socket, socket.remote)), &socket);
  }
  LinkPicture picture;
  std::vector<LinkRow>& links = picture.links;
  std::set<std::string> shared;  // by ranks of two hosts or namespaces
  const auto is_at = [&](const std::string& endpoint, int rank) {
    if (picture.listeners.emplace(endpoint, rank).first->second != rank) shared.insert(endpoint);
  };
  for (const auto& [endpoint, rank] : listeners) is_at(endpoint.second, rank);
  for (const auto& [ends, sender] : by_ends) is_at(sender->local, sender->rank);
  for (const std::string& endpoint : shared) picture.listeners.erase(endpoint);
  for (const auto& [ends, sender] : by_ends) {
    const auto other = by_ends.find({ends.second, ends.first});
    if (other != by_ends.end()) {
      if (other->second->rank != sender->rank) links.push_back(RowFrom(*sender, other->second->rank, other->second));
    } else if (const auto listener = listeners.find(ends.second);
               sender->state == SocketSight::State::kConnecting && listener != listeners.end()) {
      links.push_back(RowFrom(*sender, listener->second, nullptr));
    }
  }
  std::ranges::sort(links, {}, [](const LinkRow& link) {
    return std::tuple(link.from, link.to, link.from_address, link.to_address);
  });
  return picture;
}

std::optional<bool> Arrives(const LinkRow& link) {
  if (!IsDead(link) || !link.connected || !link.lost) return std::nullopt;
  // A link that was cut both ways has lost at least what it sent again.
  return *link.lost <= 0;
}

bool IsDead(const LinkRow& link) {
  constexpr milliseconds kPatience{400};
  if (!link.connected) return link.retransmits > 0;
  return link.queued > 0 && !link.moves && link.unread == 0 && (link.retransmits > 0 || link.since_ack > kPatience);
}

}  // namespace inquest
