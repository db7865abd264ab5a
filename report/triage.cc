// Many jobs at once: what they have in common, and all of it in JSON.
#include "report/triage.h"

#include <algorithm>
#include <map>

#include "report/json_document.h"
#include "report/json_parts.h"
#include "report/words.h"

namespace inquest {
namespace {

using Json = JsonValue;
constexpr std::string_view kSchema = "inquest-triage-1";

std::vector<SharedBy> MostFirst(std::map<std::string, std::vector<std::size_t>> by) {
  std::vector<SharedBy> out;
  for (auto& [what, jobs] : by) out.push_back({what, std::move(jobs)});
  std::ranges::stable_sort(out, [](const SharedBy& a, const SharedBy& b) { return a.jobs.size() > b.jobs.size(); });
  return out;
}

Json NamesOf(std::span<const TriagedJob> jobs, const std::vector<std::size_t>& some) {
  Json names = Json::array();
  for (const std::size_t i : some) names.push_back(jobs[i].name);
  return names;
}

std::string_view OutcomeOf(const TriagedJob& job) {
  return job.problem.empty() ? Name(job.verdict.outcome) : std::string_view("unread");
}

void AddRow(const TriagedJob& job, Json& row) {
  const Verdict& verdict = job.verdict;
  const bool read = job.problem.empty();
  row.Add("name", job.name);
  row.Add("paths", job.paths);
  row.Add("outcome", OutcomeOf(job));
  row.Add("problem", OrNull(job.problem));
  row.Add("cause", OrNull(verdict.cause));
  row.Add("title", OrNull(verdict.title));
  row.Add("summary", OrNull(verdict.summary));
  row.Add("confidence", read ? Rounded(verdict.confidence) : Json(nullptr));
  row.Add("signature", OrNull(verdict.rule));
  row.Add("fingerprint", OrNull(verdict.fingerprint));
  row.Add("culprits", InJson(verdict.culprits));
  row.Add("culprit_hosts", HostsOfCulprits(verdict));
  row.Add("hosts", job.hosts);
  row.Add("retry", verdict.retry == Retry::kUnsaid ? Json(nullptr) : Json(Name(verdict.retry)));
  row.Add("exclude_hosts", verdict.exclude_hosts);
  row.Add("when", job.when ? Json(FormatTime(*job.when)) : Json(nullptr));
  row.Add("job", Json{{"id", IdInJson(verdict.job)},
                      {"name", OrNull(verdict.job.name)},
                      {"attempt", AttemptInJson(verdict)},
                      {"start", MomentInJson(verdict.job.start)},
                      {"end", MomentInJson(verdict.job.end)}});
  row.Add("warnings", verdict.warnings);
}

}  // namespace

Verdict WithoutProof(Verdict verdict) {
  verdict.collective.reset();
  verdict.evidence = {};
  verdict.remedies = {};
  verdict.collect_next = {};
  verdict.alternatives = {};
  verdict.findings = {};
  verdict.lifelines = {};
  for (AttemptTold& attempt : verdict.attempts)
    attempt = {.number = attempt.number, .judged = attempt.judged, .first = {}, .last = {}, .cause = {}, .summary = {}};
  return verdict;
}

std::vector<SharedBy> ByFingerprint(std::span<const TriagedJob> jobs) {
  std::map<std::string, std::vector<std::size_t>> by;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (!jobs[i].verdict.fingerprint.empty()) by[jobs[i].verdict.fingerprint].push_back(i);
  return MostFirst(std::move(by));
}

std::vector<SharedBy> ByHost(std::span<const TriagedJob> jobs) {
  std::map<std::string, std::vector<std::size_t>> by;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (jobs[i].problem.empty() && jobs[i].verdict.outcome == Outcome::kFailed)
      for (const std::string& host : HostsOfCulprits(jobs[i].verdict)) by[host].push_back(i);
  return MostFirst(std::move(by));
}

TriageCounts CountsOf(std::span<const TriagedJob> jobs) {
  TriageCounts counts;
  for (const TriagedJob& job : jobs) {
    if (!job.problem.empty())
      ++counts.unread;
    else if (job.verdict.outcome == Outcome::kFailed)
      ++counts.failed;
    else
      ++(job.verdict.outcome == Outcome::kHealthy ? counts.healthy : counts.undecided);
  }
  return counts;
}

void RenderTriageJson(std::span<const TriagedJob> jobs, std::string_view tool_version, const Sink& sink) {
  const TriageCounts counts = CountsOf(jobs);
  JsonDocument document(sink);
  document.Begin('{');
  document.Key("schema").Value(kSchema);
  document.Key("tool").Value(Json{{"name", "inquest"}, {"version", tool_version}});
  document.Key("counts").Value(Json{{"jobs", jobs.size()},
                                    {"failed", counts.failed},
                                    {"healthy", counts.healthy},
                                    {"undecided", counts.undecided},
                                    {"unread", counts.unread}});
  document.List("jobs", jobs, [](const TriagedJob& job) {
    Json row = Json::object();
    AddRow(job, row);
    return row;
  });
  document.List("fingerprints", ByFingerprint(jobs), [&](const SharedBy& shared) {
    const Verdict& first = jobs[shared.jobs.front()].verdict;
    return Json{{"fingerprint", shared.what},
                {"cause", first.cause},
                {"title", first.title},
                {"jobs", NamesOf(jobs, shared.jobs)}};
  });
  document.List("hosts", ByHost(jobs), [&](const SharedBy& shared) {
    return Json{{"host", shared.what}, {"jobs", NamesOf(jobs, shared.jobs)}};
  });
  document.End();
}

void RenderTriageLines(std::span<const TriagedJob> jobs, std::string_view tool_version, const Sink& sink) {
  for (const TriagedJob& job : jobs) {
    Json row{{"schema", kSchema}, {"version", tool_version}};
    AddRow(job, row);
    sink(OneLine(row));
  }
}

}  // namespace inquest
