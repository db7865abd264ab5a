// What must not change a verdict from ranks' own recorders: the order of their dumps, how many threads read them, which
// rank has which number. And what may make it weaker, never wrong: dumps that are lost, dumps that are torn.
#include <algorithm>
#include <numeric>
#include <random>

#include "tests/catch.h"
#include "tests/support/recorded_job.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace recorded_property_test {

using Dumps = std::map<int, FlightDump>;

/// Who is to blame in each job of the simulator; empty: nobody is.
const std::map<std::string, std::set<int>>& Blamed() {
  static const std::map<std::string, std::set<int>> kBlamed = {
      {"missing-rank", {5}},
      {"asked-while-running", {}},
      {"asked-while-in-step", {}},
      {"size-differs", {2}},
      {"uneven-all-to-all", {6}},
      {"uneven-gather", {3}},
      {"operation-differs", {0}},
      {"order-swapped", {3}},
      {"two-buckets-and-one-is-behind", {3}},
      {"dump-missing", {6}},
      {"dump-missing-of-a-waiter", {1}},
      {"rings-overwritten", {4}},
      {"rings-cut-blocks", {3}},
      {"ring-lost-the-call", {2}},
      {"pipeline-chain", {6}},
      {"pipeline-asked-while-running", {}},
      {"stuck-in-the-data-loader", {5}},
      {"grid-asked-while-running", {}},
      {"stage-died", {2}},
      {"stage-stopped", {2}},
      {"tensor-pair-behind", {1}},
      {"one-name-for-two-groups", {3}},
      {"dump-of-an-earlier-job", {1}},
      {"cycle", {}},
      {"two-groups-and-one-is-behind", {3}},
      {"pairs-in-a-circle", {}},
      {"both-send-first", {}},
      {"circle-in-blocks", {2}},
      {"blocks-take-numbers", {3}},
      {"blocks-take-numbers-and-one-is-behind", {1}},
      {"coalesced-differs", {1}},
      {"coalesced-and-one-is-missing", {2}},
      {"send-without-receive", {5}},
      {"send-and-receive-differ", {3, 7}},
  };
  return kBlamed;
}

std::vector<SynthFile> FilesOf(const Dumps& dumps) {
  std::vector<SynthFile> out;
  for (const auto& [rank, dump] : dumps) {
    const bool json = rank % 5 == 4;
    out.push_back(
        {"nccl_trace_rank_" + std::to_string(rank) + (json ? ".json" : ""), json ? JsonOf(dump) : PickleOf(dump)});
  }
  return out;
}

Verdict VerdictOf(const std::vector<SynthFile>& files) {
  const JobFolder folder(files);
  return AnalyzePaths({folder.path()}).verdict;
}

/// Ranks that a reader would take for the culprits.
std::set<int> SurelyBlamed(const Verdict& verdict) {
  return verdict.confidence >= 0.7 ? CulpritRanks(verdict) : std::set<int>();
}

bool Within(const std::set<int>& some, const std::set<int>& all) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

TEST_CASE("property: each job of recorded calls blames whom it should", "[property][recorded]") {
  for (const std::string& name : RecordedScenarios()) {
    CAPTURE(name);
    REQUIRE(Blamed().contains(name));
    const Verdict verdict = VerdictOf(FilesOf(RecordedScenario(name)));
    CHECK(Within(SurelyBlamed(verdict), Blamed().at(name)));
  }
  CHECK(RecordedScenarios().size() == Blamed().size());
}

TEST_CASE("property: dumps in any order and by any threads give the same report", "[property][recorded]") {
  std::mt19937 random(20320405);
  for (const std::string& name : RecordedScenarios()) {
    CAPTURE(name);
    const JobFolder folder(FilesOf(RecordedScenario(name)));
    std::vector<std::string> files = folder.Files();
    const Analysis first = AnalyzePaths(files);
    const std::string json = JsonOf(first.timeline, first.verdict);
    for (unsigned threads = 1; threads <= 4; ++threads) {
      std::shuffle(files.begin(), files.end(), random);
      const Analysis again = AnalyzePaths(files, {.threads = threads});
      CHECK(JsonOf(again.timeline, again.verdict) == json);
    }
  }
}

TEST_CASE("property: dumps that are lost blame no other rank", "[property][recorded]") {
  std::mt19937 random(20320405);
  for (const std::string& name : RecordedScenarios()) {
    const std::vector<SynthFile> all = FilesOf(RecordedScenario(name));
    for (std::size_t k = 1; k + 2 <= all.size(); ++k)
      for (int round = 0; round < 2; ++round) {
        std::vector<SynthFile> files = all;
        std::shuffle(files.begin(), files.end(), random);
        files.resize(all.size() - k);
        std::string lost;
        for (const SynthFile& file : all)
          if (std::ranges::none_of(files, [&](const SynthFile& kept) { return kept.name == file.name; }))
            lost += file.name + " ";
        CAPTURE(name, lost);
        const Verdict verdict = VerdictOf(files);
        CAPTURE(verdict.summary);
        CHECK(Within(SurelyBlamed(verdict), Blamed().at(name)));
      }
  }
}

TEST_CASE("property: a dump that is cut anywhere blames no other rank", "[property][recorded]") {
  std::mt19937 random(20320405);
  for (const std::string& name : RecordedScenarios()) {
    const std::vector<SynthFile> all = FilesOf(RecordedScenario(name));
    for (int round = 0; round < 12; ++round) {
      std::vector<SynthFile> files = all;
      SynthFile& torn = files[random() % files.size()];
      // One in three somewhere in its last entries.
      const std::size_t size = torn.text.size(), most = round % 3 == 0 ? std::min<std::size_t>(size, 600) : size;
      torn.text.resize(size - 1 - random() % most);
      CAPTURE(name, torn.name, torn.text.size());
      const Verdict verdict = VerdictOf(files);
      CAPTURE(verdict.summary);
      CHECK(Within(SurelyBlamed(verdict), Blamed().at(name)));
    }
  }
}

TEST_CASE("property: other numbers for the ranks are other numbers for the culprits, and no more",
          "[property][recorded]") {
  std::mt19937 random(20320405);
  for (const std::string& name : RecordedScenarios()) {
    const Dumps dumps = RecordedScenario(name);
    const Verdict before = VerdictOf(FilesOf(dumps));
    int ranks = 0;
    for (const auto& [rank, dump] : dumps)
      for (const DumpGroup& group : dump.groups) ranks = std::max(ranks, std::ranges::max(group.ranks) + 1);
    std::vector<int> number(static_cast<std::size_t>(ranks));
    std::iota(number.begin(), number.end(), 0);
    for (int round = 0; round < 2; ++round) {
      std::shuffle(number.begin(), number.end(), random);
      const auto renamed = [&](int rank) { return number[static_cast<std::size_t>(rank)]; };
      Dumps others;
      for (auto [rank, dump] : dumps) {
        for (DumpGroup& group : dump.groups) std::ranges::transform(group.ranks, group.ranks.begin(), renamed);
        others.emplace(renamed(rank), std::move(dump));
      }
      const Verdict after = VerdictOf(FilesOf(others));
      std::set<int> expected;
      for (const int rank : CulpritRanks(before)) expected.insert(renamed(rank));
      CAPTURE(name, number, before.summary, after.summary);
      CHECK(after.cause == before.cause);
      CHECK(after.rule == before.rule);
      CHECK(CulpritRanks(after) == expected);
    }
  }
}

}  // namespace recorded_property_test
}  // namespace inquest
