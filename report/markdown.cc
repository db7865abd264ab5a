// The verdict as a comment on a pull request or an issue: short of what forges take, and nothing in it that a log could
// make them do.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/markdown_text.h"
#include "report/report.h"
#include "report/terminal.h"
#include "report/words.h"

namespace inquest {
namespace {

// GitHub takes 65,536 characters. Bytes are counted, of which a character has one or more.
constexpr std::size_t kMostBytes = 59'000, kKept = 2'000;  ///< of which so many for how it ends
constexpr std::size_t kMostItems = 12, kMostOther = 6, kMostInputs = 40;
constexpr int kSentence = 1200, kQuoted = 600;  ///< columns

std::string Prose(std::string_view text) { return EscapeMarkdown(Cut(Sanitize(text), kSentence)); }
std::string Code(std::string_view text) { return CodeSpan(Cut(Reveal(text), kQuoted)); }

/// Parts of a comment, each whole or not there; what found no place is told at the end.
class Comment {
 public:
  /// `head`, then those of the first `most` items that still fit, then `tail`; nothing where no item does.
  void Add(std::string_view head, const std::vector<std::string>& items, std::string_view tail, std::size_t most,
           std::string_view what) {
    std::string part;
    std::size_t shown = 0;
    for (const std::string& item : items) {
      if (shown == most || out_.size() + head.size() + part.size() + item.size() + tail.size() + kKept > kMostBytes)
        break;
      part += item;
      ++shown;
    }
    if (shown > 0) out_.append(head).append(part).append(tail);
    if (shown < items.size())
      left_ += fmt::format("{}{} of {} {}", left_.empty() ? "" : ", ", items.size() - shown, items.size(), what);
  }
  void Add(std::string_view paragraph) { Add("", {fmt::format("{}\n\n", paragraph)}, "", 1, "paragraphs"); }
  std::string Take(std::string_view last) {
    if (!left_.empty()) out_ += fmt::format("Not shown here: {}; `--format json` has all.\n\n", left_);
    return out_.append(last) + "\n";
  }

 private:
  std::string out_, left_;
};

template <class Rows>
std::vector<std::string> Each(const Rows& rows, const auto& render) {
  std::vector<std::string> out;
  for (const auto& row : rows) out.push_back(render(row));
  return out;
}

std::string Item(std::string_view markdown) { return fmt::format("- {}\n", markdown); }
std::vector<std::string> Items(const std::vector<std::string>& sentences) {
  return Each(sentences, [](const std::string& sentence) { return Item(Prose(sentence)); });
}

void Top(Comment& comment, const Timeline& timeline, const Verdict& verdict) {
  comment.Add(fmt::format("### {}: {}", Badge(verdict.outcome), Prose(verdict.title)));
  const std::string_view again = RetryInWords(verdict);
  if (verdict.outcome != Outcome::kUndecided)
    comment.Add(fmt::format("{}, {} sure.{}", Code(verdict.cause), Percent(verdict.confidence),
                            again.empty() ? "" : fmt::format(" Restart: {}.", Prose(again))));
  if (!verdict.summary.empty()) comment.Add(Prose(verdict.summary));
  if (const std::string job = RunInWords(timeline, verdict); !job.empty()) comment.Add("Run: " + Code(job));
  comment.Add("",
              Each(verdict.warnings,
                   [](const std::string& warning) { return fmt::format("> **Doubtful:** {}\n\n", Prose(warning)); }),
              "", kMostOther, "doubts");
}

void Culprits(Comment& comment, const Verdict& verdict) {
  const auto items = Each(FoldCulprits(verdict.culprits), [](const Suspects& suspects) {
    const std::string who = Who(suspects), &why = suspects.first->why;
    return Item(fmt::format("{}{}{}", who.empty() ? "" : "**" + Prose(who) + "**",
                            who.empty() || why.empty() ? "" : ": ", Prose(why)));
  });
  comment.Add(fmt::format("**{}**\n\n", verdict.outcome == Outcome::kUndecided ? "Look at" : "Culprit"), items, "\n",
              kMostItems, "culprits");
  const auto hosts = Each(verdict.exclude_hosts, [](const std::string& host) { return Code(host); });
  if (!hosts.empty()) comment.Add(fmt::format("Run it without {}.", fmt::join(hosts, ", ")));
}

void Evidence(Comment& comment, const Timeline& timeline, const Verdict& verdict) {
  const auto items = Each(verdict.evidence, [&](const Citation& citation) {
    std::string head = Code(PlaceOf(timeline, citation.where));
    if (citation.at) head += ", " + FormatTime(*citation.at);
    if (citation.rank) head += fmt::format(", rank {}", citation.rank->value);
    if (citation.role == LineRole::kCause) head += ", **first cause**";
    return Item(head) + Fenced(Cut(Reveal(citation.text), kQuoted), "text", "  ");
  });
  comment.Add("**Evidence**\n\n", items, "\n", kMostItems, "cited lines");
  comment.Add("**What followed**\n\n", Items(SymptomsInWords(verdict)), "\n", kMostOther, "symptoms");
}

void Remedies(Comment& comment, const Verdict& verdict, const std::string& replay_command) {
  std::size_t number = 0;
  const auto items = Each(RemediesOf(verdict, replay_command), [&](const Remedy& remedy) {
    std::string out = fmt::format("{}. {}\n", ++number, Prose(remedy.text));
    if (remedy.command.empty()) return out;
    const bool is_shell = remedy.kind == Remedy::Kind::kShell;
    const std::string_view language = is_shell ? "sh" : remedy.kind == Remedy::Kind::kPython ? "python" : "text";
    constexpr std::string_view kIndent = "    ";
    std::string where = WhereInWords(remedy);
    if (remedy.destructive) where += (where.empty() ? "" : "; ") + std::string(kDestructive);
    if (!where.empty()) out += fmt::format("\n{}{}:\n", kIndent, Prose(where));
    out += "\n" + Fenced(remedy.command, language, kIndent);
    for (const Remedy::Want& want : remedy.needs)
      out += fmt::format("{}- {}: {}\n", kIndent, Code(want.name), Prose(want.meaning));
    return out;
  });
  comment.Add("**What to do**\n\n", items, "\n", kMostItems, "remedies");
}

void Collect(Comment& comment, const Verdict& verdict, std::string_view title) {
  comment.Add(fmt::format("**{}**\n\n", title), Items(verdict.collect_next), "\n", kMostItems, "things to collect");
}

void Alternatives(Comment& comment, const Verdict& verdict, std::string_view title) {
  const auto items = Each(verdict.alternatives, [](const Alternative& other) {
    return Item(fmt::format("{} ({}): {}", Code(other.cause), Percent(other.confidence), Prose(other.why)));
  });
  comment.Add(fmt::format("**{}**\n\n", title), items, "\n", kMostOther, "alternatives");
}

std::string Opened(std::string_view summary) { return fmt::format("<details><summary>{}</summary>\n\n", summary); }
constexpr std::string_view kClosed = "\n</details>\n\n";

void Attempts(Comment& comment, const Timeline& timeline, const Verdict& verdict) {
  std::vector<std::string> items = Each(verdict.attempts, [&](const AttemptTold& attempt) {
    const std::string_view gap = attempt.summary.empty() || attempt.judged ? "" : ". ";
    return Item(fmt::format("{} from {}: {}{}{}", attempt.number, Code(PlaceOf(timeline, attempt.first.where)),
                            Prose(JudgedAs(attempt)), gap, gap.empty() ? "" : Prose(attempt.summary)));
  });
  std::ranges::reverse(items);
  comment.Add(Opened(fmt::format("The job was started {} times", items.size())), items, kClosed, kMostItems,
              "attempts");
}

void Inputs(Comment& comment, const Timeline& timeline) {
  std::vector<std::string> items = Each(timeline.inputs, [](const InputSummary& input) {
    std::string notes = fmt::format("{}, {} lines", Size(input.bytes), input.lines);
    if (input.damaged > 0) notes += fmt::format(", {} damaged", Size(input.damaged));
    if (!input.problem.empty()) notes += "; not whole: " + input.problem;
    if (input.form != nullptr) notes += fmt::format("; no log: {}", input.form->text);
    if (!input.clock.empty()) notes += "; " + input.clock;
    return Item(fmt::format("{}: {}", Code(input.path), Prose(notes)));
  });
  // Those of which there is something to say come first.
  std::stable_partition(items.begin(), items.end(),
                        [](const std::string& item) { return item.find("; ") != std::string::npos; });
  std::vector<std::string> lacks = Items(NotCollectedInWords(timeline));
  if (const std::string left_out = LeftOutInWords(timeline); !left_out.empty())
    lacks.insert(lacks.begin(), Item(Prose(left_out)));
  comment.Add("", lacks, "\n", kMostItems, "notes");
  comment.Add(Opened(Prose(ReadInWords(timeline))), items, kClosed, kMostInputs, "inputs");
}

}  // namespace

std::string RenderMarkdown(const Timeline& timeline, const Verdict& verdict, const ReportContext& context) {
  Comment comment;
  const bool undecided = verdict.outcome == Outcome::kUndecided;
  // By this a program finds the comment that it wrote before.
  comment.Add(
      fmt::format("<!-- inquest: {} {} -->", verdict.cause, verdict.fingerprint.empty() ? "-" : verdict.fingerprint));
  Top(comment, timeline, verdict);
  Culprits(comment, verdict);
  if (undecided) {
    Collect(comment, verdict, "Collect this, then run inquest over all of it together");
    Alternatives(comment, verdict, "Candidates");
  }
  Evidence(comment, timeline, verdict);
  Remedies(comment, verdict, context.replay_command);
  if (verdict.outcome == Outcome::kFailed) Collect(comment, verdict, "Collect next, if that does not settle it");
  if (!undecided) Alternatives(comment, verdict, "Also possible");
  Attempts(comment, timeline, verdict);
  Inputs(comment, timeline);
  return comment.Take(fmt::format("<sub>inquest {}{}</sub>", context.tool_version,
                                  verdict.fingerprint.empty() ? "" : ", fingerprint " + verdict.fingerprint));
}

}  // namespace inquest
