// What the rules see: the timeline, and which of its lines match which rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/pattern.h"
#include "rules/kernel_scope.h"
#include "rules/rule_book.h"
#include "rules/verdict.h"
#include "timeline/course.h"
#include "timeline/timeline.h"

namespace inquest {

/// A rule confirmed on a line.
struct LineMatch {
  std::uint32_t rule = 0;  ///< into RuleBook::rules
  EventIndex event = 0;
  /// The named groups that took part, by name.
  std::vector<std::pair<std::string, std::string>> groups;
};

/// A rank, or the job where the line names no rank, was at some kind of work.
struct PhaseSeen {
  std::uint32_t rule = 0;
  Activity at = Activity::kNone;
  EventIndex event = 0;
  std::optional<int> percent;
};

struct Evidence {
  const Timeline& timeline;
  const RuleBook& book;
  std::vector<LineMatch> matches;  ///< by event, then rule
  std::vector<PhaseSeen> phases;   ///< by event
  KernelScope scope;
  std::vector<Told> told;  ///< the same, as lifelines take it; by event
  Course course;
};

/// Confirms the sieve's hits by RE2 and captures.
Evidence Gather(const Timeline& timeline, const RuleBook& book);

/// One finding per rule that held on some line.
std::vector<Finding> MatchSignatures(const Evidence& evidence);

/// Quotes an event.
Citation Cite(const Timeline& timeline, EventIndex event, LineRole role);
/// A culprit for a rank, with host, pid and device as far as the timeline knows them.
Culprit BlameRank(const Timeline& timeline, GlobalRank rank, std::string why);
/// The operation of a row, with its waiters.
CollectiveRef RefOf(const Timeline& timeline, const CollectiveRow& row);

}  // namespace inquest
