// One host's or GPU's case for a vendor, as text.
#include <fmt/format.h>

#include <algorithm>

#include "report/evidence.h"
#include "report/page.h"
#include "report/words.h"

namespace inquest {

// ---- words ------------------------------------------------------------------------------------------------------

std::string GpuInWords(const GpuId& id) {
  std::vector<std::string> parts;
  if (id.index) parts.push_back(fmt::format("GPU {}", *id.index));
  if (!id.bus_id.empty()) parts.push_back(id.bus_id);
  if (!id.uuid.empty()) parts.push_back(id.uuid);
  return fmt::format("{}{}", id.index ? "" : "GPU ", fmt::join(parts, ", "));
}

std::string PartInWords(const VendorCase& what) {
  const std::string host = what.part.host.empty() ? "a host that no line names" : what.part.host;
  return what.part.gpu ? fmt::format("{} of {}", GpuInWords(*what.part.gpu), host) : host;
}

std::string TimeInWords(const Quote& quote) {
  if (!quote.at) return {};
  std::string out = FormatTime(*quote.at);
  if (quote.at->date == Timestamp::Date::kNone) return out + ", no date";
  if (quote.at->date == Timestamp::Date::kNoYear) out += ", no year";
  return quote.at->zone_known ? out : out + ", zone not printed";
}

std::string BlameInWords(const EvidenceFile& file) {
  const Verdict& verdict = file.verdict;
  const std::string part = file.what.part.gpu ? "this GPU" : "this host";
  switch (verdict.outcome) {
    case Outcome::kHealthy:
      return "The logs show no failure of the job.";
    case Outcome::kUndecided:
      return "No cause of the job's failure could be decided: the verdict blames nobody.";
    case Outcome::kFailed:
      break;
  }
  const std::string cause = fmt::format("{} ({}), {} sure", verdict.title, verdict.cause, Percent(verdict.confidence));
  if (file.what.blamed) return fmt::format("The verdict blames {}: {}.", part, cause);
  const std::vector<std::string> others = CulpritsInWords(verdict);
  return fmt::format("The verdict does not blame {}: {}{}.", part, cause,
                     others.empty() ? "" : fmt::format("; it blames {}", fmt::join(others, "; ")));
}

std::string EndInWords(const CaseProcess& process) {
  if (!process.end) return {};
  return fmt::format("{}{}", Name(process.how),
                     process.said_by.empty() ? "" : fmt::format(", says {}", process.said_by));
}

std::string BasisInWords(const EvidenceFile& file, const Quote& quote) {
  const std::string basis = TimeBasis(file.devices, quote);
  return basis.starts_with("counted from boot") ? "counted from boot" : basis;
}

namespace {
std::string_view InWords(ErrorCode::Need need) {
  switch (need) {
    case ErrorCode::Need::kRestartJob:
      return "restart of the job";
    case ErrorCode::Need::kResetGpu:
      return "reset of the GPU";
    case ErrorCode::Need::kResetSwitch:
      return "reset of the switch with its GPUs";
    case ErrorCode::Need::kRebootNode:
      return "reboot of the host";
    case ErrorCode::Need::kDrainNode:
      return "drain of the host";
    case ErrorCode::Need::kReturnPart:
      return "return of the part, if it repeats or the test fails";
  }
  return {};
}

}  // namespace

std::string InputInWords(const EvidenceFile& file, std::uint32_t number, std::string_view kinds) {
  const InputSummary& input = file.devices.inputs[number];
  const auto host = file.what.input_hosts.find(number);
  const bool is_file = input.path == file.files[file.file_of[number]].path;
  std::string text = fmt::format("{}{} lines{}", is_file ? "" : input.path + ": ", input.lines, kinds);
  if (host != file.what.input_hosts.end())
    text += fmt::format(", of {} ({}{})", host->second.value, Name(host->second.basis),
                        host->second.rule.empty() ? "" : fmt::format(": {}", host->second.rule));
  if (!input.clock.empty()) text += "; clock: " + input.clock;
  if (!input.problem.empty()) text += "; " + input.problem;
  return text;
}

std::string NeedsInWords(const CaseError& error) {
  std::vector<std::string_view> needs;
  if (error.code != nullptr && error.code->role == ErrorCode::Role::kCause)
    for (const ErrorCode::Need need : error.code->needs) needs.push_back(InWords(need));
  return fmt::format("{}", fmt::join(needs, ", "));
}

const FileDigest* FileOf(const EvidenceFile& file, const Quote& quote) {
  if (quote.where.input >= file.file_of.size() || file.file_of[quote.where.input] >= file.files.size()) return nullptr;
  return &file.files[file.file_of[quote.where.input]];
}

namespace {

// ---- the report -------------------------------------------------------------------------------------------------

constexpr int kEvidenceColumns = 64;  ///< of a paragraph of ours

class EvidenceText {
 public:
  EvidenceText(const EvidenceFile& file, const ReportContext& context)
      : file_(file), what_(file.what), page_(context.text), version_(context.tool_version) {}

  std::string Render() {
    page_.Paragraph("", fmt::format("Evidence: {}", PartInWords(what_)), kEvidenceColumns, style::kBold);
    page_.Paragraph("",
                    "Every statement is followed by the lines that say it: [file] path:line  time (how it is known)",
                    kEvidenceColumns, style::kDim);
    Part();
    Errors();
    Lines("Every line that the host's kernel logged of its devices", what_.lines);
    Lines("What tools showed of GPUs that is not as it should be", what_.states);
    Job();
    Artefacts();
    Steps();
    Files();
    page_.Blank();
    page_.Line("", fmt::format("inquest {}", version_), style::kDim);
    return page_.Take();
  }

 private:
  void Show(QuoteIndex index, std::string_view indent = "    ") {
    const Quote& quote = what_.quotes[index];
    const FileDigest* const digest = FileOf(file_, quote);
    std::string head = fmt::format("[{}] {}", digest == nullptr ? "?" : std::to_string(digest - file_.files.data() + 1),
                                   PlaceOf(file_.devices, quote.where));
    if (quote.at) head += fmt::format("  {} ({})", TimeInWords(quote), BasisInWords(file_, quote));
    if (!quote.whole) head += "  (as it was read; the file's own line could not be read again)";
    page_.Print(indent, Sanitize(head), style::kDim);
    page_.Print(std::string(indent) + "  ", Sanitize(quote.text));
  }

  void Facts(const std::vector<CaseFact>& facts, bool counters) {
    for (const CaseFact& fact : facts) {
      if (fact.counter != counters) continue;
      const bool disagree = !fact.counter && fact.values.size() > 1;
      for (const CaseFact::Value& value : fact.values) {
        page_.Print("  ",
                    Sanitize(fmt::format("{}: {}{}", fact.title, value.value, disagree ? "  (values differ)" : "")),
                    disagree ? style::kYellow : style::kPlain);
        for (const QuoteIndex quote : value.quotes) Show(quote);
      }
    }
  }

  void Part() {
    page_.Heading("The host");
    if (what_.host_facts.empty()) page_.Line("  ", "No line describes it.");
    Facts(what_.host_facts, false);
    for (const CaseGpu& gpu : what_.gpus) {
      page_.Heading(gpu.asked ? GpuInWords(gpu.id) : GpuInWords(gpu.id) + " (of the same host)");
      if (gpu.facts.empty()) page_.Line("  ", "No line describes it: its serial number is not in what was given.");
      if (!gpu.asked) {
        Identity(gpu);
        continue;
      }
      Facts(gpu.facts, false);
      if (std::ranges::any_of(gpu.facts, &CaseFact::counter)) page_.Line("  ", "Counters and states", style::kBold);
      Facts(gpu.facts, true);
    }
  }
  /// Of a neighbour its names alone.
  void Identity(const CaseGpu& gpu) {
    for (const CaseFact& fact : gpu.facts)
      if (fact.property == "serial" || fact.property == "uuid" || fact.property == "name")
        for (const CaseFact::Value& value : fact.values) {
          page_.Print("  ", Sanitize(fmt::format("{}: {}", fact.title, value.value)));
          Show(value.quotes.front());
        }
  }

  void Errors() {
    page_.Heading("Numbered errors that a line reports");
    if (what_.errors.empty()) page_.Line("  ", "None: no line of the host that was given reports an Xid or an SXid.");
    for (const CaseError& error : what_.errors) {
      page_.Paragraph(
          "  ",
          fmt::format("{} {}{}, in {} line{}", error.is_sxid ? "SXid" : "Xid", error.number,
                      error.of_part ? "" : " (another device of the host)", error.lines, error.lines == 1 ? "" : "s"),
          kEvidenceColumns, style::kBold);
      Show(error.first);
      if (error.last != error.first) Show(error.last);
      if (error.code == nullptr) continue;
      page_.Paragraph("    ", fmt::format("Catalogue: {} ({})", error.code->meaning, error.code->source),
                      kEvidenceColumns);
      if (const std::string needs = NeedsInWords(error); !needs.empty())
        page_.Paragraph("    ", fmt::format("It asks for: {}", needs), kEvidenceColumns);
    }
  }

  void Lines(std::string_view title, const std::vector<CaseLine>& lines) {
    page_.Heading(title);
    if (lines.empty()) page_.Line("  ", "None was given.");
    const bool split = std::ranges::any_of(lines, [](const CaseLine& line) { return !line.of_part; });
    for (const bool of_part : {true, false}) {
      const bool any = std::ranges::any_of(lines, [&](const CaseLine& line) { return line.of_part == of_part; });
      if (split && any)
        page_.Line("  ", of_part ? "They name this GPU" : "They name other devices of the host, or none", style::kBold);
      for (const CaseLine& line : lines)
        if (line.of_part == of_part) Show(line.quote, "  ");
    }
  }

  void Job() {
    page_.Heading("What the job did there");
    page_.Paragraph("  ", BlameInWords(file_), kEvidenceColumns);
    if (!file_.verdict.summary.empty()) page_.Paragraph("  ", file_.verdict.summary, kEvidenceColumns);
    for (const QuoteIndex quote : what_.verdict_quotes) Show(quote);
    for (const CaseFinding& row : what_.findings) {
      page_.Paragraph("  ",
                      fmt::format("{}{}: {}", row.decided ? "Decided: " : "", row.finding->rule, row.finding->claim),
                      kEvidenceColumns);
      for (const QuoteIndex quote : row.quotes) Show(quote);
    }
    for (const CaseProcess& process : what_.processes) {
      page_.Paragraph("  ", ProcessInWords(process), kEvidenceColumns, style::kBold);
      page_.Line("    ", "first line", style::kDim);
      Show(process.first);
      if (process.doing_since) {
        page_.Line("    ", fmt::format("at {} since", process.doing), style::kDim);
        Show(*process.doing_since);
      }
      page_.Line("    ", "last line", style::kDim);
      Show(process.last);
      if (!process.end) continue;
      page_.Line("    ", fmt::format("its end: {}", EndInWords(process)), style::kDim);
      Show(*process.end);
    }
    if (what_.processes.empty()) page_.Line("  ", "No line is of a process of the job on this host.");
  }
  static std::string ProcessInWords(const CaseProcess& process) {
    std::vector<std::string> parts;
    if (process.rank) parts.push_back(fmt::format("rank {}", process.rank->value));
    if (process.pid) parts.push_back(fmt::format("pid {}", *process.pid));
    if (!process.bus_id.empty()) parts.push_back(fmt::format("on {}", process.bus_id));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  void Artefacts() {
    page_.Heading("What the vendor will ask for, and was not given");
    bool missing = false;
    for (const CaseArtefact& artefact : what_.artefacts) {
      if (!artefact.given.empty()) continue;
      missing = true;
      page_.Paragraph("  - ", fmt::format("{}: {}", artefact.name, artefact.why), kEvidenceColumns);
      if (!artefact.command.empty()) page_.Command("      ", artefact.root ? "# " : "$ ", artefact.command);
      if (artefact.because) Show(*artefact.because, "      ");
      for (const QuoteIndex quote : artefact.not_collected) Show(quote, "      ");
    }
    if (!missing) page_.Line("  ", "Nothing of the usual.");
    for (const CaseArtefact& artefact : what_.artefacts) {
      if (artefact.given.empty()) continue;
      page_.Paragraph(
          "  given: ",
          fmt::format("{}: {}{}", artefact.name, file_.devices.inputs[artefact.given.front()].path,
                      artefact.given.size() > 1 ? fmt::format(" and {} more", artefact.given.size() - 1) : ""),
          kEvidenceColumns, style::kDim);
    }
  }

  void Steps() {
    page_.Heading("In this order, so that nothing is lost");
    int number = 0;
    for (const CaseStep& step : what_.steps) {
      page_.Paragraph(fmt::format("  {:>2}. ", ++number), step.text, kEvidenceColumns);
      if (!step.command.empty()) page_.Command("      ", step.root ? "# " : "$ ", step.command);
      if (step.destructive) page_.Line("      ", fmt::format("It {}.", kDestructive), style::kDim);
      for (const QuoteIndex quote : step.quotes) Show(quote, "      ");
    }
  }

  void Files() {
    page_.Heading("Files, as they were read");
    for (std::size_t i = 0; i < file_.files.size(); ++i) {
      const FileDigest& digest = file_.files[i];
      page_.Print("  ", Sanitize(fmt::format("[{}] {}  {} bytes", i + 1, digest.path, digest.bytes)));
      page_.Print("      ",
                  Sanitize(digest.sha256.empty() ? "no digest: " + digest.problem : "SHA-256 " + digest.sha256));
      for (std::uint32_t input = 0; input < file_.devices.inputs.size(); ++input)
        if (file_.file_of[input] == i) Input(input);
    }
    for (const auto& [what, count] : what_.left_out)
      page_.Line("  ", fmt::format("Left out, more than is held: {} {}", count, what));
  }
  void Input(std::uint32_t number) {
    page_.Paragraph("      ", InputInWords(file_, number, ""), kEvidenceColumns, style::kDim);
  }

  const EvidenceFile& file_;
  const VendorCase& what_;
  Page page_;
  std::string_view version_;
};

}  // namespace

void RenderEvidenceText(const EvidenceFile& file, const ReportContext& context, const Sink& sink) {
  sink(EvidenceText(file, context).Render());
}

}  // namespace inquest
