// NCCL's RAS counted fewer operations on a rank than on the others, or had no answer of it.
//
// What holds: RAS asked the processes themselves how many operations each rank had launched, and one is behind, or did
// not answer, or is dead to it. Why that implies the cause: the others cannot end an operation that a rank has not
// launched. What looks like it: a running job, whose ranks are an operation apart at any moment, so a report alone is a
// hint and a rank that moved between two reports is only slow; a rank that is ahead, which blames nobody; counts that
// are behind in one kind of operation and ahead in another, which are two programs and not a late one.
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/phases.h"
#include "timeline/wait_graph.h"

namespace inquest {
namespace ras_counts {

constexpr FindingRow kFindings[] = {
    {"ras-counts-cross", "timed-out report-only", "ranks operation most count others-count"},
    {"ras-rank-behind", "timed-out report-only", "ranks operation most count others-count doing",
     "behind data-preparation checkpoint compile evaluation loading"},
    {"ras-rank-silent", "dead silent", "processes"},
};
using Found = FoundIn<kFindings>;

using State = RankProgress::State;

/// What the reports say of an operation's counts on one communicator.
struct Counts {
  int most = 0;  ///< ranks that have the count which most have
  std::optional<std::int64_t> count;
  EventIndex event = 0;
  int report = 0;  ///< the last one that has such counts
  struct Rank {
    std::int64_t first = 0, last = 0;
    EventIndex event = 0;
    int report = 0;
  };
  std::map<int, Rank> ranks;  ///< those that are listed
};

struct Report {
  std::map<std::pair<std::string, std::string>, Counts> counts;  ///< by communicator and operation
  std::map<State, std::vector<EventIndex>> silent;               ///< of the last report
  int reports = 0;
};

// Within a report the count that most ranks have comes first.
Report Read(const Timeline& timeline) {
  Report report;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* progress = std::get_if<RankProgress>(&timeline.events[i].what);
    if (progress == nullptr || progress->source != RankProgress::Source::kRas) continue;
    if (progress->ranks == 0) {
      ++report.reports;
      report.silent.clear();
      continue;
    }
    if (progress->state == State::kDead || progress->state == State::kUnresponsive ||
        progress->state == State::kNotReported)
      report.silent[progress->state].push_back(i);
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
    Counts::Rank& rank =
        counts.ranks
            .try_emplace(progress->rank->value, Counts::Rank{*progress->count, *progress->count, i, report.reports})
            .first->second;
    rank.last = *progress->count;
    rank.event = i;
    rank.report = report.reports;
  }
  // What an earlier report alone says was of a moment.
  std::erase_if(report.counts, [&](const auto& entry) { return entry.second.report != report.reports; });
  for (auto& [key, counts] : report.counts)
    std::erase_if(counts.ranks, [&](const auto& rank) { return rank.second.report != report.reports; });
  // Those of which it is known who is who are in the ledger.
  for (const RecordedGroup& group : timeline.recorded->groups)
    if (group.source == RecordedGroup::Source::kRas) report.counts.erase({group.name, group.desc});
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
void SayWhy(const Evidence& evidence, Found& found) {
  if (found.culprits.empty() || !found.culprits.front().rank) return;
  const auto doing = Doings(evidence).Last(found.culprits.front().rank->value);
  if (!doing || !IsDelay(*doing)) return;
  found.kind = Name(doing->at);
  found.Say("doing", fmt::format(" It was at other work ({}).", InWords(*doing)));
  found.culprits.front().why = doing->why;
  found.citations.insert(found.citations.begin(), Cite(evidence.timeline, doing->event, LineRole::kCause));
}

/// Ranks that had launched fewer operations than most; `crosses`: and more of another kind.
struct Late {
  std::string ranks, op;
  std::uint64_t most = 0;
  std::int64_t count = 0, others_count = 0;  ///< of the first of them, and of most
  bool crosses = false;
};

Found FoundOf(const Timeline& timeline, const Late& late) {
  Found found({"ras-rank-behind", "report-only"});
  if (late.crosses)
    found.Grade(TimedOut(timeline) ? Found::Held{"ras-counts-cross", "timed-out"}
                                   : Found::Held{"ras-counts-cross", "report-only"});
  else if (TimedOut(timeline))
    found.Grade({"ras-rank-behind", "timed-out"});
  if (!late.crosses) found.kind = "behind";
  found.Say("ranks", late.ranks);
  found.Say("operation", late.op.empty() ? "collective" : late.op);
  found.Say("most", std::to_string(late.most));
  found.Say("count", std::to_string(late.count));
  found.Say("others-count", std::to_string(late.others_count));
  return found;
}

std::string HadLaunched(const std::string& op, std::int64_t count) {
  return fmt::format("had launched up to {} {}", op.empty() ? "operation" : op, count);
}

/// The last line of the report that has a rank's count, or the count of most.
std::optional<EventIndex> LineOf(const Timeline& timeline, const RecordedGroup& group, std::optional<int> rank) {
  std::optional<EventIndex> line;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* progress = std::get_if<RankProgress>(&timeline.events[i].what);
    if (progress == nullptr || progress->state != State::kLaunched || progress->comm != group.name ||
        progress->op != group.desc || progress->rank.has_value() != rank.has_value())
      continue;
    if (!rank || progress->in_job.contains(*rank)) line = i;
  }
  return line;
}

/// The ranks whose number in the job is known: who waits for whom over all communicators, and who for nobody.
std::vector<Relation> FromWaits(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  const Recorded& recorded = *timeline.recorded;
  const auto by_ras = [](const RecordedGroup& group) { return group.source == RecordedGroup::Source::kRas; };
  if (std::ranges::none_of(recorded.groups, by_ras)) return {};  // dumps alone are `recorded-calls`'
  const WaitGraph waits = WaitsOf(recorded);
  const auto counted = [&](std::uint32_t node) { return by_ras(recorded.groups[waits.nodes[node].group]); };
  for (const WaitRoot& root : waits.roots) {
    if (!std::ranges::all_of(root.nodes, counted)) continue;
    const bool crosses = root.nodes.size() > 1;
    const WaitNode* node = &waits.nodes[root.nodes.front()];
    for (const std::uint32_t other : root.nodes)
      if (waits.nodes[other].ranks.size() > node->ranks.size()) node = &waits.nodes[other];
    RankSet late = node->idle;
    if (crosses) {
      late = {};
      for (const WaitNode::Edge& edge : node->edges)
        if (std::ranges::find(root.nodes, edge.node) != root.nodes.end()) late.Add(edge.ranks);
    }
    if (late.empty() || late.size() >= node->ranks.size()) continue;
    const RecordedGroup& group = recorded.groups[node->group];
    const auto count_of = [&](int rank) { return group.Find(GlobalRank{rank})->last; };
    Found found = FoundOf(timeline, {RanksInWords(late), group.desc, node->ranks.size(), count_of(late.front()),
                                     count_of(node->ranks.front()), crosses});
    for (const int rank : late) {
      const std::string why = HadLaunched(group.desc, count_of(rank));
      const auto line = LineOf(timeline, group, rank);
      found.culprits.push_back(line ? Blame(timeline, *line, why) : BlameRank(timeline, GlobalRank{rank}, why));
      if (line) found.citations.push_back(Cite(timeline, *line, LineRole::kCause));
    }
    if (const auto most = LineOf(timeline, group, std::nullopt))
      found.citations.push_back(Cite(timeline, *most, LineRole::kCause));
    if (!crosses) SayWhy(evidence, found);
    return {found};
  }
  return {};
}

/// The communicators of whose ranks that is not known, each by itself.
std::vector<Relation> FromCounts(const Evidence& evidence, const Report& report) {
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
    Found found = FoundOf(timeline, {RanksInWords(late), key.second, static_cast<std::uint64_t>(counts.most),
                                     counts.ranks.at(late.front()).last, *counts.count, crosses});
    for (const int rank : late) {
      const Counts::Rank& seen = counts.ranks.at(rank);
      found.culprits.push_back(Blame(timeline, seen.event, HadLaunched(key.second, seen.last)));
      found.citations.push_back(Cite(timeline, seen.event, LineRole::kCause));
    }
    found.citations.push_back(Cite(timeline, counts.event, LineRole::kCause));
    if (!crosses) SayWhy(evidence, found);
    return {found};
  }
  return {};
}

std::vector<Relation> FromSilence(const Evidence& evidence, const Report& report) {
  const Timeline& timeline = evidence.timeline;
  for (const auto state : {State::kDead, State::kUnresponsive, State::kNotReported}) {
    const auto silent = report.silent.find(state);
    if (silent == report.silent.end()) continue;
    Found found(state == State::kDead ? Found::Held{"ras-rank-silent", "dead"}
                                      : Found::Held{"ras-rank-silent", "silent"});
    std::set<std::pair<std::string, std::int64_t>> processes;  // the process' line and the rank's may both be there
    for (const EventIndex i : silent->second) {
      const auto& progress = std::get<RankProgress>(timeline.events[i].what);
      const bool is_new =
          processes.insert({progress.node, progress.pid.value_or(-static_cast<std::int64_t>(i) - 1)}).second;
      Culprit culprit = Blame(timeline, i, "");
      if (is_new)
        found.culprits.push_back(std::move(culprit));
      else if (culprit.rank)
        for (Culprit& known : found.culprits)
          if (!known.rank && known.pid == culprit.pid) known = culprit;
      if (found.citations.size() < 4) found.citations.push_back(Cite(timeline, i, LineRole::kCause));
    }
    found.Say("processes", fmt::format("{} process{} of the job {}", processes.size(), processes.size() > 1 ? "es" : "",
                                       processes.size() > 1 ? "are" : "is"));
    return {found};
  }
  return {};
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Report report = Read(evidence.timeline);
  if (std::vector<Relation> silent = FromSilence(evidence, report); !silent.empty()) return silent;
  if (std::vector<Relation> behind = FromWaits(evidence); !behind.empty()) return behind;
  return FromCounts(evidence, report);
}

}  // namespace ras_counts

const Detector kRasCounts{"ras-report",
                          "NCCL's RAS counted fewer operations on a rank than on the others, or had no answer of it.",
                          ras_counts::kFindings, &ras_counts::Run};

}  // namespace inquest
