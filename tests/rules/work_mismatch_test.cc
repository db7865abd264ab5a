// Ranks that waited in different operations of one process group, and what looks like it.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace work_mismatch_test {

using namespace std::chrono_literals;

/// All ranks time out at one number; rank 2 of six in `odd`, the others in `usual`.
SynthJob TimedOut(const SynthWork& usual, const SynthWork& odd, const SynthStatus& status = {}) {
  SynthJob job({.ranks = 6, .hosts = 2});
  for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=6");
  job.Wait(700s);
  for (const int rank : job.AllRanks()) {
    job.TimeOut(rank, rank == 2 ? odd : usual);
    job.Status(rank, status);
  }
  return job;
}

bool SpeaksOfMismatch(const Verdict& verdict) {
  for (const Finding& finding : verdict.findings)
    if (finding.cause == "collective-mismatch" && finding.strength != Strength::kHint) return true;
  return false;
}

TEST_CASE("work mismatch: another operation, or another size, at one number", "[detectors]") {
  const SynthWork usual;
  SynthWork other_op = usual, other_size = usual;
  other_op.op = "BROADCAST";
  other_size.numel_in = other_size.numel_out = 1048560;
  for (const SynthWork& odd : {other_op, other_size}) {
    CAPTURE(odd.op, odd.numel_in);
    const Judged judged = JudgeText(TimedOut(usual, odd).Interleaved());
    CHECK(judged.verdict.rule == "work-mismatch");
    CHECK(judged.verdict.cause == "collective-mismatch");
    CHECK(CulpritRanks(judged.verdict) == std::set<int>{2});
    REQUIRE_FALSE(judged.verdict.evidence.empty());
    CHECK(judged.verdict.evidence[0].text.starts_with("[E"));
    CHECK(judged.verdict.evidence[0].rank == GlobalRank{2});
  }
}

TEST_CASE("work mismatch: a torn line names no other operation", "[detectors]") {
  std::string text;
  for (int rank = 0; rank < 3; ++rank)
    text += fmt::format(
        "[rank{0}]:[E405 06:07:08.000000001 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, "
        "NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n",
        rank);
  text +=
      "[rank3]:[E405 06:07:08.000000001 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation "
      "timeout: WorkNCCL(SeqNum=9, OpType=ALLRE";
  CHECK_FALSE(SpeaksOfMismatch(JudgeText(text).verdict));
}

TEST_CASE("work mismatch: all alike", "[detectors]") {
  CHECK_FALSE(SpeaksOfMismatch(JudgeText(TimedOut({}, {}).Interleaved()).verdict));
}

TEST_CASE("work mismatch: operations whose sizes may differ", "[detectors]") {
  for (const std::string op : {"ALLTOALL_BASE", "ALLTOALL", "GATHER", "SCATTER", "SEND"}) {
    CAPTURE(op);
    const Judged judged = JudgeText(TimedOut({.op = op}, {.op = op, .numel_in = 77, .numel_out = 77}).Interleaved());
    CHECK_FALSE(SpeaksOfMismatch(judged.verdict));
  }
}

TEST_CASE("work mismatch: what a reduce-scatter takes and gives differs, but not between ranks", "[detectors]") {
  const SynthWork scatter{.op = "_REDUCE_SCATTER_BASE", .numel_in = 6000, .numel_out = 1000};
  CHECK_FALSE(SpeaksOfMismatch(JudgeText(TimedOut(scatter, scatter).Interleaved()).verdict));
}

TEST_CASE("work mismatch: two groups count alike", "[detectors]") {
  SynthJob job({.ranks = 6, .hosts = 2});
  for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=6");
  job.Wait(700s);
  for (const int rank : job.AllRanks()) {
    const bool tensor = rank % 2 == 0;
    job.TimeOut(rank, {.op = tensor ? "ALLREDUCE" : "_ALLGATHER_BASE"}, rank / 2);
    job.Status(rank, {.id = tensor ? "1" : "2", .guid = tensor ? "1" : "2", .desc = tensor ? "mesh_tp" : "mesh_dp"},
               rank / 2);
  }
  CHECK_FALSE(SpeaksOfMismatch(JudgeText(job.Interleaved()).verdict));
}

TEST_CASE("work mismatch: only one rank's lines name the group", "[detectors]") {
  // Numbers that are low two groups share by chance, and of another group than all ranks' others need not be members.
  struct Row {
    std::int64_t seq;
    SynthStatus status;
    bool mismatch;
  };
  const Row rows[] = {{2917, {}, true}, {3, {}, false}, {2917, {.id = "7", .guid = "7", .desc = "mesh_tp"}, false}};
  for (const Row& row : rows) {
    CAPTURE(row.seq, row.status.desc);
    SynthJob job({.ranks = 4, .hosts = 1});
    job.Wait(700s);
    for (const int rank : {1, 2, 3}) job.TimeOut(rank, {.seq = row.seq, .op = rank == 3 ? "BROADCAST" : "ALLREDUCE"});
    SynthStatus status = row.status;
    status.failed = status.enqueued = row.seq;
    status.completed = row.seq - 1;
    job.Status(3, status);
    CHECK(SpeaksOfMismatch(JudgeText(job.Interleaved()).verdict) == row.mismatch);
  }
}

TEST_CASE("work mismatch: one rank waits in a later operation of the same group", "[detectors]") {
  const Judged judged = JudgeText([] {
    SynthJob job({.ranks = 6, .hosts = 2});
    for (const int rank : job.AllRanks()) {
      const SynthWork work = rank == 4 ? SynthWork{.seq = 101, .op = "BROADCAST"} : SynthWork{};
      job.TimeOut(rank, work);
      job.Status(rank, {.failed = work.seq, .enqueued = work.seq, .completed = work.seq - 1});
    }
    return job.Interleaved();
  }());
  CHECK(FindFinding(judged.verdict, "work-order-mismatch") != nullptr);
  CHECK(judged.verdict.cause == "collective-mismatch");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{4});
}

TEST_CASE("work mismatch: every rank waits, and their numbers differ", "[detectors]") {
  const auto judge = [](std::int64_t apart, std::int64_t size) {
    SynthJob job({.ranks = 6, .hosts = 2});
    for (const int rank : job.AllRanks()) {
      SynthWork work;
      if (rank == 4) work.seq = work.seq - apart, work.numel_in = size;
      job.TimeOut(rank, work);
      job.Status(rank, {.failed = work.seq, .enqueued = work.seq, .completed = work.seq - 1});
    }
    return JudgeText(job.Interleaved()).verdict;
  };
  const std::int64_t same = SynthWork{}.numel_in;
  for (const Verdict& verdict : {judge(3, same), judge(1, 7)}) {
    CHECK(verdict.cause == "collective-mismatch");
    CHECK(CulpritRanks(verdict) == std::set<int>{4});
  }
  // One apart and of one size: those that went on may have lost it to the transport.
  CHECK(judge(1, same).cause == "unknown");
}

TEST_CASE("work mismatch: PyTorch compared the calls before they were made", "[detectors]") {
  const auto print = [](int seq, const char* op, int size) {
    return fmt::format(
        "CollectiveFingerPrint(SequenceNumber={}, OpType={}, TensorShape=[{}], TensorDtypes=Float, "
        "TensorDeviceTypes=TensorOptions(dtype=float))",
        seq, op, size);
  };
  SynthJob job({.ranks = 4, .hosts = 1});
  for (const int rank : {0, 1, 3})
    job.Raise(rank, "RuntimeError",
              fmt::format("Detected mismatch between collectives on ranks. Rank {} is running collective: {}, but Rank "
                          "2 is running collective: {}.",
                          rank, print(21, "ALLREDUCE", 8), print(21, "BROADCAST", 8)));
  const Judged judged = JudgeText(job.Interleaved());
  CHECK(judged.verdict.rule == "fingerprint-mismatch");
  CHECK(judged.verdict.cause == "collective-mismatch");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{2});
}

}  // namespace work_mismatch_test
}  // namespace inquest
