// Which ranks of the job an operation was of, and where each of them was: by what proves it alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/plan.h"
#include "timeline/collective_ref.h"
#include "timeline/timeline.h"

namespace inquest {

struct OperationMembers {
  Argument<int> count;                ///< 0: nothing proves it; names seen are a lower bound
  int at_least = 0;                   ///< those that are named
  std::vector<JobPlace> places = {};  ///< by rank of the group; empty: not known, or more than kMostRanks
  std::vector<std::optional<std::uint32_t>> processes = {};  ///< into Timeline::processes, beside `places`
};

/// What is known of the operation elsewhere.
struct MembersAsked {
  const CollectiveRow* row = nullptr;          ///< who waited in it
  const RecordedGroup* recorded = nullptr;     ///< its group, as recorders list it
  const CommunicatorRow* called_on = nullptr;  ///< the communicator of its call lines
  std::optional<int> by_elements = {};         ///< what its numbers of elements say
  std::optional<int> given = {};               ///< what an option says
};
OperationMembers MembersOf(const Timeline& timeline, const CollectiveRef& collective, const MembersAsked& asked);

/// Communicators that may be the operation's: all that are known to be in it are in them, under the numbers that they
/// have in the group.
std::vector<const CommunicatorRow*> CommunicatorsOf(const Timeline& timeline, const CollectiveRef& collective,
                                                    const CollectiveRow* row);

/// Of the lines that say where something stands, as reports name it.
std::optional<SourceLine> LineAt(const Timeline& timeline, const SourcePos& where);

}  // namespace inquest
