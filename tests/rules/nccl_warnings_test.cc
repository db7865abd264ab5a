// Holds the two sides of nccl_warnings.txt: what NCCL warns of, and the rule that reads it or the reason why none does.
// nccl_information.txt is the look-alike: what healthy jobs print in the words of a failure.
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "parsers/scan.h"
#include "rules/evidence.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"
#include "timeline/builder.h"

using namespace inquest;

namespace nccl_warnings_test {

struct Warning {
  std::string rule;  ///< empty: left out
  std::string line;
};

std::vector<Warning> ReadTable(const std::string& name) {
  std::ifstream file(INQUEST_SOURCE_DIR "/tests/rules/" + name);
  REQUIRE(file);
  std::vector<Warning> warnings;
  std::string rule;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("[left out] ") || line == "[no rule]") {
      rule.clear();
    } else if (line.starts_with("[rule] ")) {
      rule = line.substr(7);
    } else {
      warnings.push_back({rule, line.substr(line.find(' ') + 1)});
    }
  }
  return warnings;
}

std::vector<Warning> Warnings() { return ReadTable("nccl_warnings.txt"); }

TEST_CASE("every warning of NCCL hits the rule that the table names, and no other cause", "[rules]") {
  const std::vector<Warning> warnings = Warnings();
  REQUIRE(warnings.size() > 1000);
  for (const Warning& warning : warnings) {
    CAPTURE(warning.line, warning.rule);
    // One log a line: of many lines that hit one rule the scanner keeps some.
    TimelineBuilder builder;
    ScanText(warning.line + "\n", BuiltInSieve(), {.threads = 1}, builder);
    InputSummary input;
    input.lines = 1;
    const Timeline timeline = builder.Build({input});
    std::set<std::string> causes, symptoms;
    for (const LineMatch& match : Gather(timeline, BuiltInRules()).matches) {
      const Rule& rule = BuiltInRules().rules[match.rule];
      (rule.kind == Rule::Kind::kSignature ? causes : symptoms).insert(rule.id);
    }
    std::set<std::string> expected;
    if (!warning.rule.empty() && !symptoms.contains(warning.rule)) expected.insert(warning.rule);
    CHECK(causes == expected);
  }
}

TEST_CASE("a warning that is left out moves no verdict", "[rules]") {
  for (const Warning& warning : Warnings()) {
    if (!warning.rule.empty()) continue;
    CAPTURE(warning.line);
    CHECK(JudgeText(warning.line + "\n").verdict.findings.empty());
  }
}

TEST_CASE("an information of NCCL that sounds like a failure is no cause", "[rules]") {
  const std::vector<Warning> lines = ReadTable("nccl_information.txt");
  REQUIRE(lines.size() > 300);
  for (const Warning& info : lines) {
    CAPTURE(info.line);
    const Verdict verdict = JudgeText("node02:211:239 [3] NCCL INFO " + info.line + "\n").verdict;
    std::set<std::string> causes;
    for (const Finding& finding : verdict.findings)
      if (!finding.cause.empty() && finding.strength != Strength::kHint) causes.insert(finding.rule);
    CHECK(causes == (info.rule.empty() ? std::set<std::string>{} : std::set<std::string>{info.rule}));
  }
}

}  // namespace nccl_warnings_test
