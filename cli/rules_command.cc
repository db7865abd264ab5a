// `inquest rules list|show|test|lint`.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/nearest.h"
#include "cli/rule_samples.h"
#include "cli/rule_set.h"
#include "report/terminal.h"

namespace inquest {
namespace {

CommandResult List(const Options& options, const RuleBook& book) {
  if (!options.rules_cause.empty() && book.FindCause(options.rules_cause) == nullptr) {
    std::vector<std::string_view> codes;
    for (const Cause& cause : book.causes) codes.push_back(cause.code);
    const auto nearest = Nearest(options.rules_cause, codes);
    return CouldNotRun({fmt::format("no cause is called '{}'", options.rules_cause),
                        nearest ? fmt::format("did you mean {}?", *nearest) : "inquest explain lists all causes", ""});
  }
  CommandResult result;
  for (const Rule& rule : book.rules) {
    if (!options.rules_cause.empty() && rule.cause != options.rules_cause) continue;
    const bool signature = rule.kind == Rule::Kind::kSignature;
    result.out += fmt::format("{:<34} {:<20} {:<10} {}\n", rule.id,
                              signature ? std::string_view(rule.cause) : KindWord(rule.kind),
                              signature ? Name(rule.strength) : "", rule.summary);
  }
  for (const FindingRule& rule : book.findings) {
    const bool of_cause =
        options.rules_cause.empty() || rule.cause == options.rules_cause ||
        std::ranges::find(rule.causes, options.rules_cause, &FindingRule::KindCause::cause) != rule.causes.end();
    if (of_cause)
      result.out +=
          fmt::format("{:<34} {:<20} {:<10} {}\n", rule.id, CauseWord(rule), Name(Strongest(rule)), rule.summary);
  }
  return result;
}

CommandResult Show(const Options& options, const RuleBook& book) {
  if (options.arguments.size() != 2)
    return CouldNotRun({"rules show wants one id", "inquest rules list shows them", ""});
  const std::string& id = options.arguments[1];
  if (const Rule* rule = book.FindRule(id)) return {.status = 0, .out = Describe(*rule, book), .err = ""};
  if (const FindingRule* rule = book.FindFinding(id)) return {.status = 0, .out = Describe(*rule), .err = ""};
  std::vector<std::string_view> ids;
  for (const Rule& rule : book.rules) ids.push_back(rule.id);
  for (const FindingRule& rule : book.findings) ids.push_back(rule.id);
  const auto nearest = Nearest(id, ids);
  return CouldNotRun({fmt::format("no rule is called '{}'", id),
                      nearest ? fmt::format("did you mean {}?", *nearest) : "inquest rules list shows all ids", ""});
}

CommandResult Test(const Options& options, const RuleBook& book) {
  const Result<std::unique_ptr<Sieve>> sieve = LoadSieveFor(options.analysis.rules_dir, book);
  if (!sieve) return CouldNotRun(sieve.error());
  CommandResult result;
  std::size_t samples = 0, failed = 0;
  const auto try_all = [&](std::uint32_t rule, const std::vector<std::string>& lines, bool wanted,
                           std::string_view complaint) {
    for (const std::string& line : lines) {
      ++samples;
      const auto why = WhySampleFails(line, wanted, rule, book, **sieve);
      if (!why) continue;
      ++failed;
      result.out +=
          fmt::format("{}: {}: '{}'\n  {}\n", book.rules[rule].file, complaint, Sanitize(line), Sanitize(*why));
    }
  };
  for (std::uint32_t rule = 0; rule < book.rules.size(); ++rule) {
    try_all(rule, book.rules[rule].match, true, "does not match");
    try_all(rule, book.rules[rule].differ, false, "must not match");
  }
  result.status = failed > 0 ? 1 : 0;
  result.out += fmt::format("{} rules, {} samples, {} failed\n", book.rules.size(), samples, failed);
  return result;
}

CommandResult Lint(const Options& options, const std::variant<RuleBook, RuleErrors>& loaded) {
  if (const RuleErrors* errors = std::get_if<RuleErrors>(&loaded)) {
    return {
        .status = 1,
        .out = RuleErrorText(*errors) + fmt::format("{} mistake{}\n", errors->size(), errors->size() == 1 ? "" : "s"),
        .err = ""};
  }
  const RuleBook& book = std::get<RuleBook>(loaded);
  CommandResult result;
  for (const Covered& covered : CoveredRules(book, options.analysis.rules_dir))
    result.out += Sanitize(fmt::format("{}: note: {} reads all of its samples, for the same cause ({})",
                                       covered.rule->file, covered.by->id, covered.by->file)) +
                  "\n";
  result.out += fmt::format("{} rules, {} findings, {} causes, no mistake\n", book.rules.size(), book.findings.size(),
                            book.causes.size());
  return result;
}

}  // namespace

CommandResult RunRules(const Options& options) {
  const std::string word = options.arguments.empty() ? "" : options.arguments[0];
  const auto words = options.command->words;
  if (std::ranges::find(words, word) == words.end()) {
    return CouldNotRun({word.empty() ? "rules wants a word" : fmt::format("rules knows no '{}'", word),
                        fmt::format("one of {}", fmt::join(words, ", ")), ""});
  }
  if (word != "show" && options.arguments.size() > 1)
    return CouldNotRun(
        {fmt::format("rules {} takes no '{}'", word, options.arguments[1]), "a folder is given by --rules DIR", ""});
  const std::variant<RuleBook, RuleErrors> loaded = LoadRuleSet(options.analysis.rules_dir, Samples::kRead);
  if (word == "lint") return Lint(options, loaded);
  if (const RuleErrors* errors = std::get_if<RuleErrors>(&loaded)) return BadRules(*errors);
  const RuleBook& book = std::get<RuleBook>(loaded);
  if (word == "list") return List(options, book);
  return word == "show" ? Show(options, book) : Test(options, book);
}

}  // namespace inquest
