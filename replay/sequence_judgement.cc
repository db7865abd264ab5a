// Who waits for whom in a sequence that does not go on.
//
// A rank is in the steps at the head of its streams. Of each it waits for the parties that have not come: one of those
// is itself in what stands in front of that call on its stream, and so on. Where that comes back to where it began,
// nothing that a library does could ever end it: the order of the calls is the cause. Where it ends at a rank that has
// not that call at all, that rank is; where all have come and do not ask for the same, that is.
#include "replay/sequence_judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "replay/words.h"
#include "timeline/timeline.h"

namespace inquest {
namespace {

using std::string;

/// A call that a rank is in.
struct Standpoint {
  int rank = 0;
  std::uint32_t step = 0;
  bool operator==(const Standpoint&) const = default;
  auto operator<=>(const Standpoint&) const = default;
};

class Standing {
 public:
  Standing(const RunOutcome& run, const Sequence& sequence) : run_(run), sequence_(sequence) {
    for (std::size_t rank = 0; rank < sequence.steps.size() && rank < run.ranks.size(); ++rank) {
      std::vector<Place>& places = places_.emplace_back(sequence.steps[rank].size());
      const auto streams = ByStream(sequence.steps[rank]);
      for (std::size_t stream = 0; stream < streams.size(); ++stream) {
        StreamProgress at =
            stream < run.ranks[rank].progress.size() ? run.ranks[rank].progress[stream] : StreamProgress{};
        const auto size = static_cast<std::uint32_t>(streams[stream].size());
        if (IsThrough(run.ranks[rank])) at = {size, size};
        std::vector<std::uint32_t> heads;
        for (std::uint32_t i = 0; i < size; ++i) {
          const State state = i < at.completed ? State::kDone : i < at.begun ? State::kIn : State::kAhead;
          const std::uint32_t step = streams[stream][i];
          places[step] = {state, static_cast<std::uint32_t>(stream)};
          if (state == State::kIn) heads.push_back(step);
          step_of_[{static_cast<int>(rank), MeetingOf(sequence, sequence.steps[rank][step])}] = step;
        }
        heads_[{static_cast<int>(rank), static_cast<std::uint32_t>(stream)}] = heads;
        for (const std::uint32_t step : heads) nodes_.push_back({static_cast<int>(rank), step});
      }
    }
  }

  const std::vector<Standpoint>& nodes() const { return nodes_; }
  const SequenceStep& StepOf(const Standpoint& node) const {
    return sequence_.steps[static_cast<std::size_t>(node.rank)][node.step];
  }

  struct Waits {
    std::vector<int> for_ranks;      ///< that have it ahead of them
    std::vector<int> never;          ///< that have it not at all
    std::vector<Standpoint> behind;  ///< what those that have it ahead are in, in front of it
  };
  Waits WaitsOf(const Standpoint& node) const {
    Waits waits;
    const SequenceStep& step = StepOf(node);
    const Meeting meeting = MeetingOf(sequence_, step);
    for (const int party : PartiesOf(sequence_, step)) {
      if (party == node.rank || static_cast<std::size_t>(party) >= places_.size()) continue;
      const auto own = step_of_.find({party, meeting});
      if (own == step_of_.end()) {
        waits.never.push_back(party);
        continue;
      }
      const Place& place = places_[static_cast<std::size_t>(party)][own->second];
      if (place.state != State::kAhead) continue;
      waits.for_ranks.push_back(party);
      for (const std::uint32_t head : heads_.at({party, place.stream})) waits.behind.push_back({party, head});
    }
    std::ranges::sort(waits.for_ranks);
    std::ranges::sort(waits.never);
    return waits;
  }

  /// Shortest first found; empty: there is none.
  std::vector<Standpoint> Cycle() const {
    std::vector<Standpoint> shortest;
    constexpr std::size_t kMostStarts = 64;
    std::size_t starts = 0;
    for (const Standpoint& start : nodes_) {
      if (starts++ == kMostStarts && !shortest.empty()) break;
      const std::vector<Standpoint> cycle = CycleThrough(start);
      if (!cycle.empty() && (shortest.empty() || cycle.size() < shortest.size())) shortest = cycle;
      if (shortest.size() == 2) break;
    }
    return shortest;
  }

  bool IsOver(const Meeting& meeting) const {
    bool any = false;
    for (int rank = 0; rank < static_cast<int>(places_.size()); ++rank) {
      const auto own = step_of_.find({rank, meeting});
      if (own == step_of_.end()) continue;
      any = true;
      if (places_[static_cast<std::size_t>(rank)][own->second].state != State::kDone) return false;
    }
    return any;
  }
  bool SomebodyIsIn(const Meeting& meeting) const {
    return std::ranges::any_of(nodes_,
                               [&](const Standpoint& node) { return MeetingOf(sequence_, StepOf(node)) == meeting; });
  }
  /// Ranks with nothing ahead of them.
  bool IsThrough(int rank) const { return IsThrough(run_.ranks[static_cast<std::size_t>(rank)]); }

 private:
  enum class State : std::uint8_t { kAhead, kIn, kDone };
  struct Place {
    State state = State::kAhead;
    std::uint32_t stream = 0;
  };

  /// It has completed the pass that the rank furthest back is in.
  bool IsThrough(const RankOutcome& rank) const {
    int pass = rank.doing.iteration;
    for (const RankOutcome& other : run_.ranks)
      if (IsRepeated(other.doing.phase))
        pass = std::min(pass == 0 ? other.doing.iteration : pass, other.doing.iteration);
    if (!IsRepeated(rank.doing.phase)) return rank.doing.phase > Phase::kVerified;
    return IsBefore({Phase::kCompleted, pass}, rank.doing) || rank.last == Step{Phase::kCompleted, pass};
  }

  std::vector<Standpoint> CycleThrough(const Standpoint& start) const {
    std::map<Standpoint, Standpoint> from;
    std::deque<Standpoint> next = {start};
    while (!next.empty()) {
      const Standpoint node = next.front();
      next.pop_front();
      for (const Standpoint& other : WaitsOf(node).behind) {
        if (other == start) {
          std::vector<Standpoint> cycle = {node};
          while (!(cycle.back() == start)) cycle.push_back(from.at(cycle.back()));
          std::ranges::reverse(cycle);
          return cycle;
        }
        if (from.emplace(other, node).second) next.push_back(other);
      }
    }
    return {};
  }

  const RunOutcome& run_;
  const Sequence& sequence_;
  std::vector<std::vector<Place>> places_;                                     ///< by rank and step
  std::map<std::pair<int, Meeting>, std::uint32_t> step_of_;                   ///< by rank
  std::map<std::pair<int, std::uint32_t>, std::vector<std::uint32_t>> heads_;  ///< by rank and stream
  std::vector<Standpoint> nodes_;
};

/// `Rank 0 waits in all-reduce #1 of a for rank 1, which waits in all-reduce #1 of b for rank 0: a cycle.`
string InWordsOf(const std::vector<Standpoint>& cycle, const Standing& standing, const Sequence& sequence) {
  string text;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const Standpoint& node = cycle[i];
    const int next = cycle[(i + 1) % cycle.size()].rank;
    const string step = InWords(sequence, standing.StepOf(node));
    text += i == 0 ? fmt::format("Rank {} waits in {} for rank {}", node.rank, step, next)
                   : fmt::format(", which waits in {} for rank {}", step, next);
  }
  return text + ": a cycle.";
}

/// Every row of one call together: `all-reduce #1 of a`, its ranks.
std::map<Meeting, std::vector<Standpoint>> ByMeeting(const Standing& standing, const Sequence& sequence) {
  std::map<Meeting, std::vector<Standpoint>> rows;
  for (const Standpoint& node : standing.nodes()) rows[MeetingOf(sequence, standing.StepOf(node))].push_back(node);
  return rows;
}
std::vector<int> RanksOf(const std::vector<Standpoint>& nodes) {
  std::vector<int> ranks;
  for (const Standpoint& node : nodes) ranks.push_back(node.rank);
  return ranks;
}

/// Where the ranks of a list are: `; rank 1 is through`, `; rank 1 is in all-reduce #2 of b`.
string WhereAre(const std::vector<int>& ranks, const Standing& standing, const Sequence& sequence) {
  std::vector<int> through;
  std::map<string, std::vector<int>> in;
  for (const int rank : ranks) {
    if (standing.IsThrough(rank)) through.push_back(rank);
    for (const Standpoint& node : standing.nodes())
      if (node.rank == rank) in[InWords(sequence, standing.StepOf(node))].push_back(rank);
  }
  string text;
  if (!through.empty()) text += fmt::format("; {} {} through", Ranks(through), through.size() == 1 ? "is" : "are");
  for (const auto& [what, who] : in)
    text += fmt::format("; {} {} in {}", Ranks(who), who.size() == 1 ? "is" : "are", what);
  return text;
}

}  // namespace

std::vector<Waiting> WaitingIn(const RunOutcome& run, const Plan& plan) {
  if (!plan.sequence) return {};
  const Standing standing(run, *plan.sequence);
  std::vector<Waiting> rows;
  for (const Standpoint& node : standing.nodes()) {
    const SequenceStep& step = standing.StepOf(node);
    auto waits = standing.WaitsOf(node);
    rows.push_back({.rank = node.rank,
                    .stream = static_cast<int>(step.stream),
                    .step = static_cast<int>(node.step) + 1,
                    .call = InWordsWhole(*plan.sequence, step),
                    .for_ranks = std::move(waits.for_ranks),
                    .never = std::move(waits.never),
                    .at = step.at});
  }
  return rows;
}

std::string NameDisagreements(const RunOutcome& run, const Plan& plan) {
  if (!plan.sequence) return "";
  const Standing standing(run, *plan.sequence);
  std::vector<Disagreement> open;
  for (Disagreement& one : DisagreementsOf(*plan.sequence))
    if (!standing.IsOver(one.meeting)) open.push_back(std::move(one));
  std::stable_partition(open.begin(), open.end(),
                        [&](const Disagreement& one) { return standing.SomebodyIsIn(one.meeting); });
  constexpr std::size_t kNamed = 2;
  string text;
  for (std::size_t i = 0; i < std::min(open.size(), kNamed); ++i) text += " " + open[i].sentence;
  return text;
}

Judgement JudgeSequence(const RunOutcome& run, const Plan& plan, std::chrono::milliseconds waited) {
  const Sequence& sequence = *plan.sequence;
  const Standing standing(run, sequence);
  Judgement judgement{.verdict = RunVerdict::kHung, .sentence = "", .blamed = {}};
  const auto blame = [&](const std::vector<int>& ranks) {
    for (const int rank : std::set<int>(ranks.begin(), ranks.end()))
      judgement.blamed.push_back({.rank = rank, .to = {}});
  };
  const string time = fmt::format(" Nothing moved for {:.1f} s.", std::chrono::duration<double>(waited).count());
  if (const std::vector<Standpoint> cycle = standing.Cycle(); !cycle.empty()) {
    judgement.sentence = InWordsOf(cycle, standing, sequence) + time;
    judgement.cycle = RanksOf(cycle);
    blame(judgement.cycle);
    return judgement;
  }
  const auto rows = ByMeeting(standing, sequence);
  for (const auto& [meeting, nodes] : rows) {
    const auto never = standing.WaitsOf(nodes.front()).never;
    if (never.empty()) continue;
    judgement.sentence =
        fmt::format("{} never make{} {}, in which {} wait{}{}.{}", Capital(Ranks(never)), never.size() == 1 ? "s" : "",
                    InWords(sequence, standing.StepOf(nodes.front())), Ranks(RanksOf(nodes)),
                    nodes.size() == 1 ? "s" : "", WhereAre(never, standing, sequence), time);
    blame(never);
    return judgement;
  }
  for (const Disagreement& one : DisagreementsOf(sequence)) {
    const auto row = rows.find(one.meeting);
    if (one.lacks || row == rows.end()) continue;
    judgement.sentence = fmt::format("{} {} {} in it.{}", one.sentence, Capital(Ranks(RanksOf(row->second))),
                                     row->second.size() == 1 ? "hangs" : "hang", time);
    blame(one.ranks);
    return judgement;
  }
  if (rows.empty()) {
    judgement.sentence = "No rank is in a call, and the pass does not end." + time;
    return judgement;
  }
  string list;
  for (const auto& [meeting, nodes] : rows)
    list += fmt::format("{}{} {} in {}", list.empty() ? "" : ", ", Ranks(RanksOf(nodes)),
                        nodes.size() == 1 ? "is" : "are", InWordsWhole(sequence, standing.StepOf(nodes.front())));
  judgement.sentence =
      fmt::format("{}, and none comes through; nobody whom they wait for is anywhere else.{}", Capital(list), time);
  return judgement;
}

}  // namespace inquest
