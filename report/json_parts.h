// Values that several JSON documents hold alike.
#pragma once

#include <optional>
#include <vector>

#include "report/json_value.h"
#include "rules/verdict.h"

namespace inquest {

JsonValue InJson(const std::vector<Culprit>& culprits);
/// Which job it is, and when and where its judged start ran: the same keys wherever a document names the job in brief.
JsonValue IdentityInJson(const Timeline& timeline, const Verdict& verdict);
/// null: not known.
JsonValue IdInJson(const JobTold& job);
JsonValue AttemptInJson(const Verdict& verdict);
/// RFC 3339, where the whole date and the zone are known; else null.
JsonValue MomentInJson(const std::optional<Timestamp>& at);

}  // namespace inquest
