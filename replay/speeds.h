// How fast each rank sends to each other, over sizes; and which of that is slower than it was.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/pairs.h"

namespace inquest {

/// As nccl-tests has them with -b, -e and -f: from the first on, each so many times the one before, to the last.
struct SizeSweep {
  std::uint64_t first = 8, last = 128U << 20U, factor = 16;  ///< bytes; first > 0, factor > 1
};
std::vector<std::uint64_t> SizesOf(const SizeSweep& sweep);

/// Of one size, over the iterations of one run but its first: each takes as long as its slower rank.
struct SpeedSample {
  std::uint64_t bytes = 0;
  double median_s = 0, mad_s = 0;  ///< seconds; the median of the distances from the median
  int runs = 0;                    ///< iterations that count
  double least_s = 0;              ///< the fastest of them; 0: a baseline's, which keeps none
};
/// GB/s: of a send the bus bandwidth is the algorithm's.
double GigabytesPerSecond(const SpeedSample& sample);

/// One rank that sends to another.
struct LinkSpeed {
  int from = 0, to = 1;
  std::string port = {};                   ///< the one RDMA port that it may use: `mlx5_0:1`; empty: NCCL's choice
  std::vector<SpeedSample> samples = {};   ///< by size, ascending
  std::string error = {};                  ///< why a size did not pass, and no larger one was tried; empty: all passed
  std::optional<SpeedSample> again = {};   ///< alone and in fresh processes, the better of two; nullopt: not asked for
  std::optional<SpeedSample> before = {};  ///< what the baseline has of that size
};

struct Speeds {
  std::string engine;              ///< `nccl`
  std::vector<std::string> hosts;  ///< by rank
  std::vector<LinkSpeed> links;    ///< by port, from and to
  bool interrupted = false;
};

struct SpeedSetup {
  RunPlans run;
  /// The RDMA ports that NCCL said in the last run it had to choose from. May be empty.
  std::function<std::vector<std::string>()> cards = {};
  std::function<void(std::string_view what)> progress = {};  ///< may be empty
};

/// Every rank sends to every other, disjoint pairs at once, in fresh processes for each size; of several RDMA ports
/// each one alone too, at the largest size, from half of the ranks to the other half and back.
Speeds MeasureSpeeds(const Plan& plan, const SizeSweep& sweep, const SpeedSetup& setup);

/// What a link has to fall by to be called slow: so much of its bandwidth, beyond the noise of both measurements.
inline constexpr double kSlowerBy = 0.25;
/// Whether a sample is that much slower: its median is, beyond the noise of both, or its fastest iteration is, which
/// no noise of a busy machine can have made faster than the link.
bool IsSlower(const SpeedSample& now, const SpeedSample& before);

struct SpeedsCompared {
  Speeds now;                      ///< what looked slow has `again` and `before`
  std::vector<std::size_t> slow;   ///< of now.links: slower alone as well
  std::vector<std::string> notes;  ///< of what is not as it was: `rank 3 was on node07, and is on node09`
  std::string finding;
};
/// What looks slower than in `before`, where the pairs of a round ran at once too, is run twice more, alone, at the
/// largest such size; it is slow where it is in both.
SpeedsCompared Compare(const Plan& plan, Speeds now, const Speeds& before, const SpeedSetup& setup);
/// Without anything to compare it with.
SpeedsCompared Measured(Speeds now);

/// 0: nothing is slow; 1: a link is slow, or does not pass; 2: interrupted; 3: nothing was measured.
int ExitStatus(const SpeedsCompared& compared);

}  // namespace inquest
