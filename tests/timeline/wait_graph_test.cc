// Who waits for whom over overlapping groups: where it began, circles, and what only looks like either.
#include "timeline/wait_graph.h"

#include "tests/catch.h"
#include "tests/support/call_traces.h"

namespace inquest {
namespace wait_graph_test {

TEST_CASE("wait graph: where each wait leads", "[unit][wait-graph]") {
  const std::vector<TracedGroup> one = {{"a", {0, 1, 2, 3}}};
  const std::vector<TracedGroup> chain = {{"d", {0, 2}}, {"e", {1, 3}}, {"t", {0, 1}}, {"u", {2, 3}}};
  const struct {
    const char* what;
    std::vector<TracedGroup> groups;
    std::map<int, std::string> ranks;
    const char* shown;
  } rows[] = {
      {"nobody waits", one, {{0, "a#1 all_reduce:4 +"}, {1, "a#1 all_reduce:4 +"}}, ""},
      {"all wait, and all are there",
       one,
       {{0, "a#1 all_reduce:4 -"}, {1, "a#1 all_reduce:4 -"}, {2, "a#1 all_reduce:4 -"}, {3, "a#1 all_reduce:4 -"}},
       "a#1 by 0-3; root a#1: 0-3"},
      {"one never came",
       one,
       {{0, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"},
        {1, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"},
        {2, "a#1 all_reduce:4 +"},
        {3, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"}},
       "a#2 by 0, 1, 3, idle 2; root a#2: 0, 1, 3"},
      {"of one no recorder was given",
       one,
       {{0, "a#2 all_reduce:4 -"}, {1, "a#2 all_reduce:4 -"}, {3, "a#2 all_reduce:4 -"}},
       "a#2 by 0, 1, 3, unknown 2; root a#2: 0, 1, 3"},
      {"the dump of one is torn: it may have come, or stand somewhere else",
       one,
       {{0, "a#2 all_reduce:4 -"},
        {1, "a#2 all_reduce:4 -"},
        {2, "a#1 all_reduce:4 + | torn"},
        {3, "a#2 all_reduce:4 -"}},
       "a#2 by 0, 1, 3, lost 2; root a#2: 0, 1, 3"},
      {"the ring of one lost the call, and its recorder counted it",
       {{"a", {0, 1, 2}}, {"b", {0, 2}}},
       {{0, "a#2 all_reduce:4 - | a=2"}, {1, "a#2 all_reduce:4 - | a=2"}, {2, "b#8 all_reduce:4 + | a=2"}},
       "a#2 by 0, 1, lost 2; root a#2: 0, 1"},
      {"the ring of one lost all calls of the group, and it had not made this one",
       {{"a", {0, 1, 2}}, {"b", {0, 2}}},
       {{0, "a#2 all_reduce:4 - | a=2"}, {1, "a#2 all_reduce:4 - | a=2"}, {2, "b#8 all_reduce:4 + | a=1"}},
       "a#2 by 0, 1, idle 2; root a#2: 0, 1"},
      {"the ring of one lost all calls of the group, and nothing counts them",
       {{"a", {0, 1, 2}}, {"b", {0, 2}}},
       {{0, "a#2 all_reduce:4 -"}, {1, "a#2 all_reduce:4 -"}, {2, "b#8 all_reduce:4 +"}},
       "a#2 by 0, 1, lost 2; root a#2: 0, 1"},
      {"the ring of one lost nothing, and it never called the group",
       {{"a", {0, 1, 2}}, {"b", {0, 2}}},
       {{0, "a#2 all_reduce:4 -"}, {1, "a#2 all_reduce:4 -"}, {2, "b#1 all_reduce:4 + | b#2 all_reduce:4 +"}},
       "a#2 by 0, 1, idle 2; root a#2: 0, 1"},
      {"the dump of one is old: what others ended, it had made",
       one,
       {{0, "a#89 all_reduce:4 + | a#90 all_reduce:4 -"},
        {1, "a#89 all_reduce:4 + | a#90 all_reduce:4 -"},
        {2, "a#12 all_reduce:4 +"},
        {3, "a#89 all_reduce:4 +"}},
       "a#90 by 0, 1, idle 3, lost 2; root a#90: 0, 1"},
      {"for one it had ended",
       one,
       {{0, "a#2 all_reduce:4 -"}, {1, "a#2 all_reduce:4 -"}, {2, "a#2 all_reduce:4 +"}, {3, "a#2 all_reduce:4 -"}},
       "a#2 by 0, 1, 3, through 2; root a#2: 0, 1, 3"},
      {"one is a number behind, and it is that one that all wait for",
       one,
       {{0, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"},
        {1, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"},
        {2, "a#1 all_reduce:4 -"},
        {3, "a#1 all_reduce:4 + | a#2 all_reduce:4 -"}},
       "a#1 by 2, through 0, 1, 3; a#2 by 0, 1, 3, waits for a#1 (2); root a#1: 0-3"},
      {"a chain over groups: 3 is nowhere, 2 waits for it, and 0 for 2",
       chain,
       {{0, "t#1 all_reduce:4 + | d#1 all_reduce:4 -"},
        {1, "t#1 all_reduce:4 + | e#1 all_reduce:4 -"},
        {2, "u#1 all_reduce:4 -"},
        {3, ""}},
       "d#1 by 0, waits for u#1 (2); e#1 by 1, idle 3; u#1 by 2, idle 3; root u#1: 0, 2; root e#1: 1"},
      {"what was enqueued behind another wait waits for that",
       {{"a", {0, 1}}, {"b", {0, 1}}},
       {{0, "a#1 all_reduce:4 - | b#1 all_reduce:4 -"}, {1, "a#1 all_reduce:4 + | b#1 all_reduce:4 -"}},
       "a#1 by 0, through 1; b#1 by 1, waits for a#1 (0); root a#1: 0, 1"},
      {"a circle of two groups",
       {{"a", {0, 1}}, {"b", {0, 1}}},
       {{0, "a#1 all_reduce:4 - | b#1 all_reduce:4 -"}, {1, "b#1 all_reduce:4 - | a#1 all_reduce:4 -"}},
       "a#1 by 0, waits for b#1 (1); b#1 by 1, waits for a#1 (0); root a#1 > b#1: 0, 1"},
      {"two groups, and one rank is at neither: no circle",
       {{"a", {0, 1}}, {"b", {0, 1}}},
       {{0, "a#1 all_reduce:4 - | b#1 all_reduce:4 -"}, {1, ""}},
       "a#1 by 0, idle 1; root a#1: 0"},
      {"a send that is answered",
       one,
       {{0, "a#1 send>1:4 -"}, {1, "a#1 recv<0:4 -"}, {2, ""}, {3, ""}},
       "a pair of 0 by 0; a pair of 1 by 1; root a pair of 0: 0; root a pair of 1: 1"},
      {"a send that nobody answers",
       one,
       {{0, "a#1 send>1:4 -"}, {1, "a#1 all_reduce:4 +"}, {2, ""}, {3, ""}},
       "a pair of 0 by 0, idle 1; root a pair of 0: 0"},
      {"a send of another size than the receive",
       one,
       {{0, "a#1 send>1:4 -"}, {1, "a#1 recv<0:8 -"}, {2, ""}, {3, ""}},
       "a pair of 0 by 0, unlike: send:4 and recv:8; a pair of 1 by 1, unlike: recv:8 and send:4; root a pair of 0: 0; "
       "root a pair of 1: 1"},
      {"two that both send first",
       one,
       {{0, "a#1 send>1:4 - | a#2 recv<1:4 -"}, {1, "a#1 send>0:4 - | a#2 recv<0:4 -"}, {2, ""}, {3, ""}},
       "a pair of 0 by 0, waits for a pair of 1 (1); a pair of 1 by 1, waits for a pair of 0 (0); "
       "root a pair of 0 > a pair of 1: 0, 1"},
      {"the same in one block: each is answered",
       one,
       {{0, "a#1 send>1:4 - | a#1 recv<1:4 -"}, {1, "a#1 recv<0:4 - | a#1 send>0:4 -"}, {2, ""}, {3, ""}},
       "a pair of 0 by 0; a pair of 1 by 1; root a pair of 0: 0; root a pair of 1: 1"},
      {"who sends waits for one that stands in a collective",
       one,
       {{0, "a#1 send>1:4 -"}, {1, "a#1 all_reduce:4 -"}, {2, "a#1 all_reduce:4 -"}, {3, "a#1 all_reduce:4 -"}},
       "a#1 by 1-3, waits for a pair of 0 (0); a pair of 0 by 0, waits for a#1 (1); root a#1 > a pair of 0: 0-3"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.what);
    const Recorded recorded = RecordedOf(row.groups, row.ranks);
    CHECK(ShowWaits(recorded, WaitsOf(recorded)) == row.shown);
  }
}

TEST_CASE("wait graph: of those that stand in one call, who had not begun it", "[unit][wait-graph]") {
  const std::vector<TracedGroup> one = {{"a", {0, 1, 2}}};
  const auto waits = [&](const std::string& calls_of_2) {
    const Recorded recorded = RecordedOf(one, {{0, "a#1 all_reduce:4 ~"}, {1, "a#1 all_reduce:4 ~"}, {2, calls_of_2}});
    return ShowWaits(recorded, WaitsOf(recorded));
  };
  CHECK(waits("a#0 all_reduce:4 ~ | a#0 all_reduce:4 + | a#1 all_reduce:4 -") ==
        "a#1 by 0-2, not begun by 2; root a#1: 0-2");
  CHECK(waits("a#1 all_reduce:4 -") == "a#1 by 0-2; root a#1: 0-2");  // it was never told of any start
}

}  // namespace wait_graph_test
}  // namespace inquest
