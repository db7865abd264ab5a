// The memory of this host: what ranks may still take of it, and whom the kernel killed for it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/wire.h"

namespace inquest {

/// The narrowest of the host's memory and of the cgroups that this process is in.
struct MemoryRoom {
  std::uint64_t bytes = 0;
  std::string of;  ///< `this host`, `its cgroup (limit 400.0 MB)`
};
/// nullopt: the kernel does not say. `top` is what stands in front of /proc and /sys, for tests.
std::optional<MemoryRoom> RoomForRanks(const std::string& top = "");

/// Why ranks with these orders do not fit here, with the largest call that does, or the orders themselves are not fit:
/// an agent's come from elsewhere. Empty: they do, or their engine keeps its data elsewhere.
/// `on_host`: ranks that share that room, those of other nodes with them.
std::string WhyTooLarge(const std::vector<StartWork>& ranks, const std::optional<MemoryRoom>& room, int on_host);

/// How many processes were killed so far because memory ran out: in the cgroup of one, and on the host.
struct OomKills {
  std::string file;  ///< that counts those of the cgroup; the process may be gone when it is asked again
  std::optional<std::uint64_t> cgroup = {};  ///< nullopt: the kernel does not say
  std::uint64_t host = 0;
};
OomKills OomKillsAround(pid_t pid, const std::string& top = "");
/// `the kernel's OOM killer was at work in its cgroup ...`; empty: nobody was killed for it since.
std::string WhyOom(const OomKills& before);

}  // namespace inquest
