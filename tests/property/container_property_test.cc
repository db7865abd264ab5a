// A log that a container runtime cut into chunks says what the log says that it did not cut, line for line.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/catch.h"
#include "tests/property/scenarios.h"
#include "tests/support/container.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace container_property_test {

namespace fs = std::filesystem;

/// The verdict, its evidence by line; `lines`: of the text that the lines of this one are.
std::string Told(const Judged& judged, const std::vector<std::uint64_t>* lines) {
  const Verdict& verdict = judged.verdict;
  std::string out = fmt::format("{} {:.2f} {}\n", verdict.cause, verdict.confidence, verdict.summary);
  for (const Culprit& culprit : verdict.culprits)
    out += fmt::format("rank {} {}\n", culprit.rank ? culprit.rank->value : -1, culprit.why);
  for (const Citation& citation : verdict.evidence)
    out += fmt::format("{}: {}\n", lines != nullptr ? lines->at(citation.where.line - 1) : citation.where.InputLine(),
                       citation.text);
  for (const Finding& finding : verdict.findings) out += fmt::format("{} x{}\n", finding.rule, finding.times);
  return out;
}

void CheckCut(const std::vector<std::string>& lines, Runtime runtime, std::size_t chunk, std::mt19937& random) {
  const Wrapped wrapped = Wrap(lines, runtime, chunk, random);
  const Judged cut = JudgeText(wrapped.cut), whole = JudgeText(wrapped.whole);
  CHECK(Told(cut, nullptr) == Told(whole, &wrapped.lines));
  const InputSummary& input = cut.timeline.inputs.at(0);
  CHECK(input.claimed + input.plain + input.damaged == wrapped.cut.size());
  CHECK(input.damaged == whole.timeline.inputs.at(0).damaged);
  CHECK(input.lines == static_cast<std::uint64_t>(std::count(wrapped.cut.begin(), wrapped.cut.end(), '\n')));
}

TEST_CASE("property: chunks of a container runtime change no report", "[property]") {
  std::mt19937 random(20310405);
  for (const Scenario& scenario : Scenarios()) {
    SynthJob job({.ranks = 8, .hosts = 2});
    scenario.play(job, 5);
    std::vector<std::string> lines = job.Lines();
    for (const std::size_t chunk : {std::size_t{8192}, std::size_t{97}, std::size_t{13}}) {
      CAPTURE(scenario.name, chunk);
      CheckCut(lines, Runtime::kCri, chunk, random);
    }
    for (std::string& line : lines)
      if (random() % 4 == 0) line.insert(line.size() / 2, ' ' + std::string(random() % 40'000, 'x') + ' ');
    CAPTURE(scenario.name);
    CheckCut(lines, Runtime::kCri, kDockerChunk, random);
    CheckCut(lines, Runtime::kDocker, kDockerChunk, random);
  }
}

TEST_CASE("property: the corpus in chunks is read as the corpus", "[property]") {
  for (const auto& entry : fs::recursive_directory_iterator(INQUEST_SOURCE_DIR "/corpus")) {
    if (entry.path().extension() != ".log") continue;
    // Of each case its own: another case, and the order of a folder, change none of them.
    const std::string name = fs::relative(entry.path(), INQUEST_SOURCE_DIR "/corpus").string();
    std::seed_seq seed(name.begin(), name.end());
    std::mt19937 random(seed);
    std::ifstream file(entry.path());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    CAPTURE(entry.path().string());
    CheckCut(lines, Runtime::kCri, 50, random);
    CheckCut(lines, Runtime::kDocker, kDockerChunk, random);
  }
}

TEST_CASE("property: chunks over any blocks and threads give the same report, to the byte", "[property]") {
  std::mt19937 random(20310405);
  for (const Scenario& scenario : Scenarios()) {
    SynthJob job({.ranks = 8, .hosts = 2});
    for (int rank = 0; rank < 8; ++rank) job.Chatter(rank, 1600);
    scenario.play(job, 5);
    const std::string text = Wrap(job.Lines(), Runtime::kCri, 60, random).cut;
    REQUIRE(text.size() > 2 * kLineCap);
    const Judged one = JudgeText(text, {.threads = 1, .block_bytes = 8 * kLineCap});
    const std::string json = JsonOf(one.timeline, one.verdict);
    for (const std::size_t block : {kLineCap, kLineCap + 1000, 2 * kLineCap})
      for (const unsigned threads : {1u, 3u}) {
        CAPTURE(scenario.name, block, threads);
        const Judged other = JudgeText(text, {.threads = threads, .block_bytes = block});
        CHECK(JsonOf(other.timeline, other.verdict) == json);
      }
  }
}

TEST_CASE("property: chunks cut anywhere are read to where they end", "[property]") {
  std::mt19937 random(20310405);
  for (const Runtime runtime : {Runtime::kCri, Runtime::kDocker}) {
    SynthJob job({.ranks = 8, .hosts = 2});
    Scenarios()[0].play(job, 5);
    const std::string text = Wrap(job.Lines(), runtime, runtime == Runtime::kCri ? 40 : kDockerChunk, random).cut;
    for (int round = 0; round < 200; ++round) {
      const std::size_t size = random() % text.size();
      CAPTURE(static_cast<int>(runtime), size);
      const Judged judged = JudgeText(std::string_view(text).substr(0, size));
      const InputSummary& input = judged.timeline.inputs.at(0);
      CHECK(input.bytes == size);
      CHECK(input.claimed + input.plain + input.damaged == size);
    }
  }
}

}  // namespace container_property_test
}  // namespace inquest
