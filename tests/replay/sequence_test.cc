// Sequences without a process: which calls are the last, what ranks do not agree on, and who waits for whom.
#include "replay/sequence.h"

#include "replay/sequence_judgement.h"
#include "replay/sequence_reader.h"
#include "replay/soak.h"
#include "replay/wire.h"
#include "tests/catch.h"

using namespace inquest;
using namespace std::chrono_literals;

namespace sequence_test {

/// What each rank of `ranks` calls on one communicator of all of them, by number.
ReadCalls Numbered(std::vector<std::vector<std::int64_t>> numbers) {
  ReadCalls read;
  read.communicators.push_back({.name = "comm a", .members = {}});
  for (std::uint32_t rank = 0; rank < numbers.size(); ++rank) {
    read.communicators[0].members.emplace_back(rank);
    read.callers.push_back({.rank = static_cast<int>(rank)});
    read.calls.emplace_back();
    for (const std::int64_t number : numbers[rank])
      read.calls[rank].push_back({.number = number, .call = {.count = 7}, .stream = std::nullopt, .at = {}});
  }
  return read;
}

std::vector<std::int64_t> NumbersOf(const Sequence& sequence, std::size_t rank) {
  std::vector<std::int64_t> numbers;
  for (const SequenceStep& step : sequence.steps[rank]) numbers.push_back(step.called);
  return numbers;
}

/// Steps as `communicator` letters; every call is an all-reduce of all ranks.
Plan Letters(const std::vector<std::string>& ranks) {
  Plan plan;
  plan.ranks.value = static_cast<int>(ranks.size());
  Sequence sequence{.communicators = {}, .calls = {{.count = 4}}, .steps = {}, .rule = ""};
  std::vector<int> all;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) all.push_back(static_cast<int>(rank));
  for (std::uint32_t i = 0; i < 3; ++i)
    sequence.communicators.push_back(
        {.name = std::string("comm ") + static_cast<char>('a' + i), .ranks = all, .id = i});
  for (const std::string& calls : ranks) {
    std::vector<SequenceStep>& steps = sequence.steps.emplace_back();
    std::vector<std::uint32_t> made(3);
    for (const char letter : calls) {
      const auto communicator = static_cast<std::uint32_t>(letter - 'a');
      steps.push_back({.communicator = communicator, .number = made[communicator]++, .called = made[communicator]});
    }
  }
  Complete(sequence);
  plan.sequence = std::move(sequence);
  return plan;
}

/// All in completed #1, on one stream, so far.
RunOutcome At(const std::vector<StreamProgress>& progress) {
  RunOutcome run;
  for (std::size_t i = 0; i < progress.size(); ++i) {
    RankOutcome rank;
    rank.rank = static_cast<int>(i);
    rank.doing = {Phase::kCompleted, 1};
    rank.progress = {progress[i]};
    run.ranks.push_back(std::move(rank));
  }
  return run;
}

TEST_CASE("sequence: the last calls are the same numbers on all, with what some lack", "[unit][replay]") {
  struct Row {
    std::vector<std::vector<std::int64_t>> made;
    int last;
    std::vector<std::vector<std::int64_t>> wanted;
  };
  const Row rows[] = {
      {{{1, 2, 3, 4}, {1, 2, 3, 4}}, 2, {{3, 4}, {3, 4}}},
      {{{1, 2, 3, 4}, {1, 2, 3}}, 2, {{3, 4}, {3}}},
      // One that is further behind is shown with the last that all made.
      {{{1, 2, 3, 4, 5}, {1, 2}}, 2, {{2, 3, 4, 5}, {2}}},
      {{{1, 2, 3}, {}}, 1, {{1, 2, 3}, {}}},
      // A recorder that does not reach back.
      {{{3, 4, 5}, {1, 2, 3, 4, 5}}, 9, {{3, 4, 5}, {3, 4, 5}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.last);
    const auto chosen = LastOf(Numbered(row.made), {.last = row.last});
    REQUIRE(chosen);
    for (std::size_t rank = 0; rank < row.wanted.size(); ++rank)
      CHECK(NumbersOf(chosen->sequence, rank) == row.wanted[rank]);
  }
}

TEST_CASE("sequence: parts of one number meet by their place in it", "[unit][replay]") {
  ReadCalls read = Numbered({{1, 2, 2}, {1, 2}});
  read.calls[0][2].part = 1;
  const auto chosen = LastOf(read, {.last = 1});
  REQUIRE(chosen);
  CHECK(NumbersOf(chosen->sequence, 0) == std::vector<std::int64_t>{2, 2});
  const auto differ = DisagreementsOf(chosen->sequence);
  REQUIRE(differ.size() == 1);
  CHECK(differ[0].sentence == "All-reduce #2 of comm a is made by rank 0 and not by rank 1.");
}

TEST_CASE("sequence: a member that nothing shows is asked for", "[unit][replay]") {
  ReadCalls read = Numbered({{1}, {1}});
  read.communicators[0].members.emplace_back(std::nullopt);
  const auto chosen = LastOf(read, {.last = 1});
  REQUIRE(!chosen);
  CHECK(chosen.error().message == "nothing shows the calls of rank 2 of comm a, which has 3 ranks");
}

TEST_CASE("sequence: a cycle is told by who waits in what for whom", "[unit][replay]") {
  const Plan plan = Letters({"ab", "ba"});
  const RunOutcome run = At({{1, 0}, {1, 0}});
  const Judgement judgement = JudgeSequence(run, plan, 3s);
  CHECK(judgement.cycle == std::vector{0, 1});
  CHECK(
      judgement.sentence ==
      "Rank 0 waits in all-reduce #1 of comm a for rank 1, which waits in all-reduce #1 of comm b for rank 0: a cycle. "
      "Nothing moved for 3.0 s.");
  // The first is over, and what is left is none.
  CHECK(JudgeSequence(At({{2, 1}, {1, 0}}), Letters({"ab", "ab"}), 3s).cycle.empty());
}

TEST_CASE("sequence: who waits behind somebody in a cycle is not in it", "[unit][replay]") {
  const Judgement judgement = JudgeSequence(At({{1, 0}, {1, 0}, {1, 0}}), Letters({"ab", "ba", "cab"}), 3s);
  CHECK(judgement.cycle == std::vector{0, 1});
}

TEST_CASE("sequence: a call that one never makes, and calls that differ", "[unit][replay]") {
  Plan plan = Letters({"aab", "ab"});
  Judgement judgement = JudgeSequence(At({{2, 1}, {2, 1}}), plan, 3s);
  CHECK(judgement.cycle.empty());
  CHECK(judgement.sentence.starts_with(
      "Rank 1 never makes all-reduce #2 of comm a, in which rank 0 waits; rank 1 is in all-reduce #1 of comm b."));
  plan = Letters({"a", "a"});
  plan.sequence->calls.push_back({.operation = Operation::kBroadcast, .count = 4});
  plan.sequence->steps[1][0].call = 1;
  Complete(*plan.sequence);
  CHECK(!plan.sequence->steps[0][0].checked);
  judgement = JudgeSequence(At({{1, 0}, {1, 0}}), plan, 3s);
  CHECK(
      judgement.sentence.starts_with("Call #1 of comm a is not the same on all ranks: rank 0 all-reduce of 4 float32, "
                                     "sum, rank 1 broadcast of 4 float32, root 0. Ranks 0, 1 hang in it."));
  CHECK(NameDisagreements(At({{1, 1}, {1, 1}}), plan).empty());
}

TEST_CASE("sequence: a rank's orders come whole over the wire, and damaged ones do not", "[unit][replay]") {
  Plan plan = Letters({"abcab", "ba"});
  StartWork work;
  work.setup.rank = 1;
  work.setup.nranks = 2;
  work.setup.sequence = WorkOf(*plan.sequence, 1);
  work.setup.sequence->steps[1].stream = 1;
  work.setup.sequence->steps[0].batch = 3;
  const std::string packet = Encode(ToWorker(work));
  const auto message = DecodeToWorker(packet);
  REQUIRE(message);
  const SequenceWork& got = *std::get<StartWork>(*message).setup.sequence;
  REQUIRE(got.steps.size() == 2);
  CHECK((got.steps[1].stream == 1 && got.steps[0].batch == 3 && got.steps[0].communicator == 1));
  CHECK(got.communicators.size() == 3);
  CHECK(WhyInvalid(got, 1).empty());
  CHECK(!WhyInvalid(got, 2).empty());
  work.setup.sequence->steps[0].call = 9;
  CHECK(!DecodeToWorker(Encode(ToWorker(work))));
}

TEST_CASE("soak: Wilson's interval", "[unit][replay]") {
  struct Row {
    std::uint64_t failed, of;
    double low, high;
  };
  // As R's binom::binom.confint(method = "wilson") and statsmodels' proportion_confint have them.
  const Row rows[] = {
      {0, 10, 0, 0.2775}, {5, 10, 0.2366, 0.7634}, {1, 100, 0.0018, 0.0545}, {10, 10, 0.7225, 1}, {0, 0, 0, 1}};
  for (const Row& row : rows) {
    CAPTURE(row.failed, row.of);
    const RateInterval interval = WilsonInterval(row.failed, row.of);
    CHECK(interval.low == Approx(row.low).margin(0.0001));
    CHECK(interval.high == Approx(row.high).margin(0.0001));
  }
}

TEST_CASE("soak: counts iterations, goes on where it was, and begins anew once it is over", "[unit][replay]") {
  Plan plan = Letters({"a", "a"});
  plan.iterations = 10;
  int runs = 0;
  const auto run = [&](const Plan&) {
    RunOutcome out;
    out.verdict = ++runs == 3 ? RunVerdict::kHung : RunVerdict::kPassed;
    out.sentence = "it hung";
    out.ranks.resize(2);
    out.ranks[0].times = {1ns, 1ns, 1ns, 1ns, 1ns};
    out.ranks[1].times = {1ns, 1ns, 1ns, 1ns};
    return out;
  };
  SoakState kept;
  const auto keep = [&](const SoakState& state) { kept = *DecodeSoak(Encode(state)); };
  const SoakOutcome outcome = Soak(plan, {.until_fails = true}, std::nullopt, run, keep);
  CHECK((kept.passed == 24 && kept.failed == 1 && kept.first_failed == 25u && kept.runs == 3 && kept.over));
  CHECK((kept.sentence == "it hung" &&
         kept.verdicts == std::map<std::string, std::uint64_t>{{"hung", 1}, {"passed", 2}}));
  CHECK((outcome.telling->verdict == RunVerdict::kHung && !outcome.resumed));
  runs = 2;
  CHECK(Soak(plan, {.until_fails = true}, kept, run, keep).state.first_failed == 5u);
  kept.over = false;
  kept.failed = 0;
  kept.first_failed.reset();
  runs = 2;
  const SoakOutcome resumed = Soak(plan, {.until_fails = true}, kept, run, keep);
  CHECK((resumed.resumed && resumed.state.passed == 8));
  CHECK(!DecodeSoak("{}"));
  CHECK(!DecodeSoak("no JSON"));
  plan.iterations = 11;
  CHECK(PlanKey(plan) != kept.plan);
}

}  // namespace sequence_test
