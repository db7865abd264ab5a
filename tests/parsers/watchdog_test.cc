// The watchdog's words over the versions of PyTorch, and the desync report.
#include "tests/catch.h"
#include "tests/support/rows.h"

namespace inquest {

extern const Format kWatchdog, kTraceback;
namespace watchdog_test {

std::string Text(std::int64_t number) { return std::to_string(number); }
std::string Text(GroupRank rank) { return Text(rank.value); }
std::string Text(GlobalRank rank) { return Text(rank.value); }
std::string Text(SeqId seq) { return Text(seq.value); }

std::string Text(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t size : shape) out += Text(size) + ",";
  return out;
}

template <class T>
std::string Part(std::string_view name, const std::optional<T>& value) {
  return value ? " " + std::string(name) + "=" + Text(*value) : "";
}

std::string Show(const WorkTimedOut& what) {
  static constexpr const char* kHow[] = {"watchdog", "wait", "async", "quoted"};
  return std::string(kHow[static_cast<int>(what.how)]) + Part("rank", what.group_rank) + Part("seq", what.work.seq) +
         (what.work.op.empty() ? "" : " " + what.work.op) + Part("in", what.work.numel_in) +
         Part("out", what.work.numel_out) + Part("shape", what.work.shape) + Part("limit", what.work.timeout_ms) +
         Part("ran", what.ran_ms);
}
std::string Show(const GroupStatus& what) {
  return "status " + what.pg_id + "/" + what.pg_guid + "/" + what.pg_desc + Part("rank", what.group_rank) +
         Part("failed", what.failed_work) + Part("enqueued", what.last_enqueued) +
         Part("completed", what.last_completed);
}
std::string Show(const DumpSignal& what) { return "dump" + Part("from", what.from); }
std::string Show(const HeartbeatLost& what) { return "heartbeat" + Part("seconds", what.seconds); }
std::string Show(const DesyncLine& what) {
  static constexpr const char* kState[] = {"never-joined", "not-finished", "not-joined",
                                           "finished",     "started",      "timed-out"};
  std::string out = kState[static_cast<int>(what.state)];
  for (const int rank : what.ranks) out += " " + Text(rank);
  return out + (what.op.empty() ? "" : " " + what.op) + Part("seq", what.seq);
}
template <class T>
std::string Show(const T&) {
  return std::string(T::kKind);
}

std::string ShowAll(std::string_view text) {
  return ShowEvents(kWatchdog, text, [](const auto& what) { return Show(what); });
}

template <std::size_t N>
void Check(const Row (&rows)[N]) {
  CheckRows(rows, ShowAll);
}

TEST_CASE("watchdog: a collective timed out", "[watchdog]") {
  Check({
      {"[E ProcessGroupNCCL.cpp:828] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91, "
       "OpType=ALLREDUCE, "
       "TensorShape=[64, 128], Timeout(ms)=1800000) ran for 1800123 milliseconds before timing out.",
       "watchdog rank=5 seq=91 ALLREDUCE shape=64,128, limit=1800000 ran=1800123"},
      {"[E ProcessGroupNCCL.cpp:737] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(OpType=BARRIER, "
       "Timeout(ms)=60000) "
       "ran for 60001 milliseconds before timing out.",
       "watchdog rank=5 BARRIER limit=60000 ran=60001"},
      {"[rank3]:[E219 04:05:06.123456789 ProcessGroupNCCL.cpp:633] [Rank 3] Watchdog caught collective operation "
       "timeout: "
       "WorkNCCL(SeqNum=4711, OpType=_ALLGATHER_BASE, NumelIn=16, NumelOut=128, Timeout(ms)=600000) ran for 600043 "
       "milliseconds before "
       "timing out.",
       "watchdog rank=3 seq=4711 _ALLGATHER_BASE in=16 out=128 limit=600000 ran=600043"},
      {"[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(Timeout(ms)=5000, NumelOut=3, OpType=SEND, "
       "SeqNum=7) ran for 5001 "
       "milliseconds before timing out.",
       "watchdog rank=1 seq=7 SEND out=3 limit=5000 ran=5001"},
      {"[Rank 0] Caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=REDUCE, TensorShape=[], "
       "Timeout(ms)=9000) ran for 9002 "
       "milliseconds before timing out.",
       "wait rank=0 seq=4 REDUCE shape= limit=9000 ran=9002"},
      {"[E ProcessGroupNCCL.cpp:541] [Rank 2] Work WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
       "Timeout(ms)=1800000) timed "
       "out in blocking wait (NCCL_BLOCKING_WAIT=1).",
       "wait rank=2 seq=3 ALLREDUCE in=1 out=1 limit=1800000"},
      {"[Rank 2] Collective WorkNCCL(SeqNum=8, OpType=BROADCAST, NumelIn=2, NumelOut=2, Timeout(ms)=600000) raised the "
       "following async "
       "exception: NCCL error: remote process exited or there was a network error, NCCL version 2.21.5",
       "async rank=2 seq=8 BROADCAST in=2 out=2 limit=600000"},
      {"[I ProcessGroupNCCL.cpp:1] [Rank 4] found async exception when checking for NCCL errors: NCCL error",
       "async rank=4"},
  });
}

TEST_CASE("watchdog: other output inside the words", "[watchdog]") {
  Check({
      {"[rank1]:[E405 13:41:10.909476913 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective "
       "operatFutureWarning: "
       "`a` is deprecatedion timeout: WorkNCCL(SeqNum=21, OpType=BROADCAST, NumelIn=8, NumelOut=8, Timeout(ms)=600000) "
       "ran "
       "for 600007 milliseconds before timing out.",
       "watchdog rank=1 seq=21 BROADCAST in=8 out=8 limit=600000 ran=600007"},
      {"[E ProcessGroupNCCL.cpp:541] [Rank 2] Work WorkNCCL(SeqNum=3, OpTypewarning: deprecated=ALLREDUCE, NumelIn=1, "
       "NumelOut=1, Timeout(ms)=1800000) timed out in blocking wait (NCCL_BLOCKING_WAIT=1).",
       "wait rank=2 seq=3 in=1 out=1 limit=1800000"},
      {"Started WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000)", ""},
  });
}

TEST_CASE("watchdog: quoted inside another message", "[watchdog]") {
  const std::string work =
      "[Rank 6] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, "
      "NumelOut=1, Timeout(ms)=600000) ran for 600418 milliseconds before timing out.";
  const std::string shown = "quoted rank=6 seq=2 ALLREDUCE in=1 out=1 limit=600000 ran=600418";
  CHECK(ShowAll("  what():  " + work) == shown);
  CHECK(ShowAll("[E ProcessGroupNCCL.cpp:916] [Rank 6] NCCL watchdog thread terminated with exception: " + work) ==
        shown);
  CHECK(ShowAll("  what():  [PG ID 0 PG GUID 0 Rank 6] Process group watchdog thread terminated with exception: " +
                work) == shown);
  // The line of an exception belongs to the traceback.
  CHECK(ShowAll("RuntimeError: NCCL communicator was aborted on rank 6.  Original reason for failure was: " + work)
            .empty());
  CHECK(Only<WorkTimedOut>(
            ParseLines(kTraceback,
                       "  File \"a.py\", line 3, in f\nRuntimeError: NCCL communicator was aborted on rank 6.  "
                       "Original reason for failure was: " +
                           work))
            .size() == 1);
}

TEST_CASE("watchdog: where a group stood", "[watchdog]") {
  Check({
      {"[rank7]:[E ProcessGroupNCCL.cpp:577] [Rank 7] Timeout at NCCL work: 12, last enqueued NCCL work: 14, last "
       "completed NCCL work: 11.",
       "status // rank=7 failed=12 enqueued=14 completed=11"},
      {"[PG 3 Rank 1] Exception (either an error or timeout) detected by watchdog at work: 12, last enqueued NCCL "
       "work: 12, last completed "
       "NCCL work: 11.",
       "status /3/ rank=1 failed=12 enqueued=12 completed=11"},
      {"[PG 0 (default_pg) Rank 1] Timeout at NCCL work: 1, last enqueued NCCL work: 1, last completed NCCL work: -1.",
       "status /0/default_pg rank=1 failed=1 enqueued=1 completed=-1"},
      {"[PG ID 2 PG GUID 3(mesh_dp) Rank 3]  failure detected by watchdog at work sequence id: 4711 PG status: last "
       "enqueued work: 4713, last "
       "completed work: 4710",
       "status 2/3/mesh_dp rank=3 failed=4711 enqueued=4713 completed=4710"},
      {"[PG ID 1 PG GUID 8f00 Rank 0]  failure detected by watchdog at work sequence id: 5 PG status: last enqueued "
       "work: 5, last completed "
       "work: 4",
       "status 1/8f00/ rank=0 failed=5 enqueued=5 completed=4"},
      {"[I ProcessGroupNCCL.cpp:9] [PG 0 Rank 2] NCCL Work update periodically: last enqueued NCCL work: 6, last "
       "completed NCCL work: 6.",
       "status /0/ rank=2 enqueued=6 completed=6"},
  });
}

TEST_CASE("watchdog: dump signals and lost heartbeats", "[watchdog]") {
  Check({
      {"[PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a collective timeout from  rank 3 and we "
       "will try our best to "
       "dump the debug info. Last enqueued NCCL work: 13, last completed NCCL work: 12.This is most likely caused by "
       "incorrect usages",
       "dump from=3; status 0/0/default_pg rank=0 enqueued=13 completed=12"},
      {"[PG ID 0 PG GUID 0 Rank 3] Received a dump signal due to a collective timeout from this local rank and we will "
       "try our best to dump "
       "the debug info. Last enqueued NCCL work: 1, last completed NCCL work: 0.This is",
       "dump; status 0/0/ rank=3 enqueued=1 completed=0"},
      {"[PG 0 Rank 3] Received a dump signal from this local rank and will start to dump the debug info. Last enqueued "
       "NCCL work: 1, last "
       "completed NCCL work: 0.",
       "dump; status /0/ rank=3 enqueued=1 completed=0"},
      {"[PG 0 Rank 3] Received a global dump signal from rank 11, and will start to dump the debug info.",
       "dump from=11"},
      {"[PG ID 0 PG GUID 0 Rank 3] First PG on this rank to signal dumping.", "dump"},
      {"[PG 0 Rank 3] First watchdog to set the dump signal.", "dump"},
      {"[PG 0 Rank 3] Observed flight recorder dump signal from another rank via TCPStore.", ""},
      {"[PG 1 Rank 3] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring "
       "enqueued collectives.",
       "heartbeat seconds=480"},
      {"[PG 0 Rank 0] Heartbeat monitor timed out! Process will be terminated after dumping debug info. "
       "workMetaList_.size()=2",
       "heartbeat"},
  });
}

TEST_CASE("watchdog: a desync report", "[watchdog]") {
  CHECK(ShowAll("\t - [3] Timeout at collective: ALLREDUCE, #4711\n"
                "\t - To our best knowledge, ranks [1, 5] are the lagging ranks that caused this timeout. They never "
                "joined any collectives\n") == "timed-out 3 ALLREDUCE seq=4711; never-joined 1 5");
  CHECK(ShowAll("\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
                "\t   - [1, 5] joined but didn't finish collective #4710 (count from 1)\n"
                "\t     [0] finished collective #4710, but didn't join collective #4711 (count from 1)\n"
                "\t - Snapshot of ranks' latest states:\n"
                "\t   #4710 finished ranks:\n"
                "\t     [0] finished ALLREDUCE\n"
                "\t   #4711 started ranks:\n"
                "\t     [2, 3, 4] started _ALLGATHER_BASE\n") ==
        "not-finished 1 5 seq=4710; not-joined 0 seq=4711; finished 0 ALLREDUCE seq=4710; started 2 3 4 "
        "_ALLGATHER_BASE seq=4711");
}

TEST_CASE("watchdog: the writer behind a progress bar", "[watchdog]") {
  const auto events = ParseLines(
      kWatchdog,
      "Step:  20%|== | 3/18 [3:40<14:52, 3.5s/it][rank3]:[E916 19:29:24.436955737 ProcessGroupNCCL.cpp:689] [Rank 1] "
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, NumelIn=6, NumelOut=6, "
      "Timeout(ms)=3000) ran for 3009 milliseconds before timing out.");
  REQUIRE(events.size() == 1);
  REQUIRE(events[0].origin.rank);
  CHECK(events[0].origin.rank->value.value == 3);
  REQUIRE(events[0].at);
  CHECK(FormatTime(*events[0].at) == "09-16T19:29:24");
}

TEST_CASE("watchdog: claimed, but no event", "[watchdog]") {
  for (const char* line :
       {"[PG 0 Rank 1] Stack trace of the failed collective: ",
        "Stack trace of the failed collective not found, potentially because FlightRecorder is disabled.",
        "[Rank 1] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels",
        "[Rank 1] To avoid data inconsistency, we are taking the entire process down.",
        "[PG 0 Rank 1] ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1",
        "[PG 0 Rank 1]  remote error detected from rank: 4"}) {
    CAPTURE(line);
    const Parsed parsed = ParseText(kWatchdog, line);
    CHECK(parsed.events.empty());
    CHECK(parsed.claimed.size() == 1);
  }
}

TEST_CASE("watchdog: who waited is told by a line that is cut behind the rank", "[watchdog]") {
  Check({
      {"[3]:[E ProcessGroupNCCL.cpp:828] [Rank 35] Watchdog caught collectiv", "watchdog rank=35"},
      {"[Rank 35] Watchdog caught", "watchdog rank=35"},
      {"[Rank 35] Watchdog caught collectives of another kind", ""},
      {"[Rank 35] Watchdog cau", ""},
  });
}

TEST_CASE("watchdog: words that only look like the watchdog's", "[watchdog]") {
  Check({
      {"watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:41]", ""},
      {"[INFO] [3] started ALLOCATOR", ""},
      {"[trainer] finished epoch 3", ""},
      {"collective operation timeout: set to 600000", ""},
      {"To our best knowledge, ranks of matrices are small", ""},
  });
}

TEST_CASE("watchdog: cut at every byte", "[watchdog]") {
  const std::string text =
      "[rank3]:[E219 04:05:06.123456789 ProcessGroupNCCL.cpp:633] [Rank 3] Watchdog caught collective operation "
      "timeout: WorkNCCL(SeqNum=4711, "
      "OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600043 milliseconds before "
      "timing out.\n"
      "[PG ID 2 PG GUID 3(mesh_dp) Rank 3]  failure detected by watchdog at work sequence id: 4711 PG status: last "
      "enqueued work: 4713, last "
      "completed work: 4710\n\t   #4711 started ranks:\n\t     [2, 3, 4] started ALLREDUCE\n";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    CAPTURE(size);
    for (const auto& what : Only<WorkTimedOut>(ParseLines(kWatchdog, text.substr(0, size)))) {
      // A cut number is no number.
      CHECK(what.work.seq.value_or(SeqId{4711}) == SeqId{4711});
      CHECK(what.work.numel_in.value_or(1048576) == 1048576);
      CHECK(what.work.timeout_ms.value_or(600000) == 600000);
    }
  }
}

}  // namespace watchdog_test
}  // namespace inquest
