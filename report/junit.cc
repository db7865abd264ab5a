// The verdict as JUnit's XML, as Jenkins, GitLab and their like take it: one test, that the job ended well.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/html/markup.h"
#include "report/report.h"
#include "report/terminal.h"
#include "report/words.h"

namespace inquest {
namespace {

constexpr std::size_t kMostLines = 50;
constexpr int kJunitColumns = 2000;  ///< columns of a line

/// Lines of the body. What XML forbids is visible by its number or picture once it is escaped.
class Body {
 public:
  void Title(std::string_view title) { text_ += Markup("\n{}:\n", title).markup; }
  void Line(std::string_view line) { text_ += Markup("  {}\n", Cut(Reveal(line), kJunitColumns)).markup; }
  template <class Rows>
  void Part(std::string_view title, const Rows& rows, const auto& in_words) {
    if (rows.empty()) return;
    Title(title);
    for (std::size_t i = 0; i < std::min(rows.size(), kMostLines); ++i) Line(in_words(rows[i]));
    if (rows.size() > kMostLines) Line(fmt::format("and {} more in --format json", rows.size() - kMostLines));
  }
  Html Take() { return {std::move(text_)}; }

 private:
  std::string text_;
};

Html BodyOf(const Timeline& timeline, const Verdict& verdict, const std::string& replay_command) {
  const bool undecided = verdict.outcome == Outcome::kUndecided;
  const auto itself = [](const std::string& line) { return line; };
  Body body;
  body.Part(undecided ? "Look at" : "Culprit", CulpritsInWords(verdict), itself);
  body.Part("Evidence", verdict.evidence, [&](const Citation& citation) {
    return fmt::format("{}: {}", PlaceOf(timeline, citation.where), citation.text);
  });
  body.Part("What followed", SymptomsInWords(verdict), itself);
  body.Part("What to do", RemediesOf(verdict, replay_command), [](const Remedy& remedy) {
    return remedy.command.empty() ? remedy.text : fmt::format("{} {}{}", remedy.text, PromptOf(remedy), remedy.command);
  });
  body.Part("Collect", verdict.collect_next, itself);
  body.Part(undecided ? "Candidates" : "Also possible", verdict.alternatives, [](const Alternative& other) {
    return fmt::format("{} ({}): {}", other.cause, Percent(other.confidence), other.why);
  });
  body.Part("Doubtful", verdict.warnings, itself);
  return body.Take();
}

Html Properties(const Timeline& timeline, const Verdict& verdict, std::string_view version) {
  const AttemptNumber attempt = JudgedAttempt(verdict);
  const auto moment = [](const std::optional<Timestamp>& at) { return at ? FormatTime(*at) : std::string(); };
  const std::pair<std::string_view, std::string> rows[] = {
      {"job", verdict.job.id ? verdict.job.id->value : ""},
      {"job_name", verdict.job.name},
      {"job_hosts", fmt::format("{}", fmt::join(timeline.hosts, ", "))},
      {"attempt", fmt::format("{} of {}", attempt.number, attempt.of)},
      {"start", moment(verdict.job.start)},
      {"end", moment(verdict.job.end)},
      {"cause", verdict.cause},
      {"confidence", fmt::format("{:.2f}", verdict.confidence)},
      {"signature", verdict.rule},
      {"fingerprint", verdict.fingerprint},
      {"culprits", fmt::format("{}", fmt::join(CulpritsInWords(verdict), "; "))},
      {"hosts", fmt::format("{}", fmt::join(HostsOfCulprits(verdict), ", "))},
      {"exclude_hosts", fmt::format("{}", fmt::join(verdict.exclude_hosts, ", "))},
      {"retry", std::string(Name(verdict.retry))},
      {"version", std::string(version)},
  };
  Html out;
  for (const auto& [name, value] : rows)
    if (!value.empty())
      out.markup +=
          Markup("      <property name=\"{}\" value=\"{}\"/>\n", name, Cut(Reveal(value), kJunitColumns)).markup;
  return out;
}

}  // namespace

std::string RenderJunit(const Timeline& timeline, const Verdict& verdict, const ReportContext& context) {
  const int failures = verdict.outcome == Outcome::kFailed ? 1 : 0,
            errors = verdict.outcome == Outcome::kUndecided ? 1 : 0;
  Html result;
  if (failures + errors > 0)
    result = Markup("\n      <{0} type=\"{1}\" message=\"{2}\">{3}</{0}>\n    ",
                    Html{failures > 0 ? "failure" : "error"}, verdict.cause,
                    Cut(Reveal(verdict.summary), kJunitColumns), BodyOf(timeline, verdict, context.replay_command));
  return Markup(
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
             "<testsuites name=\"inquest\" tests=\"1\" failures=\"{0}\" errors=\"{1}\" time=\"0\">\n"
             "  <testsuite name=\"inquest\" tests=\"1\" failures=\"{0}\" errors=\"{1}\" skipped=\"0\" time=\"0\">\n"
             "    <properties>\n{2}    </properties>\n"
             "    <testcase classname=\"inquest\" name=\"the job ended well\" time=\"0\">{3}</testcase>\n"
             "  </testsuite>\n"
             "</testsuites>\n",
             failures, errors, Properties(timeline, verdict, context.tool_version), result)
      .markup;
}

}  // namespace inquest
