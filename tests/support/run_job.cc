// Runs the whole program over a job's logs.
#include "tests/support/run_job.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "parsers/formats.h"
#include "report/report.h"
#include "rules/sought.h"
#include "tests/catch.h"
#include "timeline/builder.h"

namespace inquest {

namespace fs = std::filesystem;

const RuleBook& BuiltInRules() {
  static const RuleBook kBook = Deserialize(EmbeddedRules());
  return kBook;
}

const Sieve& BuiltInSieve() {
  static const std::unique_ptr<Sieve> kSieve = [] {
    auto sieve = LoadSieve(EmbeddedSieve(), SoughtBy(BuiltInRules(), Marks().marks));
    REQUIRE(sieve);
    return std::move(*sieve);
  }();
  return *kSieve;
}

Judged JudgeText(std::string_view text, const ScanOptions& options) {
  TimelineBuilder builder;
  const InputRead read = ScanText(text, BuiltInSieve(), options, builder);
  Judged judged{.timeline = builder.Build({{.path = read.path,
                                            .bytes = read.tally.bytes,
                                            .lines = read.tally.lines,
                                            .claimed = read.tally.claimed,
                                            .plain = read.tally.plain,
                                            .damaged = read.tally.damaged,
                                            .kinds = read.kinds}}),
                .verdict = {}};
  judged.verdict = Decide(judged.timeline, BuiltInRules());
  return judged;
}

JobFolder::JobFolder(const std::vector<SynthFile>& files) {
  std::string path = (fs::temp_directory_path() / "inquest-test-XXXXXX").string();
  REQUIRE(::mkdtemp(path.data()) != nullptr);
  path_ = path;
  for (const SynthFile& file : files) {
    const fs::path whole = fs::path(path_) / file.name;
    fs::create_directories(whole.parent_path());
    std::ofstream(whole, std::ios::binary) << file.text;
    names_.push_back(file.name);
  }
}

JobFolder::~JobFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> JobFolder::Files() const {
  std::vector<std::string> out;
  for (const std::string& name : names_) out.push_back((fs::path(path_) / name).string());
  return out;
}

Analysis AnalyzePaths(const std::vector<std::string>& paths, const ScanOptions& options) {
  Result<Analysis> analysis = Analyze(paths, BuiltInRules(), BuiltInSieve(), options);
  REQUIRE(analysis);
  return std::move(*analysis);
}

std::string JsonOf(const Timeline& timeline, const Verdict& verdict) { return RenderJson(timeline, verdict, "test"); }

std::set<int> CulpritRanks(const Verdict& verdict) {
  std::set<int> ranks;
  for (const Culprit& culprit : verdict.culprits)
    if (culprit.rank) ranks.insert(culprit.rank->value);
  return ranks;
}

const Finding* FindFinding(const Verdict& verdict, std::string_view rule) {
  for (const Finding& finding : verdict.findings)
    if (finding.rule == rule) return &finding;
  return nullptr;
}

}  // namespace inquest
