// One JSON object a line: for tools that read tables. What happened, as the page and the terminal draw it.
#include <algorithm>

#include "report/json_parts.h"
#include "report/lane_events.h"
#include "report/report.h"
#include "report/words.h"

namespace inquest {
namespace {

using Json = JsonValue;

std::string_view Name(Lane::Of of) {
  switch (of) {
    case Lane::Of::kRank:
      return "rank";
    case Lane::Of::kProcess:
      return "process";
    case Lane::Of::kWriter:
      return "writer";
    case Lane::Of::kHost:
      return "host";
    case Lane::Of::kDevice:
      break;
  }
  return "device";
}

Json Head(const Timeline& timeline, const Verdict& verdict, std::string_view tool_version, const Json& zero) {
  return Json{{"kind", "verdict"},
              {"schema", "inquest-events-1"},
              {"version", tool_version},
              {"outcome", inquest::Name(verdict.outcome)},
              {"cause", verdict.cause},
              {"title", verdict.title},
              {"summary", verdict.summary},
              {"confidence", Rounded(verdict.confidence)},
              {"signature", OrNull(verdict.rule)},
              {"culprits", CulpritsInWords(verdict)},
              {"retry", Name(verdict.retry)},
              {"exclude_hosts", verdict.exclude_hosts},
              {"fingerprint", OrNull(verdict.fingerprint)},
              {"attempt", JudgedAttempt(verdict).number},
              {"job", IdentityInJson(timeline, verdict)},
              {"zero", zero}};
}

Json OfLane(const Lane& lane, std::size_t attempt) {
  return Json{{"lane", Name(lane.of)},   {"rank", OrNull(lane.rank)}, {"host", OrNull(lane.host)},
              {"pid", OrNull(lane.pid)}, {"name", OrNull(lane.name)}, {"attempt", attempt},
              {"culprit", lane.culprit}};
}

}  // namespace

void RenderJsonLines(const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink) {
  const Picture picture = DrawPicture(timeline, verdict);
  std::vector<const Lane*> lanes;
  for (const Lane& lane : picture.lanes) lanes.push_back(&lane);
  std::ranges::stable_sort(lanes, {}, [](const Lane* lane) {
    return std::pair(!lane->rank.has_value(), lane->rank ? lane->rank->value : 0);
  });
  const EventRows rows(timeline, picture);
  const std::size_t attempt = JudgedAttempt(verdict).number;
  sink(OneLine(Head(timeline, verdict, context.tool_version, rows.Zero())));
  for (const Lane* lane : lanes) {
    std::string lines;
    const LaneEvents events = EventsOf(*lane, context.timeline_events);
    for (const LaneEvent& event : events.rows) {
      Json row = OfLane(*lane, attempt);
      rows.Add(event, row);
      lines += OneLine(row);
    }
    if (events.left_out > 0 || events.rows.empty()) {
      Json row = OfLane(*lane, attempt);
      row.Add("kind", events.left_out > 0 ? "left-out" : "nothing");
      row.Add("times", events.left_out);
      lines += OneLine(row);
    }
    if (!lines.empty()) sink(lines);
  }
}

}  // namespace inquest
