// PyTorch's own desync report names the ranks that stayed behind, or shows ranks inside two operations.
//
// What holds: with TORCH_NCCL_DESYNC_DEBUG the rank that timed out asked the store how far every rank had come. Why
// that implies the cause: the store knows what each rank entered and left, which no log of survivors does. What looks
// like it: one operation started at two numbers, where the lower one is late; one started by all, which says that
// nobody is missing. Ranks in the report are the group's.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace desync {

constexpr FindingRow kFindings[] = {
    {"desync-two-operations", "at-one-number at-two-numbers", "first-side other-side"},
    {"desync-ranks-behind", "reported", "ranks"},
};
using Found = FoundIn<kFindings>;

struct Report {
  std::set<int> behind;
  /// The last operation that each rank started and did not finish.
  struct Started {
    std::int64_t number = 0;
    std::string op;
    EventIndex event = 0;
  };
  std::map<int, Started> started;
  std::optional<SeqId> seq;
  std::string op;
  std::optional<EventIndex> behind_at;
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
      const Report::Started last{line->seq ? line->seq->value : 0, line->op, i};
      for (const int rank : line->ranks) {
        const auto [known, is_new] = report.started.try_emplace(rank, last);
        if (!is_new && known->second.number < last.number) known->second = last;
      }
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

/// Who started what, the largest side first. One side: all started the same operation, if not all at one number.
struct Side {
  std::set<int> ranks;
  std::int64_t number = 0;
  std::string op;
  EventIndex event = 0;
};
std::vector<Side> SidesOf(const Report& report) {
  std::map<std::pair<std::int64_t, std::string>, Side> by_what;
  std::set<std::string> ops;
  for (const auto& [rank, last] : report.started) {
    Side& side = by_what.try_emplace({last.number, last.op}, Side{{}, last.number, last.op, last.event}).first->second;
    side.ranks.insert(rank);
    ops.insert(last.op);
  }
  std::vector<Side> sides;
  if (ops.size() < 2) return sides;
  for (auto& [what, side] : by_what) sides.push_back(std::move(side));
  std::stable_sort(sides.begin(), sides.end(),
                   [](const Side& a, const Side& b) { return a.ranks.size() > b.ranks.size(); });
  return sides;
}

std::string Describe(const Side& side) {
  return fmt::format("ranks {} started {} #{}", FoldRanks({side.ranks.begin(), side.ranks.end()}), side.op,
                     side.number);
}

Found Mismatch(const Timeline& timeline, const std::vector<Side>& sides) {
  const bool at_one_number =
      std::all_of(sides.begin(), sides.end(), [&](const Side& side) { return side.number == sides.front().number; });
  Found found(at_one_number ? Found::Held{"desync-two-operations", "at-one-number"}
                            : Found::Held{"desync-two-operations", "at-two-numbers"});
  found.Say("first-side", Describe(sides[0]));
  found.Say("other-side", Describe(sides[1]));
  if (sides[0].ranks.size() > sides[1].ranks.size())
    for (std::size_t i = 1; i < sides.size(); ++i)
      for (const int rank : sides[i].ranks)
        found.culprits.push_back(
            BlameRank(timeline, GlobalRank{rank}, fmt::format("started {} #{}", sides[i].op, sides[i].number)));
  found.citations = {Cite(timeline, sides[1].event, LineRole::kCause),
                     Cite(timeline, sides[0].event, LineRole::kCause)};
  return found;
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  const Report report = Read(timeline);
  std::vector<Relation> out;
  if (const std::vector<Side> sides = SidesOf(report); !sides.empty()) {
    out.push_back(Mismatch(timeline, sides));
  } else if (!report.behind.empty()) {
    Found found({"desync-ranks-behind", "reported"});
    found.Say("ranks", RanksWithin({report.behind.begin(), report.behind.end()}));
    for (const int rank : report.behind) found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, ""));
    found.citations = {Cite(timeline, *report.behind_at, LineRole::kCause)};
    out.push_back(std::move(found));
  }
  for (Relation& found : out) found.collective = RefFor(timeline, report);
  return out;
}

}  // namespace desync

const Detector kDesync{"desync-report",
                       "PyTorch's desync report names ranks that stayed behind, or shows ranks inside two operations.",
                       desync::kFindings, &desync::Run};

}  // namespace inquest
