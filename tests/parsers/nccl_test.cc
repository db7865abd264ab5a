// NCCL's lines of every version, bytes in, events out.
#include "parsers/formats/nccl.h"

#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

extern const Format kNccl;
namespace nccl_test {

/// The only event of the only line; fails the test where there is another number of them.
template <class T>
T One(const std::string& line) {
  const auto events = ParseLines(kNccl, line);
  REQUIRE(events.size() == 1);
  REQUIRE(std::holds_alternative<T>(events[0].what));
  return std::get<T>(events[0].what);
}

std::string Info(std::string_view message) { return fmt::format("cn7:411:420 [3] NCCL INFO {}", message); }

std::string Show(const CommInit& init) {
  std::string out = fmt::format("{} {} {:x} {}/{}", init.complete ? "complete" : "start", init.api, init.comm,
                                init.rank.value, init.nranks);
  const auto add = [&](const char* name, const std::optional<int>& value) {
    if (value) out += fmt::format(" {}={}", name, *value);
  };
  add("cuda", init.cuda_dev);
  add("nvml", init.nvml_dev);
  if (init.bus_id) out += " bus=" + *init.bus_id;
  if (init.comm_id) out += fmt::format(" id={:x}", *init.comm_id);
  if (init.parent) out += fmt::format(" parent={:x}", *init.parent);
  add("split", init.split_count);
  add("color", init.color);
  add("key", init.key);
  return out;
}

struct Row {
  const char* message;
  const char* shown;
};

TEST_CASE("a communicator's birth, in every version's words", "[nccl]") {
  const Row rows[] = {
      {"comm 0x1a0 rank 1 nranks 4 - COMPLETE", "complete  1a0 1/4"},                                         // 2.3
      {"comm 0x1a0 rank 1 nranks 4 cudaDev 1 nvmlDev 5 - Init COMPLETE", "complete  1a0 1/4 cuda=1 nvml=5"},  // 2.4
      {"comm 0x1a0 rank 1 nranks 4 cudaDev 1 busId 4f000 - Init COMPLETE",
       "complete  1a0 1/4 cuda=1 bus=0000:4f:00.0"},  // 2.5
      {"comm 0x1a0 rank 1 nranks 4 cudaDev 1 busId 4f000 commId 0xbeef01 - Init COMPLETE",
       "complete  1a0 1/4 cuda=1 bus=0000:4f:00.0 id=beef01"},
      {"comm 0x1a0 rank 1 nranks 4 cudaDev 1 nvmlDev 5 busId 4f000 commId 0xbeef01 - Init START",
       "start  1a0 1/4 cuda=1 nvml=5 bus=0000:4f:00.0 id=beef01"},
      {"ncclCommInitRank comm 0x1a0 rank 1 nranks 4 cudaDev 1 nvmlDev 5 busId 4f000 commId 0xbeef01 - Init "
       "COMPLETE",
       "complete ncclCommInitRank 1a0 1/4 cuda=1 nvml=5 bus=0000:4f:00.0 id=beef01"},
      {"ncclCommSplit comm 0x1a0 rank 1 nranks 4 cudaDev 1 nvmlDev 5 busId 4f000 parent 0x99 color 7 key 2 commId "
       "0x0 - Init START",
       "start ncclCommSplit 1a0 1/4 cuda=1 nvml=5 bus=0000:4f:00.0 parent=99 color=7 key=2"},
      {"ncclCommSplit comm 0x1a0 rank 1 nranks 4 cudaDev 1 nvmlDev 5 busId 4f000 parent 0x99 color 7 key 2- Init "
       "START",  // 2.23
       "start ncclCommSplit 1a0 1/4 cuda=1 nvml=5 bus=0000:4f:00.0 parent=99 color=7 key=2"},
      {"ncclCommSplit comm 0x1a0 rank 1 nranks 4 cudaDev 1 nvmlDev 5 busId 4f000 parent 0x99 splitCount 2 color 7 "
       "key -1 - Init COMPLETE",
       "complete ncclCommSplit 1a0 1/4 cuda=1 nvml=5 bus=0000:4f:00.0 parent=99 split=2 color=7 key=-1"},
      {"ncclCommShrink comm 0x1a0 rank 1 nranks 4 cudaDev 1 nvmlDev 5 busId 4f000 parent 0x99 childCount 2 color 7 "
       "key 2- Init START",
       "start ncclCommShrink 1a0 1/4 cuda=1 nvml=5 bus=0000:4f:00.0 parent=99 split=2 color=7 key=2"},
      {"[Rank 1] ncclCommInitRank comm 0x1a0 rank 1 nranks 4 cudaDev 1 nvmlDev 5 busId 10004f000 commId 0xbeef01 - "
       "Init START",  // 2.29
       "start ncclCommInitRank 1a0 1/4 cuda=1 nvml=5 bus=1000:4f:00.0 id=beef01"},
      {"ncclCommGrow comm 0x1a0 rank 1 nranks 4 cudaDev 1 nvmlDev 5 busId 0000:4f:00.0 commId 0xbeef01 - Init "
       "COMPLETE",
       "complete ncclCommGrow 1a0 1/4 cuda=1 nvml=5 bus=0000:4f:00.0 id=beef01"},
      {"comm 0x1a0 rank 1 nranks 4 someDay 9 busId 4f000 - Init COMPLETE", "complete  1a0 1/4 bus=0000:4f:00.0"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    CHECK(Show(One<CommInit>(Info(row.message))) == row.shown);
  }
}

TEST_CASE("a communicator's end", "[nccl]") {
  using How = CommEnd::How;
  struct EndRow {
    const char* message;
    How how;
    bool complete;
    std::optional<GroupRank> rank;
  };
  const EndRow rows[] = {
      {"comm 0x1a0 rank 1 nranks 4 cudaDev 1 busId 4f000 - Destroy COMPLETE", How::kDestroy, true, GroupRank{1}},
      {"comm 0x1a0 rank 1 nranks 4 cudaDev 1 busId 4f000 - Abort COMPLETE", How::kAbort, true, GroupRank{1}},
      {"comm 0x1a0 rank 1 nRanks 4 cudaDev 1 busId 4f000 - Abort START", How::kAbort, false, GroupRank{1}},
      {"comm 0x1a0 rank 1 nRanks 4 cudaDev 1 busId 4f000 - Revoke START", How::kRevoke, false, GroupRank{1}},
      {"comm 0x1a0 rank 1 nRanks 4 cudaDev 1 busId 4f000 - Revoke COMPLETE, result 0", How::kRevoke, true,
       GroupRank{1}},
      {"CommRevokeAsync START comm 0x1a0 rank 1 nRanks 4 nNodes 2 localRank 1 cudaDev 1", How::kRevoke, false,
       GroupRank{1}},
      {"CommRevokeAsync END comm 0x1a0 result 0", How::kRevoke, true, std::nullopt},
  };
  for (const EndRow& row : rows) {
    CAPTURE(row.message);
    const auto end = One<CommEnd>(Info(row.message));
    CHECK(end.how == row.how);
    CHECK(end.complete == row.complete);
    CHECK(end.comm == 0x1a0);
    CHECK(end.rank == row.rank);
  }
}

TEST_CASE("versions", "[nccl]") {
  struct VersionRow {
    const char* line;
    const char* version;
    const char* cuda;
  };
  for (const VersionRow& row : {VersionRow{"NCCL version 2.19.4+cuda12.2", "2.19.4", "12.2"},
                                VersionRow{"NCCL version 2.4.2rc1+cuda10.0", "2.4.2rc1", "10.0"},
                                VersionRow{"[1,0]<stdout>:NCCL version 2.19.4+cuda12.2", "2.19.4", "12.2"},
                                VersionRow{"NCCL version 2.19.4", "2.19.4", ""},
                                VersionRow{"cn7:411:420 [0] NCCL INFO NCCL version 2.27.5+cuda12.9", "2.27.5", "12.9"},
                                VersionRow{"NCCL version 2.27.5 compiled with CUDA 12.9", "2.27.5", "12.9"}}) {
    CAPTURE(row.line);
    const auto version = One<NcclVersion>(row.line);
    CHECK(version.version == row.version);
    CHECK(version.cuda == row.cuda);
  }
  for (const char* line :
       {"NCCL version 2.19", "NCCL version 2.19.4+cuda12.", "NCCL version mismatch with remote peer 10.9.0.4",
        "RuntimeError: NCCL error in: a.cpp:1, unhandled cuda error, NCCL version 2.19.4",
        "NCCL version 2.19.4+cuda12.2cn7:411:420"}) {
    CAPTURE(line);
    const auto parsed = ParseText(kNccl, line);
    CHECK(parsed.events.empty());
    CHECK(parsed.claimed.empty());
  }
}

TEST_CASE("return traces", "[nccl]") {
  struct ReturnRow {
    const char* message;
    const char* site;
    int result;
  };
  for (const ReturnRow& row :
       {ReturnRow{"bootstrap.cc:77 -> 6", "bootstrap.cc:77", 6},
        ReturnRow{"init.cc:1358 -> 3 [Async thread]", "init.cc:1358", 3},
        ReturnRow{"misc/socket.cc:49 -> 2 (Connection refused)", "misc/socket.cc:49", 2},
        ReturnRow{"net.cc:8 (ncclNetInit) -> 2 (x) [Async thread]", "net.cc:8", 2},
        ReturnRow{"/dvs/p4/src/proxy.cc:910 -> 6 [Progress Thread]", "/dvs/p4/src/proxy.cc:910", 6}}) {
    CAPTURE(row.message);
    const auto returned = One<NcclReturn>(Info(row.message));
    CHECK(returned.site == row.site);
    CHECK(returned.result == row.result);
  }
}

TEST_CASE("warnings keep their site, and lose what stands behind a NUL", "[nccl]") {
  struct WarnRow {
    std::string line;
    const char* site;
    const char* text;
    std::optional<int> cuda_dev;
  };
  const WarnRow rows[] = {
      {"cn7:411:420 [3] misc/socket.cc:484 NCCL WARN Net : Connection closed", "misc/socket.cc:484",
       "Net : Connection closed", 3},
      {"[2031-04-05 06:07:08] cn7:411:420 [3] init.cc:12 (ncclInit) NCCL WARN Cuda failure 2 'out of memory'",
       "init.cc:12", "Cuda failure 2 'out of memory'", 3},
      {"[05/04 06:07:08.1] cn7:411:420 [3] init.cc:12 NCCL WARN x", "init.cc:12", "x", 3},
      {"cn7:411:420 [-1] init.cc:12 NCCL WARN x", "init.cc:12", "x", std::nullopt},
      {"cn7:411:420 [3] init.cc:12 NCCL ABORT x", "init.cc:12", "x", 3},
      {std::string("cn7:411:420 [3] init.cc:12 NCCL WARN over-long") + std::string(1, '\0') + "\x7f\x01zz",
       "init.cc:12", "over-long", 3},
  };
  for (const WarnRow& row : rows) {
    CAPTURE(row.line);
    const auto events = ParseLines(kNccl, row.line);
    REQUIRE(events.size() == 1);
    const auto* warn = std::get_if<NcclWarn>(&events[0].what);
    REQUIRE(warn);
    CHECK(warn->site == row.site);
    CHECK(warn->text == row.text);
    CHECK(events[0].origin.cuda_dev == row.cuda_dev);
    CHECK(events[0].origin.pid == 411);
  }
  CHECK(FormatTime(*ParseLines(kNccl, rows[1].line)[0].at) == "2031-04-05T06:07:08");
}

TEST_CASE("environment", "[nccl]") {
  for (const char* message : {"NCCL_IB_HCA set by environment to mlx5_9.", "NCCL_IB_HCA set by environment to mlx5_9",
                              "NCCL_IB_HCA set to mlx5_9"}) {
    CAPTURE(message);
    const auto set = One<EnvironmentSet>(Info(message));
    CHECK(set.name == "NCCL_IB_HCA");
    CHECK(set.value == "mlx5_9");
  }
}

TEST_CASE("an event knows its writer: NCCL's host before the envelope's, the rank from the envelope alone", "[nccl]") {
  const auto events = ParseLines(kNccl,
                                 "[1,5]<stdout>:cn7:411:420 [3] NCCL INFO comm 0x1a0 rank 1 nranks 4 - COMPLETE\n"
                                 "10.9.0.4: cn7:411:420 [3] NCCL INFO init.cc:5 -> 6\n"
                                 "10.9.0.4: unknown:411:420 [3] NCCL INFO init.cc:5 -> 6\n");
  REQUIRE(events.size() == 3);
  CHECK(events[0].origin.rank->value == GlobalRank{5});
  CHECK(events[0].origin.host == Known<std::string>{"cn7", Basis::kObserved, {}});
  CHECK(events[0].text == "cn7:411:420 [3] NCCL INFO comm 0x1a0 rank 1 nranks 4 - COMPLETE");
  CHECK(events[1].origin.host->value == "cn7");
  CHECK_FALSE(events[1].origin.rank);
  CHECK(events[1].where.line == 2);
  CHECK(events[2].origin.host == Known<std::string>{"10.9.0.4", Basis::kEnvelope, {}});
}

TEST_CASE("lines that say nothing are claimed, lines of others are not", "[nccl]") {
  for (const char* line :
       {"cn7:411:420 [3] NCCL INFO Using affinity", "cn7:411:420 [3] NCCL INFO ", "cn7:411:420 [3] NCCL INFO",
        "cn7:411:420 NCCL CALL ncclCommInitRank(0x1,16,0x2,3,3)", "cn7:411:420 [3] 12.5 commAlloc:88 NCCL TRACE x",
        "cn7:411:420 [3] NCCL INFO comm 0x1a0 rank 1 nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0"}) {
    CAPTURE(line);
    const auto parsed = ParseText(kNccl, line);
    CHECK(parsed.events.empty());
    CHECK(parsed.claimed.size() == 1);
  }
  for (const char* line : {"what does NCCL INFO print?", "the NCCL WARN level", "cn7:411 [3] NCCL INFO x",
                           "5.5s/it]cn7:411:420 [3] NCCL INFO init.cc:5 -> 6", "cn7:41cn7:411:420 [3] NCCL WARN x",
                           "cn7:411:420 [3 NCCL INFO x", "cn7:411:420 [3] NCCL WARN x"}) {
    CAPTURE(line);
    const auto parsed = ParseText(kNccl, line);
    CHECK(parsed.events.empty());
    CHECK(parsed.claimed.empty());
  }
}

TEST_CASE("a torn line yields no wrong fields", "[nccl]") {
  const std::string whole = Info(
      "ncclCommSplit comm 0x1a0 rank 1 nranks 4 cudaDev 1 nvmlDev 5 busId 4f000 parent 0x99 splitCount 2 color 7 key "
      "2- Init START");
  const std::string expected = Show(One<CommInit>(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(ParseLines(kNccl, whole.substr(0, size)).empty());
    // The rest of it behind another process' line, and another's line in its middle.
    const std::string torn = whole.substr(0, size) + whole;
    for (const auto& init : Only<CommInit>(ParseLines(kNccl, torn))) CHECK(Show(init) == expected);
    const std::string woven = whole.substr(0, size) + "cn8:5:6 [0] init.cc:1 NCCL WARN x" + whole.substr(size);
    CHECK(Only<CommInit>(ParseLines(kNccl, woven)).empty());
  }
  for (const char* message :
       {"comm (nil) rank 1 nranks 4 - COMPLETE", "comm 0x1a0 rank 9 nranks 4 - COMPLETE",
        "comm 0x1a0 rank 1 nranks 4x - COMPLETE", "comm 0x1a0 rank 1 nranks 4 cudaDev - Init COMPLETE",
        "comm 0x1a0 rank 1 nranks 4 busId 4g000 - Init COMPLETE", "comm 0x1a0 rank 99999999999 nranks 4 - COMPLETE",
        "init.cc:5 -> ", "init.cc:5 -> 6x", "a -> b -> 3"}) {
    CAPTURE(message);
    const auto parsed = ParseText(kNccl, Info(message));
    CHECK(parsed.events.empty());
    CHECK(parsed.claimed.size() == 1);
  }
}

TEST_CASE("what a collector put in front of an INFO line is no part of it", "[nccl]") {
  const std::string line = "cn7:1:2 [7] NCCL INFO Connected all rings";
  for (const std::string head : {"", "train-worker-0 pytorch ", "trainer  | ", "job/train-0[pytorch]: ",
                                 "[1,mpirank:1,algo-2]<stderr>:", "{pod=\"a b\"} ", "01O ", "node1\t", "80%|####  | "})
    CHECK(WithoutForeignHead(head + line) == line);
  // A process wrote into the line of another; an exception quotes a warning.
  for (const std::string other :
       {"cn7:1 [7] NCCL INFO x", "RuntimeError: cn7:1:2 [7] misc/socket.cc:4 NCCL WARN x", "x cn7:1:2 NCCL INFO"})
    CHECK(WithoutForeignHead(other) == other);
}

TEST_CASE("prefixes", "[nccl]") {
  const auto info = ParseNcclPrefix("a-b_c.d:1:22 [7] NCCL INFO m");
  REQUIRE(info);
  CHECK(info->host == "a-b_c.d");
  CHECK(info->tid == 22);
  CHECK(info->message == "m");
  CHECK(info->site.empty());
  const auto trace = ParseNcclPrefix("cn7:1:2 [7] 12.504000 ncclInit:88 NCCL TRACE m");
  REQUIRE(trace);
  CHECK(trace->level == NcclPrefix::Level::kTrace);
  CHECK(trace->site == "ncclInit:88");
  const auto call = ParseNcclPrefix("[2031-04-05 06:07:08.125] cn7:1:2 NCCL CALL ncclInit(1)");
  REQUIRE(call);
  CHECK(call->level == NcclPrefix::Level::kCall);
  CHECK(FormatTime(*call->at) == "2031-04-05T06:07:08.125");
  CHECK_FALSE(call->cuda_dev);
}

TEST_CASE("bus ids", "[nccl]") {
  CHECK(ParseBusId("4f000") == "0000:4f:00.0");
  CHECK(ParseBusId("4f0a1") == "0000:4f:0a.1");
  CHECK(ParseBusId("0") == "0000:00:00.0");
  CHECK(ParseBusId("00000000:4F:00.0") == "0000:4f:00.0");
  CHECK(ParseBusId("0001:4f:00.0") == "0001:4f:00.0");
  for (const char* text : {"", "0x4f000", "4f:00.0", "0000:4f:00", "0000:4f:0x.0", ":4f:00.0", "0000:4f:00.0 "}) {
    CAPTURE(text);
    CHECK_FALSE(ParseBusId(text));
  }
}

}  // namespace nccl_test
}  // namespace inquest
