// What NCCL's RAS says, as text and as JSON.
#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

extern const Format kNcclRas, kNcclRasJson;
namespace nccl_ras_test {

std::string Show(const RankProgress& what) {
  static const char* const kStates[] = {"launched", "completed",   "not reported", "unresponsive",
                                        "dead",     "async error", "init error"};
  std::string out = what.rank ? "rank " + std::to_string(what.rank->value) : std::to_string(what.ranks) + " of";
  out += std::string(" ") + kStates[static_cast<int>(what.state)];
  if (!what.op.empty()) out += " " + what.op;
  if (what.count) out += " " + std::to_string(*what.count);
  if (!what.comm.empty()) out += " in " + what.comm;
  if (what.gpu) out += " gpu " + std::to_string(*what.gpu);
  if (what.pid) out += " pid " + std::to_string(*what.pid);
  return what.node.empty() ? out : out + " on " + what.node;
}

std::string ShowAll(const Format& format, std::string_view text) {
  std::string out;
  for (const RankProgress& what : Only<RankProgress>(ParseLines(format, text)))
    if (what.ranks > 0) out += (out.empty() ? "" : "; ") + Show(what);
  return out;
}

TEST_CASE("nccl ras: text", "[nccl-ras]") {
  const struct {
    const char* text;
    const char* shown;
  } rows[] = {
      {"#0-0 (8f3d2ab4c1e90d77) MISMATCH\n"
       "  Communicator ranks have different AllReduce operation counts\n"
       "  15 ranks have launched up to operation 4711\n"
       "  Rank 13 has launched up to operation 4710 -- GPU 5 managed by process 41300 on node 10.3.0.22\n",
       "15 of launched AllReduce 4711 in 8f3d2ab4c1e90d77; rank 13 launched AllReduce 4710 in 8f3d2ab4c1e90d77 gpu 5 "
       "pid 41300 on 10.3.0.22"},
      // Several that lag alike are listed bare below their count.
      {"#0-0 (ab) MISMATCH\n"
       "  Communicator ranks have different collective operation counts\n"
       "  14 ranks have launched up to operation 9\n"
       "  2 ranks have not launched any operations\n"
       "  Rank 3 -- GPU 3 (NVML 1) managed by process 7 on node 10.3.0.1\n"
       "  Rank 4 -- [process information not found]\n",
       "14 of launched 9 in ab; 2 of launched 0 in ab; rank 3 launched 0 in ab gpu 1 pid 7 on 10.3.0.1; rank 4 "
       "launched 0 in ab"},
      {"DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  Process 41300 on node 10.3.0.22 "
       "managing GPU 5\n",
       "1 of dead gpu 5 pid 41300 on 10.3.0.22"},
      {"INCOMPLETE\n  Missing communicator data from 1 job process\n  Process 41300 on node 10.3.0.22 managing GPUs "
       "4,5\n\n"
       "#0-0 (ab) INCOMPLETE\n  Missing communicator data from 1 rank\n  Rank 13 -- GPU 5 managed by process 41300 on "
       "node 10.3.0.22\n",
       "1 of not reported pid 41300 on 10.3.0.22; rank 13 not reported in ab gpu 5 pid 41300 on 10.3.0.22"},
      {"#0-0 (ab) ERROR\n  Asynchronous error on 1 rank\n  Rank 2 reported ncclRemoteError -- GPU 2 managed by process "
       "9 on node 10.3.0.1\n",
       "rank 2 async error in ab gpu 2 pid 9 on 10.3.0.1"},
      // A status is no count.
      {"#0-0 (ab) MISMATCH\n  Communicator ranks have different status\n  15 ranks have status RUNNING\n  Rank 2 has "
       "status ABORT -- GPU 2 managed by process 9 on node 10.3.0.1\n",
       ""},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    CHECK(ShowAll(kNcclRas, row.text) == row.shown);
  }
}

std::string JsonRank(int rank, int count) {
  const std::string r = std::to_string(rank);
  return "{\"rank\": " + r + ", \"host\": \"10.3.0.1\", \"pid\": 10" + r + ", \"cuda_dev\": " + r +
         ", \"nvml_dev\": " + r +
         ", \"status\": {\"init_state\": 0, \"async_error\": 0, \"finalize_called\": false, \"destroy_flag\": false, "
         "\"abort_flag\": false}, \"collective_counts\": {\"Broadcast\": 1, \"AllReduce\": " +
         std::to_string(count) + "}}";
}
std::string Json(const std::string& ranks, const std::string& missing) {
  return "{\"nccl_version\": \"2.28.9+cuda12.9\", \"communicators_count\": 1, \"communicators\": [{\"hash\": "
         "\"0x8f3d\", \"secondary_hash\": \"0x1:0x2\", \"size\": 4, \"ranks_count\": 3, "
         "\"missing_ranks_count\": 1, \"ranks\": [" +
         ranks + "], \"missing_ranks\": [" + missing +
         "]}], \"ras\": {\"collection_time_sec\": 0.1, \"timeouts_count\": 0}}";
}

TEST_CASE("nccl ras: JSON", "[nccl-ras]") {
  const auto show = [](const std::string& ranks, const std::string& missing) {
    return ShowAll(kNcclRasJson, Json(ranks, missing));
  };
  CHECK(show(JsonRank(0, 11) + "," + JsonRank(1, 11) + "," + JsonRank(2, 10), "") ==
        "2 of launched AllReduce 11 in 0x8f3d; rank 2 launched AllReduce 10 in 0x8f3d gpu 2 pid 102 on 10.3.0.1; 3 of "
        "launched Broadcast 1 in 0x8f3d");
  CHECK(show(JsonRank(0, 11) + "," + JsonRank(1, 11), "") ==
        "2 of launched AllReduce 11 in 0x8f3d; 2 of launched Broadcast 1 in 0x8f3d");
  const std::string one = "1 of launched AllReduce 11 in 0x8f3d; 1 of launched Broadcast 1 in 0x8f3d";
  CHECK(show(JsonRank(0, 11),
             "{\"rank\": 3, \"host\": \"10.3.0.1\", \"pid\": 103, \"cuda_dev\": 3, \"nvml_dev\": 3, \"status\": "
             "{\"unresponsive\": true, \"considered_dead\": true}}") ==
        one + "; rank 3 dead in 0x8f3d gpu 3 pid 103 on 10.3.0.1");
  CHECK(show(JsonRank(0, 11), "{\"status\": {\"considered_dead\": true}}") == one);        // dead is nobody
  CHECK(show(JsonRank(0, 0).replace(JsonRank(0, 0).find("1, \"All"), 1, "0"), "") == "");  // nothing was launched
  CHECK(ParseText(kNcclRasJson, "{\"communicators\": 3, \"collective_counts\": {}}").claimed.empty());
}

}  // namespace nccl_ras_test
}  // namespace inquest
