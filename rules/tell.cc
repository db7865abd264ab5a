// What a verdict says once it is reached.
#include "rules/tell.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "rules/blame.h"
#include "rules/thresholds.h"

namespace inquest {
namespace {

constexpr std::size_t kEvidenceLines = 8;
constexpr std::size_t kSymptomLines = 3;  ///< of one symptom: seven ranks saying the same prove no more than three

std::string SymptomsInWords(const Timeline& timeline, const Verdict& verdict) {
  if (!timeline.collectives.empty()) {
    const CollectiveRow& row = timeline.collectives.front();
    std::vector<int> ranks;
    for (const auto& waiter : row.waiters) ranks.push_back(waiter.rank.value);
    const bool gave_up = std::ranges::any_of(row.waiters, [&](const CollectiveRow::Waiter& waiter) {
      const auto* timed_out = std::get_if<WorkTimedOut>(&timeline.events[waiter.event].what);
      return timed_out == nullptr || timed_out->how != WorkTimedOut::How::kAsyncError;
    });
    const std::string where = fmt::format("{}{}", row.work.op.empty() ? "an operation" : row.work.op,
                                          row.work.seq ? fmt::format(" #{}", row.work.seq->value) : "");
    if (!gave_up)
      return fmt::format("Rank{} {} in {} when it failed.", ranks.size() > 1 ? "s" : "",
                         FoldRanks(ranks) + (ranks.size() > 1 ? " were" : " was"), where);
    std::string out = fmt::format("Rank{} {} waited in {}", ranks.size() > 1 ? "s" : "", FoldRanks(ranks), where);
    if (row.work.timeout_ms) out += fmt::format(" until the time-out of {} s", *row.work.timeout_ms / 1000);
    return out + ".";
  }
  std::vector<std::string> symptoms;
  for (const Finding& finding : verdict.findings)
    if (finding.cause.empty() && symptoms.size() < 2) symptoms.push_back(finding.claim);
  if (symptoms.empty()) return "";
  return "What followed: " + symptoms.front();
}

/// A rule's claim says what; the culprits say who. Empty where the rule is a detector, whose claim says both.
std::string WhoAndWhat(const Verdict& verdict, const std::string& claim) {
  std::vector<int> ranks;
  for (const Culprit& culprit : verdict.culprits)
    if (culprit.rank) ranks.push_back(culprit.rank->value);
  if (claim.empty() || ranks.empty()) return claim;
  const std::optional<std::string>& host = verdict.culprits.front().host;
  return fmt::format("Rank{} {}{}: {}", ranks.size() > 1 ? "s" : "", FoldRanks(ranks),
                     ranks.size() == 1 && host ? " on " + *host : "", claim);
}

void AddUnique(std::vector<std::string>& list, const std::vector<std::string>& more) {
  for (const std::string& item : more)
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

/// What the cause advises, behind a finding's own advice; but what keeps evidence stands before what takes it away,
/// whoever says it.
void AddAdvice(std::vector<Remedy>& own, const std::vector<Remedy>& cause) {
  const auto takes_away = std::ranges::find_if(own, &Remedy::destructive);
  const auto of_cause = std::ranges::find_if(cause, &Remedy::destructive);
  std::vector<Remedy> out(own.begin(), takes_away);
  AddUnique(out, {cause.begin(), of_cause});
  AddUnique(out, {takes_away, own.end()});
  AddUnique(out, {of_cause, cause.end()});
  own = std::move(out);
}

void AddEvidence(Verdict& verdict, const std::vector<Citation>& citations, std::size_t most = kEvidenceLines) {
  for (const Citation& citation : citations) {
    if (verdict.evidence.size() >= kEvidenceLines || most-- == 0) return;
    if (std::none_of(verdict.evidence.begin(), verdict.evidence.end(), [&](const Citation& c) {
          return c.where.input == citation.where.input && c.where.line == citation.where.line;
        }))
      verdict.evidence.push_back(citation);
  }
}

/// Whether the job wrote it, as far as one can tell: no kernel log, no tool's table, no file of a host's own folder.
bool IsOfJob(const InputSummary& input, const Event& event) {
  static const std::set<std::string_view> kOfJobs = {
      "nccl",     "pytorch-watchdog", "pytorch-c10d", "torchelastic", "torchelastic-error-file", "python-traceback",
      "launcher", "framework",        "crash"};
  if (input.kinds.empty()) return !input.host || event.origin.rank || event.origin.pid;
  return std::any_of(input.kinds.begin(), input.kinds.end(),
                     [](const std::string& kind) { return kOfJobs.contains(kind); });
}

/// Where nothing tells, what was printed last is all there is to show: the end of each input of the job's, and each
/// rank's last call.
std::vector<Citation> LastWords(const Timeline& timeline) {
  std::vector<std::optional<EventIndex>> last(timeline.inputs.size());
  for (EventIndex i = 0; i < timeline.events.size(); ++i) last[timeline.events[i].where.input] = i;
  std::vector<Citation> out;
  for (const auto& index : last)
    if (index && out.size() < 4 &&
        IsOfJob(timeline.inputs[timeline.events[*index].where.input], timeline.events[*index]))
      out.push_back(Cite(timeline, *index, LineRole::kContext));
  for (const CommunicatorRow& row : timeline.communicators)
    for (const auto& member : row.members)
      if (member.last_op_count && out.size() < 8)
        out.push_back(
            {0, LineRole::kContext, member.last_call_at, member.last_call_time, std::nullopt, member.last_call_text});
  return out;
}

}  // namespace

void TellFailed(const Timeline& timeline, const RuleBook& book, const Finding& top,
                const std::vector<const Finding*>& rivals, Verdict& verdict) {
  verdict.outcome = Outcome::kFailed;
  verdict.cause = top.cause;
  verdict.rule = top.rule;
  verdict.confidence = top.confidence;
  verdict.collective = top.collective;
  if (!verdict.collective && !timeline.collectives.empty())
    verdict.collective = RefOf(timeline, timeline.collectives.front());
  if (verdict.collective && verdict.collective->ranks_absent.empty())
    for (const Finding& finding : verdict.findings)
      if (finding.collective && finding.collective->seq == verdict.collective->seq &&
          !finding.collective->ranks_absent.empty()) {
        verdict.collective->ranks_absent = finding.collective->ranks_absent;
        break;
      }
  verdict.culprits = CulpritsOf(timeline, book, top, verdict.findings, verdict.collective);
  AddEvidence(verdict, top.citations);
  for (const Finding& finding : verdict.findings)
    if (&finding != &top && finding.cause == top.cause && finding.explained_by.empty())
      AddEvidence(verdict, finding.citations);
  for (const Finding& finding : verdict.findings)
    if (finding.cause.empty()) AddEvidence(verdict, finding.citations, kSymptomLines);
  verdict.remedies = top.remedies;
  verdict.collect_next = top.collect;
  for (const Finding* other : rivals) AddUnique(verdict.collect_next, other->collect);
  verdict.retry = top.retry;
  if (const Cause* cause = book.FindCause(top.cause)) {
    verdict.title = cause->title;
    if (const Rule* rule = book.FindRule(top.rule); rule == nullptr || !rule->own_advice)
      AddAdvice(verdict.remedies, cause->remedies);
    AddUnique(verdict.collect_next, cause->collect);
    if (verdict.retry == Retry::kUnsaid) verdict.retry = cause->retry;
  }
  const std::string symptoms = SymptomsInWords(timeline, verdict);
  const std::string claim = WhoAndWhat(verdict, book.FindRule(top.rule) != nullptr ? top.claim : "");
  if (!claim.empty()) {
    verdict.summary = symptoms.empty() ? claim : claim + " " + symptoms;
    return;
  }
  verdict.summary = symptoms.empty() || (verdict.collective && top.claim.find("waited") != std::string::npos)
                        ? top.claim
                        : top.claim + " " + symptoms;
}

void TellUnknown(const Timeline& timeline, const RuleBook& book, bool failed, Verdict& verdict) {
  failed = failed || (timeline.recorded->gave_up && timeline.recorded_fits);
  verdict.outcome = Outcome::kUndecided;
  verdict.cause = "unknown";
  verdict.confidence = 0;
  if (!timeline.collectives.empty()) verdict.collective = RefOf(timeline, timeline.collectives.front());
  const std::string symptoms = SymptomsInWords(timeline, verdict);
  verdict.summary = failed ? "The job failed, and nothing given says why."
                           : "Nothing here says that the job failed, and nothing says that it ended well.";
  if (!symptoms.empty()) verdict.summary += " " + symptoms;
  // What nothing explains is what a reader would point at.
  for (const bool explained : {false, true})
    for (const Finding& finding : verdict.findings)
      if (finding.explained_by.empty() != explained) AddEvidence(verdict, finding.citations);
  for (const Finding& finding : verdict.findings) AddUnique(verdict.collect_next, finding.collect);
  if (const Cause* cause = book.FindCause("unknown")) {
    verdict.title = cause->title;
    AddUnique(verdict.remedies, cause->remedies);
    AddUnique(verdict.collect_next, cause->collect);
    verdict.retry = cause->retry;
  }
  if (failed) verdict.culprits = FirstGone(timeline, verdict.findings);
  if (verdict.evidence.empty()) AddEvidence(verdict, LastWords(timeline));
}

void TellHealthy(const Evidence& evidence, Verdict& verdict) {
  verdict.outcome = Outcome::kHealthy;
  verdict.cause = "healthy";
  verdict.confidence = evidence.course.only_scores() ? thresholds::kEndedWithScores : thresholds::kEndedWell;
  verdict.summary = "The job ended well. Warnings that healthy runs print are not failures.";
  std::vector<Citation> endings;
  for (auto ending = evidence.course.endings().rbegin();
       ending != evidence.course.endings().rend() && endings.size() < 3; ++ending)
    endings.push_back(Cite(evidence.timeline, *ending, LineRole::kCause));
  AddEvidence(verdict, endings);
  if (const Cause* cause = evidence.book.FindCause("healthy")) {
    verdict.title = cause->title;
    verdict.retry = cause->retry;
  }
}

std::vector<Alternative> AlternativesOf(const std::vector<const Finding*>& causes, const std::string& chosen,
                                        double most) {
  std::vector<Alternative> out;
  for (const Finding* finding : causes) {
    const bool known = finding->cause == chosen || std::any_of(out.begin(), out.end(), [&](const Alternative& a) {
                         return a.cause == finding->cause;
                       });
    if (!known) out.push_back({finding->cause, std::min(finding->confidence, most), finding->rule, finding->claim});
  }
  return out;
}

}  // namespace inquest
