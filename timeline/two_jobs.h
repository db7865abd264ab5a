// Whether what was given holds two jobs at once.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "timeline/timeline.h"

namespace inquest {

/// A line that names the batch job by its id.
struct NamedJob {
  EventIndex event = 0;
  std::string_view system;  ///< `slurm`, `lsf`, `pbs`
  std::string id;
};

/// What shows it: two lines of one attempt that cannot be of one job.
struct TwoJobs {
  std::optional<GlobalRank> rank;  ///< that ran on both hosts; nullopt: two ids of a batch system
  std::string first, other;        ///< the hosts, or the ids
  EventIndex first_event = 0, other_event = 0;
  RankSet ranks;  ///< all that ran on several hosts: only a line's own word says on which
};

// A rank is one process, on one host, in one start of one job; and a batch job has one id. So a rank on two hosts, or
// two ids, are two jobs, or two starts that nothing told apart. Hosts count where a line of the rank itself names them,
// names against names and addresses against addresses, since a pod's own name and its node's are two of one host.

/// The first that is found, in order of the lines; nullopt: nothing speaks against one job. `named`: by the lines, in
/// order, and one job under one id.
std::optional<TwoJobs> FindTwoJobs(const Timeline& timeline, std::span<const NamedJob> named);

}  // namespace inquest
