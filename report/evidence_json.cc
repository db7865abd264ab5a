// One host's or GPU's case for a vendor, in JSON.
#include "report/evidence.h"
#include "report/json_document.h"
#include "report/json_parts.h"
#include "report/words.h"

namespace inquest {
namespace {

using Json = JsonValue;
constexpr std::string_view kEvidenceSchema = "inquest-evidence-1";

class EvidenceJson {
 public:
  explicit EvidenceJson(const EvidenceFile& file) : file_(file), what_(file.what) {}

  void Write(JsonDocument& document) const {
    document.Key("part").Value(Json{{"asked", what_.asked},
                                    {"host", OrNull(what_.part.host)},
                                    {"gpu", what_.part.gpu ? IdOf(*what_.part.gpu) : Json(nullptr)}});
    document.List("host_facts", what_.host_facts, [&](const CaseFact& fact) { return FactOf(fact); });
    document.List("gpus", what_.gpus, [&](const CaseGpu& gpu) {
      Json row = IdOf(gpu.id);
      row.Add("asked", gpu.asked);
      row.Add("facts", ListOf(gpu.facts, [&](const CaseFact& fact) { return FactOf(fact); }));
      return row;
    });
    document.List("errors", what_.errors, [&](const CaseError& error) { return ErrorOf(error); });
    document.List("lines", what_.lines, [&](const CaseLine& line) { return LineOf(line); });
    document.List("states", what_.states, [&](const CaseLine& line) { return LineOf(line); });
    WriteVerdict(document);
    document.List("processes", what_.processes, [&](const CaseProcess& process) { return ProcessOf(process); });
    document.List("artefacts", what_.artefacts, [&](const CaseArtefact& artefact) {
      return Json{
          {"name", artefact.name},
          {"missing", artefact.given.empty()},
          {"given", ListOf(artefact.given, [&](std::uint32_t i) { return Json(file_.devices.inputs[i].path); })},
          {"why", artefact.why},
          {"command", artefact.command},
          {"needs_root", artefact.root},
          {"because", artefact.because ? QuoteOf(*artefact.because) : Json(nullptr)},
          {"not_collected", QuotesOf(artefact.not_collected)}};
    });
    document.List("steps", what_.steps, [&](const CaseStep& step) {
      return Json{{"text", step.text},
                  {"command", OrNull(step.command)},
                  {"needs_root", step.root},
                  {"destructive", step.destructive},
                  {"lines", QuotesOf(step.quotes)}};
    });
    document.List("files", file_.files, [](const FileDigest& digest) {
      return Json{{"path", digest.path},
                  {"bytes", digest.bytes},
                  {"sha256", OrNull(digest.sha256)},
                  {"problem", OrNull(digest.problem)}};
    });
    WriteInputs(document);
  }

 private:
  static Json ListOf(const auto& rows, const auto& convert) {
    Json list = Json::array();
    for (const auto& row : rows) list.push_back(convert(row));
    return list;
  }
  static Json IdOf(const GpuId& id) {
    return Json{{"index", OrNull(id.index)}, {"bus_id", OrNull(id.bus_id)}, {"uuid", OrNull(id.uuid)}};
  }

  Json QuoteOf(QuoteIndex index) const {
    const Quote& quote = what_.quotes[index];
    const FileDigest* const digest = FileOf(file_, quote);
    const bool known = quote.where.input < file_.devices.inputs.size();
    const std::string basis = TimeBasis(file_.devices, quote);
    return Json{{"source", known ? Json(file_.devices.inputs[quote.where.input].path) : Json(nullptr)},
                {"line", quote.where.InputLine()},
                {"time", quote.at ? Json(FormatTime(*quote.at)) : Json(nullptr)},
                {"zone_known", quote.at ? Json(quote.at->zone_known) : Json(nullptr)},
                {"time_basis", OrNull(basis)},
                {"text", quote.text},
                {"whole", quote.whole},
                {"sha256", digest == nullptr ? Json(nullptr) : OrNull(digest->sha256)}};
  }
  Json QuotesOf(const std::vector<QuoteIndex>& quotes) const {
    return ListOf(quotes, [&](QuoteIndex quote) { return QuoteOf(quote); });
  }

  Json FactOf(const CaseFact& fact) const {
    return Json{{"property", fact.property},
                {"title", fact.title},
                {"counter", fact.counter},
                {"disagree", !fact.counter && fact.values.size() > 1},
                {"values", ListOf(fact.values, [&](const CaseFact::Value& value) {
                   return Json{{"value", value.value}, {"lines", QuotesOf(value.quotes)}};
                 })}};
  }
  Json LineOf(const CaseLine& line) const {
    return Json{{"kind", line.kind},         {"xid", OrNull(line.xid)},
                {"sxid", OrNull(line.sxid)}, {"bus_id", OrNull(line.bus_id)},
                {"of_part", line.of_part},   {"line", QuoteOf(line.quote)}};
  }
  Json ErrorOf(const CaseError& error) const {
    Json needs = Json::array();
    if (error.code != nullptr && error.code->role == ErrorCode::Role::kCause)
      for (const ErrorCode::Need need : error.code->needs) needs.push_back(Name(need));
    return Json{{"kind", error.is_sxid ? "sxid" : "xid"},
                {"number", error.number},
                {"of_part", error.of_part},
                {"count", error.lines},
                {"first", QuoteOf(error.first)},
                {"last", QuoteOf(error.last)},
                {"meaning", error.code == nullptr ? Json(nullptr) : Json(error.code->meaning)},
                {"action", error.code == nullptr ? Json(nullptr) : Json(error.code->action)},
                {"needs", needs},
                {"source", error.code == nullptr ? Json(nullptr) : Json(error.code->source)}};
  }
  Json ProcessOf(const CaseProcess& process) const {
    return Json{{"rank", OrNull(process.rank)},
                {"pid", OrNull(process.pid)},
                {"bus_id", OrNull(process.bus_id)},
                {"of_part", process.of_part},
                {"first", QuoteOf(process.first)},
                {"last", QuoteOf(process.last)},
                {"doing", OrNull(process.doing)},
                {"doing_since", process.doing_since ? QuoteOf(*process.doing_since) : Json(nullptr)},
                {"end", process.end ? Json{{"how", Name(process.how)},
                                           {"said_by", OrNull(process.said_by)},
                                           {"line", QuoteOf(*process.end)}}
                                    : Json(nullptr)}};
  }

  void WriteVerdict(JsonDocument& document) const {
    const Verdict& verdict = file_.verdict;
    Json findings = ListOf(what_.findings, [&](const CaseFinding& row) {
      return Json{{"signature", row.finding->rule}, {"cause", OrNull(row.finding->cause)},
                  {"claim", row.finding->claim},    {"strength", Name(row.finding->strength)},
                  {"decided", row.decided},         {"explained_by", OrNull(row.finding->explained_by)},
                  {"lines", QuotesOf(row.quotes)}};
    });
    document.Key("verdict").Value(Json{{"outcome", Name(verdict.outcome)},
                                       {"cause", verdict.cause},
                                       {"title", verdict.title},
                                       {"summary", verdict.summary},
                                       {"confidence", Rounded(verdict.confidence)},
                                       {"fingerprint", OrNull(verdict.fingerprint)},
                                       {"job", IdInJson(verdict.job)},
                                       {"blames_part", what_.blamed},
                                       {"lines", QuotesOf(what_.verdict_quotes)},
                                       {"findings", findings}});
  }

  void WriteInputs(JsonDocument& document) const {
    document.Key("inputs").Begin('[');
    for (std::uint32_t i = 0; i < file_.devices.inputs.size(); ++i) {
      const InputSummary& input = file_.devices.inputs[i];
      const auto host = what_.input_hosts.find(i);
      const bool known = host != what_.input_hosts.end();
      document.Value(Json{{"path", input.path},
                          {"file", file_.file_of[i]},
                          {"bytes", input.bytes},
                          {"lines", input.lines},
                          {"kinds", input.kinds},
                          {"host", known ? Json(host->second.value) : Json(nullptr)},
                          {"host_basis", known ? Json(Name(host->second.basis)) : Json(nullptr)},
                          {"host_rule", known && !host->second.rule.empty() ? Json(host->second.rule) : Json(nullptr)},
                          {"clock", OrNull(input.clock)},
                          {"problem", OrNull(input.problem)}});
    }
    document.End();
    document.Key("left_out").Begin('[');
    for (const auto& [what, count] : what_.left_out) document.Value(Json{{"what", what}, {"count", count}});
    document.End();
  }

  const EvidenceFile& file_;
  const VendorCase& what_;
};

}  // namespace

void RenderEvidenceJson(const EvidenceFile& file, std::string_view tool_version, const Sink& sink) {
  JsonDocument document(sink);
  document.Begin('{');
  document.Key("schema").Value(kEvidenceSchema);
  document.Key("tool").Value(Json{{"name", "inquest"}, {"version", tool_version}});
  EvidenceJson(file).Write(document);
  document.End();
}

}  // namespace inquest
