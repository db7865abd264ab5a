// Samples of rules, sent through the whole program: whether they match as they should, why not, and which rule is
// covered.
#include "cli/rule_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/expression.h"
#include "core/pattern.h"
#include "parsers/envelope.h"
#include "parsers/scan.h"
#include "rules/evidence.h"
#include "timeline/builder.h"

namespace inquest {
namespace {

using Kind = ExpressionPiece::Kind;

/// A log of this one line.
Timeline TimelineOf(const std::string& line, const Sieve& sieve) {
  TimelineBuilder builder;
  ScanText(line + "\n", sieve, {.threads = 1}, builder);
  InputSummary input;
  input.lines = 1;
  return builder.Build({input});
}

/// The longest beginning of the expression, cut between its outermost parts, that is found in the text; nullopt: not
/// even the first part is, or it has alternatives at its top.
std::optional<std::size_t> LongestFound(std::string_view expression, std::string_view text) {
  const auto pieces = PiecesOf(expression);
  if (!pieces) return std::nullopt;
  std::vector<std::size_t> cuts;
  int depth = 0;
  std::size_t size = 0;
  for (std::size_t i = 0; i < pieces->size(); ++i) {
    const ExpressionPiece& piece = (*pieces)[i];
    if (piece.Is(Kind::kBar) && depth == 0) return std::nullopt;
    if (piece.Is(Kind::kGroupBegin) || piece.Is(Kind::kClassBegin)) ++depth;
    if (piece.Is(Kind::kGroupEnd) || piece.Is(Kind::kClassEnd)) --depth;
    size += piece.text.size();
    const bool repeated = i + 1 < pieces->size() && (*pieces)[i + 1].Is(Kind::kTimes);
    if (depth == 0 && !repeated) cuts.push_back(size);
  }
  std::optional<std::size_t> longest;
  for (const std::size_t cut : cuts) {
    const auto pattern = Pattern::Compile(expression.substr(0, cut));
    if (!pattern || !pattern->Matches(text)) break;
    longest = cut;
  }
  return longest;
}

std::string WhyNotFound(const std::string& expression, std::string_view text) {
  const auto found = LongestFound(expression, text);
  if (!found) return "not even the beginning of its expression is in the line";
  return fmt::format("the line has '{}', but not '{}' behind it", expression.substr(0, *found),
                     expression.substr(*found));
}

/// What became of the line instead of a message that the rule reads.
std::string WhyNotTaken(const Rule& rule, const Timeline& timeline) {
  std::vector<std::string_view> kinds;
  for (const Event& event : timeline.events) {
    if (const auto* message = std::get_if<LogMessage>(&event.what)) {
      if (rule.component != Component::kAny && message->component != rule.component)
        return fmt::format("the rule is for component {}, the line is of {}", Name(rule.component),
                           message->component == Component::kAny ? "none" : Name(message->component));
      const std::string& left = message->text.empty() ? event.text : message->text;
      if (const auto pattern = Pattern::Compile(rule.text); pattern && !pattern->Matches(left))
        return fmt::format("without what stands in front of it the line is '{}'", left);
      continue;
    }
    kinds.push_back(KindOf(event.what));
  }
  if (!kinds.empty()) return fmt::format("a format reads the line as {}", fmt::join(kinds, ", "));
  return "the line does not reach the rules: no format and no other rule keeps it";
}

bool Fits(const Rule& rule, Component component) {
  return rule.component == Component::kAny || rule.component == component;
}

}  // namespace

std::optional<std::string> WhySampleFails(const std::string& line, bool must_match, std::uint32_t rule,
                                          const RuleBook& book, const Sieve& sieve) {
  const Timeline timeline = TimelineOf(line, sieve);
  const Evidence evidence = Gather(timeline, book);
  const auto match = std::ranges::find(evidence.matches, rule, &LineMatch::rule);
  if ((match != evidence.matches.end()) == must_match) return std::nullopt;
  const Rule& asked = book.rules[rule];
  const auto pattern = Pattern::Compile(asked.text);
  if (!pattern) return pattern.error().message;
  std::string scratch;
  const std::string_view peeled = Peel(line, scratch).text;
  if (must_match)
    return pattern->Matches(line) || pattern->Matches(peeled) ? WhyNotTaken(asked, timeline)
                                                              : WhyNotFound(asked.text, peeled);
  const auto found = pattern->Search(line);
  return found ? fmt::format("it holds '{}'", found->text(0)) : "without what stands in front of it, it does";
}

std::vector<Covered> CoveredRules(const RuleBook& book, const std::string& folder) {
  std::map<std::string_view, std::vector<std::pair<const Rule*, Pattern>>> by_cause;
  for (const Rule& rule : book.rules) {
    if (rule.kind != Rule::Kind::kSignature) continue;
    if (auto pattern = Pattern::Compile(rule.text)) by_cause[rule.cause].emplace_back(&rule, std::move(*pattern));
  }
  const auto reads_all = [](const Rule& reader, const Pattern& pattern, const Rule& rule) {
    std::string scratch;
    return Fits(reader, rule.component) && std::ranges::all_of(rule.match, [&](const std::string& sample) {
             return pattern.Matches(Peel(sample, scratch).text);
           });
  };
  std::vector<Covered> covered;
  for (const auto& [cause, rules] : by_cause) {
    for (const auto& [rule, own] : rules) {
      if (!folder.empty() && !rule->file.starts_with(folder)) continue;
      for (const auto& [other, pattern] : rules) {
        // Of two that read the same the later one is the one too many.
        if (other == rule || other->strength < rule->strength || !reads_all(*other, pattern, *rule)) continue;
        if (other->strength == rule->strength && other > rule && reads_all(*rule, own, *other)) continue;
        covered.push_back({rule, other});
        break;
      }
    }
  }
  return covered;
}

}  // namespace inquest
