// Who raised an exception: the last line of its traceback need not say so.
#pragma once

#include <optional>

#include "timeline/timeline.h"

namespace inquest {

/// The launcher's own exception, which tells of a child's.
bool IsOfLauncher(const ExceptionRaised& raised);

/// The exception whose traceback ends in the line of that event, where one does.
std::optional<EventIndex> RaisedAt(const Timeline& timeline, EventIndex index);

/// The rank that raised: by the line itself, by the line that begins the traceback, or by the entry of the failure
/// report that holds it. `index`: of an ExceptionRaised.
std::optional<Known<GlobalRank>> RankOfRaised(const Timeline& timeline, EventIndex index);

}  // namespace inquest
