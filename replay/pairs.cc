// Group testing, in which a pass is cheap and a break costs a deadline.
//
// A round runs disjoint pairs at once, so that one that hangs costs nobody else. As soon as something has passed, the
// deadline of those that have not is cut to a few times what it took (Pace): a broken rank is in every round, and must
// not cost a deadline in each. Nobody is accused by a deadline that was cut: who did not pass is run again, without
// those that did and with the whole deadline. Two such rounds show a rank that is broken, or a side of a partition;
// what is left then stays unconfirmed, and is said to be. Nobody is acquitted without data that was verified.
#include "replay/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "replay/judgement.h"
#include "replay/ops.h"
#include "replay/subsets.h"
#include "timeline/timeline.h"

namespace inquest {
namespace {

using State = PairOutcome::State;

/// Enough for every protocol; a rank of a pair holds four times as many.
constexpr std::uint64_t kMostPairBytes = 16'000'000;
constexpr int kMostIterations = 10, kMostLostDeadlines = 2;

bool Waited(const RunOutcome& run) { return run.verdict == RunVerdict::kHung || run.verdict == RunVerdict::kLinkDead; }

class Search {
 public:
  Search(const Plan& plan, const std::vector<Blamed>& last, const PairSearch& search) : plan_(plan), search_(search) {
    rounds_ = RoundsOf(plan.ranks.value);
    std::stable_partition(rounds_.begin(), rounds_.end(), [&](const std::vector<RankPair>& round) {
      return std::ranges::none_of(round, [&](const RankPair& pair) {
        return std::ranges::any_of(last, [&](const Blamed& blamed) {
          return blamed.rank && blamed.to && pair.Has(*blamed.rank) && pair.Has(*blamed.to);
        });
      });
    });
  }

  PairsOutcome Run() {
    for (const auto& round : rounds_)
      for (const RankPair& pair : round) pairs_[pair].ranks = pair;
    for (const auto& round : rounds_) {
      if (!RunRound(round, search_.pace)) break;
    }
    if (!out_.interrupted) Confirm();
    if (!out_.interrupted) FindWays();
    const Plan shape = PairOf(plan_, {0, 1});
    out_.bytes = shape.count.value * BytesOf(shape.datatype.value);
    for (auto& [ranks, pair] : pairs_) out_.pairs.push_back(std::move(pair));
    return std::move(out_);
  }

 private:
  std::optional<std::vector<RunOutcome>> RunAll(const std::vector<Plan>& plans, Pace* pace) {
    std::vector<RunOutcome> runs = search_.run(plans, pace);
    ++out_.rounds;
    if (std::ranges::any_of(runs, [](const RunOutcome& run) { return run.verdict == RunVerdict::kInterrupted; })) {
      out_.interrupted = true;
      return std::nullopt;
    }
    return runs;
  }

  /// False: interrupted.
  bool RunRound(const std::vector<RankPair>& round, Pace* pace) {
    if (search_.progress)
      search_.progress(fmt::format("{} of {} at once: {}{}", round.size() == 1 ? "pair" : "pairs", plan_.ranks.value,
                                   Text(round), pace == nullptr ? ", with the whole deadline" : ""));
    std::vector<Plan> plans;
    for (const RankPair& pair : round) plans.push_back(PairOf(plan_, pair));
    const auto runs = RunAll(plans, pace);
    if (!runs) return false;
    bool lost = false;
    for (std::size_t i = 0; i < round.size(); ++i) {
      const RunOutcome& run = (*runs)[i];
      PairOutcome& pair = pairs_[round[i]];
      lost = lost || (Waited(run) && !run.is_hurried);
      if (run.verdict == RunVerdict::kPassed) {
        // It was the deadline, or those beside it.
        if (pair.state == State::kUnconfirmed) search_.pace->Widen();
        pair.state = State::kPassed;
        continue;
      }
      pair.state = run.verdict == RunVerdict::kCouldNotRun ? State::kCouldNotRun
                   : pace == nullptr                       ? State::kBroken
                                                           : State::kUnconfirmed;
      pair.sentence = run.sentence + RanksHere({round[i].low, round[i].high});
    }
    out_.deadlines += lost ? 1 : 0;
    if (lost && pace == nullptr) ++lost_;
    return true;
  }

  static std::string Text(const std::vector<RankPair>& round) {
    constexpr std::size_t kShown = 4;
    std::vector<std::string> names;
    for (const RankPair& pair : round)
      if (names.size() < kShown) names.push_back(fmt::format("{}-{}", pair.low, pair.high));
    return fmt::format("{}{}", fmt::join(names, " "), round.size() > kShown ? " ..." : "");
  }

  /// What did not pass, in rounds of pairs that share no rank. What could not run beside others may alone.
  void Confirm() {
    std::vector<RankPair> left;
    for (const auto& [ranks, pair] : pairs_)
      if (pair.state == State::kUnconfirmed || pair.state == State::kCouldNotRun) left.push_back(ranks);
    while (!left.empty() && lost_ < kMostLostDeadlines && !IsClear(left)) {
      const std::vector<RankPair> round = Disjoint(left);
      if (!RunRound(round, nullptr)) return;
      std::erase_if(left, [&](const RankPair& pair) { return std::ranges::find(round, pair) != round.end(); });
    }
  }

  /// Whether each of these has a rank that has broken twice and passed with nobody: more of it would say nothing new.
  bool IsClear(const std::vector<RankPair>& left) const {
    std::map<int, int> broken, passed;
    for (const auto& [ranks, pair] : pairs_) {
      for (const int rank : {ranks.low, ranks.high}) {
        broken[rank] += pair.state == State::kBroken ? 1 : 0;
        passed[rank] += pair.state == State::kPassed ? 1 : 0;
      }
    }
    return std::ranges::all_of(left, [&](const RankPair& pair) {
      return std::ranges::any_of(std::array{pair.low, pair.high},
                                 [&](int rank) { return broken[rank] > 1 && passed[rank] == 0; });
    });
  }

  /// Of broken pairs that share no rank: whether one way passes alone. Not before it is known how long that may take.
  void FindWays() {
    std::vector<RankPair> broken;
    for (const auto& [ranks, pair] : pairs_)
      if (pair.state == State::kBroken) broken.push_back(ranks);
    const std::vector<RankPair> round = Disjoint(broken);
    if (round.empty() || !search_.pace->limit()) return;
    if (search_.progress) search_.progress(fmt::format("each way alone: {}", Text(round)));
    for (const bool forth : {true, false}) {
      std::vector<Plan> plans;
      for (const RankPair& pair : round) {
        Plan plan = PairOf(plan_, pair);
        plan.operation.value = Operation::kSendRecv;
        plan.root.value = forth ? 0 : 1;
        plan.peer.value = forth ? 1 : 0;
        plans.push_back(std::move(plan));
      }
      const auto runs = RunAll(plans, search_.pace);
      if (!runs) return;
      for (std::size_t i = 0; i < round.size(); ++i) {
        if ((*runs)[i].verdict == RunVerdict::kCouldNotRun) continue;
        (forth ? pairs_[round[i]].forth : pairs_[round[i]].back) = (*runs)[i].verdict == RunVerdict::kPassed;
      }
    }
  }

  const Plan& plan_;
  const PairSearch& search_;
  std::vector<std::vector<RankPair>> rounds_;
  std::map<RankPair, PairOutcome> pairs_;
  int lost_ = 0;  ///< whole deadlines, of runs that were to confirm
  PairsOutcome out_;
};

/// `2<->5`; `2->5` where the other way passes.
std::string LinkText(const PairOutcome& pair) {
  const auto [low, high] = pair.ranks;
  if (pair.forth && pair.back && *pair.forth != *pair.back)
    return *pair.back ? fmt::format("{}->{}", low, high) : fmt::format("{}->{}", high, low);
  return fmt::format("{}<->{}", low, high);
}

std::string ListOf(const std::vector<const PairOutcome*>& pairs) {
  constexpr std::size_t kShown = 12;
  std::vector<std::string> names;
  for (const PairOutcome* pair : pairs)
    if (names.size() < kShown) names.push_back(LinkText(*pair));
  return fmt::format("{}{}", fmt::join(names, ", "),
                     pairs.size() > kShown ? fmt::format(" and {} more", pairs.size() - kShown) : "");
}

/// What no pair of it passes with the others: a rank, or the two sides of a partition. Empty: single links.
std::string SidesInWords(const std::vector<std::vector<int>>& groups) {
  std::vector<int> alone;
  std::vector<std::string> joined;
  for (const std::vector<int>& group : groups) {
    if (group.size() == 1)
      alone.push_back(group[0]);
    else
      joined.push_back(FoldRanks(group));
  }
  if (joined.empty()) return "No pair alone passes either.";
  if (joined.size() > 1)
    return fmt::format("Ranks {} pass among themselves{}, and no pair across does: what joins them.",
                       fmt::join(joined, ", and ranks "),
                       alone.empty() ? "" : fmt::format("; rank {} passes with nobody", FoldRanks(alone)));
  const bool is_one = alone.size() == 1;
  return fmt::format("Rank{} {} pass{} with no other rank, and ranks {} pass among themselves: {}.", is_one ? "" : "s",
                     FoldRanks(alone), is_one ? "es" : "", joined[0],
                     is_one ? "that rank, its GPU, its host or its way to the others"
                            : "those ranks, their hosts or their way to the others");
}

}  // namespace

namespace {

/// Of a sequence a plan as large as its largest call.
Plan OneCallOf(Plan plan) {
  if (!plan.sequence) return plan;
  std::uint64_t most = 0;
  for (const Call& call : plan.sequence->calls) {
    std::uint64_t elements = call.count;
    for (const std::uint64_t split : call.splits) elements = std::max(elements, split);
    if (elements * BytesOf(call.datatype) < most) continue;
    most = elements * BytesOf(call.datatype);
    plan.count.value = elements;
    plan.datatype.value = call.datatype;
  }
  plan.operation.value = Operation::kAllToAll;
  plan.splits.clear();
  plan.sequence.reset();
  return plan;
}

}  // namespace

std::string_view Name(PairOutcome::State state) {
  constexpr std::array<std::string_view, 5> kNames = {"passed", "broken", "unconfirmed", "could-not-run", "not-run"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string RanksHere(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != static_cast<int>(i)) names.push_back(fmt::format("rank {} is {}", i, ranks[i]));
  if (names.empty() || names.size() > kMost) return "";
  return fmt::format(" Here {}.", fmt::join(names, ", "));
}

Plan PairOf(const Plan& of, const RankPair& pair) {
  const Plan plan = OneCallOf(of);
  Plan both = SubsetOf(plan, {pair.low, pair.high});
  both.operation.value = Operation::kAllToAll;
  both.splits.clear();
  both.in_place.value = false;
  both.iterations = std::min(plan.iterations, kMostIterations);
  std::uint64_t wanted = plan.operation.value == Operation::kBarrier ? 1 : plan.count.value;
  for (const std::uint64_t split : plan.splits) wanted = std::max(wanted, split);
  both.count.value = std::clamp<std::uint64_t>(wanted, 1, kMostPairBytes / BytesOf(plan.datatype.value));
  return both;
}

Plan SendOf(const Plan& of, int from, int to, std::uint64_t bytes) {
  const Plan plan = OneCallOf(of);
  Plan send = SubsetOf(plan, {std::min(from, to), std::max(from, to)});
  send.operation.value = Operation::kSendRecv;
  send.root.value = from < to ? 0 : 1;
  send.peer.value = from < to ? 1 : 0;
  send.splits.clear();
  send.in_place.value = false;
  send.count.value = std::max<std::uint64_t>(bytes / BytesOf(plan.datatype.value), 1);
  return send;
}

PairsOutcome FindBrokenPairs(const Plan& plan, const std::vector<Blamed>& last, const PairSearch& search) {
  return Search(plan, last, search).Run();
}

std::optional<RankPair> BrokenPair(const PairsOutcome& outcome) {
  const auto found = std::ranges::find(outcome.pairs, State::kBroken, &PairOutcome::state);
  return found == outcome.pairs.end() ? std::nullopt : std::optional(found->ranks);
}

std::string PairsInWords(const PairsOutcome& outcome, int ranks) {
  std::map<State, std::vector<const PairOutcome*>> by;
  std::vector<RankPair> passed;
  for (const PairOutcome& pair : outcome.pairs) {
    by[pair.state].push_back(&pair);
    if (pair.state == State::kPassed) passed.push_back(pair.ranks);
  }
  if (outcome.pairs.empty()) return "";
  std::string text;
  const auto groups = GroupsOf(ranks, passed);
  if (by[State::kPassed].size() == outcome.pairs.size()) {
    text = fmt::format("Every pair alone passes, with {} each way.", SizeText(outcome.bytes));
  } else if (groups.size() > 1 && by[State::kNotRun].empty()) {
    text = SidesInWords(groups);
    // Some of them had no second look, and stand in the list: what those that had one show holds for them.
    by.erase(State::kUnconfirmed);
  } else if (const auto& broken = by[State::kBroken]; !broken.empty()) {
    text = fmt::format("Alone, {}: {}", broken.size() == 1 ? "this pair breaks" : "these pairs break", ListOf(broken));
    for (int rank = 0; rank < ranks && broken.size() > 1; ++rank)
      if (std::ranges::all_of(broken, [&](const PairOutcome* pair) { return pair->ranks.Has(rank); }))
        text += fmt::format("; rank {} is in each, and passes with others", rank);
    text += fmt::format(", and {} of {} pairs pass.", by[State::kPassed].size(), outcome.pairs.size());
  }
  const auto add = [&](State state, std::string_view what) {
    if (by[state].empty()) return;
    text += fmt::format("{}{} {} {}.", text.empty() ? "" : " ", by[state].size() == 1 ? "Pair" : "Pairs",
                        ListOf(by[state]), what);
  };
  add(State::kUnconfirmed, "did not pass in the time that others take, and had no second look");
  add(State::kCouldNotRun, "could not run");
  add(State::kNotRun, "had no turn");
  return text;
}

}  // namespace inquest
