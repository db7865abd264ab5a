// What ranks' recorders kept, held against one another: the first difference, and what only looks like one.
#include "timeline/trace_ledger.h"

#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/call_traces.h"

namespace inquest {
namespace trace_ledger_test {

const std::vector<TracedGroup> kOne = {{"a", {0, 1, 2}}};

TEST_CASE("trace ledger: the first number that differs, and who called what", "[unit][trace-ledger]") {
  const struct {
    const char* what;
    std::vector<TracedGroup> groups;
    std::map<int, std::string> ranks;
    const char* shown;
  } rows[] = {
      {"all call the same",
       kOne,
       {{0, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"},
        {1, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"},
        {2, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"}},
       ""},
      {"the size differs",
       kOne,
       {{0, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"},
        {1, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"},
        {2, "a#1 all_reduce:4 + | a#2 all_reduce:8 -"}},
       "a#2: all_reduce:4 by 0, 1, all_reduce:8 by 2"},
      {"the one that was read first is the one that differs",
       kOne,
       {{0, "a#1 all_reduce:8 -"}, {1, "a#1 all_reduce:4 -"}, {2, "a#1 all_reduce:4 -"}},
       "a#1: all_reduce:4 by 1, 2, all_reduce:8 by 0"},
      {"three sides",
       kOne,
       {{0, "a#1 all_reduce:8 -"}, {1, "a#1 all_reduce:4 -"}, {2, "a#1 broadcast:4 -"}},
       "a#1: all_reduce:8 by 0, all_reduce:4 by 1, broadcast:4 by 2"},
      {"the first of several differences counts, whoever has it",
       kOne,
       {{0, "a#1 all_reduce:4 + | a#2 all_reduce:4 + | a#3 all_reduce:4 -"},
        {1, "a#1 all_reduce:4 + | a#2 all_reduce:4 + | a#3 broadcast:4 -"},
        {2, "a#1 all_reduce:4 + | a#2 broadcast:4 + | a#3 broadcast:4 -"}},
       "a#2: all_reduce:4 by 0, 1, broadcast:4 by 2"},
      {"a ring that was overwritten says nothing of what it lost",
       kOne,
       {{0, "a#7 all_reduce:4 + | a#8 broadcast:4 -"},
        {1, "a#2 all_gather:1 + | a#7 all_reduce:4 + | a#8 broadcast:4 -"},
        {2, "a#8 broadcast:4 -"}},
       ""},
      {"and is compared where it reaches",
       kOne,
       {{0, "a#7 all_reduce:4 + | a#8 broadcast:4 -"},
        {1, "a#6 all_gather:1 + | a#7 all_reduce:4 + | a#8 broadcast:4 -"},
        {2, "a#8 broadcast:2 -"}},
       "a#8: broadcast:4 by 0, 1, broadcast:2 by 2"},
      {"parts of an all-to-all need not be equal",
       kOne,
       {{0, "a#1 all_to_all:4 -"}, {1, "a#1 all_to_all:6 -"}, {2, "a#1 alltoall_base:8 -"}},
       "a#1: all_to_all by 0, 1, alltoall_base by 2"},
      {"sends have no number in common",
       kOne,
       {{0, "a#1 send>1:4 + | a#2 send>2:4 -"}, {1, "a#1 recv<0:4 +"}, {2, "a#1 recv<0:8 -"}},
       ""},
      {"calls under one number are one, in their order",
       kOne,
       {{0, "a#1 all_gather:1 - | a#1 all_gather:2 - | a#1 coalesced -"},
        {1, "a#1 all_gather:1 - | a#1 all_gather:2 - | a#1 coalesced -"},
        {2, "a#1 all_gather:1 - | a#1 coalesced -"}},
       "a#1: coalesced(all_gather x2):1:2 by 0, 1, coalesced(all_gather):1 by 2"},
      {"a block of which a ring lost the first part is not compared",
       kOne,
       {{0, "a#7 all_gather:2 + | a#7 coalesced + | a#8 all_reduce:4 -"},
        {1, "a#7 all_gather:1 + | a#7 all_gather:2 + | a#7 coalesced + | a#8 all_reduce:4 -"},
        {2, "a#7 coalesced + | a#8 all_reduce:4 -"}},
       ""},
      {"two groups of one name and other members are two",
       {{"a", {0, 1}}, {"a", {2, 3}}},
       {{0, "a#1 all_reduce:4 -"}, {1, "a#1 all_reduce:4 -"}, {2, "a#1 broadcast:8 -"}, {3, "a#1 broadcast:8 -"}},
       ""},
      {"each group by itself",
       {{"a", {0, 1, 2}}, {"b", {0, 1}}},
       {{0, "a#1 all_reduce:4 + | b#1 broadcast:4 -"},
        {1, "a#1 all_reduce:4 + | b#1 broadcast:8 -"},
        {2, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"}},
       "b#1: broadcast:4 by 0, broadcast:8 by 1"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.what);
    CHECK(ShowDivergences(RecordedOf(row.groups, row.ranks)) == row.shown);
    CHECK(ShowDivergences(RecordedOf(row.groups, row.ranks, true)) == row.shown);
  }
}

TEST_CASE("trace ledger: how far each member came", "[unit][trace-ledger]") {
  const Recorded recorded =
      RecordedOf({{"a", {0, 1, 2}}, {"b", {1, 2}}},
                 {{0, "a#3 all_reduce:4 + | a#4 all_reduce:4 + | a#5 all_reduce:4 -"},
                  // What a later call of the stream outlived had ended, whatever its recorder was last told.
                  {1, "a#4 all_reduce:4 - | b#1 send>1:2 - | a#5 all_reduce:4 +"},
                  {2, "b#1 recv<0:2 -"}});
  REQUIRE(recorded.groups.size() == 2);
  const RecordedGroup& a = recorded.groups[0];
  REQUIRE(a.Find(GlobalRank{0}) != nullptr);
  CHECK(a.Find(GlobalRank{0})->first == 3);
  CHECK(a.Find(GlobalRank{0})->last == 5);
  CHECK(a.Find(GlobalRank{0})->last_completed == 4);
  CHECK(a.Find(GlobalRank{1})->last_completed == 5);
  CHECK(a.Find(GlobalRank{2}) == nullptr);
  CHECK(a.Members() == RankSet::Of(std::vector{0, 1, 2}));
  const RecordedGroup& b = recorded.groups[1];
  REQUIRE(b.Find(GlobalRank{2}) != nullptr);
  CHECK_FALSE(b.Find(GlobalRank{2})->calls);
  REQUIRE(recorded.Find(GlobalRank{1}) != nullptr);
  REQUIRE(recorded.Find(GlobalRank{1})->open.size() == 1);
  CHECK(recorded.Find(GlobalRank{1})->open[0].peer == GlobalRank{2});
  CHECK(recorded.Find(GlobalRank{1})->open[0].where.line == 2);
  CHECK(recorded.Find(GlobalRank{1})->last->seq == 5);
}

TEST_CASE("trace ledger: what it cannot hold is counted", "[unit][trace-ledger]") {
  TraceLedger ledger;
  LeftOut left_out;
  ledger.Add(TraceOf(kOne, 0, "a#1 all_reduce:4 + | a#900000000000 all_reduce:4 -"), GlobalRank{0}, {});
  ledger.Add(TraceOf(kOne, 0, "a#1 broadcast:4 +"), GlobalRank{0}, {.input = 1});  // an older dump, or a newer
  ledger.AddNameless();
  const Recorded recorded = ledger.Take(left_out);
  CHECK(recorded.nameless == 1);
  REQUIRE(recorded.ranks.size() == 1);
  CHECK(recorded.ranks[0].input == 0);
  CHECK(left_out.at("recorded call") == 2);
  CHECK(ShowDivergences(recorded).empty());
}

TEST_CASE("trace ledger: the last block of a torn dump may be a part of one", "[unit][trace-ledger]") {
  TraceLedger ledger;
  ledger.Add(TraceOf(kOne, 0, "a#1 all_reduce:4 + | a#2 all_gather:1 - | torn"), GlobalRank{0}, {});
  for (const int rank : {1, 2})
    ledger.Add(TraceOf(kOne, rank, "a#1 all_reduce:4 + | a#2 all_gather:1 - | a#2 all_gather:2 - | a#2 coalesced -"),
               GlobalRank{rank}, {});
  LeftOut left_out;
  CHECK(ShowDivergences(ledger.Take(left_out)).empty());
}

TEST_CASE("trace ledger: lines that are worth an event", "[unit][trace-ledger]") {
  const struct {
    const char* calls;
    std::vector<std::string> lines;
  } rows[] = {
      {"a#1 all_reduce:4 + | a#2 all_reduce:4 ! | a#3 broadcast:8 -",
       {"2: all_reduce of 4 #2 of group a: scheduled, given up"}},
      {"a#1 all_reduce:4 + | a#1 send>1:2 - | a#2 send>1:2 - | a#3 recv<2:2 -",
       {"2: send of 2 #1 of group a: scheduled, to rank 1", "4: recv of 2 #3 of group a: scheduled, from rank 2"}},
      {"a#1 all_reduce:4 + | a#2 all_reduce:4 +", {"2: all_reduce of 4 #2 of group a: completed"}},
      {"a#1 all_reduce:4 - | a#2 all_reduce:4 +", {"2: all_reduce of 4 #2 of group a: completed"}},
      {"", {}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.calls);
    std::vector<std::string> lines;
    TraceLedger ledger;
    ledger.Add(TraceOf(kOne, 0, row.calls), GlobalRank{0}, {});
    for (const Event& event : ledger.EventsOf(GlobalRank{0}, {}))
      lines.push_back(fmt::format("{}: {}", event.where.line, event.text));
    CHECK(lines == row.lines);
  }
}

TEST_CASE("trace ledger: whether the job hung, or was asked while it ran", "[unit][trace-ledger]") {
  CHECK_FALSE(RecordedOf(kOne, {{0, "a#1 all_reduce:4 -"}}).Hung());
  CHECK(RecordedOf(kOne, {{0, "a#1 all_reduce:4 !"}}).Hung());
  const auto waited = [](std::int64_t seconds) {
    TraceLedger ledger;
    CallTrace trace = TraceOf(kOne, 0, "a#1 all_reduce:4 - | a#2 all_reduce:4 -");
    trace.calls[0].created_ns = 1'933'040'000'000'000'000;
    trace.calls[1].created_ns = trace.calls[0].created_ns + seconds * 1'000'000'000;
    ledger.Add(trace, GlobalRank{0}, {});
    LeftOut left_out;
    return ledger.Take(left_out);
  };
  CHECK_FALSE(waited(60).Hung());
  CHECK(waited(600).Hung());
  CHECK(waited(600).LongestWait() == std::chrono::minutes(10));
}

}  // namespace trace_ledger_test
}  // namespace inquest
