// The verdict as annotations of a GitHub workflow: commands to its runner, one a line.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/report.h"
#include "report/terminal.h"
#include "report/words.h"

namespace inquest {
namespace {

// The runner shows ten of a step.
constexpr std::size_t kMostAnnotations = 10, kMostOfAKind = 4;
constexpr int kTitle = 200, kLine = 1000;  ///< columns

/// One line of a message or a title, before it is escaped. The runner also takes commands of an older kind, which begin
/// anywhere in a line: `##[`.
std::string CutLine(std::string_view text, int width = kLine) {
  std::string out = Cut(Reveal(text), width);
  for (std::size_t at = out.find("##"); at != std::string::npos; at = out.find("##", at)) out.insert(at + 1, " ");
  return out;
}

/// As the runner decodes it: of a message line ends and `%`, of a property also what ends one.
enum class Part : std::uint8_t { kMessage, kProperty };
std::string Escape(std::string_view text, Part part) {
  constexpr std::string_view kOfMessage = "%\r\n", kOfProperty = "%\r\n:,";
  const std::string_view escaped = part == Part::kMessage ? kOfMessage : kOfProperty;
  std::string out;
  for (const char c : text)
    out += escaped.find(c) == std::string_view::npos ? std::string(1, c)
                                                     : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

std::string Annotation(std::string_view level, const Timeline& timeline, const std::optional<SourcePos>& where,
                       std::string_view title, std::string_view message) {
  std::string out = fmt::format("::{} ", level);
  const bool has_place = where && where->input < timeline.inputs.size() && timeline.inputs[where->input].path != "-";
  if (has_place)
    out += fmt::format("file={},line={},", Escape(Reveal(timeline.inputs[where->input].path), Part::kProperty),
                       where->InputLine());
  return out + fmt::format("title={}::{}\n", Escape(CutLine(title, kTitle), Part::kProperty),
                           Escape(message, Part::kMessage));
}

/// All that stands in one annotation: the sentence, whom it blames, what to do or to collect first, and which job it
/// is.
std::string MessageOf(const Timeline& timeline, const Verdict& verdict, const std::string& replay_command) {
  const bool undecided = verdict.outcome == Outcome::kUndecided;
  std::string out = CutLine(verdict.summary);
  const auto add = [&out](std::string_view head, const std::string& line) {
    out += fmt::format("\n{}{}", head, CutLine(line));
  };
  const std::vector<std::string> culprits = CulpritsInWords(verdict);
  for (std::size_t i = 0; i < std::min(culprits.size(), kMostOfAKind); ++i)
    add(undecided ? "Look at: " : "Culprit: ", culprits[i]);
  if (const std::string_view retry = RetryInWords(verdict); !retry.empty() && !undecided)
    add("Restart: ", std::string(retry));
  const std::vector<Remedy> remedies = RemediesOf(verdict, replay_command);
  for (std::size_t i = 0; i < std::min(remedies.size(), kMostOfAKind); ++i) {
    add("To do: ", remedies[i].text);
    if (!remedies[i].command.empty()) add("  " + PromptOf(remedies[i]), remedies[i].command);
  }
  for (std::size_t i = 0; undecided && i < std::min(verdict.collect_next.size(), kMostOfAKind); ++i)
    add("Collect: ", verdict.collect_next[i]);
  if (const std::string run = RunInWords(timeline, verdict); !run.empty()) add("Run: ", run);
  if (!verdict.fingerprint.empty()) add("Fingerprint: ", verdict.fingerprint);
  return out;
}

}  // namespace

std::string RenderGithub(const Timeline& timeline, const Verdict& verdict, const ReportContext& context) {
  const bool failed = verdict.outcome == Outcome::kFailed, healthy = verdict.outcome == Outcome::kHealthy;
  std::vector<std::string> out;
  const std::vector<Citation>& evidence = verdict.evidence;
  out.push_back(Annotation(
      failed    ? "error"
      : healthy ? "notice"
                : "warning",
      timeline, evidence.empty() ? std::nullopt : std::optional(evidence.front().where),
      failed ? fmt::format("{}: {} ({})", verdict.cause, verdict.title, Percent(verdict.confidence)) : verdict.title,
      MessageOf(timeline, verdict, context.replay_command)));
  for (std::size_t i = 0; i < std::min(verdict.warnings.size(), kMostOfAKind); ++i)
    out.push_back(Annotation("warning", timeline, std::nullopt, "doubtful", CutLine(verdict.warnings[i])));
  if (!healthy)
    for (const Citation& citation : evidence) {
      const bool is_cause = citation.role == LineRole::kCause;
      const std::string title = citation.rank ? fmt::format("rank {}", citation.rank->value) : std::string("cited");
      out.push_back(
          Annotation(is_cause && failed ? "error" : "notice", timeline, citation.where, title, CutLine(citation.text)));
    }
  // The first is that of the verdict, which quotes no line.
  out.resize(std::min(out.size(), kMostAnnotations));
  return fmt::format("{}", fmt::join(out, ""));
}

}  // namespace inquest
