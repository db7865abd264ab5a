// PyTorch's own desync report names the ranks that stayed behind, or shows two operations at one number.
//
// What holds: with TORCH_NCCL_DESYNC_DEBUG the rank that timed out asked the store how far every rank had come. Why that
// implies the cause: the store knows what each rank entered and left, which no log of survivors does. What looks like it:
// "started by all" with one operation, which says that nobody is missing. Ranks in the report are the group's.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace {

struct Report {
  std::set<int> behind;
  std::map<std::string, std::set<int>> started;  ///< of the highest number, by operation
  std::int64_t number = -1;
  std::optional<SeqId> seq;
  std::string op;
  std::optional<EventIndex> behind_at, started_at;
};

Report Read(const Timeline& timeline) {
  using State = DesyncLine::State;
  Report report;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* line = std::get_if<DesyncLine>(&timeline.events[i].what);
    if (line == nullptr) continue;
    if (line->state == State::kNeverJoined || line->state == State::kNotFinished || line->state == State::kNotJoined) {
      report.behind.insert(line->ranks.begin(), line->ranks.end());
      if (!report.behind_at) report.behind_at = i;
    }
    if (line->state == State::kTimedOut && !report.seq) {
      report.seq = line->seq;
      report.op = line->op;
    }
    if (line->state == State::kStarted && !line->op.empty()) {
      const std::int64_t number = line->seq ? line->seq->value : 0;
      if (number > report.number) {
        report.started.clear();
        report.number = number;
      }
      if (number == report.number) report.started[line->op].insert(line->ranks.begin(), line->ranks.end());
      report.started_at = i;
    }
  }
  return report;
}

std::optional<CollectiveRef> RefFor(const Timeline& timeline, const Report& report) {
  for (const CollectiveRow& row : timeline.collectives)
    if (!report.seq || (row.work.seq && row.work.seq->value == report.seq->value)) return RefOf(timeline, row);
  if (report.op.empty()) return std::nullopt;
  CollectiveRef ref;
  ref.op = report.op;
  if (report.seq) ref.seq = report.seq->value;
  return ref;
}

Finding Mismatch(const Timeline& timeline, const Report& report) {
  std::vector<std::pair<std::string, std::set<int>>> sides(report.started.begin(), report.started.end());
  std::sort(sides.begin(), sides.end(), [](const auto& a, const auto& b) { return a.second.size() != b.second.size() ? a.second.size() > b.second.size() : a.first < b.first; });
  Finding finding;
  finding.rule = "desync-two-operations";
  finding.cause = "collective-mismatch";
  finding.strength = Strength::kDecisive;
  finding.confidence = 0.88;
  finding.claim = fmt::format("At one number ranks {} started {} and ranks {} started {}.", FoldRanks({sides[0].second.begin(), sides[0].second.end()}), sides[0].first,
                              FoldRanks({sides[1].second.begin(), sides[1].second.end()}), sides[1].first);
  if (sides[0].second.size() > sides[1].second.size())
    for (std::size_t i = 1; i < sides.size(); ++i)
      for (const int rank : sides[i].second) finding.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, "started " + sides[i].first));
  finding.citations = {Cite(timeline, *report.started_at, "cause")};
  finding.explains = {"rank-absent"};
  return finding;
}

std::vector<Finding> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  const Report report = Read(timeline);
  std::vector<Finding> out;
  if (report.started.size() > 1) {
    out.push_back(Mismatch(timeline, report));
  } else if (!report.behind.empty()) {
    Finding finding;
    finding.rule = "desync-ranks-behind";
    finding.cause = "rank-absent";
    finding.strength = Strength::kDecisive;
    finding.confidence = 0.85;
    finding.claim = fmt::format("PyTorch's desync report names rank{} {} as behind the others.", report.behind.size() > 1 ? "s" : "", FoldRanks({report.behind.begin(), report.behind.end()}));
    for (const int rank : report.behind) finding.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, "named by the desync report"));
    finding.citations = {Cite(timeline, *report.behind_at, "cause")};
    out.push_back(std::move(finding));
  }
  for (Finding& finding : out) finding.collective = RefFor(timeline, report);
  return out;
}

constexpr std::string_view kFindings[] = {"desync-two-operations", "desync-ranks-behind"};

}  // namespace

const Detector kDesync{"desync-report", "PyTorch's desync report names ranks that stayed behind or two operations at one number.", kFindings, &Run};

}  // namespace inquest
