// Who waited for whom, and whose end ended whom.
#include "timeline/breaks.h"

#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace breaks_test {

std::string TimedOut(int rank, int seq) {
  return fmt::format(
      "[rank{0}]:[E405 06:07:0{0}.123456 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
      "timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600012 "
      "milliseconds before timing out.\n",
      rank, seq);
}
std::string Exit(int rank, int code, const std::string& head = "", int second = 8) {
  return fmt::format(
      "{}[{}]:\n  time      : 2031-04-05_06:17:0{}\n  host      : node01\n  rank      : {} (local_rank: {})\n"
      "  exitcode  : {} (pid: {})\n  error_file: <N/A>\n  traceback : {}\n",
      head, rank, second, rank, rank, code, 41300 + rank,
      code < 0
          ? fmt::format("Signal {} ({}) received by PID {}", -code, code == -15 ? "SIGTERM" : "SIGABRT", 41300 + rank)
          : "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html");
}
const std::string kReport =
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "============================================================\ntrain.py FAILED\n"
    "------------------------------------------------------------\nFailures:\n";
const std::string kRoot =
    "------------------------------------------------------------\nRoot Cause (first observed failure):\n";

/// `0 waited-for 2`, for every rank with an edge.
std::string Edges(const BreakGraph& graph) {
  std::string out;
  for (const auto& [rank, because] : graph.edges())
    out += fmt::format("{}{} {} {}", out.empty() ? "" : "; ", rank.value, Name(because.how), FoldRanks(*because.of));
  return out;
}

TEST_CASE("breaks: who gave up waited for who never came", "[breaks]") {
  const auto judged =
      JudgeText("[rank2]: epoch 3 step 17 loss 1.25\n" + TimedOut(0, 61) + TimedOut(1, 61) + TimedOut(3, 61));
  const BreakGraph graph(judged.timeline);
  CHECK(Edges(graph) == "0 waited-for 2; 1 waited-for 2; 3 waited-for 2");
  CHECK(graph.FirstBreaks() == RankSet::Of(std::vector{2}));
  CHECK(graph.Order(GlobalRank{2}, GlobalRank{0}) == std::partial_ordering::less);
  CHECK(graph.Order(GlobalRank{0}, GlobalRank{2}) == std::partial_ordering::greater);
  CHECK(graph.Order(GlobalRank{0}, GlobalRank{1}) == std::partial_ordering::unordered);
  REQUIRE(graph.Of(GlobalRank{1})->event);
  CHECK(judged.timeline.events[*graph.Of(GlobalRank{1})->event].where.line == 3);
}

TEST_CASE("breaks: where all gave up, nobody waited for anybody", "[breaks]") {
  const auto judged = JudgeText(TimedOut(0, 61) + TimedOut(1, 61) + TimedOut(2, 61));
  const BreakGraph graph(judged.timeline);
  CHECK(graph.edges().empty());
  CHECK(graph.FirstBreaks().empty());
}

TEST_CASE("breaks: who was told to end followed who had ended", "[breaks]") {
  const auto judged = JudgeText(kReport + Exit(0, -15) + Exit(2, -15) + kRoot + Exit(1, 1, "", 3));
  const BreakGraph graph(judged.timeline);
  CHECK(Edges(graph) == "0 told-to-end 1; 2 told-to-end 1");
  CHECK(graph.Order(GlobalRank{1}, GlobalRank{2}) == std::partial_ordering::less);
}

TEST_CASE("breaks: the way goes on over waits and ends", "[breaks]") {
  // 0 and 1 waited for 2 and 3, and 2 was told to end because of 3.
  const auto judged = JudgeText("[rank2]: epoch 3 step 17 loss 1.25\n[rank3]: epoch 3 step 17 loss 1.25\n" +
                                TimedOut(0, 61) + TimedOut(1, 61) + kReport + Exit(2, -15) + kRoot + Exit(3, 1, "", 3));
  const BreakGraph graph(judged.timeline);
  INFO(Edges(graph));
  CHECK(graph.FirstBreaks() == RankSet::Of(std::vector{3}));
  CHECK(graph.Order(GlobalRank{3}, GlobalRank{0}) == std::partial_ordering::less);
  CHECK(graph.Order(GlobalRank{3}, GlobalRank{2}) == std::partial_ordering::less);
}

}  // namespace breaks_test
}  // namespace inquest
