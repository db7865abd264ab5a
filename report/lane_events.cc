// What a lane of the picture shows, as rows for programs.
#include "report/lane_events.h"

#include <algorithm>

#include "report/terminal.h"

namespace inquest {
namespace {

using Json = JsonValue;

std::string_view Name(LaneEvent::Kind kind) {
  switch (kind) {
    case LaneEvent::Kind::kState:
      return "state";
    case LaneEvent::Kind::kMark:
      return "mark";
    case LaneEvent::Kind::kEnd:
      break;
  }
  return "end";
}

Timestamp TimestampOf(const Picture& picture, std::int64_t ns) {
  constexpr std::chrono::seconds kSecond(1);
  const std::chrono::sys_time<std::chrono::nanoseconds> at{std::chrono::nanoseconds(ns)};
  return {.at = at,
          .date = picture.date,
          .zone_known = picture.zone_known,
          .resolution = at.time_since_epoch() % kSecond == kSecond.zero() ? std::chrono::nanoseconds(kSecond)
                                                                          : std::chrono::milliseconds(1)};
}

/// The least telling in the middle go.
void Bound(std::vector<LaneEvent>& rows, std::size_t most) {
  std::size_t causes = static_cast<std::size_t>(std::ranges::count_if(rows, &LaneEvent::cause));
  std::size_t others = most - std::min(most, causes), seen = 0;
  const std::size_t rest = rows.size() - causes;
  causes = std::min(most, causes);
  std::erase_if(rows, [&](const LaneEvent& row) {
    if (row.cause) return causes == 0 || (--causes, false);
    const std::size_t place = seen++;
    return place >= (others + 1) / 2 && place < rest - others / 2;
  });
}

}  // namespace

LaneEvents EventsOf(const Lane& lane, std::optional<std::size_t> most) {
  LaneEvents out{.rows = {}, .left_out = lane.left_out};
  for (const Stretch& stretch : lane.stretches)
    out.rows.push_back({.kind = LaneEvent::Kind::kState,
                        .state = inquest::Name(stretch.stage),
                        .what = stretch.what,
                        .begin = stretch.begin,
                        .end = stretch.end,
                        .open = stretch.open,
                        .times = stretch.times});
  for (const PictureMark& mark : lane.marks)
    out.rows.push_back({.kind = LaneEvent::Kind::kMark,
                        .state = inquest::Name(mark.kind),
                        .what = mark.what,
                        .begin = mark.moment,
                        .end = std::nullopt,
                        .cause = mark.cause});
  if (lane.ended)
    out.rows.push_back({.kind = LaneEvent::Kind::kEnd,
                        .state = inquest::Name(lane.how),
                        .what = lane.said_by,
                        .begin = *lane.ended,
                        .end = std::nullopt});
  std::ranges::stable_sort(out.rows, {}, &LaneEvent::begin);
  if (most && out.rows.size() > *most) {
    out.left_out += out.rows.size() - *most;
    Bound(out.rows, *most);
  }
  return out;
}

EventRows::EventRows(const Timeline& timeline, const Picture& picture) : timeline_(timeline), picture_(picture) {
  const auto first = std::ranges::find_if(picture.moments, [this](const Moment& moment) { return IsTimed(moment); });
  if (first != picture.moments.end()) zero_ = first->ns;
}

bool EventRows::IsTimed(const Moment& moment) const {
  return picture_.clock && moment.how != Moment::How::kAhead && moment.how != Moment::How::kPlace;
}

Json EventRows::Zero() const { return zero_ ? Json(FormatTime(TimestampOf(picture_, *zero_))) : Json(nullptr); }

/// RFC 3339, where the lines print a whole date and the zone is known.
Json EventRows::TimeOf(std::uint32_t moment) const {
  const Moment& m = picture_.moments[moment];
  if (!IsTimed(m) || !picture_.zone_known || picture_.date != Timestamp::Date::kFull) return nullptr;
  return Json(FormatTime(TimestampOf(picture_, m.ns)));
}

Json EventRows::SecondsOf(std::uint32_t moment) const {
  const Moment& m = picture_.moments[moment];
  if (!IsTimed(m)) return nullptr;
  constexpr std::int64_t kMicrosecond = 1000;  // nothing finer is told
  constexpr double kSecond = 1e6;
  const std::int64_t microseconds = (m.ns - *zero_) / kMicrosecond;
  return Json(static_cast<double>(microseconds) / kSecond);
}

Json EventRows::FollowsOf(const LaneEvent& event) const {
  Json list = Json::array();
  for (const PictureLink& link : picture_.links) {
    if (link.to != event.begin) continue;
    const SourcePos& where = timeline_.events[picture_.moments[link.from].event].where;
    list.push_back(Json{
        {"order", link.from},
        {"source", where.input < timeline_.inputs.size() ? Json(timeline_.inputs[where.input].path) : Json(nullptr)},
        {"line", where.InputLine()},
        {"why", link.why}});
  }
  return list;
}

void EventRows::Add(const LaneEvent& event, JsonValue& row) const {
  const Moment& moment = picture_.moments[event.begin];
  const Event& said = timeline_.events[moment.event];
  const bool has_source = said.where.input < timeline_.inputs.size();
  row.Add("kind", Name(event.kind));
  row.Add("state", event.state);
  row.Add("what", OrNull(event.what));
  row.Add("order", event.begin);
  row.Add("begin", TimeOf(event.begin));
  row.Add("end", event.end ? TimeOf(*event.end) : Json(nullptr));
  row.Add("begin_s", SecondsOf(event.begin));
  row.Add("end_s", event.end ? SecondsOf(*event.end) : Json(nullptr));
  row.Add("placed", inquest::Name(moment.how));
  row.Add("open", event.open);
  row.Add("times", event.times);
  row.Add("cause", event.cause);
  row.Add("follows", FollowsOf(event));
  row.Add("source", has_source ? Json(timeline_.inputs[said.where.input].path) : Json(nullptr));
  row.Add("line", said.where.InputLine());
  row.Add("text", Shortened(said.text, kShortened));
}

}  // namespace inquest
