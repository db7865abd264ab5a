// getaddrinfo, and sockets that do not block.
#include "replay/connect.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace inquest {
namespace {

using std::chrono::milliseconds;

int SocketError(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

std::string TextOf(const sockaddr_storage& address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return "";
  const std::string host = text.data();
  constexpr std::string_view kMapped = "::ffff:";
  return host.starts_with(kMapped) && host.find('.') != std::string::npos ? host.substr(kMapped.size()) : host;
}

}  // namespace

Result<OwnedFd> ConnectTo(const std::string& host, std::uint16_t port, milliseconds limit) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), fmt::format("{}", port).c_str(), &wanted, &list); error != 0)
    return Error{fmt::format("{}: {}", host, ::gai_strerror(error)), "", ""};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::string why = "it has no address";
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
    OwnedFd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.is_open()) continue;
    int error = ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      pollfd ready{socket.get(), POLLOUT, 0};
      error = ::poll(&ready, 1, static_cast<int>(limit.count())) > 0 ? SocketError(socket.get()) : ETIMEDOUT;
    }
    if (error == 0) return socket;
    why = std::strerror(error);
  }
  return Error{why, "", ""};
}

Result<OwnedFd> ListenOn(std::uint16_t port) {
  constexpr int kBacklog = 512;
  std::string why;
  for (const int family : {AF_INET6, AF_INET}) {  // the first takes both, where the kernel has IPv6
    OwnedFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1, no = 0;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    const bool bound = family == AF_INET6
                           ? ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&six), sizeof six) == 0
                           : ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&four), sizeof four) == 0;
    if (bound && ::listen(socket.get(), kBacklog) == 0) return socket;
    why = std::strerror(errno);
    if (errno == EADDRINUSE) break;
  }
  return Error{fmt::format("port {} cannot be listened at: {}", port, why),
               "name another with --master HOST:PORT, the same on every node", ""};
}

std::uint16_t PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  // The port stands at the same place in both.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::string OwnAddressOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 ? TextOf(address, length) : "";
}

std::string PeerAddressOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 ? TextOf(address, length) : "";
}

bool IsLoopbackAddress(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

}  // namespace inquest
