// The TCP connections between ranks as the kernel sees them, which a hung or stopped process cannot tell.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "replay/outcome.h"

namespace inquest {

struct LinkPicture {
  std::vector<LinkRow> links;            ///< two a connection, one in each direction, and one for each that is not made yet; by ranks
  std::map<std::string, int> listeners;  ///< `10.0.0.2:4711` -> rank
};

/// Looks twice, `apart` apart. Processes in other network namespaces are looked at where we may enter those.
LinkPicture LinksBetween(const std::map<int, pid_t>& pid_of_rank, std::chrono::milliseconds apart);

/// Holds bytes that do not arrive, though the receiver reads: neither acknowledged nor waiting at the other end.
bool IsDead(const LinkRow& link);

}  // namespace inquest
