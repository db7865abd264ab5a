// Values that several JSON documents hold alike.
#include "report/json_parts.h"

#include "report/words.h"

namespace inquest {
namespace {

using Json = JsonValue;

Json ToJson(const Culprit& culprit) {
  Json gpu = nullptr;
  if (culprit.gpu_index || culprit.bus_id)
    gpu = Json{{"index", OrNull(culprit.gpu_index)}, {"bus_id", OrNull(culprit.bus_id)}};
  return Json{{"rank", OrNull(culprit.rank)},
              {"host", OrNull(culprit.host)},
              {"pid", OrNull(culprit.pid)},
              {"gpu", gpu},
              {"why", culprit.why}};
}

}  // namespace

JsonValue InJson(const std::vector<Culprit>& culprits) {
  Json list = Json::array();
  for (const Culprit& culprit : culprits) list.push_back(ToJson(culprit));
  return list;
}

JsonValue IdInJson(const JobTold& job) {
  if (!job.id) return nullptr;
  return Json{{"value", job.id->value}, {"system", job.system}, {"basis", Name(job.id->basis)}};
}

JsonValue AttemptInJson(const Verdict& verdict) {
  const AttemptNumber attempt = JudgedAttempt(verdict);
  return Json{{"number", attempt.number}, {"of", attempt.of}};
}

JsonValue MomentInJson(const std::optional<Timestamp>& at) {
  return at && at->zone_known && at->date == Timestamp::Date::kFull ? Json(FormatTime(*at)) : Json(nullptr);
}

JsonValue IdentityInJson(const Timeline& timeline, const Verdict& verdict) {
  const JobTold& job = verdict.job;
  return Json{{"id", IdInJson(job)},
              {"name", OrNull(job.name)},
              {"environment", OrNull(std::string(job.environment))},
              {"attempt", AttemptInJson(verdict)},
              {"start", MomentInJson(job.start)},
              {"end", MomentInJson(job.end)},
              {"hosts", timeline.hosts}};
}

}  // namespace inquest
