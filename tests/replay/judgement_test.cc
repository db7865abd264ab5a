// From tables of ranks to sentences: what outranks what, without a process.
#include "replay/judgement.h"

#include "tests/catch.h"

using namespace inquest;
using namespace std::chrono_literals;

namespace judgement_test {

Plan ThreeRanks() {
  Plan plan;
  plan.operation.value = Operation::kBroadcast;
  plan.count.value = 7;
  plan.ranks.value = 3;
  return plan;
}

RunOutcome At(std::vector<Step> doing) {
  RunOutcome run;
  for (std::size_t i = 0; i < doing.size(); ++i) {
    RankOutcome rank;
    rank.rank = static_cast<int>(i);
    rank.doing = doing[i];
    run.ranks.push_back(rank);
  }
  return run;
}

constexpr Step kDone1{Phase::kCompleted, 1}, kDone2{Phase::kCompleted, 2}, kAgree2{Phase::kDescriptorAgreed, 2};

LinkRow Link(int from, int to, std::uint64_t queued) {
  LinkRow link;
  link.from = from;
  link.to = to;
  link.queued = queued;
  link.retransmits = 4;
  link.since_ack = 3s;
  return link;
}

TEST_CASE("judgement: the rank that is behind, by iteration and phase", "[unit][replay]") {
  struct Row {
    std::vector<Step> doing;
    std::vector<int> blamed;
    const char* sentence;
  };
  const Row rows[] = {
      {{kDone2, kDone2, kDone1},
       {2},
       "Rank 2 did not get through completed #1 within 5.0 s; ranks 0, 1 wait in completed #2."},
      {{kAgree2, kDone1, kAgree2},
       {1},
       "Rank 1 did not get through completed #1 within 5.0 s; ranks 0, 2 wait in descriptor-agreed #2."},
      {{{Phase::kCommInit, 0}, {Phase::kDeviceSet, 0}, {Phase::kDeviceSet, 0}},
       {1, 2},
       "Ranks 1, 2 did not get through device-set within 5.0 s; rank 0 waits in comm-init."},
      {{kDone1, kDone1, kDone1},
       {},
       "All 3 ranks wait in completed #1, none came through within 5.0 s; no rank is behind and no connection between "
       "them holds bytes."},
  };
  for (const Row& row : rows) {
    const Judgement judgement = Judge(At(row.doing), ThreeRanks(), Ending::kDeadline, 5s);
    CHECK(judgement.verdict == RunVerdict::kHung);
    CHECK(judgement.sentence == row.sentence);
    std::vector<int> blamed;
    for (const Blamed& one : judgement.blamed) blamed.push_back(*one.rank);
    CHECK(blamed == row.blamed);
  }
}

TEST_CASE("judgement: a death explains errors, a frozen rank explains waits, errors explain nothing",
          "[unit][replay]") {
  RunOutcome run = At({kDone1, kDone1, kDone1});
  run.ranks[0].error = "Gloo: Connection closed by peer [127.0.0.1]:4711";
  run.ranks[0].ended_at = 1s;
  CHECK(Judge(run, ThreeRanks(), Ending::kEvent, 0s).verdict == RunVerdict::kEngineError);
  run.ranks[2].stopped = "stopped";
  CHECK(Judge(run, ThreeRanks(), Ending::kEvent, 0s).blamed[0].rank == 2);
  run.ranks[1].signal = 9;
  run.ranks[1].ended_at = 2s;
  const Judgement judgement = Judge(run, ThreeRanks(), Ending::kEvent, 0s);
  CHECK(judgement.verdict == RunVerdict::kRankDied);
  CHECK(judgement.blamed[0].rank == 1);
  run.ranks[0].exit_code = 1;  // the earlier of two deaths
  CHECK(Judge(run, ThreeRanks(), Ending::kEvent, 0s).blamed[0].rank == 0);
}

TEST_CASE("judgement: links that hold bytes, and the rank that they share", "[unit][replay]") {
  RunOutcome run = At({kDone1, kDone1, kDone1});
  run.links = {Link(0, 2, 3'400'000), Link(1, 2, 100), Link(0, 1, 0)};
  Judgement judgement = Judge(run, ThreeRanks(), Ending::kDeadline, 5s);
  CHECK(judgement.verdict == RunVerdict::kLinkDead);
  CHECK(judgement.blamed.size() == 2);
  CHECK(judgement.sentence ==
        "Link 0->2 holds 3.4 MB that do not move (sent again 4 times, last sign of life 3.0 s ago); link 1->2 holds "
        "100 B that do not move (sent again 4 "
        "times, last sign of life 3.0 s ago). All of them end at rank 2.");
  // The nearest look-alike: the bytes arrived, and the receiver does not read them.
  run.links = {Link(0, 2, 3'400'000)};
  run.links[0].unread = 65536;
  CHECK(Judge(run, ThreeRanks(), Ending::kDeadline, 5s).verdict == RunVerdict::kHung);
  run.links[0].unread = 0;
  run.links[0].moves = true;
  CHECK(Judge(run, ThreeRanks(), Ending::kDeadline, 5s).verdict == RunVerdict::kHung);
}

TEST_CASE("judgement: of a link that loses one way only that way is blamed", "[unit][replay]") {
  const auto judge = [](std::optional<std::int64_t> lost_there, std::optional<std::int64_t> lost_back) {
    RunOutcome run = At({kDone1, kDone1, kDone1});
    run.links = {Link(1, 2, 900), Link(2, 1, 800'000)};
    run.links[0].lost = lost_there;
    run.links[1].lost = lost_back;
    return Judge(run, ThreeRanks(), Ending::kDeadline, 5s);
  };
  // All that 1 sent arrived: what holds its bytes is that 2's acknowledgements do not.
  const Judgement one_way = judge(0, 4);
  REQUIRE(one_way.blamed.size() == 1);
  CHECK((one_way.blamed[0].rank == 2 && one_way.blamed[0].to == 1));
  CHECK(one_way.sentence.find("lost on the way from rank 2 to rank 1") != std::string::npos);
  // Cut, or not known: both.
  for (const auto& [there, back] :
       {std::pair<std::optional<int>, std::optional<int>>{3, 4}, {{}, {}}, {0, {}}, {0, 0}}) {
    const Judgement both = judge(there, back);
    CHECK(both.blamed.size() == 2);
    CHECK(both.sentence.find("on the way") == std::string::npos);
  }
  // Two connections of the pair, each of which lost the other way.
  RunOutcome run = At({kDone1, kDone1, kDone1});
  run.links = {Link(1, 2, 900), Link(2, 1, 800), Link(1, 2, 700), Link(2, 1, 600)};
  const std::int64_t lost[] = {0, 4, 4, 0};
  for (std::size_t i = 0; i < run.links.size(); ++i) run.links[i].lost = lost[i];
  const Judgement neither = Judge(run, ThreeRanks(), Ending::kDeadline, 5s);
  CHECK(neither.verdict == RunVerdict::kLinkDead);
  CHECK(neither.blamed.size() == 4);
  CHECK(neither.sentence.find("on the way") == std::string::npos);
}

TEST_CASE("judgement: a death that is none of the collective's could not run it", "[unit][replay]") {
  const auto judge = [](Step doing, Step last, const char* ended_by) {
    RunOutcome run = At({kDone1, doing, kDone1});
    run.ranks[1].last = last;
    run.ranks[1].signal = 9;
    run.ranks[1].ended_by = ended_by;
    return Judge(run, ThreeRanks(), Ending::kEvent, 5s);
  };
  const Step load{Phase::kLibsLoaded, 0}, init{Phase::kCommInit, 0}, connected{Phase::kConnected, 0};
  CHECK(judge(load, {}, "").verdict == RunVerdict::kCouldNotRun);
  CHECK(judge(load, load, "").verdict == RunVerdict::kCouldNotRun);
  CHECK(judge(connected, connected, "").verdict == RunVerdict::kCouldNotRun);  // its buffers come next
  CHECK(judge(init, {}, "").verdict == RunVerdict::kRankDied);
  CHECK(judge(kDone1, {}, "").verdict == RunVerdict::kRankDied);
  const Judgement killed = judge(kDone1, {}, "the kernel's OOM killer was at work");
  CHECK(killed.verdict == RunVerdict::kCouldNotRun);
  CHECK(killed.sentence.find("The kernel's OOM killer") != std::string::npos);
}

TEST_CASE("judgement: a rank of the group is told with its rank in the job", "[unit][replay]") {
  Plan plan = ThreeRanks();
  for (const int rank : {4, 6, 2}) {
    RankPlace place;
    place.was = {.rank = rank, .host = "elm04", .bus_id = "0000:2b:00.0", .device = 0, .at = {}};
    plan.places.push_back(place);
  }
  RunOutcome run = At({kDone1, kDone1, kDone2});
  const std::string sentence = Judge(run, plan, Ending::kDeadline, 5s).sentence;
  CHECK(sentence.find("Rank 0 was rank 4 of the job on elm04, GPU 0000:2b:00.0. Rank 1 was rank 6 of the job") !=
        std::string::npos);
  CHECK(sentence.find("rank 2 of the job") == std::string::npos);
}

TEST_CASE("judgement: an error names the peer whose address it holds", "[unit][replay]") {
  RunOutcome run = At({{Phase::kConnected, 0}, {Phase::kConnected, 0}, {Phase::kConnected, 0}});
  run.listeners = {{"10.0.0.2:36597", 1}};
  for (const char* error : {"connect [10.0.0.2]:36597: No route to host", "connect 10.0.0.2:36597: No route to host",
                            "Connect to 10.0.0.2<36597> failed"}) {
    CAPTURE(error);
    run.ranks[2].error = error;
    const Judgement judgement = Judge(run, ThreeRanks(), Ending::kEvent, 0s);
    CHECK(judgement.verdict == RunVerdict::kLinkDead);
    CHECK(judgement.blamed[0].rank == 2);
    CHECK(judgement.blamed[0].to == 1);
  }
  run.ranks[2].error = "connect [10.0.0.2]:1: No route to host";
  run.ranks[1].error = "connect [10.0.0.1]:4711: No route to host";
  run.ranks[1].ended_at = 1s;
  run.listeners = {{"10.0.0.1:4711", 0}};
  CHECK(Judge(run, ThreeRanks(), Ending::kEvent, 0s).blamed[0].rank ==
        1);  // not the first, but it tells whom it could not reach
  run.listeners.clear();
  CHECK(Judge(run, ThreeRanks(), Ending::kEvent, 0s).verdict == RunVerdict::kEngineError);
}

TEST_CASE("judgement: of a pair the side whose error names an address that somebody has is the telling one",
          "[unit][replay]") {
  RunOutcome run = At({kDone1, kDone1, kDone2});
  run.listeners = {{"10.0.0.1:35131", 0}, {"10.0.0.2:3961", 1}};
  run.ranks[0].error = "Read error [10.0.0.2]:39611: Software caused connection abort";  // not that of rank 1
  run.ranks[0].ended_at = 1s;
  run.ranks[2].error = "Read error [10.0.0.1]:35131: Connection reset by peer";
  run.ranks[2].ended_at = 2s;
  const Judgement judgement = Judge(run, ThreeRanks(), Ending::kEvent, 0s);
  CHECK(judgement.blamed[0].rank == 2);
  CHECK(judgement.blamed[0].to == 0);
  run.ranks[0].error = "out of memory";  // of its own: what the other lost came of it
  CHECK(Judge(run, ThreeRanks(), Ending::kEvent, 0s).blamed[0].rank == 0);
  CHECK_FALSE(Judge(run, ThreeRanks(), Ending::kEvent, 0s).blamed[0].to);
}

TEST_CASE("judgement: bandwidth as nccl-tests defines it, by the slowest rank", "[unit][replay]") {
  Plan plan = ThreeRanks();
  plan.operation.value = Operation::kAllGather;
  plan.count.value = 1'000'000;
  RunOutcome run = At({kDone1, kDone1, kDone1});
  for (RankOutcome& rank : run.ranks) rank.times = {9ms, 1ms, 3ms};
  run.ranks[1].times = {5ms, 2ms, 4ms};
  const auto bandwidth = BandwidthOf(run, plan);
  REQUIRE(bandwidth);
  CHECK(bandwidth->bytes == 12'000'000);
  CHECK(bandwidth->first == 9ms);
  CHECK(bandwidth->best == 2ms);
  CHECK(bandwidth->mean == 3ms);
  CHECK(bandwidth->algorithm == Approx(4.0));
  CHECK(bandwidth->bus == Approx(4.0 * 2 / 3));
  run.ranks[0].times.clear();
  CHECK_FALSE(BandwidthOf(run, plan));
}

TEST_CASE("exit status: 0 passed, 1 reproduced, 2 undecided, 3 could not run", "[unit][replay]") {
  const auto status = [](std::vector<RunVerdict> verdicts) {
    std::vector<TrialOutcome> trials(verdicts.size());
    for (std::size_t i = 0; i < verdicts.size(); ++i) trials[i].run.verdict = verdicts[i];
    return ExitStatus(trials);
  };
  CHECK(status({RunVerdict::kPassed, RunVerdict::kPassed}) == 0);
  CHECK(status({RunVerdict::kPassed, RunVerdict::kHung}) == 1);
  CHECK(status({RunVerdict::kPassed, RunVerdict::kInterrupted}) == 2);
  CHECK(status({RunVerdict::kPassed, RunVerdict::kCouldNotRun}) == 2);
  CHECK(status({RunVerdict::kCouldNotRun}) == 3);
}

TEST_CASE("lateness: what a pass owes its time to, and what a blamed rank did", "[unit][replay]") {
  constexpr Step kInit{Phase::kCommInit, 0}, kLoad{Phase::kLibsLoaded, 0};
  RunOutcome run;
  run.verdict = RunVerdict::kPassed;
  run.took = 8s;
  const std::vector<Lateness> late = {{3, kInit, 2500ms}, {1, kLoad, 1200ms}, {5, kInit, 4100ms}, {4, kInit, 1900ms}};
  CHECK(LatenessNotes(late, run) == std::vector<std::string>{"Ranks 3, 5 were 2.5 to 4.1 s late at comm-init."});
  run.took = 60s;  // nobody waited for long
  CHECK(LatenessNotes(late, run).empty());
  run.verdict = RunVerdict::kHung;
  CHECK(LatenessNotes(late, run).empty());
  run.blamed = {{.rank = 1, .to = {}}};
  CHECK(LatenessNotes(late, run) == std::vector<std::string>{"Rank 1 was 1.2 s late at libs-loaded."});
  run.verdict = RunVerdict::kPassed;
  run.took = 4s;
  std::vector<Lateness> many;
  for (int rank = 0; rank < 6; ++rank) many.push_back({rank, {Phase::kEnqueued, rank + 1}, 1000ms + rank * 100ms});
  CHECK(LatenessNotes(many, run).size() == 3);
}

TEST_CASE(
    "judgement: with several nodes ranks and links are named with theirs, and a node that is lost explains the rest",
    "[unit][replay]") {
  RunOutcome run = At({kDone1, kDone1, kDone1, kDone1, kDone1, kDone1});
  for (RankOutcome& rank : run.ranks) rank.node = rank.rank / 2;
  for (const char* name : {"node 0 (a)", "node 1 (b)", "node 2 (c)"})
    run.nodes.push_back({.name = name, .lost = "", .lost_at = {}});
  Plan plan = ThreeRanks();
  plan.ranks.value = 6;
  const auto judged = [&](Ending ending) { return Judge(run, plan, ending, 5s).sentence; };

  run.links = {Link(0, 2, 9), Link(5, 3, 8)};
  CHECK(judged(Ending::kDeadline).find("Link 0->2 from node 0 (a) to node 1 (b) holds 9 B") == 0);
  CHECK(judged(Ending::kDeadline).find("All of them end at node 1 (b).") != std::string::npos);
  run.links = {Link(0, 2, 9), Link(3, 1, 8)};
  CHECK(judged(Ending::kDeadline).find("All of them run between node 0 (a) and node 1 (b).") != std::string::npos);
  run.links.clear();

  run.ranks[4].doing = run.ranks[5].doing = kAgree2;
  run.ranks[2].doing = kAgree2;
  CHECK(judged(Ending::kDeadline).find("Ranks 0, 1, 3 did not get through") == 0);
  run.ranks[3].doing = kAgree2;
  CHECK(judged(Ending::kDeadline).find("Ranks 0, 1 on node 0 (a) did not get through completed #1") == 0);

  run.ranks[3].signal = 9;
  CHECK(judged(Ending::kEvent).find("Rank 3 on node 1 (b) was killed by signal 9") == 0);
  run.ranks[0].error = "connection reset";
  run.nodes[1].lost = "its connection was closed";
  const Judgement lost = Judge(run, plan, Ending::kEvent, 5s);
  CHECK(lost.verdict == RunVerdict::kNodeLost);
  CHECK(lost.sentence ==
        "Node 1 (b) was lost with ranks 2, 3: its connection was closed; rank 1 waits in completed #1, ranks 4, 5 wait "
        "in descriptor-agreed #2.");
  REQUIRE(lost.blamed.size() == 2);
  CHECK(lost.blamed[0].rank == 2);
}

}  // namespace judgement_test
