// The verdict as a SARIF log, for what shows findings of analysers: one result at the line that proves it, the other
// lines related to it.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "report/json_document.h"
#include "report/json_parts.h"
#include "report/json_value.h"
#include "report/report.h"
#include "report/terminal.h"
#include "report/words.h"

namespace inquest {
namespace {

using Json = JsonValue;

constexpr std::size_t kMostRelated = 50;
constexpr int kSarifColumns = 2000;  ///< columns

/// A message of plain text, in which SARIF knows one markup: `[text](where)`.
Json Message(std::string_view text) {
  std::string plain = Cut(Reveal(text), kSarifColumns);
  for (std::size_t at = plain.find("]("); at != std::string::npos; at = plain.find("](", at)) plain.insert(at + 1, " ");
  return Json{{"text", plain}};
}

/// A relative reference, but for a path from the root. Every byte that is not unreserved is encoded, so that a colon in
/// a name begins no scheme.
std::string UriOf(std::string_view path) {
  constexpr std::string_view kUnreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  while (path.starts_with("./")) path.remove_prefix(2);
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path)
    uri += kUnreserved.find(c) != std::string_view::npos ? std::string(1, c)
                                                         : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return uri;
}

bool HasPlace(const Timeline& timeline, const Citation& citation) {
  return citation.where.input < timeline.inputs.size() && citation.where.InputLine() > 0;
}

Json PlaceIn(const Timeline& timeline, const Citation& citation) {
  return Json{{"artifactLocation", Json{{"uri", UriOf(timeline.inputs[citation.where.input].path)}}},
              {"region", Json{{"startLine", citation.where.InputLine()}, {"snippet", Message(citation.text)}}}};
}

/// Cited lines but the one at which the result stands, and the first of each symptom.
Json Related(const Timeline& timeline, const Verdict& verdict) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> known;
  Json out = Json::array();
  std::size_t count = 0;
  const auto add = [&](const Citation& citation, std::string_view what) {
    const bool is_new = known.insert({citation.where.input, citation.where.line}).second;
    if (!is_new || known.size() == 1 || count == kMostRelated || !HasPlace(timeline, citation)) return;
    out.push_back(Json{{"id", ++count}, {"message", Message(what)}, {"physicalLocation", PlaceIn(timeline, citation)}});
  };
  for (const Citation& citation : verdict.evidence)
    add(citation, citation.rank ? fmt::format("{} of rank {}", Name(citation.role), citation.rank->value)
                                : std::string(Name(citation.role)));
  for (const Finding& finding : verdict.findings)
    if (finding.cause.empty() && !finding.citations.empty()) add(finding.citations.front(), FirstClause(finding.claim));
  return out;
}

Json ResultOf(const Timeline& timeline, const Verdict& verdict) {
  std::string text = verdict.summary;
  const std::vector<std::string> culprits = CulpritsInWords(verdict);
  if (!culprits.empty())
    text +=
        fmt::format(" {}: {}", verdict.outcome == Outcome::kFailed ? "Culprit" : "Look at", fmt::join(culprits, "; "));
  Json alternatives = Json::array();
  for (const Alternative& other : verdict.alternatives)
    alternatives.push_back(Json{{"cause", other.cause},
                                {"confidence", Rounded(other.confidence)},
                                {"why", Cut(Reveal(other.why), kSarifColumns)}});
  Json out{{"ruleId", verdict.cause},
           {"ruleIndex", 0},
           {"level", verdict.outcome == Outcome::kFailed ? "error" : "warning"},
           {"message", Message(text)}};
  // GitHub shows no result without a place.
  if (!verdict.evidence.empty() && HasPlace(timeline, verdict.evidence.front())) {
    Json places = Json::array();
    places.push_back(Json{{"physicalLocation", PlaceIn(timeline, verdict.evidence.front())}});
    out.Add("locations", places);
  } else if (!timeline.inputs.empty()) {
    const Json artifact{{"artifactLocation", Json{{"uri", UriOf(timeline.inputs.front().path)}}}};
    Json places = Json::array();
    places.push_back(Json{{"physicalLocation", artifact}});
    out.Add("locations", places);
  }
  out.Add("relatedLocations", Related(timeline, verdict));
  // The second is the one that GitHub knows: lines of logs move from run to run, failures are the same.
  if (!verdict.fingerprint.empty())
    out.Add("partialFingerprints",
            Json{{"inquest/v1", verdict.fingerprint}, {"primaryLocationLineHash", verdict.fingerprint + ":1"}});
  out.Add("properties", Json{{"confidence", Rounded(verdict.confidence)},
                             {"signature", OrNull(verdict.rule)},
                             {"retry", Name(verdict.retry)},
                             {"culprits", culprits},
                             {"exclude_hosts", verdict.exclude_hosts},
                             {"alternatives", alternatives},
                             {"collect_next", verdict.collect_next}});
  return out;
}

/// The cause, the rule that decided, and those of the symptoms.
Json RulesOf(const Verdict& verdict) {
  Json out = Json::array();
  std::set<std::string> known;
  const auto add = [&](const std::string& id, const std::string& means) {
    if (!id.empty() && known.insert(id).second)
      out.push_back(Json{{"id", id}, {"shortDescription", Message(means.empty() ? id : means)}});
  };
  add(verdict.cause, verdict.title);
  for (const Finding& finding : verdict.findings)
    if (finding.rule == verdict.rule || finding.cause.empty()) add(finding.rule, FirstClause(finding.claim));
  return out;
}

}  // namespace

void RenderSarif(const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink) {
  const bool healthy = verdict.outcome == Outcome::kHealthy;
  JsonDocument document(sink);
  document.Begin('{');
  document.Key("$schema").Value(
      "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json");
  document.Key("version").Value("2.1.0");
  document.Key("runs").Begin('[');
  document.Begin('{');
  document.Key("tool").Value(Json{{"driver", Json{{"name", "inquest"},
                                                  {"version", context.tool_version},
                                                  {"rules", healthy ? Json::array() : RulesOf(verdict)}}}});
  document.Key("invocations").Begin('[');
  document.Value(Json{{"executionSuccessful", true}});
  document.End();
  document.Key("results").Begin('[');
  if (!healthy) document.Value(ResultOf(timeline, verdict));
  document.End();
  document.Key("properties")
      .Value(Json{{"outcome", Name(verdict.outcome)},
                  {"fingerprint", OrNull(verdict.fingerprint)},
                  {"job", IdentityInJson(timeline, verdict)},
                  {"warnings", verdict.warnings}});
  document.End();
  document.End();
  document.End();
}

}  // namespace inquest
