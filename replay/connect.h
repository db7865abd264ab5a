// TCP connections to and from hosts by name: IPv4 and IPv6.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/result.h"
#include "replay/spawn.h"

namespace inquest {

/// Tries every address of the name. What it returns does not block.
Result<OwnedFd> ConnectTo(const std::string& host, std::uint16_t port, std::chrono::milliseconds limit);
/// On every interface; port 0: a free one. What it returns does not block.
Result<OwnedFd> ListenOn(std::uint16_t port);
std::uint16_t PortOf(int fd);
/// `10.0.0.2`, `fe80::1`: of this end, of the other end. Empty: not connected. An IPv4 address in an IPv6 socket is
/// shown as one.
std::string OwnAddressOf(int fd);
std::string PeerAddressOf(int fd);
bool IsLoopbackAddress(const std::string& address);

}  // namespace inquest
