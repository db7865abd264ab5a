// `inquest rules list|show|test|lint`.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/nearest.h"
#include "cli/rule_set.h"
#include "core/pattern.h"
#include "parsers/envelope.h"
#include "report/terminal.h"

namespace inquest {
namespace {

CommandResult List(const Options& options, const RuleBook& book) {
  if (!options.cause.empty() && book.FindCause(options.cause) == nullptr) {
    std::vector<std::string_view> codes;
    for (const Cause& cause : book.causes) codes.push_back(cause.code);
    const auto nearest = Nearest(options.cause, codes);
    return CouldNotRun({fmt::format("no cause is called '{}'", options.cause), nearest ? fmt::format("did you mean {}?", *nearest) : "inquest explain lists all causes", ""});
  }
  CommandResult result;
  for (const Rule& rule : book.rules) {
    if (!options.cause.empty() && rule.cause != options.cause) continue;
    const bool signature = rule.kind == Rule::Kind::kSignature;
    result.out += fmt::format("{:<34} {:<20} {:<10} {}\n", rule.id, signature ? std::string_view(rule.cause) : KindWord(rule.kind), signature ? Name(rule.strength) : "", rule.summary);
  }
  return result;
}

CommandResult Show(const Options& options, const RuleBook& book) {
  if (options.arguments.size() != 2) return CouldNotRun({"rules show wants one id", "inquest rules list shows them", ""});
  const std::string& id = options.arguments[1];
  if (const Rule* rule = book.FindRule(id)) return {.status = 0, .out = Describe(*rule, book), .err = ""};
  std::vector<std::string_view> ids;
  for (const Rule& rule : book.rules) ids.push_back(rule.id);
  const auto nearest = Nearest(id, ids);
  return CouldNotRun({fmt::format("no rule is called '{}'", id), nearest ? fmt::format("did you mean {}?", *nearest) : "inquest rules list shows all ids", ""});
}

enum class Wanted { kMatch, kDiffer };

std::string TestSamples(const Rule& rule, const std::vector<std::string>& samples, Wanted wanted) {
  const Result<Pattern> pattern = Pattern::Compile(rule.text);
  INQUEST_CHECK(pattern.has_value());  // the loader compiled it
  std::string failures;
  for (const std::string& sample : samples) {
    std::string scratch;
    if (pattern->Matches(Peel(sample, scratch).text) == (wanted == Wanted::kMatch)) continue;
    failures += fmt::format("{}: {} '{}'\n", rule.file, wanted == Wanted::kMatch ? "does not match" : "must not match", Sanitize(sample));
  }
  return failures;
}

CommandResult Test(const RuleBook& book) {
  CommandResult result;
  std::size_t samples = 0;
  for (const Rule& rule : book.rules) {
    samples += rule.match.size() + rule.differ.size();
    result.out += TestSamples(rule, rule.match, Wanted::kMatch) + TestSamples(rule, rule.differ, Wanted::kDiffer);
  }
  const auto failed = std::ranges::count(result.out, '\n');
  result.status = failed > 0 ? 1 : 0;
  result.out += fmt::format("{} rules, {} samples, {} failed\n", book.rules.size(), samples, failed);
  return result;
}

CommandResult Lint(const std::variant<RuleBook, RuleErrors>& loaded) {
  if (const RuleErrors* errors = std::get_if<RuleErrors>(&loaded)) {
    return {.status = 1, .out = RuleErrorText(*errors) + fmt::format("{} mistake{}\n", errors->size(), errors->size() == 1 ? "" : "s"), .err = ""};
  }
  const RuleBook& book = std::get<RuleBook>(loaded);
  return {.status = 0, .out = fmt::format("{} rules, {} causes, no mistake\n", book.rules.size(), book.causes.size()), .err = ""};
}

}  // namespace

CommandResult RunRules(const Options& options) {
  const std::string word = options.arguments.empty() ? "" : options.arguments[0];
  const auto words = options.command->words;
  if (std::ranges::find(words, word) == words.end()) {
    return CouldNotRun({word.empty() ? "rules wants a word" : fmt::format("rules knows no '{}'", word), fmt::format("one of {}", fmt::join(words, ", ")), ""});
  }
  if (word != "show" && options.arguments.size() > 1) return CouldNotRun({fmt::format("rules {} takes no '{}'", word, options.arguments[1]), "a folder is given by --rules DIR", ""});
  const std::variant<RuleBook, RuleErrors> loaded = LoadRuleSet(options);
  if (word == "lint") return Lint(loaded);
  if (const RuleErrors* errors = std::get_if<RuleErrors>(&loaded)) return BadRules(*errors);
  const RuleBook& book = std::get<RuleBook>(loaded);
  if (word == "list") return List(options, book);
  return word == "show" ? Show(options, book) : Test(book);
}

}  // namespace inquest
