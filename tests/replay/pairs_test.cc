// Rounds of pairs, and who is accused by them: over runs that a test makes up.
#include "replay/pairs.h"

#include <algorithm>
#include <set>

#include "tests/catch.h"
#include "tests/replay/replay_runs.h"

namespace inquest {
namespace pairs_test {

using State = PairOutcome::State;

TEST_CASE("pairs: every pair once, and in a round every rank once", "[unit][replay]") {
  for (int ranks = 2; ranks <= 17; ++ranks) {
    CAPTURE(ranks);
    const auto rounds = RoundsOf(ranks);
    CHECK(static_cast<int>(rounds.size()) == (ranks % 2 == 0 ? ranks - 1 : ranks));
    std::set<RankPair> seen;
    for (const auto& round : rounds) {
      CHECK(static_cast<int>(round.size()) == ranks / 2);
      std::set<int> busy;
      for (const RankPair& pair : round) {
        CHECK(pair.low < pair.high);
        CHECK(seen.insert(pair).second);
        CHECK((busy.insert(pair.low).second && busy.insert(pair.high).second));
      }
    }
    CHECK(static_cast<int>(seen.size()) == ranks * (ranks - 1) / 2);
  }
  CHECK(RoundsOf(1).empty());
}

TEST_CASE("pairs: groups are what passing pairs join", "[unit][replay]") {
  using Groups = std::vector<std::vector<int>>;
  CHECK(GroupsOf(5, {{0, 1}, {3, 4}, {1, 3}}) == Groups{{0, 1, 3, 4}, {2}});
  CHECK(GroupsOf(3, {}) == Groups{{0}, {1}, {2}});
  CHECK(GroupsOf(4, {{2, 3}, {0, 3}}) == Groups{{0, 2, 3}, {1}});
  // Those of many pairs first, so that a star is looked at once a round.
  const auto disjoint = Disjoint({{0, 1}, {1, 2}, {2, 3}, {2, 4}});
  CHECK(disjoint == std::vector<RankPair>{{1, 2}});
}

/// The two ranks of the whole plan that a pair's plan stands for.
RankPair RanksOf(const Plan& plan) {
  return {std::stoi(plan.places.at(0).options.at("device")), std::stoi(plan.places.at(1).options.at("device"))};
}

struct Bench {
  /// What becomes of a pair; `whole`: with the whole deadline.
  std::function<RunVerdict(const RankPair& pair, bool whole, const Plan& plan)> says;
  int calls = 0, whole_calls = 0;
  Pace pace = Pace{};

  PairsOutcome Find(int ranks, const std::vector<Blamed>& last = {}) {
    Plan plan = SmallPlan(Operation::kAllReduce, 1000, ranks);
    const RunPlans run = [&](const std::vector<Plan>& plans, Pace* given) {
      ++calls;
      whole_calls += given == nullptr ? 1 : 0;
      std::vector<RunOutcome> runs;
      for (const Plan& one : plans) {
        RunOutcome& out = runs.emplace_back();
        const bool cut = given != nullptr && given->limit().has_value();
        out.verdict = says(RanksOf(one), !cut, one);
        out.is_hurried = cut && out.verdict == RunVerdict::kHung;
        if (given != nullptr && out.verdict == RunVerdict::kPassed) given->Passed(std::chrono::milliseconds(10));
      }
      return runs;
    };
    return FindBrokenPairs(plan, last, {.run = run, .progress = {}, .pace = &pace});
  }
};

TEST_CASE("pairs: one that is broken costs one whole deadline beside the first round's", "[unit][replay]") {
  for (const RankPair bad : {RankPair{0, 1}, RankPair{2, 5}, RankPair{6, 7}}) {
    CAPTURE(bad.low, bad.high);
    Bench bench{.says = [&](const RankPair& pair, bool, const Plan&) {
      return pair == bad ? RunVerdict::kHung : RunVerdict::kPassed;
    }};
    // As an earlier run names the link, its round is not the first.
    const auto found = bench.Find(8, {{.rank = bad.high, .to = bad.low}});
    CHECK(found.deadlines == 1);
    CHECK(bench.whole_calls == 1);
    CHECK(BrokenPair(found) == bad);
    CHECK(std::ranges::count(found.pairs, State::kPassed, &PairOutcome::state) == 27);
  }
}

TEST_CASE("pairs: a rank that is broken costs two, and what had no second look is said", "[unit][replay]") {
  Bench bench{.says = [](const RankPair& pair, bool, const Plan&) {
    return pair.Has(3) ? RunVerdict::kHung : RunVerdict::kPassed;
  }};
  const auto found = bench.Find(8);
  CHECK(bench.whole_calls == 2);
  CHECK(std::ranges::count(found.pairs, State::kBroken, &PairOutcome::state) == 2);
  CHECK(std::ranges::count(found.pairs, State::kUnconfirmed, &PairOutcome::state) == 5);
  CHECK(Has(PairsInWords(found, 8), "Rank 3 passes with no other rank, and ranks 0-2, 4-7 pass among themselves"));
}

TEST_CASE("pairs: nobody is accused for being slow, nor acquitted for not running", "[unit][replay]") {
  Bench slow{.says = [](const RankPair& pair, bool whole, const Plan&) {
    return pair.Has(3) && !whole ? RunVerdict::kHung : RunVerdict::kPassed;
  }};
  const auto passed = slow.Find(6);
  CHECK(std::ranges::all_of(passed.pairs, [](const PairOutcome& pair) { return pair.state == State::kPassed; }));
  CHECK(Has(PairsInWords(passed, 6), "Every pair alone passes"));
  CHECK(*slow.pace.limit() >= std::chrono::milliseconds(2000));

  Bench unable{.says = [](const RankPair& pair, bool, const Plan&) {
    return pair == RankPair{0, 2} ? RunVerdict::kCouldNotRun : RunVerdict::kPassed;
  }};
  const auto not_run = unable.Find(4);
  CHECK(std::ranges::count(not_run.pairs, State::kCouldNotRun, &PairOutcome::state) == 1);
  CHECK_FALSE(BrokenPair(not_run).has_value());
  CHECK(Has(PairsInWords(not_run, 4), "Pair 0<->2 could not run."));

  Bench transient{.says = [n = 0](const RankPair&, bool, const Plan&) mutable {
    return n++ == 0 ? RunVerdict::kEngineError : RunVerdict::kPassed;
  }};
  CHECK_FALSE(BrokenPair(transient.Find(3)).has_value());
}

TEST_CASE("pairs: one way that passes leaves the other to blame", "[unit][replay]") {
  Bench bench{.says = [](const RankPair& pair, bool, const Plan& plan) {
    const bool forth = plan.operation.value == Operation::kSendRecv && plan.root.value == 0;
    return pair == RankPair{1, 2} && !forth ? RunVerdict::kHung : RunVerdict::kPassed;
  }};
  const auto found = bench.Find(4);
  CHECK(Has(PairsInWords(found, 4), "this pair breaks: 2->1, and 5 of 6 pairs pass."));
}

TEST_CASE("pairs: an interruption leaves what had no turn", "[unit][replay]") {
  Bench bench{.says = [n = 0](const RankPair&, bool, const Plan&) mutable {
    return n++ < 2 ? RunVerdict::kPassed : RunVerdict::kInterrupted;
  }};
  const auto found = bench.Find(4);
  CHECK(found.interrupted);
  CHECK(std::ranges::count(found.pairs, State::kPassed, &PairOutcome::state) == 2);
  CHECK(std::ranges::count(found.pairs, State::kNotRun, &PairOutcome::state) == 4);
}

TEST_CASE("pairs: a pair is of its two ranks, and moves 16 MB at most", "[unit][replay]") {
  Plan plan = SmallPlan(Operation::kBroadcast, 253'440'000, 8);
  plan.root.value = 5;
  const Plan pair = PairOf(plan, {2, 5});
  CHECK(pair.ranks.value == 2);
  CHECK(pair.operation.value == Operation::kAllToAll);
  CHECK(pair.count.value == 4'000'000);
  plan.splits = {3, 70, 5};
  plan.count.value = 0;
  CHECK(PairOf(plan, {2, 5}).count.value == 70);
  const Plan send = SendOf(plan, 5, 2, 4096);
  CHECK(send.root.value == 1);
  CHECK(send.peer.value == 0);
  CHECK(send.count.value == 1024);
  CHECK(RanksOf(send) == RankPair{2, 5});
}

}  // namespace pairs_test
}  // namespace inquest
