// Runs the whole program over a job's logs, with the rules that are built in: bytes in, verdict out.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/analyze.h"
#include "tests/support/synth_job.h"

namespace inquest {

const RuleBook& BuiltInRules();
const Sieve& BuiltInSieve();

/// What was made of one text, as one input named `text`.
struct Judged {
  Timeline timeline;
  Verdict verdict;
};
Judged JudgeText(std::string_view text, const ScanOptions& options = {.threads = 1});

/// A folder of files that is gone when the test ends.
class JobFolder {
 public:
  explicit JobFolder(const std::vector<SynthFile>& files);
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;
  const std::string& path() const { return path_; }
  std::vector<std::string> Files() const;

 private:
  std::string path_;
  std::vector<std::string> names_;
};

/// Aborts the test where the paths cannot be read.
Analysis AnalyzePaths(const std::vector<std::string>& paths, const ScanOptions& options = {.threads = 1});

std::string JsonOf(const Timeline& timeline, const Verdict& verdict);
std::set<int> CulpritRanks(const Verdict& verdict);
/// The first finding of a rule; nullptr: it has none.
const Finding* FindFinding(const Verdict& verdict, std::string_view rule);

}  // namespace inquest
