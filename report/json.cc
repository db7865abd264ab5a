// The verdict as one JSON document. Its fields are explained in docs/json.md and fixed by docs/verdict.schema.json.
#include <fmt/format.h>

#include <array>
#include <map>

#include "report/event_json.h"
#include "report/json_document.h"
#include "report/json_parts.h"
#include "report/json_value.h"
#include "report/lane_events.h"
#include "report/recorded.h"
#include "report/report.h"

namespace inquest {
namespace {

using Document = JsonDocument;
using Json = JsonValue;

Json Time(const std::optional<Timestamp>& at) { return at ? Json(FormatTime(*at)) : Json(nullptr); }

Json Source(const Timeline& timeline, const SourcePos& where) {
  return where.input < timeline.inputs.size() ? Json(timeline.inputs[where.input].path) : Json(nullptr);
}

Json Ranks(const RankSet& ranks) {
  Json list = Json::array();
  for (const int rank : ranks) list.push_back(rank);
  return list;
}

Json ToJson(const std::optional<CollectiveRef>& collective) {
  if (!collective) return nullptr;
  const CollectiveRef& c = *collective;
  return Json{{"op", OrNull(c.op)},
              {"seq", OrNull(c.seq)},
              {"op_count", OrNull(c.op_count)},
              {"numel_in", OrNull(c.numel_in)},
              {"numel_out", OrNull(c.numel_out)},
              {"count", OrNull(c.count)},
              {"dtype", OrNull(c.dtype)},
              {"root", OrNull(c.root)},
              {"timeout_ms", OrNull(c.timeout_ms)},
              {"process_group", OrNull(c.process_group)},
              {"communicator", OrNull(c.communicator)},
              {"ranks_waiting", Ranks(c.ranks_waiting)},
              {"ranks_absent", Ranks(c.ranks_absent)}};
}

/// Who quotes a record that is no event of its own gives the line's place alone.
Json ReadIn(const Timeline& timeline, const Citation& citation) {
  const bool known = citation.event < timeline.events.size() && timeline.events[citation.event].where == citation.where;
  return known ? EventInJson(timeline.events[citation.event].what) : Json(nullptr);
}

Json ToJson(const Timeline& timeline, const Citation& citation) {
  return Json{{"source", Source(timeline, citation.where)},
              {"line", citation.where.InputLine()},
              {"time", Time(citation.at)},
              {"rank", OrNull(citation.rank)},
              {"text", citation.text},
              {"role", Name(citation.role)},
              {"event", ReadIn(timeline, citation)}};
}

template <class T>
Json List(const std::vector<T>& items, const auto& convert) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(convert(item));
  return list;
}

Json Citations(const Timeline& timeline, const std::vector<Citation>& citations) {
  return List(citations, [&](const Citation& citation) { return ToJson(timeline, citation); });
}
Json Remedies(const std::vector<Remedy>& remedies) {
  return List(remedies, [](const Remedy& remedy) {
    return Json{{"text", remedy.text},
                {"kind", Name(remedy.kind)},
                {"command", OrNull(remedy.command)},
                {"run_on", remedy.command.empty() ? Json(nullptr) : Json(Name(remedy.run_on))},
                {"hosts", remedy.hosts},
                {"needs_root", remedy.root},
                {"destructive", remedy.destructive},
                {"needs", List(remedy.needs, [](const Remedy::Want& want) {
                   return Json{{"name", want.name}, {"meaning", want.meaning}};
                 })}};
  });
}

Json ToJson(const Timeline& timeline, const Verdict& verdict) {
  return Json{{"cause", verdict.cause},
              {"title", verdict.title},
              {"summary", verdict.summary},
              {"confidence", Rounded(verdict.confidence)},
              {"signature", OrNull(verdict.rule)},
              {"culprits", InJson(verdict.culprits)},
              {"collective", ToJson(verdict.collective)},
              {"evidence", Citations(timeline, verdict.evidence)},
              {"remedies", Remedies(verdict.remedies)},
              {"collect_next", verdict.collect_next},
              {"retry", Name(verdict.retry)},
              {"exclude_hosts", verdict.exclude_hosts},
              {"fingerprint", OrNull(verdict.fingerprint)}};
}

Json ToJson(const Alternative& alternative) {
  return Json{{"cause", alternative.cause},
              {"confidence", Rounded(alternative.confidence)},
              {"signature", OrNull(alternative.rule)},
              {"why", alternative.why}};
}

Json ToJson(const Timeline& timeline, const AttemptTold& attempt) {
  const auto line = [&](const Citation& citation) {
    return Json{{"source", Source(timeline, citation.where)},
                {"line", citation.where.InputLine()},
                {"time", Time(citation.at)}};
  };
  return Json{{"number", attempt.number},
              {"judged", attempt.judged},
              {"first", line(attempt.first)},
              {"last", line(attempt.last)},
              {"outcome", attempt.cause.empty() ? Json(nullptr) : Json(Name(attempt.outcome))},
              {"cause", OrNull(attempt.cause)},
              {"confidence", Rounded(attempt.confidence)},
              {"summary", OrNull(attempt.summary)}};
}

Json ToJson(const Timeline& timeline, const Finding& finding) {
  return Json{{"signature", finding.rule},
              {"cause", OrNull(finding.cause)},
              {"strength", Name(finding.strength)},
              {"confidence", Rounded(finding.confidence)},
              {"claim", finding.claim},
              {"times", finding.times},
              {"culprits", InJson(finding.culprits)},
              {"collective", ToJson(finding.collective)},
              {"evidence", Citations(timeline, finding.citations)},
              {"explains", finding.explains},
              {"explained_by", OrNull(finding.explained_by)}};
}

// ---- job: who is who -------------------------------------------------------------------------------------------

Json RankToJson(const Timeline& timeline, const RankRow& row) {
  static const ProcessRow kUnknown;
  const ProcessRow& process = row.process ? timeline.processes[*row.process] : kUnknown;
  return Json{{"rank", row.rank.value},
              {"basis", process.rank ? Json(Name(process.rank->basis)) : Json(nullptr)},
              {"host", OrNull(process.host)},
              {"pid", OrNull(process.pid)},
              {"local_rank", OrNull(process.local_rank)},
              {"cuda_dev", OrNull(process.cuda_dev)},
              {"bus_id", OrNull(process.bus_id)}};
}

Json CallToJson(const CallDescriptor& call) {
  return Json{
      {"op", call.op}, {"count", call.count}, {"datatype", call.datatype}, {"redop", call.redop}, {"root", call.root}};
}

std::string_view StateOf(const CommunicatorRow::Member& member) {
  if (member.aborted) return "aborted";
  if (member.ended) return "ended";
  if (member.completed) return "completed";
  return member.started ? "started" : "seen";
}

Json MemberToJson(const Timeline& timeline, const CommunicatorRow::Member& member) {
  const bool known = member.process < timeline.processes.size();
  const bool called = member.calls > 0;
  return Json{{"rank", OrNull(member.rank)},
              {"host", known ? OrNull(timeline.processes[member.process].host) : Json(nullptr)},
              {"pid", known ? OrNull(timeline.processes[member.process].pid) : Json(nullptr)},
              {"state", StateOf(member)},
              {"calls", member.calls},
              {"last_op_count", OrNull(member.last_op_count)},
              {"last_call", called ? CallToJson(member.last_call) : Json(nullptr)},
              {"source", called ? Source(timeline, member.last_call_at) : Json(nullptr)},
              {"line", called ? Json(member.last_call_at.InputLine()) : Json(nullptr)}};
}

Json DivergenceToJson(const Timeline& timeline, const std::optional<CommunicatorRow::Divergence>& divergence) {
  if (!divergence) return nullptr;
  const auto side_to_json = [&](const CommunicatorRow::Divergence::Side& side) {
    return Json{{"ranks", side.ranks},
                {"call", CallToJson(side.call)},
                {"source", Source(timeline, side.where)},
                {"line", side.where.InputLine()}};
  };
  return Json{{"number", divergence->number}, {"sides", List(divergence->sides, side_to_json)}};
}

void Write(const Timeline& timeline, const CommunicatorRow& row, Document& document) {
  document.Begin('{');
  document.Key("id").Value(row.comm_id ? Json(fmt::format("{:#x}", row.comm_id->value)) : Json(nullptr));
  document.Key("basis").Value(row.comm_id ? Json(Name(row.comm_id->basis)) : Json(nullptr));
  document.Key("nranks").Value(row.nranks);
  document.Key("whole_history").Value(row.whole_history);
  document.List("members", row.members, [&](const auto& member) { return MemberToJson(timeline, member); });
  document.Key("divergence").Value(DivergenceToJson(timeline, row.divergence));
  document.End();
}

Json GroupToJson(const GroupRow& row) {
  Json members = Json::array();
  for (const auto& [rank, member] : row.members) {
    members.push_back(Json{{"rank", rank.value},
                           {"group_rank", OrNull(member.group_rank)},
                           {"last_enqueued", OrNull(member.last_enqueued)},
                           {"last_completed", OrNull(member.last_completed)},
                           {"failed_work", OrNull(member.failed_work)}});
  }
  return Json{{"name", row.name}, {"desc", row.desc}, {"members", std::move(members)}};
}

void WriteIdentity(const Verdict& verdict, Document& document) {
  document.Key("id").Value(IdInJson(verdict.job));
  document.Key("name").Value(OrNull(verdict.job.name));
  document.Key("environment").Value(OrNull(std::string(verdict.job.environment)));
  document.Key("attempt").Value(AttemptInJson(verdict));
  document.Key("start").Value(MomentInJson(verdict.job.start));
  document.Key("end").Value(MomentInJson(verdict.job.end));
}

void WriteJob(const Timeline& timeline, const Verdict& verdict, Document& document) {
  Json world = nullptr;
  if (timeline.world_size)
    world = Json{{"value", timeline.world_size->value}, {"basis", Name(timeline.world_size->basis)}};
  Json versions = Json::object();
  for (const auto& [name, values] : timeline.versions) versions.Add(name, values);
  document.Begin('{');
  WriteIdentity(verdict, document);
  document.Key("world_size").Value(world);
  document.List("ranks", timeline.ranks, [&](const RankRow& row) { return RankToJson(timeline, row); });
  document.Key("hosts").Value(timeline.hosts);
  document.Key("versions").Value(versions);
  document.Key("communicators").Begin('[');
  for (const CommunicatorRow& row : timeline.communicators) Write(timeline, row, document);
  document.End();
  document.List("process_groups", timeline.groups, GroupToJson);
  document.End();
}

Json EventToJson(const Timeline& timeline, const std::optional<EventIndex>& index) {
  if (!index || *index >= timeline.events.size()) return nullptr;
  const Event& event = timeline.events[*index];
  return Json{{"source", Source(timeline, event.where)},
              {"line", event.where.InputLine()},
              {"time", Time(event.at)},
              {"text", event.text}};
}

/// What the picture has of each rank, where that is asked for: at most so many events.
class RankEvents {
 public:
  RankEvents(const Timeline& timeline, const Verdict& verdict, std::size_t most)
      : most_(most), picture_(most > 0 ? DrawPicture(timeline, verdict) : Picture()), rows_(timeline, picture_) {
    for (const Lane& lane : picture_.lanes)
      if (lane.rank) lanes_.emplace(lane.rank->value, &lane);
  }
  /// What followed from what, over all lanes.
  void WriteLinks(const Timeline& timeline, Document& document) const {
    if (most_ == 0) return;
    const auto at = [&](std::uint32_t moment) {
      const SourcePos& where = timeline.events[picture_.moments[moment].event].where;
      return Json{{"order", moment}, {"source", Source(timeline, where)}, {"line", where.InputLine()}};
    };
    document.List("links", picture_.links, [&](const PictureLink& link) {
      return Json{{"from", at(link.from)}, {"to", at(link.to)}, {"why", link.why}};
    });
  }
  void AddTo(Json& json, int rank) const {
    if (most_ == 0) return;
    const auto lane = lanes_.find(rank);
    const LaneEvents events = lane == lanes_.end() ? LaneEvents{} : EventsOf(*lane->second, most_);
    json.Add("events", List(events.rows, [this](const LaneEvent& event) {
               Json row = Json::object();
               rows_.Add(event, row);
               return row;
             }));
    json.Add("events_left_out", events.left_out);
  }

 private:
  std::size_t most_;
  Picture picture_;
  EventRows rows_;
  std::map<int, const Lane*> lanes_;
};

Json RankTimelineToJson(const Timeline& timeline, const RankRow& row, const RankEvents& told) {
  Json out{{"rank", row.rank.value},
           {"first_event", EventToJson(timeline, row.first_event)},
           {"last_event", EventToJson(timeline, row.last_event)},
           {"last_collective", OrNull(row.last_collective)},
           {"final_state", row.final_state.empty() ? Json("unknown") : Json(row.final_state)}};
  told.AddTo(out, row.rank.value);
  return out;
}

Json LifelineToJson(const Timeline& timeline, const Lifeline& line) {
  const auto at = [&](EventIndex event) {
    const Event& said = timeline.events[event];
    return Json{{"source", Source(timeline, said.where)}, {"line", said.where.InputLine()}, {"time", Time(said.at)}};
  };
  const auto maybe_at = [&](const std::optional<EventIndex>& event) { return event ? at(*event) : Json(nullptr); };
  const auto because = [&](const Because& edge) {
    constexpr std::uint64_t kMost = 16;  // thousands may have waited for thousands
    RankSet first;
    for (const int rank : *edge.of) {
      if (first.size() == kMost) break;
      first.Add(rank);
    }
    return Json{{"how", Name(edge.how)},
                {"ranks", Ranks(first)},
                {"ranks_left_out", edge.of->size() - first.size()},
                {"at", maybe_at(edge.event)}};
  };
  return Json{{"rank", OrNull(line.rank)},
              {"host", OrNull(line.host)},
              {"pid", OrNull(line.pid)},
              {"writer", OrNull(line.writer)},
              {"first", at(line.first)},
              {"last", at(line.last)},
              {"intervals", List(line.intervals,
                                 [&](const Interval& interval) {
                                   return Json{{"kind", Name(interval.at)}, {"begin", at(interval.begin)},
                                               {"last", at(interval.last)}, {"end", maybe_at(interval.end)},
                                               {"times", interval.times},   {"percent", OrNull(interval.percent)}};
                                 })},
              {"marks", List(line.marks,
                             [&](const LifeMark& mark) {
                               Json json = at(mark.event);
                               json.Add("kind", mark.kind);
                               return json;
                             })},
              {"marks_left_out", line.marks_left_out},
              {"end", Json{{"how", Name(line.end.how)},
                           {"said_by", OrNull(line.end.said_by)},
                           {"at", maybe_at(line.end.event)},
                           {"because", line.end.because ? because(*line.end.because) : Json(nullptr)}}}};
}

Json CallToJson(const Timeline& timeline, const RecordedCall& call) {
  const CallForm& form = timeline.recorded->forms[call.form];
  return Json{{"op", form.op},
              {"seq", call.seq},
              {"input_sizes", form.inputs},
              {"output_sizes", form.outputs},
              {"dtype", OrNull(form.dtypes)},
              {"peer", OrNull(call.peer)},
              {"state", Name(call.state)},
              {"gave_up", call.gave_up},
              {"call_site", OrNull(call.site)},
              {"source", Source(timeline, call.where)},
              {"line", call.where.line}};
}

Json RecordedGroupToJson(const Timeline& timeline, const WaitGraph& waits, std::uint32_t number) {
  const Recorded& recorded = *timeline.recorded;
  const RecordedGroup& group = recorded.groups[number];
  static constexpr std::array<std::string_view, 4> kWhere = {"in-call", "elsewhere", "nowhere", "no-dump"};
  static const std::array<Json, 3> kSources = {Json(nullptr), Json("nccl-ras"), Json("nccl-inspector")};
  Json divergence = nullptr;
  if (group.divergence)
    divergence = Json{{"seq", group.divergence->seq}, {"sides", List(group.divergence->sides, [&](const auto& side) {
                                                         const CallForm& form = recorded.forms[side.form];
                                                         return Json{{"ranks", Ranks(side.ranks)},
                                                                     {"op", form.op},
                                                                     {"input_sizes", form.inputs},
                                                                     {"output_sizes", form.outputs},
                                                                     {"dtype", OrNull(form.dtypes)},
                                                                     {"call_site", OrNull(side.site)},
                                                                     {"source", Source(timeline, side.where)},
                                                                     {"line", side.where.line}};
                                                       })}};
  return Json{{"name", group.name},
              {"desc", OrNull(group.desc)},
              {"counted_by", kSources[static_cast<std::size_t>(group.source)]},
              {"ranks", Ranks(group.Members())},
              {"rows", List(RowsOf(recorded, waits, number),
                            [&](const RecordedRow& row) {
                              return Json{
                                  {"ranks", Ranks(row.ranks)},
                                  {"where", kWhere[static_cast<std::size_t>(row.where)]},
                                  {"last_ended", OrNull(row.ended)},
                                  {"last_made", OrNull(row.made)},
                                  {"wait", OrNull(row.node)},
                                  {"call", row.call == nullptr ? Json(nullptr) : CallToJson(timeline, *row.call)}};
                            })},
              {"divergence", divergence}};
}

Json WaitToJson(const Recorded& recorded, const WaitNode& node) {
  return Json{{"group", recorded.groups[node.group].name},
              {"seq", node.pairwise ? Json(nullptr) : Json(node.seq)},
              {"call", InWords(recorded, node)},
              {"ranks", Ranks(node.ranks)},
              {"idle", Ranks(node.idle)},
              {"no_dump", Ranks(node.unknown)},
              {"ended_on", Ranks(node.through)},
              {"not_begun", Ranks(node.enqueued_only)},
              {"instead", List(node.edges, [](const WaitNode::Edge& edge) {
                 return Json{{"ranks", Ranks(edge.ranks)}, {"wait", edge.node}};
               })}};
}

/// null: no recorder was given.
void WriteRecorded(const Timeline& timeline, Document& document) {
  const Recorded& recorded = *timeline.recorded;
  document.Key("recorded");
  if (recorded.empty()) return document.Value(nullptr);
  const WaitGraph waits = WaitsOf(recorded);
  document.Begin('{');
  document.Key("version").Value(OrNull(recorded.version));
  document.Key("ranks").Value(Ranks(recorded.Given()));
  document.Key("nameless").Value(recorded.nameless);
  document.Key("groups").Begin('[');
  for (std::uint32_t i = 0; i < recorded.groups.size(); ++i)
    if (!recorded.groups[i].members.empty()) document.Value(RecordedGroupToJson(timeline, waits, i));
  document.End();
  document.List("waits", waits.nodes, [&](const WaitNode& node) { return WaitToJson(recorded, node); });
  document.List("roots", waits.roots, [](const WaitRoot& root) {
    return Json{{"waits", root.nodes}, {"ranks_waiting", Ranks(root.waiting)}};
  });
  document.End();
}

/// What the manifests of bundles say is not in them, by input.
std::map<std::uint32_t, Json> Missing(const Timeline& timeline) {
  std::map<std::uint32_t, Json> missing;
  for (const Event& event : timeline.events)
    if (const auto* lack = std::get_if<NotCollected>(&event.what))
      missing.try_emplace(event.where.input, Json::array())
          .first->second.push_back(Json{{"name", lack->name}, {"reason", lack->reason}});
  return missing;
}

Json InputToJson(const InputSummary& input, const Json& missing) {
  return Json{
      {"path", input.path},
      {"bytes", input.bytes},
      {"lines", input.lines},
      {"kinds", input.kinds},
      {"claimed", input.claimed},
      {"plain", input.plain},
      {"damaged", input.damaged},
      {"problem", OrNull(input.problem)},
      {"form", input.form == nullptr ? Json(nullptr) : Json{{"name", input.form->name}, {"text", input.form->text}}},
      {"clock", OrNull(input.clock)},
      {"missing", missing}};
}

}  // namespace

void RenderJson(const Timeline& timeline, const Verdict& verdict, std::string_view tool_version, const Sink& sink,
                std::size_t events) {
  auto missing = Missing(timeline);
  Document document(sink);
  document.Begin('{');
  document.Key("schema").Value("inquest-verdict-1");
  document.Key("tool").Value(Json{{"name", "inquest"}, {"version", tool_version}});
  document.Key("outcome").Value(Name(verdict.outcome));
  document.Key("verdict").Value(ToJson(timeline, verdict));
  document.List("alternatives", verdict.alternatives,
                [](const Alternative& alternative) { return ToJson(alternative); });
  document.List("findings", verdict.findings, [&](const Finding& finding) { return ToJson(timeline, finding); });
  document.List("attempts", verdict.attempts, [&](const AttemptTold& attempt) { return ToJson(timeline, attempt); });
  document.Key("warnings").Value(verdict.warnings);
  document.Key("job");
  WriteJob(timeline, verdict, document);
  const RankEvents told(timeline, verdict, events);
  document.List("timeline", timeline.ranks,
                [&](const RankRow& row) { return RankTimelineToJson(timeline, row, told); });
  told.WriteLinks(timeline, document);
  document.List("lifelines", verdict.lifelines, [&](const Lifeline& line) { return LifelineToJson(timeline, line); });
  WriteRecorded(timeline, document);
  document.Key("inputs").Begin('[');
  for (std::uint32_t i = 0; i < timeline.inputs.size(); ++i) {
    const auto lack = missing.find(i);
    document.Value(InputToJson(timeline.inputs[i], lack == missing.end() ? Json::array() : lack->second));
  }
  document.End();
  document.Key("left_out").Begin('[');
  for (const auto& [what, count] : timeline.left_out) document.Value(Json{{"what", what}, {"count", count}});
  document.End();
  document.End();
}

std::string RenderJson(const Timeline& timeline, const Verdict& verdict, std::string_view tool_version) {
  std::string text;
  RenderJson(timeline, verdict, tool_version, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace inquest
