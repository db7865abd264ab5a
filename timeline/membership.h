// Who belongs to an operation that did not end: who waits in it, and who never came.
#pragma once

#include <span>
#include <vector>

#include "core/rank_set.h"
#include "timeline/timeline.h"

namespace inquest {

/// Of one operation.
struct Members {
  RankSet waiting, absent;
  bool complete = false;  ///< everybody who should be there is known
  RankSet heard;          ///< of the absent, those that the log holds lines of
  /// Fewer than those who wait.
  bool FewAbsent() const { return absent.size() < waiting.size(); }
  /// The absent, as far as that can be said: of a job of which most logs are missing, only those who spoke are known
  /// not to have waited.
  const RankSet& missed() const { return FewAbsent() ? absent : heard; }
};

/// The earliest of the timeline's operations that did not end, each of which is held against all that is known: a job
/// hangs in one, or in one of each of its groups.
std::span<const CollectiveRow> RowsHeld(const Timeline& timeline);

/// What the whole log tells of its ranks; gathered once, held against every operation.
class Membership {
 public:
  explicit Membership(const Timeline& timeline);
  /// The ranks that belong to the row's group: those that spoke of the group, and for the default group the whole job.
  Members Of(const CollectiveRow& row) const;
  /// Who timed out in any operation of a group.
  const RankSet& waited(std::uint32_t group) const { return waited_[group]; }

 private:
  const Timeline* timeline_;
  RankSet spoken_, stuck_;         ///< stuck: its own watchdog was, and could not have said that it waits
  std::vector<RankSet> waited_;    ///< by group
  RankSet in_named_, in_unnamed_;  ///< who waited in an operation whose group a line names, or none does
};

}  // namespace inquest
