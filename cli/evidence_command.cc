// `inquest evidence HOST PATH...`: one host's or GPU's case for a vendor.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/file_digest.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "cli/rule_set.h"
#include "cli/source_lines.h"
#include "report/evidence.h"

namespace inquest {
namespace {

/// All that a report refers to, for as long as it is printed.
struct Gathered {
  AnalysisWithDevices read;
  VendorCase what;
  std::vector<FileDigest> files;
  std::vector<std::uint32_t> file_of;

  EvidenceFile File() const {
    return {read.devices, read.analysis.timeline, read.analysis.verdict, what, files, file_of};
  }
};

/// By what was asked for, else by the file's name; a page where it has no ending. Nothing that another ending stands
/// for is written.
Result<std::string> FormatOf(const EvidenceOptions& options) {
  if (!options.format.empty()) return options.format;
  if (options.output.empty() || options.output == "-") return std::string("text");
  const std::string ending = std::filesystem::path(options.output).extension().string();
  if (ending == ".json") return std::string("json");
  if (ending == ".txt" || ending == ".text") return std::string("text");
  if (ending.empty() || ending == ".html" || ending == ".htm") return std::string("html");
  return Error{fmt::format("{}: no format of that ending", options.output),
               "end the name with .html, .json or .txt, or say which by --format", ""};
}

void Render(const std::string& format, const EvidenceFile& file, const ReportContext& context, const Sink& sink) {
  if (format == "json") return RenderEvidenceJson(file, context.tool_version, sink);
  if (format == "html") return RenderEvidenceHtml(file, context, sink);
  RenderEvidenceText(file, context, sink);
}

std::vector<FileDigest> DigestsOf(const std::vector<Input>& files) {
  std::vector<FileDigest> out;
  for (const Input& file : files) {
    FileDigest row{.path = file.path, .bytes = file.size_bytes, .sha256 = {}, .problem = {}};
    if (file.path == "-") {
      row.problem = "it came through a pipe and cannot be read again";
    } else if (const Result<Digest> digest = Sha256OfFile(file.path); !digest) {
      row.problem = digest.error().message;
    } else if (file.size_bytes != 0 && digest->bytes != file.size_bytes) {
      row.problem = "it changed while it was read";
    } else {
      row.bytes = digest->bytes;
      row.sha256 = digest->hex;
    }
    out.push_back(std::move(row));
  }
  return out;
}

/// Lines of which only what is behind an envelope was held, as their files have them.
void QuoteWhole(VendorCase& what, const Timeline& devices, const std::vector<Input>& files) {
  std::vector<SourcePos> places;
  for (const Quote& quote : what.quotes) places.push_back(quote.where);
  const auto lines = LinesAt(devices.inputs, files, places);
  for (Quote& quote : what.quotes) {
    const auto line = lines.find({quote.where.input, quote.where.offset});
    // What was put together of several lines, or out of a document, is no line of the file.
    if (line == lines.end() || line->second.find(quote.text) == std::string::npos) continue;
    quote.text = line->second;
    quote.whole = true;
  }
}

}  // namespace

CommandResult RunEvidence(const Options& options) {
  if (options.arguments.size() < 2)
    return CouldNotRun({options.arguments.empty() ? "no host is named" : "nothing to read",
                        "name a host or a GPU, then logs: inquest evidence node08 run-42/ -o case.html", ""});
  const std::string& asked = options.arguments.front();
  const std::vector<std::string> paths(options.arguments.begin() + 1, options.arguments.end());
  const std::string& path = options.evidence.output;
  const Result<std::string> format_asked = FormatOf(options.evidence);
  if (!format_asked) return CouldNotRun(format_asked.error());
  const std::string& format = *format_asked;
  const bool to_file = !path.empty() && path != "-";
  const ReportFile out{.path = path,
                       .option = "--output",
                       .mark = format == "json"   ? kEvidenceMark
                               : format == "html" ? std::string_view("content=\"inquest\"")
                                                  : std::string_view()};
  if (to_file)
    if (const auto error = CheckReportFile(out, paths)) return CouldNotRun(*error);
  std::variant<RuleBook, RuleErrors> loaded = LoadRuleSet(options.analysis.rules_dir);
  if (const RuleErrors* errors = std::get_if<RuleErrors>(&loaded)) return BadRules(*errors);
  const auto book = std::make_shared<const RuleBook>(std::get<RuleBook>(std::move(loaded)));
  const Result<std::unique_ptr<Sieve>> sieve = LoadSieveFor(options.analysis.rules_dir, *book);
  if (!sieve) return CouldNotRun(sieve.error());

  std::atomic<std::uint64_t> done = 0;
  std::optional<Progress> progress;
  if (ErrorIsTerminal()) progress.emplace(done, TotalBytes(paths));
  Result<AnalysisWithDevices> read = AnalyzeWithDevices(
      paths, *book, **sieve,
      {.threads = options.analysis.threads, .progress_bytes = &done, .hosts = options.analysis.hosts},
      options.analysis.attempt);
  progress.reset();
  if (!read) return CouldNotRun(read.error());
  Result<CasePart> part = FindPart(read->devices, asked);
  if (!part) return CouldNotRun(part.error());
  auto gathered = std::make_shared<Gathered>();
  gathered->read = std::move(*read);
  const AnalysisWithDevices& both = gathered->read;
  const std::vector<Input>& files = both.analysis.inputs;
  gathered->what =
      BuildCase(both.analysis.timeline, both.analysis.verdict, both.devices, *book, asked, *std::move(part));
  gathered->files = DigestsOf(files);
  gathered->file_of = FilesOf(both.devices.inputs, files);
  QuoteWhole(gathered->what, both.devices, files);

  CommandResult result{.status = 0, .out = "", .err = ""};
  const auto context = [&](const TextStyle& style) { return ReportContext{.text = style, .tool_version = Version()}; };
  if (!to_file) {
    result.print = [gathered, book, format, context = context(StyleOfOutput(options))](const Sink& sink) {
      Render(format, gathered->File(), context, sink);
    };
    return result;
  }
  const auto error = WriteReportFile(
      out, [&](const Sink& sink) { Render(format, gathered->File(), context(StyleOfFile(options)), sink); });
  return error ? CouldNotRun(*error) : result;
}

}  // namespace inquest
