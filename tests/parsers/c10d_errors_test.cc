// Errors of process groups and stores, in the spellings of each version.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/rows.h"

namespace inquest {

extern const Format kC10dErrors, kTraceback;
namespace c10d_errors_test {

std::string Show(const Fingerprint& print) {
  std::string out = print.op;
  if (print.seq) out += " #" + std::to_string(print.seq->value);
  if (print.shape) {
    out += " [";
    for (const std::int64_t size : *print.shape) out += std::to_string(size) + ",";
    out += "]";
  }
  return print.dtype.empty() ? out : out + " " + print.dtype;
}

std::string Show(const FingerprintMismatch& what) {
  return std::to_string(what.rank_a.value) + ": " + Show(what.a) + " / " + std::to_string(what.rank_b.value) + ": " +
         Show(what.b);
}
std::string Show(const MonitoredBarrierFailed& what) {
  std::string out = "barrier by " + (what.printer ? std::to_string(what.printer->value) : "?") + ":";
  for (const int rank : what.ranks) out += " " + std::to_string(rank);
  return what.timeout_ms ? out + " in " + std::to_string(*what.timeout_ms) : out;
}
std::string Show(const UniqueIdWait& what) {
  return std::to_string(what.waiter.value) + " waits for " + std::to_string(what.publisher.value) + " key " + what.key +
         ": " + what.error;
}
std::string Show(const WaitGivenUp& what) {
  return "gave up " + what.on + " after " + std::to_string(what.timeout_ms.value_or(-1));
}
std::string Show(const GuessedDevice& what) {
  return "rank " + (what.group_rank ? std::to_string(what.group_rank->value) : "?") + " guesses " +
         std::to_string(what.device);
}
template <class T>
std::string Show(const T&) {
  return std::string(T::kKind);
}

std::string ShowAll(std::string_view text) {
  return ShowEvents(kC10dErrors, text, [](const auto& what) { return Show(what); });
}

template <std::size_t N>
void Check(const Row (&rows)[N]) {
  CheckRows(rows, ShowAll);
}

TEST_CASE("c10d: two ranks in different collectives", "[c10d]") {
  Check({
      {"  what():  Detected mismatch between collectives on ranks. Rank 3 is running collective: "
       "CollectiveFingerPrint(SequenceNumber=21, "
       "OpType=ALLREDUCE, TensorShape=[4, 2], TensorDtypes=Float, Half, TensorDeviceTypes=TensorOptions(dtype=float "
       "(default), "
       "device=cuda)), but Rank 0 is running collective: "
       "CollectiveFingerPrint(SequenceNumber=22OpType=BARRIER).Collectives differ in the "
       "following aspects: \t Sequence number: 21vs 22",
       "3: ALLREDUCE #21 [4,2,] Float, Half / 0: BARRIER #22"},
      {"Detected mismatch between collectives on ranks. Rank 1 is running collective: "
       "CollectiveFingerPrint(OpType=ALLREDUCE, "
       "TensorShape=[], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda)), but "
       "Rank 2 is running "
       "collective: CollectiveFingerPrint(OpType=_ALLGATHER_BASE).",
       "1: ALLREDUCE [] Float / 2: _ALLGATHER_BASE"},
      {"Detected mismatch between collectives on ranks. Rank 1 is running collective: Coll", ""},
      {"Detected mismatch between collectives on ranks in a table of ours", ""},
  });
}

TEST_CASE("c10d: monitoredBarrier", "[c10d]") {
  Check({
      {"[Rank 0]: Rank 6 failed to pass monitoredBarrier in 60000 ms", "barrier by 0: 6 in 60000"},
      {"[E ProcessGroupGloo.cpp:2810] [Rank 0]: Ranks 1, 5, 7 failed to pass monitoredBarrier in 2000 ms",
       "barrier by 0: 1 5 7 in 2000"},
      {"Rank 4 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
       "Please check rank 0 logs "
       "for faulty rank.",
       "barrier by 4:"},
      {"Rank 0 timed out in monitoredBarrier after 3000 ms.", "barrier by 0: in 3000"},
      {"No ranks successfully processed in monitoredBarrier.", ""},
      {"calling monitoredBarrier before the first step", ""},
  });
}

TEST_CASE("c10d: waiting for the unique id", "[c10d]") {
  Check({
      {"[3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key "
       "'0:1', but store->get('0:1') "
       "got error: wait timeout after 600000ms, keys: /default_pg/0//. This may indicate a possible application crash "
       "on rank 0 or a network "
       "set up issue.",
       "3 waits for 0 key 0:1: wait timeout after 600000ms, keys: /default_pg/0//"},
      {"[1] is setting up NCCL communicator and retreiving ncclUniqueId from [0] via c10d key-value store by key '0', "
       "but store->get('0') got "
       "error: Socket Timeout",
       "1 waits for 0 key 0: Socket Timeout"},
      {"[1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0'",
       "1 waits for 0 key 0: "},
      {"rank 1 is setting up NCCL communicator", ""},
  });
}

TEST_CASE("c10d: a guessed device", "[c10d]") {
  Check({
      {"[W ProcessGroupNCCL.cpp:1569] Rank 3 using GPU 1 to perform barrier as devices used by this process are "
       "currently unknown. This can "
       "potentially cause a hang if this rank to GPU mapping is incorrect.Specify device_ids in barrier()",
       "rank 3 guesses 1"},
      {"[rank3]:[W311 16:58:32.768401977 ProcessGroupNCCL.cpp:4561] [PG ID 0 PG GUID 0 Rank 3]  using GPU 3 to perform "
       "barrier as devices used "
       "by this process are currently unknown.",
       "rank 3 guesses 3"},
      {"[PG ID 0 PG GUID 0 Rank 2]  using GPU 2 as device used by this process is currently unknown. This can "
       "potentially cause a hang",
       "rank 2 guesses 2"},
      {"using GPU 1 for rendering; memory used by this process: 3 GiB", ""},
  });
}

TEST_CASE("c10d: claimed, but no event", "[c10d]") {
  for (const char* line :
       {"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "Last error:",
        "Exception raised from checkTimeout at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:526 (most recent "
        "call first):",
        "frame #3: c10d::ProcessGroupNCCL::ncclCommWatchdog() + 0x119 (0x7f00 in /opt/lib/libtorch_cuda.so)",
        "[W socket.cpp:697] [c10d] The client socket has failed to connect to [n7]:29500 (errno: 111 - Connection "
        "refused).",
        "[W TCPStore.cpp:141] [c10d] recvValue failed on SocketImpl(fd=7, addr=[n1]:5, remote=[n0]:29500): Connection "
        "reset by peer",
        "[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.9.8.7]:4242"}) {
    CAPTURE(line);
    const Parsed parsed = ParseText(kC10dErrors, line);
    CHECK(parsed.events.empty());
    CHECK(parsed.claimed.size() == 1);
  }
}

TEST_CASE("c10d: how many came to the barrier in the store", "[c10d]") {
  const auto count = [](const std::string& line) {
    const auto found = Only<StoreBarrierCount>(ParseLines(kC10dErrors, line + "\n"));
    return found.size() == 1
               ? fmt::format("{} of {} by {}{}", found[0].came, found[0].size,
                             found[0].rank ? found[0].rank->value : -1, found[0].gave_up ? ", gave up" : "")
               : "none";
  };
  CHECK(count("Waiting in store based barrier to initialize process group for rank: 3, key: store_based_barrier_key:1 "
              "(world_size=8, worker_count=7, timeout=0:30:00)") == "7 of 8 by 3");
  CHECK(count("Waiting in store based barrier to initialize process group for 0:00:10.001 secondsrank: 0, key: "
              "store_based_barrier_key:1 (world_size=4, num_workers_joined=2, timeout=0:30:00)") == "2 of 4 by 0");
  CHECK(count("error: Timed out initializing process group in store based barrier on rank 0, for key: "
              "store_based_barrier_key:1 (world_size=2, num_workers_joined=1, timeout=0:30:00 error: wait timeout "
              "after 1800000ms, keys: /a)") == "1 of 2 by 0, gave up");
  CHECK(count("INFO:torch.distributed.distributed_c10d:Rank 2: Completed store-based barrier for "
              "key:store_based_barrier_key:1 with 4 nodes.") == "4 of 4 by 2");
  CHECK(count("Waiting in store based barrier (world_size=)") == "none");
}

TEST_CASE("c10d: an exception's line is left to the traceback, which tells the same", "[c10d]") {
  const std::string line = "RuntimeError: [Rank 0]: Ranks 2, 3 failed to pass monitoredBarrier in 500 ms\n";
  CHECK(ParseText(kC10dErrors, line).claimed.empty());
  const auto failed = Only<MonitoredBarrierFailed>(ParseLines(kTraceback, "  File \"a.py\", line 1, in f\n" + line));
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].ranks == std::vector<int>{2, 3});
  // Also where the head and the frames were cut away.
  CHECK(Only<MonitoredBarrierFailed>(ParseLines(kTraceback, line)).size() == 1);
}

TEST_CASE("c10d: cut at every byte", "[c10d]") {
  const std::string text =
      "[E x.cpp:1] Detected mismatch between collectives on ranks. Rank 1 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=48, "
      "OpType=ALLREDUCE, TensorShape=[25], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float)), but Rank "
      "0 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=48, OpType=BROADCAST, TensorShape=[1], TensorDtypes=Long, "
      "TensorDeviceTypes=x))\n"
      "[1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', "
      "but store->get('0') got error: "
      "x. This may indicate\n[Rank 0]: Ranks 1, 5 failed to pass monitoredBarrier in 60000 ms\n";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    CAPTURE(size);
    for (const auto& what : Only<FingerprintMismatch>(ParseLines(kC10dErrors, text.substr(0, size)))) {
      CHECK(what.b.seq.value_or(SeqId{48}) == SeqId{48});
    }
  }
}

TEST_CASE("c10d: waits that name nobody", "[c10d]") {
  Check({
      {"[E610 10:11:12.000000001 ProcessGroupGloo.cpp:144] Rank 1 "
       "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 1800000ms for send "
       "operation to complete",
       "gave up Gloo send after 1800000"},
      {"[../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 300000ms for recv operation to "
       "complete",
       "gave up Gloo recv after 300000"},
      {"wait timeout after 600000ms, keys: /default_pg/0//cuda//0",
       "gave up store key /default_pg/0//cuda//0 after 600000"},
      // How many came is counted in the same line, which says more.
      {"Timed out initializing process group in store based barrier on rank 0, for key: store_based_barrier_key:1 "
       "(world_size=2, num_workers_joined=1, timeout=0:30:00 error: wait timeout after "
       "1800000ms, keys: /store_based_barrier_key:1:last_worker)",
       "store-barrier-count"},
  });
}

}  // namespace c10d_errors_test
}  // namespace inquest
