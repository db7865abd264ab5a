// How this process was started: alone, or as one of several that torchrun, mpirun, srun or a person started alike.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace inquest {

/// Where nothing names a port; next to no other program's.
inline constexpr std::uint16_t kDefaultMasterPort = 29571;

/// `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT`.
struct HostAndPort {
  std::string host;
  std::optional<std::uint16_t> port;
};

/// What the options say of it; each replaces what the environment says.
struct LaunchFlags {
  std::optional<std::uint64_t> nodes, node;
  std::optional<HostAndPort> master;
};

struct Launch {
  int index = 0, count = 1;  ///< which of how many processes like this one; 0 is the coordinator
  std::string master;        ///< host of the coordinator; empty: count is 1
  std::uint16_t port = kDefaultMasterPort;
  std::optional<int> local_rank = {};   ///< where a launcher started several on a host
  std::vector<std::string> hosts = {};  ///< by index; empty: not known
  Basis basis = Basis::kAssumed;
  std::string rule = "this host alone";
  std::string note = {};  ///< what a user of that launcher may have expected; empty: nothing
  bool is_several_on_host() const { return local_rank.has_value(); }
};

/// A variable of the environment; nullopt: not set, or empty.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

/// The first that speaks: the options, torchrun, Open MPI, MPICH and other PMI, srun. One that says 1 is one.
Result<Launch> FindLaunch(const LaunchFlags& flags, const Lookup& environment);

/// `node[01-03,7],gpu1` as Slurm writes it; nullopt: not such a list, or of more than 65536 hosts.
std::optional<std::vector<std::string>> ExpandHostList(std::string_view list);

std::optional<HostAndPort> ParseHostAndPort(std::string_view text);

/// `30`, `2.5s`, `500ms`; nullopt: no time, none, or more than a million seconds.
std::optional<std::chrono::milliseconds> DurationOf(std::string_view text);

/// One entry of `a:4,b:4`.
struct HostShare {
  std::string host;
  std::optional<int> ranks;
};
Result<std::vector<HostShare>> ParseHostShares(std::string_view text);

}  // namespace inquest
