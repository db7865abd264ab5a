// `inquest explain CODE`: what a cause means, what to do, what to collect, and which rules speak for it. `explain xid
// N`, `explain sxid N` and `explain N`: what a numbered error of the NVIDIA driver means.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cli/commands.h"
#include "cli/describe.h"
#include "cli/nearest.h"
#include "cli/rule_set.h"

namespace inquest {
namespace {

CommandResult Everything(const RuleBook& book) {
  CommandResult result;
  for (const Cause& cause : book.causes)
    result.out += fmt::format("{:<22} {:<8} {}\n", cause.code, Name(cause.layer), cause.title);
  return result;
}

/// `xid` and `sxid` stand before a number; alone they list the catalogue.
struct Catalogue {
  std::string_view word, name;
  const std::vector<ErrorCode>* codes;
};

CommandResult Everything(const Catalogue& catalogue) {
  CommandResult result;
  for (const ErrorCode& code : *catalogue.codes)
    result.out += fmt::format("{:<6} {:<12} {:<20} {}\n", code.number, Name(code.origin), code.cause, code.meaning);
  return result;
}

CommandResult Numbered(const Catalogue& catalogue, const std::string& argument, const RuleBook& book) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), number);
  const bool whole = error == std::errc() && end == argument.data() + argument.size();
  const auto found = std::find_if(catalogue.codes->begin(), catalogue.codes->end(),
                                  [&](const ErrorCode& code) { return code.number == number; });
  if (!whole || found == catalogue.codes->end())
    return CouldNotRun({fmt::format("{} '{}' is not in the catalogue", catalogue.name, argument),
                        fmt::format("inquest explain {} lists all", catalogue.word), ""});
  CommandResult result;
  result.out = Describe(catalogue.name, *found, book);
  return result;
}

bool IsNumber(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

CommandResult Unknown(const RuleBook& book, const std::string& name) {
  std::vector<std::string_view> known;
  for (const Cause& cause : book.causes) known.push_back(cause.code);
  for (const Rule& rule : book.rules) known.push_back(rule.id);
  for (const FindingRule& rule : book.findings) known.push_back(rule.id);
  const auto nearest = Nearest(name, known);
  return CouldNotRun({fmt::format("no cause and no rule is called '{}'", name),
                      nearest ? fmt::format("did you mean {}?", *nearest) : "inquest explain lists all causes", ""});
}

}  // namespace

CommandResult RunExplain(const Options& options) {
  const std::variant<RuleBook, RuleErrors> loaded = LoadRuleSet(options.analysis.rules_dir, Samples::kRead);
  if (const RuleErrors* errors = std::get_if<RuleErrors>(&loaded)) return BadRules(*errors);
  const RuleBook& book = std::get<RuleBook>(loaded);
  if (options.arguments.empty()) return Everything(book);
  const Catalogue catalogues[] = {{"xid", "Xid", &book.xids}, {"sxid", "SXid", &book.sxids}};
  CommandResult result;
  for (auto argument = options.arguments.begin(); argument != options.arguments.end(); ++argument) {
    if (!result.out.empty()) result.out += '\n';
    const std::string& name = *argument;
    const auto catalogue = std::find_if(std::begin(catalogues), std::end(catalogues),
                                        [&](const Catalogue& row) { return row.word == name; });
    if (catalogue != std::end(catalogues)) {
      const bool all = argument + 1 == options.arguments.end();
      CommandResult codes = all ? Everything(*catalogue) : Numbered(*catalogue, *++argument, book);
      if (!codes.err.empty()) return codes;
      result.out += codes.out;
    } else if (IsNumber(name)) {
      // The numbers of a GPU's errors end where those of a switch begin.
      constexpr std::size_t kLongestXid = 4;
      CommandResult code = Numbered(catalogues[name.size() > kLongestXid ? 1 : 0], name, book);
      if (!code.err.empty()) return code;
      result.out += code.out;
    } else if (const Cause* cause = book.FindCause(name)) {
      result.out += Describe(*cause, book);
    } else if (const Rule* rule = book.FindRule(name)) {
      result.out += Describe(*rule, book);
    } else if (const FindingRule* finding = book.FindFinding(name)) {
      result.out += Describe(*finding);
    } else {
      return Unknown(book, name);
    }
  }
  return result;
}

}  // namespace inquest
