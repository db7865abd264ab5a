// nccl_inspector.cc: what NCCL's Inspector plugin wrote of the operations that ended.
// Format:  one JSON object a line (plugins/profiler/inspector/inspector_json.cc; file <host>-pid<pid>.log)
//            {"header":{"id":"0x8f3d","rank":3,"n_ranks":16,"nnodes":2},"metadata":{...,"dump_timestamp_us":
//            1948172400123456,"hostname":"node017","pid":41234},"coll_perf":{"coll":"AllReduce","coll_sn":4711,...}}
// Clock:   microseconds since the epoch, of the dump and not of the operation.
// Not read: bandwidths, traces of events, and point-to-point operations, whose numbers differ from rank to rank.
#include <simdjson.h>

#include <string>

#include "core/host_name.h"
#include "parsers/formats.h"
#include "parsers/formats/json_text.h"

namespace inquest {
namespace {

using Json = simdjson::dom::element;

std::optional<std::int64_t> NumberAt(const Json& json, const char* key) {
  std::int64_t number = 0;
  if (json[key].get(number) != simdjson::SUCCESS) return std::nullopt;
  return number;
}

class NcclInspectorParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    const simdjson::padded_string padded(record.text);
    Json root, header, metadata, performance;
    if (parser_.parse(padded).get(root) != simdjson::SUCCESS || root["header"].get(header) != simdjson::SUCCESS)
      return false;
    if (root["coll_perf"].get(performance) != simdjson::SUCCESS) return true;
    const auto rank = NumberAt(header, "rank"), nranks = NumberAt(header, "n_ranks");
    if (!rank || !IsRank(*rank)) return true;
    RankProgress progress{.state = RankProgress::State::kCompleted,
                          .source = RankProgress::Source::kInspector,
                          .comm = TextAt(header, "id"),
                          .rank = GroupRank{static_cast<std::int32_t>(*rank)},
                          .ranks = 1,
                          .nranks = nranks && *nranks > 0 && IsRank(*nranks) ? static_cast<int>(*nranks) : 0,
                          .op = TextAt(performance, "coll"),
                          .count = NumberAt(performance, "coll_sn"),
                          .gpu = {},
                          .pid = {},
                          .node = {},
                          .in_job = {}};
    Event event = EventFrom(record, std::move(progress));
    if (root["metadata"].get(metadata) == simdjson::SUCCESS) AddWriter(metadata, event);
    out.Add(std::move(event));
    return true;
  }

  static void AddWriter(const Json& metadata, Event& event) {
    if (const std::string host = TextAt(metadata, "hostname"); !host.empty())
      event.origin.host = Known<std::string>{HostName(host).Short(), Basis::kObserved, {}};
    event.origin.pid = NumberAt(metadata, "pid");
    constexpr std::int64_t kLatest = 4102444800000000;  // 2100
    const auto at = NumberAt(metadata, "dump_timestamp_us");
    if (!at || *at <= 0 || *at > kLatest) return;
    Timestamp time;
    time.at = std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::microseconds(*at));
    time.zone_known = true;
    time.resolution = std::chrono::microseconds(1);
    event.at = time;
  }

  simdjson::dom::parser parser_;
};

constexpr std::string_view kNcclInspectorMarks[] = {"\"coll_perf\"", "\"p2p_perf\""};

}  // namespace

extern const Format kNcclInspector{.name = "nccl-inspector",
                                   .framing = Framing::kLines,
                                   .component = Component::kAny,
                                   .marks = kNcclInspectorMarks,
                                   .make = &Make<NcclInspectorParser>};

}  // namespace inquest
