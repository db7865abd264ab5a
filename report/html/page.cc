// The verdict as one page: what broke, whom to look at and the lines that prove it first; then all ranks over time, who
// was in which operation, what the rules found, and what was read. Everything but the drawing is there without script.
#include "report/html/page.h"

#include <algorithm>

#include "report/html/parts.h"
#include "report/terminal.h"
#include "report/words.h"

namespace inquest {
namespace {

constexpr std::size_t kMostCulprits = 12, kMostFindings = 40, kMostCited = 4, kMostInputs = 300, kMostOther = 24,
                      kMostOpened = 4;

Html Join(const std::vector<Html>& parts) {
  std::string out;
  for (const Html& part : parts) out += part.markup;
  return {out};
}

template <class Rows>
Html Each(const Rows& rows, std::size_t most, const auto& render) {
  std::vector<Html> parts;
  for (const auto& row : rows) {
    if (parts.size() == most) break;
    parts.push_back(render(row));
  }
  if (rows.size() > most)
    parts.push_back(Markup("<li class=\"more\">and {} more in --format json</li>", rows.size() - most));
  return Join(parts);
}

/// A part of the page with its heading; nothing where it holds nothing.
Html Section(std::string_view id, std::string_view title, const Html& content) {
  if (content.markup.empty()) return {};
  return Markup("<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 id=\"{0}-title\">{1}</h2>{2}</section>\n", id,
                title, content);
}

Html List(std::string_view tag, const Html& items) {
  return items.markup.empty() ? Html{} : Markup("<{0}>{1}</{0}>", tag, items);
}

// ---- the verdict -------------------------------------------------------------------------------------------------

Html Culprits(const Verdict& verdict) {
  return Each(FoldCulprits(verdict.culprits), kMostCulprits, [](const Suspects& suspects) {
    const std::string who = Who(suspects);
    const std::string& why = suspects.first->why;
    return Markup("<li><strong>{}</strong>{}{}</li>", who, Html{who.empty() || why.empty() ? "" : ": "}, why);
  });
}

Html Top(const Verdict& verdict) {
  const bool undecided = verdict.outcome == Outcome::kUndecided;
  const Html code = undecided ? Html{} : Markup(" <code class=\"cause\">{}</code>", verdict.cause);
  const Html sure = undecided ? Html{} : Markup(" <span class=\"sure\">{} sure</span>", Percent(verdict.confidence));
  std::string facts;
  const Html culprits = Culprits(verdict);
  if (!culprits.markup.empty())
    facts += Markup("<dt>{}</dt><dd><ul>{}</ul></dd>", undecided ? "Look at" : "Culprit", culprits).markup;
  if (!undecided && !RetryInWords(verdict).empty())
    facts += Markup("<dt>Restart</dt><dd>{}</dd>", RetryInWords(verdict)).markup;
  if (!verdict.exclude_hosts.empty())
    facts += Markup("<dt>Without</dt><dd>{}</dd>", fmt::format("{}", fmt::join(verdict.exclude_hosts, ", "))).markup;
  std::string warnings;
  for (const std::string& warning : verdict.warnings)
    warnings += Markup("<p class=\"warning\"><strong>Doubtful:</strong> {}</p>", warning).markup;
  return Markup(
      "<header class=\"verdict {}\"><p class=\"outcome\"><span class=\"badge\">{}</span>{}{}</p><h1>{}</h1>"
      "<p class=\"summary\">{}</p>{}{}</header>\n",
      Name(verdict.outcome), Badge(verdict.outcome), code, sure, verdict.title, verdict.summary,
      List("dl", Html{facts}), Html{warnings});
}

Html Remedies(const Verdict& verdict, const std::string& replay) {
  const std::vector<Remedy> remedies = RemediesOf(verdict, replay);
  return List("ol", Each(remedies, remedies.size(), [](const Remedy& remedy) {
                std::string more;
                if (!remedy.command.empty())
                  more += Markup("<pre><code><span class=\"prompt\">{}</span>{}</code></pre>", PromptOf(remedy),
                                 remedy.command)
                              .markup;
                for (const Remedy::Want& want : remedy.needs)
                  more += Markup("<p class=\"note\"><code>{}</code>: {}</p>", want.name, want.meaning).markup;
                if (remedy.destructive) more += Markup("<p class=\"note\">It {}.</p>", kDestructive).markup;
                return Markup("<li>{}{}</li>", remedy.text, Html{more});
              }));
}

Html Collect(const Verdict& verdict) {
  return List("ul", Each(verdict.collect_next, verdict.collect_next.size(),
                         [](const std::string& what) { return Markup("<li>{}</li>", what); }));
}

Html Alternatives(const Verdict& verdict) {
  return List("ul", Each(verdict.alternatives, kMostFindings, [](const Alternative& other) {
                return Markup("<li><code>{}</code> {}: {}</li>", other.cause, Percent(other.confidence), other.why);
              }));
}

// ---- all ranks over time -----------------------------------------------------------------------------------------

std::string SketchInWords(const SketchRow& row) {
  std::string out;
  const auto add = [&out](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  for (const SketchRow::Bar& bar : row.bars) add(bar.what.empty() ? bar.stage : bar.stage + " (" + bar.what + ")");
  for (const SketchRow::Mark& mark : row.marks) add(mark.what);
  return out.empty() ? "nothing that is told" : out;
}

/// As the terminal draws it: shapes that are told apart without colour.
std::string_view SignOf(const std::string& kind) {
  static constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
      {"device", "G"},  {"memory", "M"},    {"time-out", "T"}, {"exception", "E"}, {"exit", "x"},
      {"stopped", "S"}, {"complaint", "!"}, {"notice", "·"},   {"ended", "✓"}};
  for (const auto& [name, sign] : kSigns)
    if (name == kind) return sign;
  return "·";
}

/// The lanes of one start, small, in a drawing that needs no script: what each was at, and what befell it. `open`: the
/// attribute of a part that can be folded.
Html SketchInHtml(const Sketch& sketch, const Html& open) {
  if (sketch.rows.empty()) return {};
  // Room at both ends for the half of a sign.
  const auto at = [](double place) { return 2 + 96 * place; };
  std::string rows;
  for (const SketchRow& row : sketch.rows) {
    std::string drawn =
        Markup("<line class=\"heard\" x1=\"{:.2f}%\" x2=\"{:.2f}%\" y1=\"10\" y2=\"10\"/>", at(row.first), at(row.last))
            .markup;
    for (const SketchRow::Bar& bar : row.bars)
      drawn +=
          Markup(
              "<rect class=\"{}\" x=\"{:.2f}%\" y=\"4\" width=\"{:.2f}%\" height=\"12\"><title>{}{}{}</title></rect>",
              bar.stage == "in-collective" ? "collective" : bar.stage, at(bar.begin),
              std::max(96 * (bar.end - bar.begin), 0.8), bar.stage, Html{bar.what.empty() ? "" : ": "}, bar.what)
              .markup;
    for (const SketchRow::Mark& mark : row.marks)
      drawn += Markup("<text{} x=\"{:.2f}%\" y=\"15\">{}<title>{}</title></text>",
                      Html{mark.cause ? " class=\"cause\"" : ""}, at(mark.at), SignOf(mark.kind), mark.what)
                   .markup;
    rows +=
        Markup(
            "<tr{}><th scope=\"row\">{}</th><td><svg class=\"strip\" role=\"img\" aria-label=\"{}\">{}</svg></td></tr>",
            Html{row.culprit ? " class=\"culprit\"" : ""}, row.who, SketchInWords(row), Html{drawn})
            .markup;
  }
  if (sketch.rows_left_out > 0)
    rows +=
        Markup("<tr><td colspan=\"2\">and {} more rows: inquest --attempt N</td></tr>", sketch.rows_left_out).markup;
  return Markup("<details class=\"sketch\"{}><summary>Its ranks {}</summary><table><tbody>{}</tbody></table></details>",
                open, sketch.clock ? "over time" : "in the order of lines", Html{rows});
}

Html Attempts(const Timeline& timeline, const Verdict& verdict) {
  // Few are compared at a glance; of many one looks first at what became of each.
  const Html open{verdict.attempts.size() <= kMostOpened ? " open" : ""};
  const Html cards = Each(verdict.attempts, verdict.attempts.size(), [&](const AttemptTold& attempt) {
    const bool known = !attempt.cause.empty();
    const std::string when = attempt.first.at && attempt.last.at
                                 ? fmt::format("{} – {}", FormatClock(*attempt.first.at), FormatClock(*attempt.last.at))
                                 : "";
    return Markup(
        "<li class=\"{}{}\"><h3>Attempt {}{}</h3><p><code>{}</code> {}</p><p>{}</p><p class=\"note\">{} from "
        "{}</p>{}</li>",
        known ? Name(attempt.outcome) : "", Html{attempt.judged ? " judged" : ""}, attempt.number,
        Html{attempt.judged ? ": this verdict" : ""}, known ? attempt.cause : "not looked at",
        known && attempt.outcome != Outcome::kUndecided ? Percent(attempt.confidence) : "", attempt.summary, when,
        PlaceOf(timeline, attempt.first.where), SketchInHtml(attempt.sketch, open));
  });
  return cards.markup.empty() ? Html{} : Markup("<ol class=\"attempts\">{}</ol>", cards);
}

/// What stands for time, and what is not known of it.
Html AxisNote(const Timeline& timeline, const Picture& picture) {
  std::string note = !picture.clock       ? "No two lines print times that order them: order stands for "
                                            "time, and every file is spread over the whole width."
                     : picture.zone_known ? "Times are UTC."
                                          : "Times are as the logs print them; they name no zone.";
  if (picture.clock && !picture.mostly_timed)
    note += " Most lines print no time of their own, so the picture opens in the order of lines.";
  if (const std::string files = WithoutClockInWords(timeline, picture); !files.empty())
    note += fmt::format(
        " Lines of {} have no time: they are spread by their place in the file, and their order to other "
        "files is not known.",
        files);
  return Markup("<p class=\"note\" id=\"axis-note\">{}</p>", note);
}

Html Lanes(const Timeline& timeline, const Picture& picture) {
  if (picture.lanes.empty()) return {};
  return Markup(
      "{}<div id=\"picture\"></div>{}<details id=\"in-words\"><summary>The same in words</summary>"
      "<div class=\"scroll\" tabindex=\"0\">{}</div></details>",
      AxisNote(timeline, picture), ChainInWords(timeline, picture), PictureInWords(timeline, picture));
}

/// Lines of the picture that nothing else on the page shows.
Html OtherLines(const Picture& picture, CitedLines& lines) {
  std::vector<Html> out;
  for (const LaneFold& fold : picture.folds)
    for (const PictureMark& mark : picture.lanes[fold.lanes.front()].marks) {
      const EventIndex event = picture.moments[mark.moment].event;
      if (out.size() < kMostOther && !lines.IsShown(event)) out.push_back(Markup("<li>{}</li>", lines.Show(event)));
    }
  return Markup("<section id=\"lines\"{}><h2>Other lines of the picture</h2><ol class=\"cited\">{}</ol></section>\n",
                Html{out.empty() ? " hidden" : ""}, Join(out));
}

// ---- findings and inputs -----------------------------------------------------------------------------------------

Html Cited(const std::vector<Citation>& citations, std::size_t most, CitedLines& lines) {
  const Html items = Each(citations, most, [&](const Citation& c) { return Markup("<li>{}</li>", lines.Show(c)); });
  return items.markup.empty() ? Html{} : Markup("<ol class=\"cited\">{}</ol>", items);
}

Html Findings(const Verdict& verdict, CitedLines& lines) {
  return List(
      "ol", Each(verdict.findings, kMostFindings, [&](const Finding& finding) {
        const std::string about =
            fmt::format("{} {}{}{}", Name(finding.strength), Percent(finding.confidence),
                        finding.times > 1 ? fmt::format(", {} times", finding.times) : "",
                        finding.explained_by.empty() ? "" : ", explained by " + finding.explained_by);
        return Markup(
            "<li class=\"finding{}\"><p><code>{}</code> <span class=\"note\">{} · {}</span></p><p>{}</p>{}</li>",
            Html{finding.rule == verdict.rule ? " decided" : ""}, finding.cause.empty() ? "symptom" : finding.cause,
            finding.rule, about, finding.claim, Cited(finding.citations, kMostCited, lines));
      }));
}

Html Inputs(const Timeline& timeline) {
  std::string rows;
  std::size_t shown = 0;
  for (const InputSummary& input : timeline.inputs) {
    if (++shown > kMostInputs) continue;
    std::string notes = input.problem;
    const auto add = [&](const std::string& note) { notes += (notes.empty() || note.empty() ? "" : "; ") + note; };
    if (input.form != nullptr) add("no log: " + std::string(input.form->text));
    add(input.clock);
    const auto part = [&](std::uint64_t bytes) {
      return input.bytes == 0 ? 0.0 : 100.0 * static_cast<double>(bytes) / static_cast<double>(input.bytes);
    };
    rows +=
        Markup(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{:.0f} "
            "%</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            input.path, Size(input.bytes), input.lines, part(input.claimed),
            input.damaged == 0 ? "none" : Size(input.damaged), fmt::format("{}", fmt::join(input.kinds, ", ")), notes)
            .markup;
  }
  if (shown > kMostInputs)
    rows += Markup("<tr><td colspan=\"7\">and {} more in --format json</td></tr>", shown - kMostInputs).markup;
  const std::string left_out = LeftOutInWords(timeline);
  std::string lacks;
  for (const std::string& lack : NotCollectedInWords(timeline)) lacks += Markup("<li>{}</li>", lack).markup;
  return Markup(
      "<p>{}. {}{}</p>{}<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>"
      "<th scope=\"col\">File</th><th scope=\"col\">Size</th><th scope=\"col\">Lines</th><th "
      "scope=\"col\">Understood</th>"
      "<th scope=\"col\">Damaged</th><th scope=\"col\">Holds</th><th scope=\"col\">Notes</th></tr></thead>"
      "<tbody>{}</tbody></table></div>",
      ReadInWords(timeline), left_out, Html{left_out.empty() ? "" : "."}, List("ul", Html{lacks}), Html{rows});
}

Html Head(const Verdict& verdict) {
  return Markup(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{}'; style-src '{}'; "
      "base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"generator\" content=\"inquest\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{}{} – inquest</title>\n<style>{}</style>\n</head>\n<body>\n",
      PageScriptDigest(), PageStyleDigest(), verdict.outcome == Outcome::kUndecided ? "" : verdict.cause + ": ",
      verdict.title, Html{std::string(PageStyle())});
}

}  // namespace

void RenderHtml(const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const LinesNear& near,
                const Sink& sink) {
  const Picture picture = DrawPicture(timeline, verdict);
  CitedLines lines(timeline, near);
  const bool undecided = verdict.outcome == Outcome::kUndecided;
  const auto put = [&](const Html& html) { sink(html.markup); };
  put(Head(verdict));
  put({"<a class=\"skip\" href=\"#ranks\">To all ranks over time</a>\n"});
  put(Top(verdict));
  put({"<main>\n<div class=\"answers\">\n"});
  put(Section("evidence", "Evidence", Cited(verdict.evidence, verdict.evidence.size(), lines)));
  put({"<div>"});
  put(Section("remedies", "What to do", Remedies(verdict, context.replay_command)));
  put(Section("collect", undecided ? "Collect this, then run inquest over all of it together" : "Collect next",
              Collect(verdict)));
  put(Section("alternatives", undecided ? "Candidates" : "Also possible", Alternatives(verdict)));
  put({"</div>\n</div>\n"});
  put(Section("attempts", fmt::format("The job was started {} times", verdict.attempts.size()),
              Attempts(timeline, verdict)));
  const bool has_ranks = std::ranges::any_of(picture.lanes, [](const Lane& lane) { return lane.rank.has_value(); });
  put(Section("ranks", has_ranks ? "Every rank over time" : "Over time", Lanes(timeline, picture)));
  put(Section("groups", "Who is in which operation", GroupTables(timeline)));
  put(Section("findings", "Findings", Findings(verdict, lines)));
  put(OtherLines(picture, lines));
  put(Section("inputs", "What was read", Inputs(timeline)));
  put(Markup("</main>\n<footer><p>inquest {}</p></footer>\n<script type=\"application/json\" id=\"data\">{}</script>\n",
             context.tool_version, Html{PictureData(timeline, picture)}));
  put(Markup("<script>{}</script>\n</body>\n</html>\n", Html{std::string(PageScript())}));
}

}  // namespace inquest
