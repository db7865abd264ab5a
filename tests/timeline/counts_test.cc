// What RAS and Inspector counted, in the ledger of recorded calls: who is who, who stands where, and what is left out.
#include "timeline/counts.h"

#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"
#include "timeline/wait_graph.h"

namespace inquest {
namespace counts_test {

const std::string kReport = "NCCL version 2.28.9 compiled with CUDA 12.9\n";

struct Rank {
  int number = 0;
  int count = 0;
};
/// A mismatch as `ncclras` prints it: those that have what most have are only numbered.
std::string Mismatch(const std::string& comm, int most, int most_count, const std::vector<Rank>& others) {
  std::string out = fmt::format(
      "#0-0 ({}) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  {} ranks have launched up "
      "to operation {}\n",
      comm, most, most_count);
  for (const Rank& rank : others)
    out += fmt::format("  Rank {} has launched up to operation {} -- GPU {} managed by process {} on node 10.3.0.22\n",
                       rank.number, rank.count, rank.number, 41300 + rank.number);
  return out + "\n";
}

struct JsonRank {
  int number = 0, process = 0, count = 0;
};
std::string JsonComm(const std::string& hash, const std::vector<JsonRank>& ranks) {
  std::string out;
  for (const JsonRank& rank : ranks)
    out += fmt::format(
        R"({}{{"rank": {}, "host": "10.3.0.{}", "pid": {}, "cuda_dev": {}, "nvml_dev": {}, "collective_counts": {{"AllReduce": {}, "Reduce": 0}}}})",
        out.empty() ? "" : ", ", rank.number, rank.process / 4, 7000 + rank.process, rank.process % 4, rank.process % 4,
        rank.count);
  return fmt::format(R"({{"hash": "{}", "size": {}, "ranks": [{}], "missing_ranks": []}})", hash, ranks.size(), out);
}
std::string Json(const std::vector<std::string>& comms) {
  return fmt::format(R"({{"nccl_version": "2.28.9", "timestamp": "2031-06-11 22:36:40", "communicators": [{}]}})"
                     "\n",
                     fmt::join(comms, ", "));
}

std::string Inspected(int rank, int ended) {
  return fmt::format(
      R"({{"header":{{"id":"0x8f3d","rank":{},"n_ranks":2}},"metadata":{{"hostname":"node017","pid":{}}},"coll_perf":{{"coll":"AllReduce","coll_sn":{}}}}})"
      "\n",
      rank, 41234 + rank, ended);
}

/// `ab AllReduce: 0 9 1 8` by rank and last number; `^` has a call open, `=` ended it.
std::string Show(const Recorded& recorded) {
  std::string out;
  for (std::uint32_t i = 0; i < recorded.groups.size(); ++i) {
    const RecordedGroup& group = recorded.groups[i];
    out += fmt::format("{}{} {}:", out.empty() ? "" : "; ", group.name, group.desc);
    for (const RecordedMember& member : group.members) {
      const RecordedRank* rank = recorded.Find(member.rank);
      const bool open = std::ranges::any_of(rank->open, [&](const auto& call) { return call.group == i; });
      out += fmt::format(" {} {}{}", member.rank.value, member.last, open ? "^" : member.last_completed ? "=" : "");
    }
  }
  return out;
}

TEST_CASE("counts: whose they are", "[unit][counts]") {
  const struct {
    const char* what;
    std::string text;
    const char* shown;
  } rows[] = {
      {"who is only numbered is whoever is not named", kReport + Mismatch("ab", 3, 9, {{2, 8}}),
       "ab AllReduce: 0 9^ 1 9^ 2 8 3 9^"},
      {"a rank that is ahead waits for all", kReport + Mismatch("ab", 3, 9, {{2, 10}}),
       "ab AllReduce: 0 9 1 9 2 10^ 3 9"},
      {"the last report counts", kReport + Mismatch("ab", 3, 9, {{2, 8}}) + kReport, ""},
      {"a smaller communicator's numbers are not the job's",
       kReport + Mismatch("ab", 7, 9, {{2, 8}}) + Mismatch("cd", 3, 5, {{1, 4}}),
       "ab AllReduce: 0 9^ 1 9^ 2 8 3 9^ 4 9^ 5 9^ 6 9^ 7 9^"},
      {"JSON names processes, which have a number in the largest communicator",
       Json({JsonComm("0xcd", {{0, 1, 5}, {1, 3, 4}}), JsonComm("0xab", {{0, 0, 7}, {1, 1, 7}, {2, 2, 7}, {3, 3, 7}})}),
       "0xab AllReduce: 0 7 1 7 2 7 3 7; 0xcd AllReduce: 1 5^ 3 4"},
      {"Inspector tells what ended", Inspected(0, 10) + Inspected(0, 12) + Inspected(1, 11),
       "0x8f3d AllReduce: 0 12= 1 11="},
  };
  for (const auto& row : rows) {
    INFO(row.what << "\n" << row.text);
    CHECK(Show(*JudgeText(row.text).timeline.recorded) == row.shown);
  }
}

TEST_CASE("counts: waits are followed over communicators", "[unit][counts]") {
  // 3 waits in its pair for 2, and 1 in its column for 3.
  const Judged judged =
      JudgeText(Json({JsonComm("0x11", {{0, 1, 6}, {1, 3, 5}}), JsonComm("0x22", {{0, 2, 90}, {1, 3, 91}}),
                      JsonComm("0xab", {{0, 0, 7}, {1, 1, 7}, {2, 2, 7}, {3, 3, 7}})}));
  const WaitGraph waits = WaitsOf(*judged.timeline.recorded);
  REQUIRE(waits.roots.size() == 1);
  CHECK(waits.nodes[waits.roots[0].nodes[0]].idle == RankSet::Of(std::vector{2}));
  CHECK(waits.roots[0].waiting == RankSet::Of(std::vector{1, 3}));
}

TEST_CASE("counts: who moved between two reports is nowhere", "[unit][counts]") {
  const std::string first = kReport + Mismatch("ab", 3, 9, {{2, 8}});
  const auto idle = [&](const std::string& second) {
    const WaitGraph waits = WaitsOf(*JudgeText(first + second).timeline.recorded);
    REQUIRE(waits.nodes.size() == 1);
    return waits.nodes[0].idle;
  };
  CHECK(idle(kReport + Mismatch("ab", 3, 9, {{2, 8}})) == RankSet::Of(std::vector{2}));
  CHECK(idle(kReport + Mismatch("ab", 3, 20, {{2, 19}})).empty());
}

}  // namespace counts_test
}  // namespace inquest
