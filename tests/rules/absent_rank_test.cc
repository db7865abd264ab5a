// Ranks that never entered an operation, and what looks like it.
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace absent_rank_test {

using namespace std::chrono_literals;

/// These ranks time out in one operation of the default group; the job says its size.
SynthJob TimedOut(const std::vector<int>& waiting, int ranks = 8) {
  SynthJob job({.ranks = ranks, .hosts = 2});
  for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=" + std::to_string(ranks));
  job.Wait(700s);
  for (const int rank : waiting) {
    job.TimeOut(rank, {});
    job.Status(rank, {});
  }
  return job;
}

bool SpeaksOfAbsence(const Verdict& verdict) {
  for (const Finding& finding : verdict.findings)
    if (finding.strength != Strength::kHint &&
        (finding.cause == "rank-absent" || finding.cause == "slow-rank" || finding.cause == "jit-build-stall"))
      return true;
  return false;
}

TEST_CASE("absent rank: all but one time out", "[detectors]") {
  const Judged judged = JudgeText(TimedOut({0, 1, 2, 3, 4, 6, 7}).Interleaved());
  const Finding* finding = FindFinding(judged.verdict, "rank-absent");
  REQUIRE(finding != nullptr);
  CHECK(judged.verdict.cause == "rank-absent");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{5});
  REQUIRE(judged.verdict.collective);
  CHECK(judged.verdict.collective->seq == 100);
  CHECK(judged.verdict.collective->ranks_absent == RankSet::Of(std::vector<int>{5}));
  CHECK(judged.verdict.collective->ranks_waiting == RankSet::Of(std::vector<int>{0, 1, 2, 3, 4, 6, 7}));
  REQUIRE_FALSE(finding->citations.empty());
  CHECK(finding->citations[0].text.find("Watchdog caught") != std::string::npos);
}

TEST_CASE("absent rank: all time out, so nobody is absent", "[detectors]") {
  const Judged judged = JudgeText(TimedOut({0, 1, 2, 3, 4, 5, 6, 7}).Interleaved());
  CHECK_FALSE(SpeaksOfAbsence(judged.verdict));
  CHECK(CulpritRanks(judged.verdict).empty());
}

TEST_CASE("absent rank: a log of one rank proves no absence", "[detectors]") {
  SynthJob job({.ranks = 8, .hosts = 2});
  job.TimeOut(0, {});
  job.Status(0, {});
  const Judged judged = JudgeText(job.Interleaved());
  CHECK_FALSE(SpeaksOfAbsence(judged.verdict));
  CHECK(CulpritRanks(judged.verdict).empty());
}

TEST_CASE("absent rank: a watchdog that was stuck itself could not have said that it waits", "[detectors]") {
  SynthJob job = TimedOut({0, 1, 2, 3, 4, 6, 7});
  job.Print(5,
            "[rank5]:[E405 06:17:08.000000001 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank 5] "
            "ProcessGroupNCCL's watchdog got stuck for 480 "
            "seconds without making progress in monitoring enqueued collectives.");
  CHECK_FALSE(SpeaksOfAbsence(JudgeText(job.Interleaved()).verdict));
}

TEST_CASE("absent rank: a group that is a part of the job", "[detectors]") {
  const std::vector<int> group = {1, 3, 5, 7};
  for (const int absent : {-1, 5}) {
    CAPTURE(absent);
    SynthJob job({.ranks = 8, .hosts = 2});
    for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=8");
    for (int place = 0; place < 4; ++place) {
      const int rank = group[static_cast<std::size_t>(place)];
      if (rank == absent) continue;
      job.TimeOut(rank, {}, place);
      job.Status(rank, {.id = "2", .guid = "3", .desc = "mesh_dp"}, place);
    }
    const Judged judged = JudgeText(job.Interleaved());
    CHECK(SpeaksOfAbsence(judged.verdict) == (absent >= 0));
    CHECK(CulpritRanks(judged.verdict) == (absent >= 0 ? std::set<int>{absent} : std::set<int>()));
  }
}

TEST_CASE("absent rank: a rank that has enqueued less than the others", "[detectors]") {
  SynthJob job = TimedOut({0, 1, 2, 3, 4, 6, 7});
  job.Status(5, {.failed = 98, .enqueued = 98, .completed = 97});
  const Judged judged = JudgeText(job.Interleaved());
  CHECK(FindFinding(judged.verdict, "rank-behind") != nullptr);
  CHECK(judged.verdict.cause == "rank-absent");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{5});

  SynthJob enqueued = TimedOut({0, 1, 2, 3, 4, 6, 7});  // it is in, though its watchdog has not spoken of it
  enqueued.Status(5, {.failed = 100, .enqueued = 104, .completed = 99});
  const Judged all_in = JudgeText(enqueued.Interleaved());
  CHECK(FindFinding(all_in.verdict, "rank-behind") == nullptr);
  CHECK_FALSE(SpeaksOfAbsence(all_in.verdict));
}

TEST_CASE("absent rank: who is through with a broadcast does not time out in it", "[detectors]") {
  for (const char* op : {"ALLREDUCE", "BROADCAST", "REDUCE"}) {
    CAPTURE(op);
    const bool one_way = std::string_view(op) != "ALLREDUCE";
    SynthJob job({.ranks = 8, .hosts = 2});
    for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=8");
    job.Wait(700s);
    for (const int rank : {1, 4, 5, 6, 7}) {
      job.TimeOut(rank, {.op = op});
      job.Status(rank, {});
    }
    const Judged several = JudgeText(job.Interleaved());
    CHECK(SpeaksOfAbsence(several.verdict) == !one_way);
    for (const int rank : {2, 3}) {
      job.TimeOut(rank, {.op = op});
      job.Status(rank, {});
    }
    CHECK(SpeaksOfAbsence(JudgeText(job.Interleaved()).verdict));  // the root alone: it never came

    // Rank 1 is stuck in the first operation, which the others have left behind.
    SynthJob apart({.ranks = 8, .hosts = 2});
    for (const int rank : apart.AllRanks()) apart.Print(rank, "args: world_size=8");
    apart.Wait(700s);
    apart.TimeOut(1, {.seq = 97, .op = op});
    apart.Status(1, {.failed = 97, .enqueued = 98, .completed = 96});
    for (const int rank : {0, 2, 3, 4, 5, 6, 7}) {
      apart.TimeOut(rank, {.op = op});
      apart.Status(rank, {});
    }
    const Judged fell_apart = JudgeText(apart.Interleaved());
    CHECK(FindFinding(fell_apart.verdict, "rank-behind") == nullptr);  // it is in another one
    CHECK((FindFinding(fell_apart.verdict, "work-order-mismatch") == nullptr) == one_way);
  }
}

TEST_CASE("absent rank: what the absent rank was at", "[detectors]") {
  const struct {
    const char* line;
    const char* cause;
  } rows[] = {
      {"[rank0]:Saving model checkpoint to /out/checkpoint-500", "slow-rank"},
      {"[rank0]:Emitting ninja build file /root/.cache/torch_extensions/fused_adam/build.ninja...", "jit-build-stall"},
      {"[rank0]:loader waits", "rank-absent"},
      {"[rank0]:train: Caching images (12.3GB ram): 100%|####| 1000/1000", "rank-absent"},  // that was done
  };
  for (const auto& row : rows) {
    CAPTURE(row.line);
    SynthJob job({.ranks = 4, .hosts = 1});
    for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=4");
    job.Print(0, row.line);
    job.Wait(600s);
    for (const int rank : {1, 2, 3}) job.TimeOut(rank, {});
    const Judged judged = JudgeText(job.Interleaved());
    CHECK(judged.verdict.cause == row.cause);
    CHECK(CulpritRanks(judged.verdict) == std::set<int>{0});
  }
}

TEST_CASE("absent rank: work ran on and nobody is known to be absent", "[detectors]") {
  const struct {
    const char* line;
    const char* cause;
  } rows[] = {
      {"Saving model checkpoint to /out/checkpoint-500", "unknown"},  // rank 0 says so, and it waits
      {"Building extension module ring_attn...", "jit-build-stall"},
      {"Time to load ring_attn op: 84.12 seconds", "unknown"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.line);
    SynthJob job({.ranks = 4, .hosts = 1});
    job.PrintAgent(0, row.line);
    job.Wait(600s);
    job.TimeOut(0, {});
    const Judged judged = JudgeText(job.Interleaved());
    CHECK(judged.verdict.cause == row.cause);
    CHECK(CulpritRanks(judged.verdict).empty());
    CHECK(judged.verdict.confidence <= 0.5);

    SynthJob whole({.ranks = 4, .hosts = 1});  // all are known to be in
    for (const int rank : whole.AllRanks()) whole.Print(rank, "args: world_size=4");
    whole.PrintAgent(0, row.line);
    whole.Wait(600s);
    for (const int rank : whole.AllRanks()) whole.TimeOut(rank, {});
    CHECK_FALSE(SpeaksOfAbsence(JudgeText(whole.Interleaved()).verdict));
  }
}

TEST_CASE("absent rank: one group is whole, and in another one somebody is missing", "[detectors]") {
  SynthJob job({.ranks = 8, .hosts = 1});
  for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=8");
  job.PrintAgent(0, "Saving model checkpoint to /out/checkpoint-500");
  job.Wait(600s);
  for (int place = 0; place < 2; ++place) {
    job.TimeOut(4 + place, {.seq = 88}, place);
    job.Status(4 + place, {.id = "3", .guid = "9", .desc = "mesh_tp", .failed = 88, .enqueued = 88, .completed = 87},
               place);
  }
  for (const int place : {0, 1, 3}) {
    job.TimeOut(2 * place, {.seq = 412}, place);
    job.Status(2 * place, {.id = "2", .guid = "5", .desc = "mesh_dp", .failed = 412, .enqueued = 412, .completed = 411},
               place);
  }
  const Judged judged = JudgeText(job.Interleaved());
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{4});
  CHECK(judged.verdict.confidence > 0.5);
}

TEST_CASE("absent rank: who timed out in another operation of the group was not absent", "[detectors]") {
  SynthJob job = TimedOut({0, 1, 2, 3, 4, 6, 7});
  job.TimeOut(5, {.seq = 101});
  job.Status(5, {.failed = 101, .enqueued = 101, .completed = 100});
  const Judged judged = JudgeText(job.Interleaved());
  const Finding* finding = FindFinding(judged.verdict, "rank-absent");
  CHECK((finding == nullptr || finding->strength == Strength::kHint));
}

}  // namespace absent_rank_test
}  // namespace inquest
