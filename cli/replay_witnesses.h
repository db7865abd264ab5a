// What a host says of a replay on GPUs that failed: NCCL's RAS, nvidia-smi, the kernel's log, NVLink's counters.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "replay/node.h"
#include "replay/spawn.h"

namespace inquest {

/// `GPU 0 link 3 CRC Errors` -> 17, of `nvidia-smi nvlink -e`.
using LinkCounters = std::map<std::string, std::uint64_t>;
LinkCounters ReadLinkCounters(std::string_view printed);
/// What rose: `GPU 0 link 3 CRC Errors rose by 17`; the first few, then how many more. Empty: nothing.
std::vector<std::string> RisenCounters(const LinkCounters& before, const LinkCounters& after);
/// As they are now; empty: nvidia-smi is not here, does not answer, or there are no links.
LinkCounters LinkCountersNow();

/// Of the host it runs on. From any thread.
class HostWitness {
 public:
  explicit HostWitness(const char* kernel_log = "/dev/kmsg");
  /// Forgets what the kernel has said so far: a run begins.
  void Begin();
  /// For NodeSetup::look, within eight seconds: RAS of at most eight of these ranks, and Ask. Nothing for ranks that
  /// are not Witnessed.
  std::map<std::string, std::string> Look(const std::vector<LiveRank>& ranks);
  /// `nvidia-smi -q`, and what the kernel said since Begin, at most 256 KiB. By file name; what could not be had, and
  /// why, is kNotHad, one sentence a line.
  std::map<std::string, std::string> Ask();
  static constexpr const char* kNotHad = "not-had.txt";

 private:
  std::string ReadKernel();

  std::mutex mutex_;
  OwnedFd kernel_;  ///< from where it was last read
  std::string no_kernel_;
};

}  // namespace inquest
