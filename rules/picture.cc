// A verdict as a picture: lanes of what everybody was at, what befell them, and what followed from what.
#include "rules/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "core/host_name.h"
#include "rules/evidence.h"
#include "rules/picture_axis.h"
#include "timeline/ends.h"

namespace inquest {
namespace {

using Kind = PictureMark::Kind;

constexpr std::size_t kMostLinks = 24;

Stage StageOf(Activity at) {
  switch (at) {
    case Activity::kJoining:
      return Stage::kStarting;
    case Activity::kLoading:
    case Activity::kDataPreparation:
    case Activity::kCompile:
      return Stage::kLoading;
    case Activity::kCheckpoint:
      return Stage::kSaving;
    default:
      return Stage::kComputing;
  }
}

/// The device that a line of the kernel speaks of; empty: it names none.
std::string DeviceOf(const What& what) {
  if (const auto* xid = std::get_if<XidReported>(&what)) return xid->bus_id;
  if (const auto* fault = std::get_if<DriverFault>(&what)) return fault->bus_id;
  if (const auto* error = std::get_if<PcieError>(&what)) return error->bus_id;
  return {};
}

/// Trouble that the kernel tells of, whether a rule asked for it or not.
bool IsTrouble(const What& what) {
  if (const auto* error = std::get_if<PcieError>(&what))
    return error->severity != PcieError::Severity::kCorrected && error->severity != PcieError::Severity::kLinkUp;
  return IsOfKernel(what) && !std::holds_alternative<LogMessage>(what);
}

bool IsBad(Kind kind) {
  return kind == Kind::kMemory || kind == Kind::kTimeOut || kind == Kind::kException || kind == Kind::kExit;
}

class Drawing {
 public:
  Drawing(const Timeline& timeline, const Verdict& verdict) : timeline_(timeline), verdict_(verdict), axis_(timeline) {}

  Picture Draw() {
    for (const Finding& finding : verdict_.findings)
      for (const Citation& citation : finding.citations)
        cited_.try_emplace(citation.event, citation.role == LineRole::kContext ? "" : finding.rule);
    for (const Citation& citation : verdict_.evidence) {
      cited_.try_emplace(citation.event, "");
      if (citation.role == LineRole::kCause) causes_.insert({citation.where.input, citation.where.line});
    }
    for (const Lifeline& line : verdict_.lifelines) DrawLifeline(line);
    for (EventIndex i = 0; i < timeline_.events.size(); ++i) DrawEvent(i);
    for (std::uint32_t i = 0; i < timeline_.collectives.size(); ++i) DrawWaits(i);
    if (verdict_.collective)
      for (const int rank : verdict_.collective->ranks_absent) OfRank(GlobalRank{rank});
    for (const Culprit& culprit : verdict_.culprits) Blame(culprit);
    for (Lane& lane : lanes_) Finish(lane);
    DropSilent();
    Link();
    LinkWaits();
    return Take();
  }

 private:
  using Key = std::tuple<Lane::Of, std::int64_t, std::string, std::string>;

  Lane& Get(const Key& key) {
    const auto [it, is_new] = numbers_.try_emplace(key, lanes_.size());
    if (is_new) lanes_.emplace_back().of = std::get<0>(key);
    return lanes_[it->second];
  }
  Lane& OfRank(GlobalRank rank) {
    Lane& lane = Get({Lane::Of::kRank, rank.value, "", ""});
    if (lane.rank) return lane;
    lane.rank = rank;
    if (const RankRow* row = timeline_.FindRank(rank); row != nullptr && row->process) {
      lane.host = timeline_.processes[*row->process].host;
      lane.pid = timeline_.processes[*row->process].pid;
    }
    return lane;
  }
  Lane& OfWriter(std::uint32_t input, std::optional<std::int64_t> pid, const std::string& writer) {
    Lane& lane = Get({pid ? Lane::Of::kProcess : Lane::Of::kWriter, pid.value_or(0), std::to_string(input), writer});
    lane.pid = pid;
    const std::string& path = timeline_.inputs[input].path;
    if (lane.name.empty()) lane.name = writer.empty() ? path.substr(path.rfind('/') + 1) : writer;
    return lane;
  }
  Lane& OfHost(const std::string& host, const std::string& device) {
    Lane& lane = Get({device.empty() ? Lane::Of::kHost : Lane::Of::kDevice, 0, host, WithoutFunction(device)});
    if (!host.empty()) lane.host = host;
    lane.name = device.empty() ? host : device;
    return lane;
  }
  /// Where an event that no rank wrote and that is of the kernel or a host belongs.
  Lane& OfPlace(const Event& event) {
    return OfHost(timeline_.HostOf(event).value_or(timeline_.inputs[event.where.input].path), DeviceOf(event.what));
  }
  Lane& Of(EventIndex index) {
    const Event& event = timeline_.events[index];
    if (const auto rank = RankOfExit(timeline_, event)) return OfRank(*rank);
    if (const auto rank = timeline_.RankOf(event)) return OfRank(rank->value);
    if (IsOfKernel(event.what) || IsOfHost(event.what)) return OfPlace(event);
    return OfWriter(event.where.input, event.origin.pid, event.origin.writer);
  }

  void Hear(Lane& lane, std::uint32_t moment) {
    if (!lane.first || axis_.ns(moment) < axis_.ns(*lane.first)) lane.first = moment;
    if (!lane.last || axis_.ns(moment) >= axis_.ns(*lane.last)) lane.last = moment;
  }

  void DrawLifeline(const Lifeline& line) {
    const auto own = [&](EventIndex index) { return !IsOfKernel(timeline_.events[index].what); };
    const bool worth = line.rank || !line.intervals.empty() || own(line.first) || own(line.last);
    if (!worth) return;
    Lane& lane = line.rank ? OfRank(*line.rank) : OfWriter(line.input, line.pid, line.writer);
    if (!lane.host && line.rank) lane.host = line.host;
    if (own(line.first)) Hear(lane, axis_.At(line.first));
    if (own(line.last)) Hear(lane, axis_.At(line.last));
    for (const Interval& interval : line.intervals)
      lane.stretches.push_back({.stage = StageOf(interval.at),
                                .what = std::string(Name(interval.at)),
                                .begin = axis_.At(interval.begin),
                                .end = axis_.At(interval.end.value_or(interval.last)),
                                .open = !interval.end,
                                .times = interval.times});
    if (line.end.event && (line.rank || own(*line.end.event))) End(lane, line.end);
    for (const LifeMark& mark : line.marks)
      if (line.rank || own(mark.event)) Mark(mark.event);
    lane.left_out += line.marks_left_out;
  }

  void End(Lane& lane, const LifeEnd& end) {
    lane.how = end.how;
    lane.said_by = end.said_by;
    if (end.event) lane.ended = axis_.At(*end.event);
  }

  void Mark(EventIndex index) {
    if (!marked_.insert(index).second) return;
    const Event& event = timeline_.events[index];
    Lane& lane = Of(index);
    PictureMark mark = MarkBy(event);
    if (const auto rule = cited_.find(index); rule != cited_.end() && std::holds_alternative<LogMessage>(event.what)) {
      const bool is_plain = rule->second.empty();
      mark.kind = is_plain ? Kind::kNotice : mark.kind;
      mark.what = is_plain ? "a line that is quoted" : rule->second;
    }
    mark.moment = axis_.At(index);
    const bool decides = causes_.contains({event.where.input, event.where.line});
    mark.cause = decides && verdict_.outcome == Outcome::kFailed;
    if (decides && verdict_.outcome == Outcome::kHealthy) mark.kind = Kind::kEnded;
    Hear(lane, mark.moment);
    lane.marks.push_back(std::move(mark));
  }

  void DrawEvent(EventIndex i) {
    const Event& event = timeline_.events[i];
    if (const auto* init = std::get_if<CommInit>(&event.what)) {
      if (const auto rank = timeline_.RankOf(event)) DrawInit(OfRank(rank->value), *init, i);
    } else if (const auto* call = std::get_if<CallRecorded>(&event.what)) {
      if (const auto rank = timeline_.RankOf(event); rank && !call->ended)
        OfRank(rank->value)
            .stretches.push_back({.stage = Stage::kInCollective,
                                  .what = InWords(call->work),
                                  .begin = axis_.At(i),
                                  .end = axis_.At(i),
                                  .open = true});
    } else if (const auto* exit = std::get_if<ProcessExit>(&event.what)) {
      if (const auto rank = RankOfExit(timeline_, event)) {
        Lane& lane = OfRank(*rank);
        const bool known = lane.how == LifeEnd::How::kSignal || lane.how == LifeEnd::How::kExitCode;
        const auto how = exit->signal                       ? LifeEnd::How::kSignal
                         : exit->exit_code.value_or(0) != 0 ? LifeEnd::How::kExitCode
                                                            : LifeEnd::How::kWell;
        if (!known) End(lane, {how, i, std::string(Name(exit->reporter))});
      }
      Mark(i);
    } else if (IsTrouble(event.what)) {
      Mark(i);
    }
    if (cited_.contains(i)) Mark(i);
  }

  /// Setting up a communicator, several of them as one.
  void DrawInit(Lane& lane, const CommInit& init, EventIndex event) {
    const auto last = std::ranges::find_if(lane.stretches, [](const Stretch& s) { return s.what == "communicators"; });
    const std::uint32_t at = axis_.At(event);
    if (last == lane.stretches.end()) {
      lane.stretches.push_back(
          {.stage = Stage::kStarting, .what = "communicators", .begin = at, .end = at, .open = !init.complete});
      return;
    }
    last->end = at;
    ++last->times;
    last->open = !init.complete;
  }

  void DrawWaits(std::uint32_t collective) {
    const CollectiveRow& row = timeline_.collectives[collective];
    for (const auto& waiter : row.waiters) {
      Lane& lane = OfRank(waiter.rank);
      const std::uint32_t end = axis_.At(waiter.event);
      const auto begin = axis_.Before(waiter.event, waiter.enqueued_at, waiter.ran_ms);
      // Without clocks all that is known is that it waited before it gave up.
      Stretch stretch{.stage = Stage::kWaiting, .what = InWords(row.work), .begin = begin.value_or(end), .end = end};
      if (!begin) stretch.begin = lane.first.value_or(end);
      stretch.collective = collective;
      Hear(lane, stretch.begin);
      std::erase_if(lane.stretches, [&](const Stretch& s) {
        return s.stage == Stage::kInCollective && s.what == stretch.what;  // the recorder's word of the same
      });
      lane.stretches.push_back(stretch);
    }
  }

  void Blame(const Culprit& culprit) {
    std::vector<Lane*> lanes;
    if (culprit.rank) {
      lanes.push_back(&OfRank(*culprit.rank));
    } else if (culprit.host || culprit.bus_id || culprit.pid) {
      const auto same_host = [&](const Lane& lane) {
        return culprit.host && lane.host && HostName(*lane.host).Short() == HostName(*culprit.host).Short();
      };
      for (Lane& lane : lanes_)
        if (culprit.bus_id ? lane.of == Lane::Of::kDevice && SameDevice(lane.name, *culprit.bus_id)
            : culprit.pid  ? lane.pid == culprit.pid
                           : lane.of != Lane::Of::kRank && same_host(lane))
          lanes.push_back(&lane);
      if (lanes.empty() && culprit.host) lanes.push_back(&OfHost(*culprit.host, culprit.bus_id.value_or("")));
    }
    for (Lane* lane : lanes) {
      lane->culprit = true;
      lane->why = culprit.why;
    }
  }

  /// In order and within bounds; from the first that went wrong to the end, it had failed.
  void Finish(Lane& lane) {
    const auto at = [&](std::uint32_t moment) { return axis_.ns(moment); };
    std::ranges::stable_sort(lane.marks, {},
                             [&](const PictureMark& mark) { return std::pair(at(mark.moment), mark.moment); });
    // One line may be a complaint and an exception at once: the plainer word goes.
    Bound(lane.marks, lane.left_out);
    const std::vector<PictureMark> all = lane.marks;
    std::erase_if(lane.marks, [&](const PictureMark& mark) {
      return mark.kind >= Kind::kComplaint && std::ranges::any_of(all, [&](const PictureMark& other) {
               return other.kind < mark.kind && SameLine(axis_.event(other.moment), axis_.event(mark.moment));
             });
    });
    Bound(lane.stretches, lane.left_out);
    const auto bad = std::ranges::find_if(lane.marks, [](const PictureMark& mark) { return IsBad(mark.kind); });
    std::optional<std::uint32_t> end = lane.ended;
    for (const PictureMark& mark : lane.marks)
      if (IsBad(mark.kind) && (!end || at(mark.moment) > at(*end))) end = mark.moment;
    const bool is_own = lane.of == Lane::Of::kRank || (lane.of == Lane::Of::kProcess && lane.ended);
    if (is_own && bad != lane.marks.end() && end && at(*end) > at(bad->moment))
      lane.stretches.push_back({.stage = Stage::kErrored, .what = bad->what, .begin = bad->moment, .end = *end});
    if (lane.ended && end && IsBadEnd(lane.how)) lane.ended = end;
    if (lane.ended) Hear(lane, *lane.ended);
  }
  bool SameLine(EventIndex a, EventIndex b) const {
    const SourcePos &x = timeline_.events[a].where, &y = timeline_.events[b].where;
    return x.input == y.input && x.line == y.line;
  }
  static bool IsBadEnd(LifeEnd::How how) { return how != LifeEnd::How::kUnknown && how != LifeEnd::How::kWell; }

  template <class Rows>
  static void Bound(Rows& rows, std::uint64_t& left_out) {
    if (rows.size() <= kMostOfALane) return;
    const auto middle = rows.begin() + kMostOfALane / 2;
    const auto more = static_cast<std::ptrdiff_t>(rows.size() - kMostOfALane);
    rows.erase(middle, middle + more);
    left_out += static_cast<std::uint64_t>(more);
  }

  /// Writers without a rank of whom nothing is told, beside others of whom something is.
  void DropSilent() {
    const auto is_silent = [](const Lane& lane) {
      return lane.of == Lane::Of::kWriter && lane.stretches.empty() && lane.marks.empty() && !lane.ended;
    };
    if (!std::ranges::all_of(lanes_, is_silent)) std::erase_if(lanes_, is_silent);
  }

  std::optional<EventIndex> First(const Finding& finding) const {
    for (const Citation& citation : finding.citations)
      if (citation.role == LineRole::kCause) return citation.event;
    return finding.citations.empty() ? std::nullopt : std::optional(finding.citations.front().event);
  }

  void Link() {
    const auto find = [&](const std::string& rule) -> std::optional<EventIndex> {
      const auto it = std::ranges::find(verdict_.findings, rule, &Finding::rule);
      return it == verdict_.findings.end() ? std::nullopt : First(*it);
    };
    if (verdict_.rule.empty()) return;
    const auto cause = find(verdict_.rule);
    if (!cause) return;
    const std::uint32_t from = axis_.At(*cause);
    // Who never came is known by those who waited: the way leads from the last that was heard of it.
    const bool is_own = std::ranges::any_of(lanes_, [&](const Lane& lane) {
      return lane.culprit && std::ranges::any_of(lane.marks, [&](const PictureMark& mark) {
               return SameLine(axis_.event(mark.moment), *cause);
             });
    });
    for (const Lane& lane : lanes_)
      if (lane.culprit && !is_own && lane.last) AddLink(*lane.last, from, lane.why);
    for (const Finding& finding : verdict_.findings) {
      const bool follows = finding.cause.empty() || !finding.explained_by.empty();
      const auto to = First(finding);
      if (!follows || !to || finding.rule == verdict_.rule) continue;
      const auto by = finding.explained_by.empty() ? cause : find(finding.explained_by);
      if (by) AddLink(axis_.At(*by), axis_.At(*to), finding.claim);
    }
  }

  /// Where only recorders tell of it: from who never came to the first who waits.
  void LinkWaits() {
    const auto is_culprit = [](const Lane& lane) { return lane.culprit && lane.last; };
    const auto culprit = std::ranges::find_if(lanes_, is_culprit);
    if (!links_.empty() || culprit == lanes_.end()) return;
    std::optional<std::uint32_t> first;
    for (const Lane& lane : lanes_)
      for (const Stretch& stretch : lane.stretches)
        if (!lane.culprit && stretch.stage == Stage::kWaiting && axis_.ns(stretch.begin) >= axis_.ns(*culprit->last) &&
            (!first || axis_.ns(stretch.begin) < axis_.ns(*first)))
          first = stretch.begin;
    if (first) links_.push_back({MarkAt(*culprit->last), *first, "The others waited."});
  }

  /// The moment of a mark that stands for the same line, if there is one.
  std::uint32_t MarkAt(std::uint32_t moment) const {
    for (const Lane& lane : lanes_)
      for (const PictureMark& mark : lane.marks)
        if (SameLine(axis_.event(mark.moment), axis_.event(moment))) return mark.moment;
    return moment;
  }

  /// By its time; of one time in one file, by its line.
  bool IsBefore(std::uint32_t a, std::uint32_t b) const {
    if (axis_.ns(a) != axis_.ns(b)) return axis_.ns(a) < axis_.ns(b);
    const SourcePos &x = timeline_.events[axis_.event(a)].where, &y = timeline_.events[axis_.event(b)].where;
    return x.input == y.input && x.line < y.line;
  }

  /// None to what lies before it, as far as that is known.
  void AddLink(std::uint32_t from, std::uint32_t to, const std::string& why) {
    from = MarkAt(from);
    to = MarkAt(to);
    const auto same = [&](const PictureLink& link) { return link.from == from && link.to == to; };
    if (SameLine(axis_.event(from), axis_.event(to)) || IsBefore(to, from) || links_.size() >= kMostLinks ||
        std::ranges::any_of(links_, same))
      return;
    links_.push_back({from, to, why});
  }

  Picture Take() {
    const auto taken = axis_.Take();
    const std::vector<Moment>& moments = taken.first;
    const std::vector<std::uint32_t>& place = taken.second;
    Picture picture{.clock = axis_.clock(),
                    .date = axis_.date(),
                    .zone_known = axis_.zone_known(),
                    .without_clock = {},
                    .moments = moments,
                    .lanes = {lanes_.begin(), lanes_.end()},
                    .folds = {},
                    .links = links_};
    const auto move = [&place](std::uint32_t& moment) { moment = place[moment]; };
    const auto move_known = [&](std::optional<std::uint32_t>& moment) {
      if (moment) move(*moment);
    };
    for (Lane& lane : picture.lanes) {
      move_known(lane.first);
      move_known(lane.last);
      move_known(lane.ended);
      for (Stretch& stretch : lane.stretches) move(stretch.begin), move(stretch.end);
      for (PictureMark& mark : lane.marks) move(mark.moment);
    }
    for (PictureLink& link : picture.links) move(link.from), move(link.to);
    const auto dated = std::ranges::count_if(
        moments, [](const Moment& m) { return m.how != Moment::How::kPlace && m.how != Moment::How::kAhead; });
    picture.mostly_timed = picture.clock && 2 * dated > std::ssize(moments);
    std::set<std::uint32_t> spoken_of;
    for (const Moment& moment : moments) spoken_of.insert(timeline_.events[moment.event].where.input);
    std::ranges::copy_if(axis_.without_clock(), std::back_inserter(picture.without_clock),
                         [&](std::uint32_t input) { return spoken_of.contains(input); });
    picture.folds = FoldLanes(picture.lanes);
    return picture;
  }

  const Timeline& timeline_;
  const Verdict& verdict_;
  Axis axis_;
  std::map<EventIndex, std::string> cited_;  ///< the rule that reads it; empty: it is quoted for what stands round it
  std::set<EventIndex> marked_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> causes_;  ///< lines that the verdict cites as such
  std::map<Key, std::size_t> numbers_;
  std::deque<Lane> lanes_;  ///< none moves
  std::vector<PictureLink> links_;
};

}  // namespace

Picture DrawPicture(const Timeline& timeline, const Verdict& verdict) { return Drawing(timeline, verdict).Draw(); }

std::string_view Name(Stage stage) {
  switch (stage) {
    case Stage::kStarting:
      return "starting";
    case Stage::kLoading:
      return "loading";
    case Stage::kComputing:
      return "computing";
    case Stage::kSaving:
      return "saving";
    case Stage::kInCollective:
      return "in-collective";
    case Stage::kWaiting:
      return "waiting";
    case Stage::kErrored:
      return "errored";
  }
  return "starting";
}

}  // namespace inquest
