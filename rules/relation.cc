// Turns what a detector found into a finding, by the file of it under rules/findings/.
#include "rules/relation.h"

#include <fmt/format.h>

#include "core/result.h"

namespace inquest {
namespace {

std::string_view ValueOf(const Relation& relation, std::string_view word) {
  for (const auto& [name, value] : relation.words)
    if (name == word) return value;
  return {};
}

/// Puts the words into a text of the rules.
std::string Fill(const std::string& text, const Relation& relation, const std::string& why) {
  std::string out;
  for (const TextPart& part : PartsOf(text))
    out += !part.word ? part.text : part.text == kWhyWord ? std::string_view(why) : ValueOf(relation, part.text);
  return out;
}

std::string CauseOf(const FindingRule& rule, const Relation& relation) {
  if (!relation.cause.empty()) return relation.cause;
  if (rule.causes.empty()) return rule.cause;
  const auto found = std::find_if(rule.causes.begin(), rule.causes.end(),
                                  [&](const FindingRule::KindCause& row) { return row.kind == relation.kind; });
  return found == rule.causes.end() ? rule.causes.front().cause : found->cause;
}

}  // namespace

std::vector<std::string_view> NamesIn(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    names.push_back(list.substr(0, list.find(' ')));
    list.remove_prefix(std::min(names.back().size() + 1, list.size()));
  }
  return names;
}

const Grade& GradeOf(const RuleBook& book, std::string_view id, std::string_view name) {
  const FindingRule* rule = book.FindFinding(id);
  INQUEST_CHECK(rule != nullptr);
  const auto grade =
      std::find_if(rule->grades.begin(), rule->grades.end(), [&](const Grade& row) { return row.name == name; });
  INQUEST_CHECK(grade != rule->grades.end());
  return *grade;
}

Finding Tell(const RuleBook& book, Relation relation) {
  const Grade* grade = &GradeOf(book, relation.id, relation.grade);
  const FindingRule* rule = book.FindFinding(relation.id);
  const std::string why = Fill(grade->why, relation, "");
  Finding finding;
  finding.rule = rule->id;
  finding.cause = CauseOf(*rule, relation);
  finding.strength = relation.weight ? relation.weight->strength : grade->strength;
  finding.confidence = relation.weight ? relation.weight->confidence : grade->confidence;
  finding.claim = Fill(grade->claim, relation, why);
  finding.explains = grade->explains;
  for (const Advice& advice : grade->remedies)
    if (advice.when.empty() || !ValueOf(relation, advice.when).empty()) {
      finding.remedies.push_back(advice.remedy);
      finding.remedies.back().text = Fill(advice.remedy.text, relation, why);
    }
  for (const std::string& item : grade->collect) finding.collect.push_back(Fill(item, relation, why));
  finding.retry = relation.retry == Retry::kUnsaid ? rule->retry : relation.retry;
  finding.culprits = std::move(relation.culprits);
  for (Culprit& culprit : finding.culprits)
    if (culprit.why.empty()) culprit.why = why;
  finding.citations = std::move(relation.citations);
  finding.collective = std::move(relation.collective);
  finding.times = relation.times;
  finding.explained_by = std::move(relation.explained_by);
  return finding;
}

std::string RanksInWords(const RankSet& ranks) {
  return fmt::format("Rank{} {}", PluralS(ranks.size()), FoldRanks(ranks));
}
std::string RanksWithin(const RankSet& ranks) {
  return fmt::format("rank{} {}", PluralS(ranks.size()), FoldRanks(ranks));
}
std::string RanksInWords(const std::vector<int>& ranks) { return RanksInWords(RankSet::Of(ranks)); }
std::string RanksWithin(const std::vector<int>& ranks) { return RanksWithin(RankSet::Of(ranks)); }

}  // namespace inquest
