// What must not change a verdict: how the bytes are cut, in which order they come, what else was printed, whose clock
// is wrong, how many threads read.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "tests/catch.h"
#include "tests/property/scenarios.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace property_test {

using namespace std::chrono_literals;

constexpr int kCulprit = 5;
constexpr SynthOptions kTwoHosts{.ranks = 8, .hosts = 2};

SynthJob Play(const Scenario& scenario, const SynthOptions& options = kTwoHosts, int culprit = kCulprit) {
  SynthJob job(options);
  scenario.play(job, culprit);
  return job;
}

std::string Join(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

std::string JsonOf(const Judged& judged) { return JsonOf(judged.timeline, judged.verdict); }

/// At least so many bytes of lines that no rule and no format asks for.
std::string Padding(std::size_t bytes) {
  SynthJob job(kTwoHosts);
  job.Chatter(0, static_cast<int>(bytes / 24));
  const std::string text = job.Interleaved();
  REQUIRE(text.size() >= bytes);
  return text;
}

TEST_CASE("property: each scenario has its cause and its culprit, however it is logged", "[property]") {
  for (const Scenario& scenario : Scenarios())
    for (const Launcher launcher :
         {Launcher::kNone, Launcher::kRankTag, Launcher::kSrun, Launcher::kTee, Launcher::kKubectl})
      for (const NcclSpelling nccl : {NcclSpelling::k2_18, NcclSpelling::k2_21, NcclSpelling::k2_29}) {
        if (scenario.has_agent && launcher == Launcher::kSrun) continue;
        CAPTURE(scenario.name, static_cast<int>(launcher), static_cast<int>(nccl));
        const Judged judged =
            JudgeText(Play(scenario, {.ranks = 8, .hosts = 2, .nccl = nccl, .launcher = launcher}).Interleaved());
        CHECK(judged.verdict.cause == scenario.cause);
        CHECK(CulpritRanks(judged.verdict) == std::set<int>{kCulprit});
      }
}

// The number that srun -l prints is a rank only where srun starts one task a rank.
TEST_CASE("property: where srun starts one agent a host, its number is no rank", "[property]") {
  for (const Scenario& scenario : Scenarios()) {
    CAPTURE(scenario.name);
    const Judged judged =
        JudgeText(Play(scenario, {.ranks = 8, .hosts = 2, .launcher = Launcher::kSrunAgent}).Interleaved());
    CHECK(judged.verdict.cause == scenario.cause);
    CHECK(CulpritRanks(judged.verdict) == std::set<int>{kCulprit});
  }
}

TEST_CASE("property: a file a rank says what one file says", "[property]") {
  for (const Scenario& scenario : Scenarios()) {
    CAPTURE(scenario.name);
    const SynthJob job = Play(scenario);
    const JobFolder folder(job.PerRank());
    const Analysis analysis = AnalyzePaths({folder.path()});
    CHECK(analysis.verdict.cause == scenario.cause);
    CHECK(CulpritRanks(analysis.verdict) == std::set<int>{kCulprit});
  }
}

TEST_CASE("property: any blocks and any threads give the same report, to the byte", "[property]") {
  const std::string padding = Padding(2 * kLineCap);
  for (const Scenario& scenario : Scenarios()) {
    const std::string text = padding + Play(scenario).Interleaved() + padding.substr(0, padding.size() / 3);
    REQUIRE(text.size() > 2 * kLineCap);
    const std::string one = JsonOf(JudgeText(text, {.threads = 1, .block_bytes = kLineCap}));
    for (unsigned threads = 2; threads <= 4; ++threads) {
      CAPTURE(scenario.name, threads);
      CHECK(JsonOf(JudgeText(text, {.threads = threads, .block_bytes = kLineCap})) == one);
    }
    for (const std::size_t block : {kLineCap + 1000, 2 * kLineCap, 8 * kLineCap}) {
      CAPTURE(scenario.name, block);
      CHECK(JsonOf(JudgeText(text, {.threads = 2, .block_bytes = block})) == one);
    }
  }
}

TEST_CASE("property: threads do not change the report of many files", "[property]") {
  for (const Scenario& scenario : Scenarios()) {
    CAPTURE(scenario.name);
    const JobFolder folder(Play(scenario).PerRank());
    const Analysis one = AnalyzePaths({folder.path()}, {.threads = 1});
    const std::string json = JsonOf(one.timeline, one.verdict);
    for (unsigned threads = 2; threads <= 4; ++threads) {
      const Analysis many = AnalyzePaths({folder.path()}, {.threads = threads});
      CHECK(JsonOf(many.timeline, many.verdict) == json);
    }
  }
}

TEST_CASE("property: the order in which files are named changes nothing", "[property]") {
  std::mt19937 random(20310405);
  for (const Scenario& scenario : Scenarios()) {
    CAPTURE(scenario.name);
    const JobFolder folder(Play(scenario).PerRank());
    std::vector<std::string> files = folder.Files();
    const Analysis first = AnalyzePaths(files);
    const std::string json = JsonOf(first.timeline, first.verdict);
    for (int round = 0; round < 3; ++round) {
      std::shuffle(files.begin(), files.end(), random);
      const Analysis again = AnalyzePaths(files);
      CHECK(JsonOf(again.timeline, again.verdict) == json);
    }
    const Analysis whole = AnalyzePaths({folder.path()});
    CHECK(JsonOf(whole.timeline, whole.verdict) == json);
  }
}

TEST_CASE("property: chatter anywhere changes neither cause nor culprit", "[property]") {
  std::mt19937 random(20310405);
  for (const Scenario& scenario : Scenarios()) {
    const std::vector<std::string> lines = Play(scenario).Lines();
    SynthJob other(kTwoHosts);
    for (int rank = 0; rank < 8; ++rank) other.Chatter(rank, 40);
    const std::vector<std::string> chatter = other.Lines();
    for (int round = 0; round < 10; ++round) {
      std::vector<std::string> mixed;
      for (const std::string& line : lines) {
        for (unsigned i = random() % 4; i > 0; --i) mixed.push_back(chatter[random() % chatter.size()]);
        mixed.push_back(line);
      }
      CAPTURE(scenario.name, round);
      const Judged judged = JudgeText(Join(mixed));
      CHECK(judged.verdict.cause == scenario.cause);
      CHECK(CulpritRanks(judged.verdict) == std::set<int>{kCulprit});
    }
  }
}

TEST_CASE("property: another rank in the culprit's place is blamed in its place", "[property]") {
  for (const Scenario& scenario : Scenarios()) {
    const Judged usual = JudgeText(Play(scenario).Interleaved());
    for (int culprit = 0; culprit < 8; ++culprit) {
      CAPTURE(scenario.name, culprit);
      const SynthJob job = Play(scenario, kTwoHosts, culprit);
      const Judged judged = JudgeText(job.Interleaved());
      CHECK(judged.verdict.cause == usual.verdict.cause);
      CHECK(judged.verdict.rule == usual.verdict.rule);
      CHECK(judged.verdict.confidence == usual.verdict.confidence);
      CHECK(CulpritRanks(judged.verdict) == std::set<int>{culprit});
      REQUIRE_FALSE(judged.verdict.culprits.empty());
      CHECK(judged.verdict.culprits[0].host == job.Host(culprit));
    }
  }
}

TEST_CASE("property: a wrong clock on one host changes no cause", "[property]") {
  for (const Scenario& scenario : Scenarios())
    for (const int host : {0, 1})
      for (const std::chrono::nanoseconds shift : {-7200s, -90s, -1s, 1s, 90s, 7200s}) {
        CAPTURE(scenario.name, host, shift.count());
        SynthJob job(kTwoHosts);
        job.ShiftClock(host, shift);
        scenario.play(job, kCulprit);
        const JobFolder folder(job.PerRank());
        const Analysis apart = AnalyzePaths({folder.path()});
        CHECK(apart.verdict.cause == scenario.cause);
        CHECK(CulpritRanks(apart.verdict) == std::set<int>{kCulprit});
        CHECK(JudgeText(job.Interleaved()).verdict.cause == scenario.cause);
      }
}

TEST_CASE("property: a log cut anywhere is read to where it ends", "[property]") {
  std::mt19937 random(20310405);
  for (const Scenario& scenario : Scenarios()) {
    const std::string text = Play(scenario).Interleaved();
    for (int round = 0; round < 40; ++round) {
      const std::size_t cut = random() % text.size();
      CAPTURE(scenario.name, cut);
      const Judged judged = JudgeText(std::string_view(text).substr(0, cut));
      const InputSummary& input = judged.timeline.inputs.at(0);
      CHECK(input.bytes == cut);
      CHECK(input.claimed + input.plain + input.damaged == cut);
      CHECK_FALSE(judged.verdict.cause.empty());
      for (const Citation& citation : judged.verdict.evidence) CHECK(citation.where.line <= input.lines + 1);
    }
  }
}

TEST_CASE("property: lines in any order are read to their end", "[property]") {
  std::mt19937 random(20310405);
  for (std::size_t i = 0; i < Scenarios().size(); ++i) {
    std::vector<std::string> lines = Play(Scenarios()[i]).Lines();
    for (const std::string& line : Play(Scenarios()[(i + 1) % Scenarios().size()], {.ranks = 6, .hosts = 3}, 1).Lines())
      lines.push_back(line);
    for (int round = 0; round < 8; ++round) {
      std::shuffle(lines.begin(), lines.end(), random);
      const std::string text = Join(lines);
      const Judged judged = JudgeText(text);
      const InputSummary& input = judged.timeline.inputs.at(0);
      CHECK(input.claimed + input.plain + input.damaged == text.size());
      CHECK(input.lines == lines.size());
      CHECK(JsonOf(JudgeText(text)) == JsonOf(judged));
    }
  }
}

}  // namespace property_test
}  // namespace inquest
