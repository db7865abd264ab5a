// What NCCL's Inspector wrote of the operations that ended.
#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

extern const Format kNcclInspector;
namespace nccl_inspector_test {

TEST_CASE("nccl inspector: who had completed what", "[nccl-inspector]") {
  const std::string line =
      R"({"header":{"id":"0x8f3d","rank":3,"n_ranks":16,"nnodes":2},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface",)"
      R"("dump_timestamp_us":1948172400123456,"hostname":"node017.cluster","pid":41234},"coll_perf":{"coll":"AllReduce","coll_sn":4711,"coll_msg_size_bytes":4194304,"coll_exec_time_us":912,)"
      R"("coll_timing_source":"kernel_gpu","coll_algobw_gbs":4.598000,"coll_busbw_gbs":"nan"}})";
  const std::vector<Event> events = ParseLines(kNcclInspector, line + "\n");
  REQUIRE(events.size() == 1);
  const auto& progress = std::get<RankProgress>(events[0].what);
  CHECK(progress.state == RankProgress::State::kCompleted);
  CHECK(progress.comm == "0x8f3d");
  CHECK(progress.rank == GroupRank{3});
  CHECK(progress.nranks == 16);
  CHECK(progress.op == "AllReduce");
  CHECK(progress.count == 4711);
  CHECK(events[0].origin.pid == 41234);
  REQUIRE(events[0].origin.host);
  CHECK(events[0].origin.host->value == "node017");
  REQUIRE(events[0].at);
  CHECK(FormatTime(*events[0].at) == "2031-09-26T07:00:00.123456Z");
}

TEST_CASE("nccl inspector: what yields nothing", "[nccl-inspector]") {
  for (const char* line : {R"({"header":{"id":"0x1","rank":3,"n_ranks":2},"p2p_perf":{"p2p":"Send","p2p_sn":3}})",
                           R"({"header":{"id":"0x1","rank":-3},"coll_perf":{"coll":"AllReduce"}})",
                           R"({"header":{"id":"0x1","rank":3,"n_ra)", R"({"coll_perf": 3})"}) {
    CAPTURE(line);
    CHECK(ParseLines(kNcclInspector, line).empty());
  }
}

}  // namespace nccl_inspector_test
}  // namespace inquest
