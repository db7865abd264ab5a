// What a detector hands over becomes a finding by the file of it.
#include "rules/relation.h"

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace relation_test {

constexpr FindingRow kRows[] = {{"call-divergence", "whole-history", "number first-call"}};
using Found = FoundIn<kRows>;

/// A book with one finding.
RuleBook BookOf(const Grade& grade) {
  RuleBook book;
  FindingRule& rule = book.findings.emplace_back();
  rule.id = "call-divergence";
  rule.cause = "collective-mismatch";
  rule.retry = Retry::kNo;
  rule.grades = {grade};
  return book;
}

Grade WholeHistory() {
  Grade grade;
  grade.name = "whole-history";
  grade.strength = Strength::kSupporting;
  grade.confidence = 0.6;
  grade.claim = "Call {number} was {first-call}: {why}.";
  grade.why = "it made call {number}";
  grade.explains = {"remote-error"};
  grade.remedies.resize(2);
  grade.remedies[0].remedy.text = "Look at {number}.";
  grade.remedies[0].remedy.command = "grep {path}";
  grade.remedies[1].remedy.text = "Only then.";
  grade.remedies[1].when = "first-call";
  grade.collect = {"log {number}"};
  return grade;
}

TEST_CASE("a relation is told with the words of its file", "[rules]") {
  Found found({"call-divergence", "whole-history"});
  found.Say("number", "{7}");  // a log's text is no word of ours
  found.culprits.resize(2);
  found.culprits[1].why = "its own";
  found.times = 3;
  const Finding finding = Tell(BookOf(WholeHistory()), found);
  CHECK(finding.rule == "call-divergence");
  CHECK(finding.cause == "collective-mismatch");
  CHECK(finding.strength == Strength::kSupporting);
  CHECK(finding.confidence == 0.6);
  CHECK(finding.claim == "Call {7} was : it made call {7}.");
  CHECK(finding.explains == std::vector<std::string>{"remote-error"});
  REQUIRE(finding.remedies.size() == 1);
  CHECK(finding.remedies[0].text == "Look at {7}.");
  CHECK(finding.remedies[0].command == "grep {path}");  // filled when all is known
  CHECK(finding.collect == std::vector<std::string>{"log {7}"});
  CHECK(finding.culprits[0].why == "it made call {7}");
  CHECK(finding.culprits[1].why == "its own");
  CHECK(finding.retry == Retry::kNo);
  CHECK(finding.times == 3);
  found.Say("first-call", "AllReduce");
  CHECK(Tell(BookOf(WholeHistory()), found).remedies.size() == 2);
}

TEST_CASE("the cause is the folder's, the kind's or the catalogue's", "[rules]") {
  RuleBook book = BookOf(WholeHistory());
  Found found({"call-divergence", "whole-history"});
  found.cause = "gpu-fault";
  found.weight = RowWeight{Strength::kDecisive, 0.9};
  found.retry = Retry::kElsewhere;
  const Finding of_catalogue = Tell(book, found);
  CHECK(of_catalogue.cause == "gpu-fault");
  CHECK(of_catalogue.strength == Strength::kDecisive);
  CHECK(of_catalogue.confidence == 0.9);
  CHECK(of_catalogue.retry == Retry::kElsewhere);
  book.findings[0].cause.clear();
  book.findings[0].causes = {{"loading", "slow-rank"}, {"compile", "jit-build-stall"}};
  Found by_kind({"call-divergence", "whole-history"});
  by_kind.kind = "compile";
  CHECK(Tell(book, by_kind).cause == "jit-build-stall");
}

TEST_CASE("ranks in words", "[rules]") {
  CHECK(RanksInWords({3}) == "Rank 3");
  CHECK(RanksWithin({0, 1, 2, 5}) == "ranks 0-2, 5");
}

TEST_CASE("a finding of one's own replaces ours", "[rules]") {
  RuleBook book = BuiltInRules();
  for (FindingRule& rule : book.findings)
    if (rule.id == "call-divergence") rule.grades[0].confidence = 0.55;
  CHECK(GradeOf(book, "call-divergence", "whole-history").confidence == 0.55);
  CHECK(GradeOf(BuiltInRules(), "call-divergence", "whole-history").confidence == 0.9);
}

}  // namespace relation_test
}  // namespace inquest
