// Whether what was given holds two jobs at once.
#pragma once

#include <optional>
#include <string>

#include "timeline/timeline.h"

namespace inquest {

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

/// The first that is found, in order of the lines; nullopt: nothing speaks against one job.
/// The number of the batch job that a scheduler's line names.
std::optional<std::string> BatchJobId(const Event& event);
std::optional<TwoJobs> FindTwoJobs(const Timeline& timeline);

}  // namespace inquest
