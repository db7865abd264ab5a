// The job whose log is modelled: 8 ranks per host, one host after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/log_writer.h"

namespace inquest::bench {

/// NCCL 2.21 with PyTorch 2.4, or NCCL 2.27 with PyTorch 2.9: they spell prefixes, Init and watchdog lines differently.
enum class Era : std::uint8_t { kNccl221, kNccl227 };

struct Job {
  static constexpr int kPerHost = 8;

  int ranks = 64;
  int culprit = 0;  ///< the rank that stops one operation early
  Era era = Era::kNccl221;
  std::uint64_t seed = 1;
  std::uint64_t attempt = 0;  ///< of the launcher; every attempt has processes of its own

  int HostOf(int rank) const { return rank / kPerHost; }
  int LocalRank(int rank) const { return rank % kPerHost; }
  int RanksOnHost(int host) const { return ranks - host * kPerHost < kPerHost ? ranks - host * kPerHost : kPerHost; }
  std::uint64_t Pid(int rank) const {
    return 41234 + static_cast<std::uint64_t>(LocalRank(rank)) + 997 * static_cast<std::uint64_t>(HostOf(rank) % 20) +
           640 * attempt;
  }
};

/// When the ending of an attempt is printed, and `later` seconds on: an attempt takes a quarter of an hour.
struct Clock {
  std::uint64_t month, day, hour, minute, second;
};
Clock ClockOf(const Job& job, std::uint64_t later);

/// The operation that the others wait in, as PyTorch's watchdog prints it.
struct Work {
  std::uint64_t seq = 1;
  std::string_view op = "ALLREDUCE";
  std::uint64_t numel_in = 1, numel_out = 1;
};

/// `node017`; at least three digits.
void WriteHost(const Job& job, int rank, LogWriter& log);
/// The watchdog's time-out on every rank but the culprit, the aborts, and what the launcher prints of the dead.
void WriteFailure(const Job& job, const Work& work, LogWriter& log);

}  // namespace inquest::bench
