// NCCL's RAS counted fewer operations on a rank than on the others, or had no answer of it.
//
// What holds: RAS asked the processes themselves how many operations each rank had launched, and one is behind, or did not
// answer, or is dead to it. Why that implies the cause: the others cannot end an operation that a rank has not launched.
// What looks like it: a running job, whose ranks are an operation apart at any moment, so a report alone is a hint and a
// rank that moved between two reports is only slow; a rank that is ahead, which blames nobody; counts that are behind in
// one kind of operation and ahead in another, which are two programs and not a late one.
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/phases.h"

namespace inquest {
namespace {

using State = RankProgress::State;

/// What the reports say of an operation's counts on one communicator.
struct Counts {
  int most = 0;  ///< ranks that have the count which most have
  std::optional<std::int64_t> count;
  EventIndex event = 0;
  int report = 0;  ///< the last one that has such counts
  struct Rank { std::int64_t first = 0, last = 0; EventIndex event = 0; int report = 0; };
  std::map<int, Rank> ranks;  ///< those that are listed
};

struct Report {
  std::map<std::pair<std::string, std::string>, Counts> counts;  ///< by communicator and operation
  std::map<State, std::vector<EventIndex>> silent;  ///< of the last report
  int reports = 0;
};

// Within a report the count that most ranks have comes first.
Report Read(const Timeline& timeline) {
  Report report;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* progress = std::get_if<RankProgress>(&timeline.events[i].what);
    if (progress == nullptr || progress->source != "ras") continue;
    if (progress->ranks == 0) {
      ++report.reports;
      report.silent.clear();
      continue;
    }
    if (progress->state == State::kDead || progress->state == State::kUnresponsive || progress->state == State::kNotReported) report.silent[progress->state].push_back(i);
    if (progress->state != State::kLaunched || !progress->count) continue;
    Counts& counts = report.counts[{progress->comm, progress->op}];
    if (!progress->rank) {
      if (counts.count && counts.report == report.reports && progress->ranks <= counts.most) continue;
      counts.most = progress->ranks;
      counts.count = progress->count;
      counts.event = i;
      counts.report = report.reports;
      continue;
    }
    Counts::Rank& rank = counts.ranks.try_emplace(progress->rank->value, Counts::Rank{*progress->count, *progress->count, i, report.reports}).first->second;
    rank.last = *progress->count;
    rank.event = i;
    rank.report = report.reports;
  }
  // What an earlier report alone says was of a moment.
  std::erase_if(report.counts, [&](const auto& entry) { return entry.second.report != report.reports; });
  for (auto& [key, counts] : report.counts) std::erase_if(counts.ranks, [&](const auto& rank) { return rank.second.report != report.reports; });
  return report;
}

bool TimedOut(const Timeline& timeline) { return !timeline.collectives.empty(); }

Culprit Blame(const Timeline& timeline, EventIndex index, const std::string& why) {
  const Event& event = timeline.events[index];
  const auto& progress = std::get<RankProgress>(event.what);
  Culprit culprit;
  if (const auto rank = timeline.RankOf(event)) culprit = BlameRank(timeline, rank->value, why);
  culprit.why = why;
  if (!culprit.host) culprit.host = timeline.HostOf(event);
  if (!culprit.pid) culprit.pid = progress.pid;
  if (!culprit.gpu_index) culprit.gpu_index = progress.gpu;
  return culprit;
}

/// What a rank that is behind was at says more than that it is behind.
void SayWhy(const Evidence& evidence, Finding& finding) {
  if (finding.culprits.empty() || !finding.culprits.front().rank) return;
  const auto doing = LastDoing(evidence, finding.culprits.front().rank->value);
  if (!doing || !IsDelay(*doing)) return;
  finding.cause = CauseOf(*doing);
  finding.claim += fmt::format(" It was at other work ({}).", InWords(*doing));
  finding.culprits.front().why = doing->why;
  finding.citations.insert(finding.citations.begin(), Cite(evidence.timeline, doing->event, "cause"));
}

std::vector<Finding> FromCounts(const Evidence& evidence, const Report& report) {
  const Timeline& timeline = evidence.timeline;
  std::map<std::string, std::set<int>> behind, ahead;  // by communicator
  for (const auto& [key, counts] : report.counts)
    for (const auto& [rank, seen] : counts.ranks) {
      if (!counts.count || seen.last == *counts.count) continue;
      if (seen.last < *counts.count && seen.last > seen.first) continue;  // it moves
      (seen.last < *counts.count ? behind : ahead)[key.first].insert(rank);
    }
  for (const auto& [key, counts] : report.counts) {
    std::vector<int> late;
    bool crosses = false;
    for (const auto& [rank, seen] : counts.ranks) {
      if (!counts.count || seen.last >= *counts.count || behind[key.first].count(rank) == 0) continue;
      late.push_back(rank);
      crosses = crosses || ahead[key.first].count(rank) != 0;
    }
    if (late.empty() || static_cast<int>(late.size()) >= counts.most) continue;
    Finding finding;
    finding.rule = crosses ? "ras-counts-cross" : "ras-rank-behind";
    finding.cause = crosses ? "collective-mismatch" : "rank-absent";
    finding.strength = TimedOut(timeline) || crosses ? Strength::kSupporting : Strength::kHint;
    finding.confidence = TimedOut(timeline) ? 0.75 : 0.5;
    finding.claim = fmt::format("Rank{} {} had launched fewer {} operations than {} others ({} against {}){}.", late.size() > 1 ? "s" : "", FoldRanks(late), key.second.empty() ? "collective" : key.second,
                                counts.most, counts.ranks.at(late.front()).last, *counts.count, crosses ? ", and more of another kind" : "");
    for (const int rank : late) {
      const Counts::Rank& seen = counts.ranks.at(rank);
      finding.culprits.push_back(Blame(timeline, seen.event, fmt::format("had launched up to {} {}", key.second.empty() ? "operation" : key.second, seen.last)));
      finding.citations.push_back(Cite(timeline, seen.event, "cause"));
    }
    finding.citations.push_back(Cite(timeline, counts.event, "cause"));
    finding.collect = {"a second RAS report some seconds later: a rank that stays behind is stuck, one that moves is only slow", "py-spy dump of the rank that is behind"};
    if (!crosses) SayWhy(evidence, finding);
    return {finding};
  }
  return {};
}

std::vector<Finding> FromSilence(const Evidence& evidence, const Report& report) {
  const Timeline& timeline = evidence.timeline;
  for (const auto state : {State::kDead, State::kUnresponsive, State::kNotReported}) {
    const auto found = report.silent.find(state);
    if (found == report.silent.end()) continue;
    Finding finding;
    finding.rule = "ras-rank-silent";
    finding.cause = "rank-absent";
    finding.strength = state == State::kDead ? Strength::kSupporting : Strength::kHint;
    finding.confidence = state == State::kDead ? 0.65 : 0.5;
    const std::string why = state == State::kDead ? "dead to NCCL's RAS: its process is gone or its node out of reach" : "did not answer NCCL's RAS";
    std::set<std::pair<std::string, std::int64_t>> processes;  // the process' line and the rank's may both be there
    for (const EventIndex i : found->second) {
      const auto& progress = std::get<RankProgress>(timeline.events[i].what);
      const bool is_new = processes.insert({progress.node, progress.pid.value_or(-static_cast<std::int64_t>(i) - 1)}).second;
      Culprit culprit = Blame(timeline, i, why);
      if (is_new) finding.culprits.push_back(std::move(culprit));
      else if (culprit.rank)
        for (Culprit& known : finding.culprits)
          if (!known.rank && known.pid == culprit.pid) known = culprit;
      if (finding.citations.size() < 4) finding.citations.push_back(Cite(timeline, i, "cause"));
    }
    finding.claim = fmt::format("{} process{} of the job {} {}.", processes.size(), processes.size() > 1 ? "es" : "", processes.size() > 1 ? "are" : "is",
                                state == State::kDead ? "dead to NCCL's RAS" : "silent to NCCL's RAS, though its network reaches the others");
    finding.collect = {"the kernel log of that host (OOM killer, Xid, hung task)", "whether the process still runs, and its stack: py-spy dump --pid <pid>"};
    return {finding};
  }
  return {};
}

std::vector<Finding> Run(const Evidence& evidence) {
  const Report report = Read(evidence.timeline);
  if (std::vector<Finding> silent = FromSilence(evidence, report); !silent.empty()) return silent;
  return FromCounts(evidence, report);
}

constexpr std::string_view kFindings[] = {"ras-counts-cross", "ras-rank-behind", "ras-rank-silent"};

}  // namespace

const Detector kRasCounts{"ras-report", "NCCL's RAS counted fewer operations on a rank than on the others, or had no answer of it.", kFindings, &Run};

}  // namespace inquest
