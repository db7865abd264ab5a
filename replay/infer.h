// From the operation that did not end to a plan that runs it again: every argument with how it is known.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "replay/plan.h"
#include "timeline/collective_ref.h"
#include "timeline/timeline.h"

namespace inquest {

/// What the timeline says of the operation; WhyNotRunnable() tells what it does not say.
Plan PlanFrom(const Timeline& timeline, const CollectiveRef& collective);

/// The same from a document that `inquest --format json` printed; `path` is named as where it stands. Fails where the
/// text is none, or where its verdict speaks of no collective.
Result<Plan> PlanFromVerdict(std::string_view json, const std::string& path);

/// Whether a text looks like such a document: an object whose first key is `schema`.
bool LooksLikeVerdict(std::string_view text);

/// `inquest replay --op broadcast --count 253440000 --ranks 3`: with what is known, without what is assumed. Empty
/// where the plan cannot be run as it is.
std::string CommandLine(const Plan& plan);

}  // namespace inquest
