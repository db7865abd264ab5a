// Many jobs at once: a row each, and what they have in common.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace inquest {

/// One job, and what of its verdict a row tells.
struct TriagedJob {
  std::string name;                ///< as a person knows it among the others
  std::vector<std::string> paths;  ///< what was given of it
  std::string problem;             ///< why it could not be judged; empty: it was
  Verdict verdict;                 ///< without what WithoutProof() takes away
  std::vector<std::string> hosts;  ///< all of the job's
  std::optional<Timestamp> when;   ///< of the first cause, else of the last line that has a date
};

/// The verdict as a row tells it: memory for a thousand jobs is not that of a thousand documents.
Verdict WithoutProof(Verdict verdict);

/// Jobs that share something, by their place in the list; in its order.
struct SharedBy {
  std::string what;  ///< a fingerprint, or a host
  std::vector<std::size_t> jobs;
};
/// Those with most jobs first.
std::vector<SharedBy> ByFingerprint(std::span<const TriagedJob> jobs);
/// Hosts of culprits, of jobs of which a cause is known.
std::vector<SharedBy> ByHost(std::span<const TriagedJob> jobs);

struct TriageCounts {
  std::size_t failed = 0, healthy = 0, undecided = 0, unread = 0;
};
TriageCounts CountsOf(std::span<const TriagedJob> jobs);

/// A table for people, and below it what several jobs share. Everything that a log or a folder's name says is
/// sanitised.
std::string RenderTriage(std::span<const TriagedJob> jobs, const TextStyle& style);
/// One document; ASCII.
void RenderTriageJson(std::span<const TriagedJob> jobs, std::string_view tool_version, const Sink& sink);
/// An object a line, ASCII, one a job.
void RenderTriageLines(std::span<const TriagedJob> jobs, std::string_view tool_version, const Sink& sink);
/// Stands in the first KiB of both.
inline constexpr std::string_view kTriageMark = "\"schema\": \"inquest-triage-1\"";

}  // namespace inquest
