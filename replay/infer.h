// From the operation that did not end to a plan that runs it again: every argument with how it is known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "replay/plan.h"
#include "timeline/collective_ref.h"
#include "timeline/timeline.h"

namespace inquest {

/// What the analysis says of the operation, beside the timeline.
struct ToReplay {
  CollectiveRef collective;
  /// Claims that the ranks did not all ask for one thing: no replay of one call can show that.
  std::vector<std::string> disagreements = {};
  std::optional<SourcePos> cited = {};  ///< a line that tells of it, for what the timeline does not place
  std::optional<int> ranks = {};        ///< as an option gives it
};

/// Whether a finding of that cause says that the ranks did not all make one call. `weighs`: it is more than a hint.
bool TellsOfDisagreement(std::string_view cause, bool weighs, const CollectiveRef& collective);

/// Of the operation, or of one that was to end before it and did not; WhyNotRunnable() tells what is not known.
Plan PlanFrom(const Timeline& timeline, const ToReplay& what);

/// The same from a document that `inquest --format json` printed; `path` is named as where it stands. Fails where the
/// text is none, or where its verdict speaks of no collective.
Result<Plan> PlanFromVerdict(std::string_view json, const std::string& path, std::optional<int> ranks = std::nullopt);

/// Whether a text looks like such a document: an object whose first key is `schema`.
bool LooksLikeVerdict(std::string_view text);

/// `inquest replay --op broadcast --count 253440000 --ranks 3`: with what is known, without what is assumed. Empty
/// where the plan cannot be run as it is.
std::string CommandLine(const Plan& plan);

}  // namespace inquest
