// Calls that differ between the ranks of a communicator, or stop on one of them, and what looks like it.
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace call_divergence_test {

const std::vector<NcclSpelling> kSpellings = {NcclSpelling::k2_4,  NcclSpelling::k2_10, NcclSpelling::k2_16,
                                              NcclSpelling::k2_18, NcclSpelling::k2_21, NcclSpelling::k2_23,
                                              NcclSpelling::k2_24, NcclSpelling::k2_29};

bool Speaks(const Verdict& verdict) {
  return FindFinding(verdict, "call-divergence") != nullptr || FindFinding(verdict, "calls-behind") != nullptr;
}

TEST_CASE("call divergence: one rank asks for another size, in every spelling", "[detectors]") {
  for (const NcclSpelling spelling : kSpellings) {
    CAPTURE(static_cast<int>(spelling));
    SynthJob job({.ranks = 4, .hosts = 2, .nccl = spelling});
    const auto comm = job.NewComm(job.AllRanks());
    job.Init(comm);
    for (std::uint64_t step = 0; step < 6; ++step)
      for (const int rank : job.AllRanks())
        job.Call(comm, rank, {.count = step == 4 && rank == 2 ? 12u : 8u, .op_count = step});
    const Judged judged = JudgeText(job.Interleaved());
    CHECK(judged.verdict.cause == "collective-mismatch");
    CHECK(judged.verdict.rule == "call-divergence");
    CHECK(CulpritRanks(judged.verdict) == std::set<int>{2});
    REQUIRE(judged.timeline.communicators.size() == 1);
    REQUIRE(judged.timeline.communicators[0].divergence);
    CHECK(judged.timeline.communicators[0].divergence->number == 4);
    REQUIRE_FALSE(judged.verdict.evidence.empty());
    const std::string cited = job.Lines().at(judged.verdict.evidence[0].where.line - 1);
    CHECK(cited.find("count 12 ") != std::string::npos);
  }
}

TEST_CASE("call divergence: where the vote is tied nobody is blamed", "[detectors]") {
  SynthJob job({.ranks = 4, .hosts = 1});
  const auto comm = job.NewComm(job.AllRanks());
  job.Init(comm);
  for (const int rank : job.AllRanks()) job.Call(comm, rank, {.op = rank < 2 ? "AllReduce" : "AllGather"});
  const Judged judged = JudgeText(job.Interleaved());
  CHECK(judged.verdict.cause == "collective-mismatch");
  CHECK(CulpritRanks(judged.verdict).empty());
}

TEST_CASE("call divergence: two communicators may differ from one another", "[detectors]") {
  for (const NcclSpelling spelling : kSpellings) {
    CAPTURE(static_cast<int>(spelling));
    SynthJob job({.ranks = 4, .hosts = 1, .nccl = spelling});
    const auto all = job.NewComm(job.AllRanks());
    job.Init(all);
    std::vector<SynthJob::Comm> halves;
    for (int half = 0; half < 2; ++half) {
      const std::vector<int> ranks = {half * 2, half * 2 + 1};
      halves.push_back(spelling >= NcclSpelling::k2_18 ? job.NewSplit(all, ranks, half) : job.NewComm(ranks));
      job.Init(halves.back());
    }
    for (std::uint64_t step = 0; step < 6; ++step) {
      job.CallAll(all, {.count = 8});
      job.CallAll(halves[0], {.op = "AllReduce", .count = 16});
      job.CallAll(halves[1], {.op = "Broadcast", .count = 32});
    }
    CHECK_FALSE(Speaks(JudgeText(job.Interleaved()).verdict));
  }
}

TEST_CASE("call divergence: pipelines send unevenly", "[detectors]") {
  SynthJob job({.ranks = 4, .hosts = 1});
  const auto comm = job.NewComm(job.AllRanks());
  job.Init(comm);
  job.CallAll(comm, {});
  for (const int rank : {0, 1, 2}) job.Call(comm, rank, {.op = "Send", .count = 64, .root = rank + 1});
  for (const int rank : {1, 2, 3}) job.Call(comm, rank, {.op = "Recv", .count = 64, .root = rank - 1});
  job.CallAll(comm, {});
  for (const int rank : job.AllRanks()) job.TimeOut(rank, {});
  CHECK_FALSE(Speaks(JudgeText(job.Interleaved()).verdict));
}

SynthJob OneStops(bool waited) {
  SynthJob job({.ranks = 4, .hosts = 2});
  const auto comm = job.NewComm(job.AllRanks());
  job.Init(comm);
  for (std::uint64_t step = 0; step < 9; ++step)
    for (const int rank : job.AllRanks())
      if (rank != 3 || step < 7) job.Call(comm, rank, {.op_count = step});
  if (waited)
    for (const int rank : {0, 1, 2}) job.TimeOut(rank, {.seq = 8});
  return job;
}

TEST_CASE("calls behind: one rank stops calling while the others wait", "[detectors]") {
  const SynthJob job = OneStops(true);
  const Judged judged = JudgeText(job.Interleaved());
  const Finding* finding = FindFinding(judged.verdict, "calls-behind");
  REQUIRE(finding != nullptr);
  CHECK(finding->strength != Strength::kHint);
  CHECK(judged.verdict.cause == "rank-absent");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{3});
  REQUIRE_FALSE(finding->citations.empty());
  const std::string cited = job.Lines().at(finding->citations[0].where.line - 1);
  CHECK(cited.find(job.Host(3) + ":" + std::to_string(job.Pid(3))) == 0);
  CHECK(cited.find("opCount 6 ") != std::string::npos);  // its last one
}

TEST_CASE("calls behind: where nothing says that somebody waited it is a hint", "[detectors]") {
  const Judged judged = JudgeText(OneStops(false).Interleaved());
  const Finding* finding = FindFinding(judged.verdict, "calls-behind");
  CHECK((finding == nullptr || finding->strength == Strength::kHint));
}

TEST_CASE("calls behind: what looks like it", "[detectors]") {
  const std::string text = OneStops(true).Interleaved();
  const std::size_t first_call = text.find("NCCL INFO AllReduce");
  const std::string middle = text.substr(text.find('\n', first_call) + 1);
  CHECK_FALSE(Speaks(JudgeText(middle).verdict));  // the beginning is missing

  SynthJob ended({.ranks = 4, .hosts = 1});
  const auto comm = ended.NewComm(ended.AllRanks());
  ended.Init(comm);
  for (const int rank : ended.AllRanks())
    for (int i = 0; i < (rank == 3 ? 4 : 5); ++i) ended.Call(comm, rank, {});
  for (const int rank : ended.AllRanks()) ended.Destroy(comm, rank);
  CHECK_FALSE(Speaks(JudgeText(ended.Interleaved()).verdict));  // whoever closes its communicator waits for nobody

  SynthJob alike({.ranks = 4, .hosts = 1});
  const auto other = alike.NewComm(alike.AllRanks());
  alike.Init(other);
  for (int i = 0; i < 5; ++i) alike.CallAll(other, {});
  for (const int rank : alike.AllRanks()) alike.TimeOut(rank, {});
  CHECK_FALSE(Speaks(JudgeText(alike.Interleaved()).verdict));
}

TEST_CASE("calls behind: a file that is torn off does not show where its rank stopped", "[detectors]") {
  std::vector<SynthFile> files = OneStops(true).PerRank();
  const JobFolder intact(files);
  CHECK(FindFinding(AnalyzePaths({intact.path()}).verdict, "calls-behind") != nullptr);
  files[3].text.resize(files[3].text.size() - 100);
  const JobFolder torn(files);
  CHECK(FindFinding(AnalyzePaths({torn.path()}).verdict, "calls-behind") == nullptr);
}

}  // namespace call_divergence_test
}  // namespace inquest
