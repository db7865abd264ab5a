// Every sample of every rule: by its expression, by the sieve, and through the whole pipeline.
#include <algorithm>
#include <map>
#include <set>

#include "core/pattern.h"
#include "parsers/envelope.h"
#include "parsers/formats.h"
#include "parsers/scan.h"
#include "rules/evidence.h"
#include "rules/rule_book.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"
#include "timeline/builder.h"

using namespace inquest;

namespace rules_samples_test {

/// Rules that the whole pipeline confirms on a log of this one line.
std::set<std::string> ConfirmedOn(const std::string& line) {
  TimelineBuilder builder;
  ScanText(line + "\n", BuiltInSieve(), {.threads = 1}, builder);
  InputSummary input;
  input.lines = 1;
  const Timeline timeline = builder.Build({input});
  std::set<std::string> ids;
  for (const LineMatch& match : Gather(timeline, BuiltInRules()).matches)
    ids.insert(BuiltInRules().rules[match.rule].id);
  return ids;
}

bool IsNone(const Pattern& pattern, const Pattern::Match& match) {
  const auto& names = pattern.group_names();
  for (std::size_t group = 0; group < names.size(); ++group)
    if (names[group] == "none" && match.has(group)) return true;
  return false;
}

TEST_CASE("samples match their expression after the envelope is peeled, the others do not", "[rules]") {
  for (const Rule& rule : BuiltInRules().rules) {
    CAPTURE(rule.file);
    const Result<Pattern> pattern = Pattern::Compile(rule.text);
    REQUIRE(pattern);
    std::string scratch;
    for (const std::string& sample : rule.match) {
      CAPTURE(sample);
      CHECK(pattern->Matches(Peel(sample, scratch).text));
    }
    // A line of another component may match the words: the pipeline below knows the component.
    if (rule.component != Component::kAny) continue;
    // Counters that are not at their end fit the words; the pipeline compares them.
    if (std::ranges::find(pattern->group_names(), "at") != pattern->group_names().end()) continue;
    for (const std::string& sample : rule.differ) {
      CAPTURE(sample);
      // In which the group `none` took part is no match.
      const auto match = pattern->Search(Peel(sample, scratch).text);
      CHECK((!match || IsNone(*pattern, *match)));
    }
  }
}

TEST_CASE("the sieve reports every rule on its own samples", "[rules]") {
  const auto scanner = BuiltInSieve().MakeScanner();
  for (std::uint32_t number = 0; number < BuiltInRules().rules.size(); ++number) {
    const Rule& rule = BuiltInRules().rules[number];
    // Looked for only in a writer's last lines: sieved, they would let half the log through.
    if (!rule.scope.empty() || rule.at == Activity::kTraining) continue;
    CAPTURE(rule.file);
    for (const std::string& sample : rule.match) {
      CAPTURE(sample);
      std::vector<Sieve::Hit> hits;
      scanner->Scan(sample + "\n", hits);
      CHECK(std::any_of(hits.begin(), hits.end(), [&](const Sieve::Hit& hit) { return hit.id == number; }));
    }
  }
}

TEST_CASE("the pipeline confirms samples, and only those", "[rules]") {
  for (const Rule& rule : BuiltInRules().rules) {
    CAPTURE(rule.file);
    for (const std::string& sample : rule.match) {
      CAPTURE(sample);
      CHECK(ConfirmedOn(sample).contains(rule.id));
    }
    for (const std::string& sample : rule.differ) {
      CAPTURE(sample);
      CHECK_FALSE(ConfirmedOn(sample).contains(rule.id));
    }
  }
}

}  // namespace rules_samples_test
