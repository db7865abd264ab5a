// From a timeline to a verdict: attempts, rules, detectors, the judge, and what is said of the job beside the cause.
#include "rules/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/host_name.h"
#include "rules/collect.h"
#include "rules/detectors.h"
#include "rules/evidence.h"
#include "rules/facts.h"
#include "rules/fingerprint.h"
#include "rules/job_identity.h"
#include "rules/judge.h"
#include "rules/picture.h"
#include "timeline/agreement.h"
#include "timeline/attempts.h"
#include "timeline/two_jobs.h"

namespace inquest {
namespace {

constexpr std::size_t kMostToCollect = 8;

/// Findings of one detector. More say no more, and each is held against each.
constexpr std::ptrdiff_t kMostFindings = 256;

/// Of two jobs in one input none is blamed for the other: a rank that ran on two hosts is on the one that its own cited
/// line names, or on none.
void HoldJobsApart(const Timeline& timeline, std::span<const NamedJob> jobs, Verdict& verdict) {
  const auto two = FindTwoJobs(timeline, jobs);
  if (!two) return;
  const auto place = [&](EventIndex event) {
    return fmt::format("{}:{}", timeline.inputs[timeline.events[event].where.input].path,
                       timeline.events[event].where.InputLine());
  };
  const std::string who = two->rank ? fmt::format("rank {} ran on {} ({}) and on {} ({})", two->rank->value, two->first,
                                                  place(two->first_event), two->other, place(two->other_event))
                                    : fmt::format("a batch system speaks of job {} ({}) and of job {} ({})", two->first,
                                                  place(two->first_event), two->other, place(two->other_event));
  verdict.warnings.push_back(fmt::format(
      "Two jobs, or two starts of one that nothing tells apart: {}. Give the files of one at a time.", who));
  for (Culprit& culprit : verdict.culprits) {
    if (!culprit.rank || !two->ranks.contains(culprit.rank->value)) continue;
    std::optional<std::string> host;
    for (const Citation& citation : verdict.evidence)
      if (const auto& named = timeline.events[citation.event].origin.host;
          !host && named && citation.rank == culprit.rank && timeline.events[citation.event].where == citation.where)
        host = HostName(named->value).Short();
    if (host && culprit.host == host) continue;
    culprit.host = host;
    culprit.pid.reset();
    culprit.gpu_index.reset();
    culprit.bus_id.reset();
  }
}

/// What of the dumps cannot be used, and where log and dumps say other things of one operation.
void DoubtDumps(const Timeline& timeline, Verdict& verdict) {
  constexpr std::size_t kTold = 2;
  if (timeline.recorded->nameless > 0)
    verdict.warnings.push_back(fmt::format(
        "Of {} dumps neither content nor name says the rank, and they are left out. Let their names end with "
        "it, as PyTorch does: nccl_trace_rank_3.",
        timeline.recorded->nameless));
  const Agreement agreement = HoldTogether(timeline);
  for (std::size_t i = 0; i < std::min(agreement.contradictions.size(), kTold); ++i) {
    const Contradiction& one = agreement.contradictions[i];
    const std::string place = fmt::format("{}:{}", timeline.inputs[timeline.events[one.event].where.input].path,
                                          timeline.events[one.event].where.InputLine());
    std::string how = "its dump was made days before or after";
    if (one.how == Contradiction::How::kEndsBefore)
      how = fmt::format("its dump ends with #{} of group {}", one.last, one.group);
    if (one.how == Contradiction::How::kHadEnded) how = "in its dump that had ended";
    verdict.warnings.push_back(fmt::format("Log and dump disagree: rank {} gave up on #{} ({}), and {}.",
                                           one.rank.value, one.seq, place, how));
  }
  if (agreement.of_another_run())
    verdict.warnings.push_back(
        "The dumps seem to be of another run, whose files were not overwritten: nothing is concluded from them. Give "
        "those that this run wrote.");
}

Verdict DecideOne(const Evidence& evidence) {
  std::vector<Finding> findings = MatchSignatures(evidence);
  for (const Detector* detector : Detectors()) {
    std::vector<Finding> found = FindingsOf(*detector, evidence);
    if (std::ssize(found) > kMostFindings) {
      std::stable_sort(found.begin(), found.end(), [](const Finding& a, const Finding& b) {
        return a.strength != b.strength ? a.strength > b.strength : a.confidence > b.confidence;
      });
      found.erase(found.begin() + kMostFindings, found.end());
    }
    findings.insert(findings.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  return Judge(evidence, std::move(findings));
}

/// A collective run alone shows what machines and network do with it. It cannot bring back a rank that never called,
/// nor what the program did wrong.
bool ReplayHelps(const RuleBook& book, const Verdict& verdict) {
  if (verdict.outcome == Outcome::kHealthy || !verdict.collective || !verdict.collective->ranks_absent.empty())
    return false;
  const CauseLayer layer = book.LayerOf(verdict.cause);
  return layer != CauseLayer::kUnknown && layer != CauseLayer::kProgram && layer != CauseLayer::kHost;
}

/// The same as DecideOne, with what is reported of the attempt that is judged, and of no other.
Verdict DecideWhole(const Evidence& evidence) {
  Verdict verdict = DecideOne(evidence);
  const std::vector<NamedJob> named = JobsNamed(evidence);
  verdict.job = IdentityOf(evidence, named);
  HoldJobsApart(evidence.timeline, named, verdict);
  DoubtDumps(evidence.timeline, verdict);
  verdict.collect_next = StillToCollect(evidence.timeline, verdict.culprits, std::move(verdict.collect_next));
  if (verdict.collect_next.size() > kMostToCollect) verdict.collect_next.resize(kMostToCollect);
  verdict.lifelines = DrawLifelines(evidence.timeline, evidence.told);
  verdict.fingerprint = FingerprintOf(evidence.timeline, verdict);
  verdict.replay_helps = ReplayHelps(evidence.book, verdict);
  const Facts facts = FactsOf(evidence, verdict);
  for (Remedy& remedy : std::exchange(verdict.remedies, {}))
    AddUnique(verdict.remedies, {Filled(Under(verdict.job.environment, std::move(remedy)), facts)});
  for (std::string& item : verdict.collect_next) item = FilledWords(std::move(item), facts);
  if (const auto hosts = facts.find("host"); verdict.retry == Retry::kElsewhere && hosts != facts.end())
    verdict.exclude_hosts = hosts->second;
  return verdict;
}

/// Earlier attempts that are looked at, the latest of them.
constexpr std::size_t kEarlierJudged = 16;

AttemptTold TellOf(const Timeline& timeline, const Attempt& attempt, std::size_t number) {
  AttemptTold told;
  told.number = number;
  told.first = Cite(timeline, attempt.first, LineRole::kContext);
  told.last = Cite(timeline, attempt.last, LineRole::kContext);
  return told;
}

void Fill(AttemptTold& told, const Verdict& verdict) {
  told.outcome = verdict.outcome;
  told.cause = verdict.cause;
  told.summary = verdict.summary;
  told.confidence = verdict.confidence;
}

}  // namespace

Verdict Decide(Timeline& timeline, const RuleBook& book, std::optional<std::size_t> number) {
  const Evidence whole = Gather(timeline, book);
  const std::vector<Attempt> attempts = FindAttempts(timeline, whole.told);
  if (attempts.size() == 1) return DecideWhole(whole);
  const std::size_t judged = number && *number >= 1 && *number <= attempts.size() ? *number : attempts.size();
  std::vector<AttemptTold> told;
  for (std::size_t i = 1; i <= attempts.size(); ++i) {
    told.push_back(TellOf(timeline, attempts[i - 1], i));
    if (i == judged || i + kEarlierJudged < attempts.size()) continue;
    const Timeline other = Only(timeline, attempts[i - 1]);
    const Evidence evidence = Gather(other, book);
    Verdict verdict = DecideOne(evidence);
    verdict.lifelines = DrawLifelines(other, evidence.told);
    Fill(told.back(), verdict);
    told.back().sketch = SketchOf(DrawPicture(other, verdict));
  }
  timeline = Only(timeline, attempts[judged - 1]);
  Verdict verdict = DecideWhole(Gather(timeline, book));
  told[judged - 1].judged = true;
  Fill(told[judged - 1], verdict);
  told[judged - 1].sketch = SketchOf(DrawPicture(timeline, verdict));
  verdict.attempts = std::move(told);
  return verdict;
}

}  // namespace inquest
