// The TCP connections between ranks as the kernel sees them, which a hung or stopped process cannot tell.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replay/outcome.h"

namespace inquest {

/// One TCP socket of a rank, as its own kernel shows it; all of these are values that can travel. Endpoints as
/// `10.0.0.2:4711`.
struct SocketSight {
  int rank = 0;
  std::string net;  ///< the host and network namespace that it lives in
  std::string local, remote;
  enum class State : std::uint8_t { kConnected, kConnecting, kListening } state = State::kConnected;
  std::uint64_t acked = 0, received = 0, unread = 0;                    ///< at the first look
  std::uint64_t acked_later = 0, received_later = 0, unread_later = 0;  ///< at the second
  std::uint64_t queued = 0;
  std::uint32_t retransmits = 0;
  std::chrono::milliseconds since_ack{};
  std::uint64_t segments_out = 0, segments_in = 0;  ///< at the second; those sent again too
};

struct LinkPicture {
  std::vector<LinkRow>
      links;  ///< two a connection, one in each direction, and one for each that is not made yet; by ranks
  std::map<std::string, int> listeners;  ///< `10.0.0.2:4711` -> rank: who listens there, or has a connection there
};

/// The host and network namespace of the caller, as SocketSight::net has it.
std::string NetOfThisThread();

/// Of the ranks of this host: looks twice, `apart` apart. Processes in other network namespaces are looked at where we
/// may enter those.
std::vector<SocketSight> LookAtSockets(const std::map<int, pid_t>& pid_of_rank, std::chrono::milliseconds apart);

/// Joins the two ends of each connection by their addresses, over all nodes.
LinkPicture LinksBetween(const std::vector<SocketSight>& sockets);

/// Of a dead link: whether all that is sent arrives, and only the news of that does not come back. nullopt: it tells
/// neither.
std::optional<bool> Arrives(const LinkRow& link);

/// Holds bytes that do not arrive, though the receiver reads: neither acknowledged nor waiting at the other end.
bool IsDead(const LinkRow& link);

}  // namespace inquest
