// What the ranks' own recorders hold, as a table for each process group: ranks that stand alike share a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/rank_set.h"
#include "report/report.h"
#include "timeline/timeline.h"
#include "timeline/wait_graph.h"

namespace inquest {

/// Ranks of one group that stand alike.
struct RecordedRow {
  enum class Where : std::uint8_t { kInCall, kElsewhere, kNowhere, kNoDump };
  RankSet ranks;
  Where where = Where::kNowhere;
  std::optional<std::int64_t> ended, made;  ///< the last number that had ended, and the last that was called
  const RecordedCall* call = nullptr;       ///< kInCall: the oldest that had not ended; kNowhere: the last of all
  std::optional<std::uint32_t> node;        ///< kElsewhere: into WaitGraph::nodes
};

/// Of each group in which anything was recorded; those that are behind first, then by the lowest rank.
std::vector<RecordedRow> RowsOf(const Recorded& recorded, const WaitGraph& waits, std::uint32_t group);

/// `Group 2 (tp): 4 ranks`.
std::string HeadOf(const RecordedGroup& group);
/// NCCL counted as many on all its ranks: that tells nothing.
bool CountedAlike(const RecordedGroup& group);
/// `given up`, `started`; `-` where they are in none of its calls.
std::string StateInWords(const RecordedRow& row);
/// What they are in, or did last: `all_reduce of 1 x Float; train_step at train.py:88`.
std::string InWords(const Recorded& recorded, const WaitGraph& waits, const RecordedRow& row);

/// The verdict in two lines, a table a group, and who waits for whom.
void RenderRecorded(const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink);

}  // namespace inquest
