// The fault matrix on the Gloo engine: each fault gives its verdict, names its rank, and does so in time.
#include <chrono>

#include "replay/links.h"
#include "tests/catch.h"
#include "tests/replay/replay_runs.h"

using namespace inquest;
using namespace std::chrono_literals;

namespace faults_test {

/// From the death, the error or the deadline to the sentence. The supervisor's own work only: what a busy machine adds
/// to the worker's is not in it.
constexpr std::chrono::nanoseconds kInTime = 2s;

struct Row {
  const char* fault;
  RunVerdict verdict;
  const char* sentence;  ///< part of it
};

TEST_CASE("fault matrix: what goes wrong is named, with its rank, within two seconds", "[replay][faults]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  const Row rows[] = {
      {"2:hang@comm-init", RunVerdict::kHung,
       "Rank 2 never reached comm-init within 3.0 s; ranks 0, 1 wait in connected"},
      {"1:hang@libs-loaded", RunVerdict::kHung, "Rank 1 never reached libs-loaded"},
      {"2:hang@enqueued", RunVerdict::kHung, "Rank 2 did not enqueue #1"},
      {"1:hang@enqueued#2", RunVerdict::kHung, "Rank 1 did not enqueue #2"},
      {"1:count=5", RunVerdict::kMismatch,
       "Rank 1 asked for count 5 instead of 1000; ranks 0, 2 asked for broadcast of 1000 float32, root 0."},
      {"1:count=2000", RunVerdict::kMismatch, "Rank 1 asked for count 2000 instead of 1000"},
      {"0:op=all-reduce", RunVerdict::kMismatch, "Rank 0 asked for operation all-reduce instead of broadcast"},
      {"1:root=1", RunVerdict::kMismatch, "Rank 1 asked for root 1 instead of 0"},
      {"2:dtype=bfloat16", RunVerdict::kMismatch, "Rank 2 asked for dtype bfloat16 instead of float32"},
      {"1:stop@completed", RunVerdict::kRankStopped, "Rank 1 is stopped (SIGSTOP or its like, state T)"},
      {"1:kill@completed", RunVerdict::kRankDied, "Rank 1 was killed by signal 9 (Killed)"},
      {"0:kill@connected", RunVerdict::kRankDied, "Rank 0 was killed by signal 9 (Killed)"},
      {"1:exit@enqueued", RunVerdict::kRankDied, "Rank 1 exited with 7 after descriptor-agreed #1"},
      {"2:corrupt", RunVerdict::kWrongData, "Rank 2 got wrong data in #1: element 500 is"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.fault);
    Plan plan = SmallPlan();
    plan.iterations = 2;
    const bool hang = Has(row.fault, "hang");
    if (hang) plan.deadlines.each = 3s;
    const RunOutcome run = RunWith(plan, row.fault);
    INFO(run.sentence);
    CHECK(run.verdict == row.verdict);
    CHECK(Has(run.sentence, row.sentence));
    CHECK(run.decided_at - run.event_at < kInTime);
    REQUIRE(run.blamed.size() == 1);
    CHECK(run.blamed[0].rank == row.fault[0] - '0');
    for (const RankOutcome& rank : run.ranks) CHECK(rank.pid > 0);
  }
}

TEST_CASE("fault matrix: a rank that is late, but in time, is a pass with a note", "[replay][faults]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  const RunOutcome run = RunWith(SmallPlan(), "2:delay@comm-init=2500");
  INFO(run.sentence);
  CHECK(run.verdict == RunVerdict::kPassed);
  REQUIRE(run.notes.size() == 1);
  CHECK(Has(run.notes[0], "Rank 2 was 2."));
  CHECK(Has(run.notes[0], "late at comm-init"));
}

TEST_CASE("fault matrix: an abort that hangs is left behind, and said", "[replay][faults]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  Plan plan = SmallPlan();
  plan.deadlines.each = 2s;
  plan.deadlines.abort = 300ms;
  const RunOutcome run = RunWith(plan, "1:hang@enqueued;0:abort-hangs");
  CHECK(run.verdict == RunVerdict::kHung);
  REQUIRE(run.notes.size() == 1);
  CHECK(Has(run.notes[0], "Rank 0: the library's abort did not return within 0.3 s"));
  CHECK(run.took - run.decided_at < 2s);
}

TEST_CASE("fault matrix: without the comparison the library itself meets the mismatch", "[replay][faults]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  // A receiver that expects less: Gloo throws, in a thread of its own. One that expects more: Gloo passes, and only the
  // data shows it.
  Plan plan = SmallPlan();
  plan.compare_descriptors = false;
  const RunOutcome shorter = RunWith(plan, "1:count=5");
  INFO(shorter.sentence);
  CHECK(shorter.verdict == RunVerdict::kEngineError);  // thrown in a thread of Gloo's
  CHECK(Has(shorter.sentence, "Rank 1 failed in completed #1"));
  CHECK(Has(shorter.sentence, "op.preamble.length <= op.nbytes"));
  const RunOutcome longer = RunWith(plan, "1:count=1005");
  INFO(longer.sentence);
  CHECK(longer.verdict == RunVerdict::kWrongData);
  CHECK(Has(longer.sentence, "5 elements are wrong"));
}

TEST_CASE("a picture has every thread of a rank that hangs, and the bytes between ranks", "[replay][faults]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  Plan plan = SmallPlan(Operation::kBroadcast, 4'000'000);
  plan.deadlines.each = 3s;
  const RunOutcome run = RunWith(plan, "1:hang@enqueued");
  CHECK(run.verdict == RunVerdict::kHung);
  CHECK(run.ranks[1].threads.size() >= 2);
  // Gloo's rank 0 waits for rank 1's word before it sends: nothing is on that link, and none is dead.
  CHECK(run.links.size() == 6);
  for (const LinkRow& link : run.links) {
    CAPTURE(link.from, link.to);
    CHECK_FALSE(IsDead(link));
    if (link.from == 0 && link.to == 2) CHECK(link.received >= 16'000'000);
  }
}

TEST_CASE("all operations pass with verified data, and have a bandwidth", "[replay]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  for (const Operation operation :
       {Operation::kBroadcast, Operation::kAllReduce, Operation::kReduce, Operation::kAllGather,
        Operation::kReduceScatter, Operation::kAllToAll, Operation::kGather, Operation::kScatter, Operation::kSendRecv,
        Operation::kBarrier}) {
    for (const Datatype datatype : {Datatype::kFloat32, Datatype::kBfloat16, Datatype::kInt8}) {
      Plan plan = SmallPlan(operation, 1003, 3);
      plan.datatype.value = datatype;
      plan.iterations = 2;
      const RunOutcome run = RunWith(plan);
      INFO(run.sentence);
      CHECK(run.verdict == RunVerdict::kPassed);
      REQUIRE(run.bandwidth);
      CHECK(run.bandwidth->algorithm > 0);
      if (operation == Operation::kReduceScatter) CHECK(Has(run.ranks[0].describe.back(), "all-reduce"));
    }
  }
  Plan uneven = SmallPlan(Operation::kAllToAll, 1, 3);
  uneven.splits = {5, 0, 1001};
  CHECK(RunWith(uneven).verdict == RunVerdict::kPassed);
  Plan in_place = SmallPlan(Operation::kAllGather, 77, 3);
  in_place.in_place.value = true;
  CHECK(RunWith(in_place).verdict == RunVerdict::kPassed);
}

}  // namespace faults_test
