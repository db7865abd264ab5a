// The TCP connections between ranks as the kernel sees them, which a hung or stopped process cannot tell.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "replay/outcome.h"

namespace inquest {

/// Looks twice, `apart` apart. Two rows a connection, one in each direction; a connection that is not made yet has one.
/// Sorted by ranks. Processes in other network namespaces are looked at where we may enter those.
std::vector<LinkRow> LinksBetween(const std::map<int, pid_t>& pid_of_rank, std::chrono::milliseconds apart);

/// Holds bytes that do not arrive, though the receiver reads: neither acknowledged nor waiting at the other end.
bool IsDead(const LinkRow& link);

}  // namespace inquest
