// Holds the two sides of nccl_warnings.txt: what NCCL warns of, and the rule that reads it or the reason why none does.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "parsers/scan.h"
#include "rules/evidence.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"
#include "timeline/builder.h"

using namespace inquest;

namespace {

struct Warning {
  std::string rule;  ///< empty: left out
  std::string line;
};

std::vector<Warning> Warnings() {
  std::ifstream file(INQUEST_SOURCE_DIR "/tests/rules/nccl_warnings.txt");
  REQUIRE(file);
  std::vector<Warning> warnings;
  std::string rule;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("[left out] ")) {
      rule.clear();
    } else if (line.starts_with("[rule] ")) {
      rule = line.substr(7);
    } else {
      warnings.push_back({rule, line.substr(line.find(' ') + 1)});
    }
  }
  return warnings;
}

}  // namespace

TEST_CASE("every warning of NCCL hits the rule that the table names, and no other cause", "[rules]") {
  const std::vector<Warning> warnings = Warnings();
  REQUIRE(warnings.size() > 1000);
  std::string log;
  for (const Warning& warning : warnings) log += warning.line + "\n";

  TimelineBuilder builder;
  ScanText(log, BuiltInSieve(), {.threads = 1}, builder);
  const Timeline timeline = builder.Build({});
  std::map<std::uint64_t, std::set<std::string>> causes, symptoms;  // by line
  for (const LineMatch& match : Gather(timeline, BuiltInRules()).matches) {
    const Rule& rule = BuiltInRules().rules[match.rule];
    auto& seen = rule.kind == Rule::Kind::kSignature ? causes : symptoms;
    seen[timeline.events[match.event].where.line].insert(rule.id);
  }

  for (std::uint64_t number = 1; number <= warnings.size(); ++number) {
    const Warning& warning = warnings[number - 1];
    CAPTURE(warning.line, warning.rule);
    std::set<std::string> expected;
    if (!warning.rule.empty() && !symptoms[number].contains(warning.rule)) expected.insert(warning.rule);
    CHECK(causes[number] == expected);
  }
}

TEST_CASE("a warning that is left out moves no verdict", "[rules]") {
  for (const Warning& warning : Warnings()) {
    if (!warning.rule.empty()) continue;
    CAPTURE(warning.line);
    CHECK(JudgeText(warning.line + "\n").verdict.findings.empty());
  }
}
