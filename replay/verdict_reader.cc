// Reads the parts of a verdict document that a replay needs: the collective, the size of the job, NCCL's version.
// Format:  one JSON document, as docs/verdict.schema.json gives it.
#include <simdjson.h>
#include <fmt/format.h>

#include "replay/infer.h"

namespace inquest {
namespace {

using simdjson::dom::element;

std::optional<std::int64_t> Integer(const element& parent, std::string_view key) {
  std::int64_t value = 0;
  if (parent[key].get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::optional<std::string> String(const element& parent, std::string_view key) {
  std::string_view value;
  if (parent[key].get(value) != simdjson::SUCCESS) return std::nullopt;
  return std::string(value);
}

RankSet Ranks(const element& parent, std::string_view key) {
  RankSet values;
  simdjson::dom::array array;
  if (parent[key].get(array) != simdjson::SUCCESS) return values;
  for (const element& entry : array) {
    std::int64_t value = 0;
    if (entry.get(value) == simdjson::SUCCESS && IsRank(value)) values.Add(static_cast<int>(value));
  }
  return values;
}

CollectiveRef CollectiveOf(const element& json) {
  CollectiveRef collective;
  collective.op = String(json, "op").value_or("");
  collective.seq = Integer(json, "seq");
  collective.numel_in = Integer(json, "numel_in");
  collective.numel_out = Integer(json, "numel_out");
  collective.count = Integer(json, "count");
  collective.dtype = String(json, "dtype");
  if (const auto root = Integer(json, "root")) collective.root = static_cast<int>(*root);
  collective.process_group = String(json, "process_group");
  collective.communicator = String(json, "communicator");
  collective.ranks_waiting = Ranks(json, "ranks_waiting");
  collective.ranks_absent = Ranks(json, "ranks_absent");
  return collective;
}

/// Where each rank was.
void AddRanks(const element& document, Timeline& timeline) {
  simdjson::dom::array ranks;
  if (document["job"]["ranks"].get(ranks) != simdjson::SUCCESS) return;
  for (const element& entry : ranks) {
    const auto rank = Integer(entry, "rank");
    if (!rank || !IsRank(*rank) || (!timeline.ranks.empty() && timeline.ranks.back().rank.value >= *rank)) continue;
    ProcessRow process;
    process.host = String(entry, "host");
    process.pid = Integer(entry, "pid");
    process.rank = Known<GlobalRank>{GlobalRank{static_cast<int>(*rank)}, Basis::kObserved, {}};
    process.bus_id = String(entry, "bus_id");
    if (const auto device = Integer(entry, "cuda_dev")) process.cuda_dev = static_cast<int>(*device);
    RankRow row;
    row.rank = GlobalRank{static_cast<int>(*rank)};
    row.process = static_cast<std::uint32_t>(timeline.processes.size());
    timeline.processes.push_back(std::move(process));
    timeline.ranks.push_back(std::move(row));
  }
}

/// The sizes of communicators, and who is in each, of those whose rank is known.
void AddCommunicators(const element& document, Timeline& timeline) {
  simdjson::dom::array communicators;
  if (document["job"]["communicators"].get(communicators) != simdjson::SUCCESS) return;
  for (const element& entry : communicators) {
    const auto nranks = Integer(entry, "nranks");
    simdjson::dom::array members;
    if (!nranks || *nranks < 1 || !IsRank(*nranks) || entry["members"].get(members) != simdjson::SUCCESS) continue;
    CommunicatorRow row;
    row.nranks = static_cast<int>(*nranks);
    for (const element& one : members) {
      const auto rank = Integer(one, "rank"), pid = Integer(one, "pid");
      const auto host = String(one, "host");
      const auto process = std::ranges::find_if(
          timeline.processes, [&](const ProcessRow& each) { return pid && each.pid == pid && each.host == host; });
      if (!rank || !IsRank(*rank) || process == timeline.processes.end()) continue;
      CommunicatorRow::Member& member = row.members.emplace_back();
      member.rank = GroupRank{static_cast<int>(*rank)};
      member.process = static_cast<std::uint32_t>(process - timeline.processes.begin());
    }
    timeline.communicators.push_back(std::move(row));
  }
}

Timeline JobOf(const element& document) {
  Timeline timeline;
  element size;
  if (document["job"]["world_size"].get(size) == simdjson::SUCCESS) {
    const bool printed = String(size, "basis") == Name(Basis::kObserved);
    if (const auto value = Integer(size, "value"))
      timeline.world_size = {static_cast<int>(*value), printed ? Basis::kObserved : Basis::kDerived, ""};
  }
  AddRanks(document, timeline);
  AddCommunicators(document, timeline);
  simdjson::dom::array nccl;
  if (document["job"]["versions"]["nccl"].get(nccl) == simdjson::SUCCESS) {
    for (const element& version : nccl) {
      std::string_view text;
      if (version.get(text) == simdjson::SUCCESS) timeline.versions["nccl"].emplace_back(text);
    }
  }
  return timeline;
}

std::vector<std::string> DisagreementsOf(const element& document, const CollectiveRef& collective) {
  std::vector<std::string> claims;
  simdjson::dom::array findings;
  if (document["findings"].get(findings) != simdjson::SUCCESS) return claims;
  for (const element& finding : findings) {
    const bool weighs = String(finding, "strength").value_or("hint") != "hint";
    const auto claim = String(finding, "claim");
    if (claim && TellsOfDisagreement(String(finding, "cause").value_or(""), weighs, collective))
      claims.push_back(*claim);
  }
  return claims;
}

/// The first quoted line that names the operation.
std::optional<SourceLine> LineOf(const element& verdict, const CollectiveRef& collective) {
  simdjson::dom::array evidence;
  if (verdict["evidence"].get(evidence) != simdjson::SUCCESS) return std::nullopt;
  for (const element& entry : evidence) {
    const auto text = String(entry, "text"), source = String(entry, "source");
    const auto line = Integer(entry, "line");
    if (text && source && line && text->find(collective.op) != std::string::npos)
      return SourceLine{*source, static_cast<std::uint64_t>(*line)};
  }
  return std::nullopt;
}

}  // namespace

bool LooksLikeVerdict(std::string_view text) {
  const std::size_t brace = text.find_first_not_of(" \t\r\n");
  if (brace == std::string_view::npos || text[brace] != '{') return false;
  const std::size_t key = text.find_first_not_of(" \t\r\n", brace + 1);
  return key != std::string_view::npos && text.substr(key).starts_with("\"schema\"");
}

Result<Plan> PlanFromVerdict(std::string_view json, const std::string& path, std::optional<int> ranks) {
  simdjson::dom::parser parser;
  element document, verdict, collective;
  if (const auto error = parser.parse(json.data(), json.size()).get(document))
    return Error{fmt::format("this is no JSON: {}", simdjson::error_message(error)),
                 "give what inquest --format json printed", path};
  if (document["verdict"].get(verdict) != simdjson::SUCCESS)
    return Error{"this is no verdict of inquest", "give what inquest --format json printed", path};
  if (verdict["collective"].get(collective) != simdjson::SUCCESS || !collective.is_object())
    return Error{"the verdict speaks of no collective", "name one with --op, --count and --ranks", path};
  const CollectiveRef ref = CollectiveOf(collective);
  Plan plan =
      PlanFrom(JobOf(document),
               {.collective = ref, .disagreements = DisagreementsOf(document, ref), .cited = {}, .ranks = ranks});
  const SourceLine line = LineOf(verdict, ref).value_or(SourceLine{path, 0});
  const auto place = [&](auto& argument) {
    if (argument.basis >= Basis::kDerived && !argument.at) argument.at = line;
  };
  place(plan.operation);
  place(plan.count);
  place(plan.datatype);
  place(plan.root);
  place(plan.ranks);
  for (RankPlace& rank : plan.places)
    if (!rank.was.host.empty() || rank.was.device) rank.was.at = SourceLine{path, 0};
  return plan;
}

}  // namespace inquest
