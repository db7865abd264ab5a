// One host's or GPU's case for a vendor, as a page: one file, no script, no network; it prints as it stands.
#include <fmt/format.h>

#include <algorithm>

#include "report/evidence.h"
#include "report/html/parts.h"
#include "report/words.h"

namespace inquest {
namespace {

class EvidencePage {
 public:
  EvidencePage(const EvidenceFile& file, const ReportContext& context, const Sink& sink)
      : file_(file), what_(file.what), version_(context.tool_version), sink_(sink) {}

  void Render() {
    Head();
    Errors();
    Part();
    Lines("lines", "Every line that the host's kernel logged of its devices", what_.lines);
    Lines("states", "What tools showed of GPUs that is not as it should be", what_.states);
    Job();
    Artefacts();
    Steps();
    Files();
    Put(Markup("</main>\n<footer><p>inquest {}</p></footer>\n</body>\n</html>\n", version_));
  }

 private:
  void Put(const Html& html) { sink_(html.markup); }
  void Begin(std::string_view id, std::string_view title) {
    Put(Markup("<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 id=\"{0}-title\">{1}</h2>\n", id, title));
  }
  void End() { Put({"</section>\n"}); }
  void None(std::string_view text) { Put(Markup("<p class=\"note\">{}</p>\n", text)); }

  /// `with_digest`: with the digest of its file beside it; else that is in the list of files alone.
  Html Show(QuoteIndex index, bool with_digest = false) const {
    const Quote& quote = what_.quotes[index];
    const FileDigest* const digest = FileOf(file_, quote);
    Html head = Markup("<span class=\"place\">{}</span>", PlaceOf(file_.devices, quote.where));
    if (digest != nullptr) {
      const auto number = digest - file_.files.data() + 1;
      head.markup += Markup(" <a href=\"#file-{0}\">[{0}]</a>", number).markup;
    }
    if (quote.at)
      head.markup +=
          Markup(" <time>{}</time> <span class=\"basis\">({})</span>", TimeInWords(quote), BasisInWords(file_, quote))
              .markup;
    if (!quote.whole)
      head.markup += " <span class=\"basis\">as it was read; the file's own line could not be read again</span>";
    const Html sha = with_digest && digest != nullptr && !digest->sha256.empty()
                         ? Markup("<span class=\"digest\">SHA-256 of the file {}</span>", digest->sha256)
                         : Html{};
    return Markup("<div class=\"line\"><div class=\"head\">{}</div><code>{}</code>{}</div>\n", head, quote.text, sha);
  }
  Html ShowAll(const std::vector<QuoteIndex>& quotes) const {
    std::string out;
    for (const QuoteIndex quote : quotes) out += Show(quote).markup;
    return {out};
  }

  void Head() {
    Put(
        Markup("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}'; base-uri "
               "'none'; form-action 'none'\">\n<meta name=\"generator\" content=\"inquest\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
               "<title>Evidence: {} – inquest</title>\n<style>{}</style>\n</head>\n<body>\n",
               PageEvidenceStyleDigest(), PartInWords(what_), Html{std::string(PageEvidenceStyle())}));
    Put(Markup(
        "<header><p class=\"note\">Evidence</p><h1>{}</h1><p>{}</p><p class=\"note\">Every statement stands with "
        "the lines that say it, as their files have them. The number in brackets is the file's; its SHA-256 "
        "stands in the list of files.</p></header>\n<main>\n",
        PartInWords(what_), BlameInWords(file_)));
  }

  // ---- the part ----------------------------------------------------------------------------------------------------

  void FactTable(std::string_view caption, const std::vector<CaseFact>& facts, bool counters,
                 bool names_alone = false) {
    std::string rows;
    for (const CaseFact& fact : facts) {
      if (fact.counter != counters) continue;
      if (names_alone && fact.property != "serial" && fact.property != "uuid" && fact.property != "name") continue;
      const bool disagree = !fact.counter && fact.values.size() > 1;
      for (const CaseFact::Value& value : fact.values)
        rows += Markup("<tr{}><th scope=\"row\">{}</th><td>{}{}</td><td>{}</td></tr>\n",
                       Html{disagree ? " class=\"differ\"" : ""}, fact.title, value.value,
                       Html{disagree ? " <strong>values differ</strong>" : ""}, ShowAll(value.quotes))
                    .markup;
    }
    if (rows.empty()) return;
    Put(
        Markup("<div class=\"scroll\" tabindex=\"0\"><table><caption>{}</caption><thead><tr><th scope=\"col\">What</th>"
               "<th scope=\"col\">Value</th><th scope=\"col\">Lines that say it</th></tr></thead><tbody>\n{}</tbody>"
               "</table></div>\n",
               caption, Html{rows}));
  }

  void Part() {
    Begin("part", "What the part is");
    if (what_.host_facts.empty()) None("No line describes the host.");
    FactTable("The host", what_.host_facts, false);
    for (const CaseGpu& gpu : what_.gpus) {
      const std::string name = GpuInWords(gpu.id) + (gpu.asked ? "" : " (of the same host)");
      Put(Markup("<h3>{}</h3>\n", name));
      if (gpu.facts.empty()) None("No line describes it: its serial number is not in what was given.");
      FactTable("Identity and versions", gpu.facts, false, !gpu.asked);
      if (gpu.asked) FactTable("Counters and states, as a tool printed them", gpu.facts, true);
    }
    End();
  }

  // ---- what was logged ---------------------------------------------------------------------------------------------

  void Errors() {
    Begin("errors", "Numbered errors that a line reports");
    if (what_.errors.empty()) None("None: no line of the host that was given reports an Xid or an SXid.");
    for (const CaseError& error : what_.errors) {
      Put(Markup("<h3>Reported {} {}{}, in {} line{}</h3>\n", error.is_sxid ? "SXid" : "Xid", error.number,
                 error.of_part ? "" : " by another device of the host", error.lines, error.lines == 1 ? "" : "s"));
      Put(Show(error.first, true));
      if (error.last != error.first) Put(Show(error.last, true));
      if (error.code == nullptr) continue;
      const std::string needs = NeedsInWords(error);
      Put(Markup("<p class=\"note\">Catalogue: {} ({}){}</p>\n", error.code->meaning, error.code->source,
                 needs.empty() ? "" : fmt::format(". It asks for: {}.", needs)));
    }
    End();
  }

  void Lines(std::string_view id, std::string_view title, const std::vector<CaseLine>& lines) {
    Begin(id, title);
    if (lines.empty()) None("None was given.");
    const bool split = std::ranges::any_of(lines, [](const CaseLine& line) { return !line.of_part; });
    for (const bool of_part : {true, false}) {
      const bool any = std::ranges::any_of(lines, [&](const CaseLine& line) { return line.of_part == of_part; });
      if (split && any)
        Put(Markup("<h3>{}</h3>\n", of_part ? "They name this GPU" : "They name other devices of the host, or none"));
      for (const CaseLine& line : lines)
        if (line.of_part == of_part) Put(Show(line.quote, true));
    }
    End();
  }

  // ---- the job -----------------------------------------------------------------------------------------------------

  void Job() {
    Begin("job", "What the job did there");
    Put(Markup("<p>{}</p><p>{}</p>\n{}", BlameInWords(file_), file_.verdict.summary, ShowAll(what_.verdict_quotes)));
    for (const CaseFinding& row : what_.findings)
      Put(Markup("<h3>{}{}</h3><p>{}</p>\n{}", Html{row.decided ? "Decided: " : ""}, row.finding->rule,
                 row.finding->claim, ShowAll(row.quotes)));
    for (const CaseProcess& process : what_.processes) {
      Put(Markup("<h3>{}{}{}{}</h3>\n", process.rank ? fmt::format("Rank {}", process.rank->value) : "A process",
                 process.pid ? fmt::format(", pid {}", *process.pid) : "",
                 process.bus_id.empty() ? "" : ", on " + process.bus_id,
                 process.of_part && what_.part.gpu ? ": on this GPU" : ""));
      Put(Markup("<p class=\"note\">First line</p>{}", Show(process.first)));
      if (process.doing_since)
        Put(Markup("<p class=\"note\">At {} since</p>{}", process.doing, Show(*process.doing_since)));
      Put(Markup("<p class=\"note\">Last line</p>{}", Show(process.last)));
      if (process.end) Put(Markup("<p class=\"note\">Its end: {}</p>{}", EndInWords(process), Show(*process.end)));
    }
    if (what_.processes.empty()) None("No line is of a process of the job on this host.");
    End();
  }

  // ---- what is missing, and what to do -----------------------------------------------------------------------------

  static Html Command(const std::string& command, bool root) {
    if (command.empty()) return {};
    return Markup("<pre><code><span class=\"prompt\">{}</span>{}</code></pre>", root ? "# " : "$ ", command);
  }

  void Artefacts() {
    Begin("artefacts", "What the vendor will ask for");
    std::string missing, given;
    for (const CaseArtefact& artefact : what_.artefacts) {
      if (artefact.given.empty()) {
        missing += Markup("<li><strong>{}</strong>: {}{}{}{}</li>\n", artefact.name, artefact.why,
                          Command(artefact.command, artefact.root), artefact.because ? Show(*artefact.because) : Html{},
                          ShowAll(artefact.not_collected))
                       .markup;
        continue;
      }
      std::string paths;
      for (const std::uint32_t input : artefact.given)
        paths += Markup(" <span class=\"place\">{}</span>", file_.devices.inputs[input].path).markup;
      given += Markup("<li>{}:{}</li>\n", artefact.name, Html{paths}).markup;
    }
    Put(missing.empty() ? Html{"<p class=\"note\">Nothing of the usual is missing.</p>\n"}
                        : Markup("<h3>Not given</h3><ul class=\"missing\">{}</ul>\n", Html{missing}));
    if (!given.empty()) Put(Markup("<h3>Given</h3><ul>{}</ul>\n", Html{given}));
    End();
  }

  void Steps() {
    Begin("steps", "In this order, so that nothing is lost");
    Put({"<ol>\n"});
    for (const CaseStep& step : what_.steps)
      Put(Markup("<li>{}{}{}{}</li>\n", step.text, Command(step.command, step.root),
                 step.destructive ? Markup("<p class=\"note\">It {}.</p>", kDestructive) : Html{},
                 ShowAll(step.quotes)));
    Put({"</ol>\n"});
    End();
  }

  // ---- the files ---------------------------------------------------------------------------------------------------

  void Files() {
    Begin("files", "Files, as they were read");
    Put(
        {"<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">No.</th><th scope=\"col\">File</th>"
         "<th scope=\"col\">Bytes</th><th scope=\"col\">SHA-256</th><th "
         "scope=\"col\">Holds</th></tr></thead><tbody>\n"});
    std::vector<std::string> holds(file_.files.size());
    for (std::uint32_t i = 0; i < file_.devices.inputs.size(); ++i)
      if (file_.file_of[i] < holds.size()) holds[file_.file_of[i]] += Input(i).markup;
    for (std::size_t i = 0; i < file_.files.size(); ++i) {
      const FileDigest& digest = file_.files[i];
      Put(
          Markup("<tr id=\"file-{0}\"><td>{0}</td><th scope=\"row\">{1}</th><td>{2}</td><td><code>{3}</code></td>"
                 "<td>{4}</td></tr>\n",
                 i + 1, digest.path, digest.bytes, digest.sha256.empty() ? "none: " + digest.problem : digest.sha256,
                 Html{holds[i]}));
    }
    Put({"</tbody></table></div>\n"});
    for (const auto& [what, count] : what_.left_out)
      Put(Markup("<p class=\"note\">Left out, more than is held: {} {}</p>\n", count, what));
    End();
  }
  Html Input(std::uint32_t number) const {
    const std::vector<std::string>& kinds = file_.devices.inputs[number].kinds;
    return Markup("<div>{}</div>",
                  InputInWords(file_, number, kinds.empty() ? "" : fmt::format(" ({})", fmt::join(kinds, ", "))));
  }

  const EvidenceFile& file_;
  const VendorCase& what_;
  std::string_view version_;
  const Sink& sink_;
};

}  // namespace

void RenderEvidenceHtml(const EvidenceFile& file, const ReportContext& context, const Sink& sink) {
  EvidencePage(file, context, sink).Render();
}

}  // namespace inquest
