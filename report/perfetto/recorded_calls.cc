// What ranks' own recorders kept, as slices.
#include "report/perfetto/recorded_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <unordered_set>

#include "timeline/trace_ledger.h"

namespace inquest {
namespace {

constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMillisecond = 1'000'000;

/// A moment in this century; else nothing was recorded, whatever stands there.
bool IsTime(std::int64_t ns) {
  constexpr std::int64_t kYear2000 = 946'684'800'000'000'000, kYear2096 = 4'000'000'000'000'000'000;
  return ns >= kYear2000 && ns < kYear2096;
}

/// Gives out the lowest number that is free.
class TracePlaces {
 public:
  std::size_t Take(std::int64_t begin, std::int64_t end) {
    while (!busy_.empty() && busy_.top().first <= begin) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    std::size_t place = count_;
    if (free_.empty())
      ++count_;
    else
      place = free_.top(), free_.pop();
    busy_.emplace(end, place);
    return place;
  }

 private:
  using Busy = std::pair<std::int64_t, std::size_t>;  ///< until when
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free_;
  std::size_t count_ = 0;
};

/// `0 (default_pg)`.
std::string NameOf(const CallTrace::Group& group) {
  return group.desc.empty() ? group.name : fmt::format("{} ({})", group.name, group.desc);
}

}  // namespace

RecordedCalls::RecordedCalls(const Timeline& timeline, const Picture& picture, std::int64_t begin, std::int64_t end,
                             TraceTracks& tracks, TraceWriter& writer)
    : timeline_(timeline), tracks_(tracks), writer_(writer), begin_(begin), end_(end) {
  std::int64_t latest = 0;
  for (const RecordedRank& row : timeline.recorded->ranks)
    if (IsTime(row.latest_ns)) latest = std::max(latest, row.latest_ns);
  const bool compares = picture.clock && picture.date == Timestamp::Date::kFull;
  if (!compares && latest > 0) shift_ = end - latest;
  for (std::uint32_t i = 0; i < timeline.recorded->groups.size(); ++i) {
    const RecordedGroup& group = timeline.recorded->groups[i];
    if (group.source != RecordedGroup::Source::kRecorders) continue;
    std::vector<std::pair<std::int64_t, std::int64_t>> members;
    for (const RecordedMember& member : group.members)
      if (member.calls && !group.mixed) members.emplace_back(member.first, member.last);
    groups_.try_emplace(GroupKey(group.name, group.ranks), Group{i, SharedNumbers(members)});
  }
}

std::vector<RecordedCalls::Span> RecordedCalls::SpansOf(const CallTrace& trace) const {
  const std::vector<bool> open = OpenCalls(trace);
  std::int64_t latest = 0;
  for (const CallTrace::Call& call : trace.calls)
    for (const std::int64_t ns : {call.created_ns, call.started_ns, call.ended_ns})
      if (IsTime(ns)) latest = std::max(latest, ns);
  std::vector<Span> spans(trace.calls.size());
  std::int64_t last = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const CallTrace::Call& call = trace.calls[i];
    spans[i] = {.group = call.group, .call = static_cast<std::uint32_t>(i), .open = open[i]};
    if (IsTime(call.created_ns)) last = call.created_ns;
    // Without any time, entries are spread over the whole as lines of a log are.
    const double part = static_cast<double>(i) / static_cast<double>(spans.size());
    spans[i].begin = last > 0     ? At(last)
                     : latest > 0 ? At(latest)
                                  : begin_ + static_cast<std::int64_t>(part * static_cast<double>(end_ - begin_));
  }
  // Of a call that a later one of its stream outlived, that one's end is the latest that its own can be.
  std::map<std::pair<std::uint32_t, std::int32_t>, std::int64_t> outlived;
  for (std::size_t i = spans.size(); i-- > 0;) {
    const CallTrace::Call& call = trace.calls[i];
    Span& span = spans[i];
    std::int64_t& later = outlived.try_emplace({call.group, PeerOf(call)}, 0).first->second;
    if (call.state == CallTrace::State::kCompleted && IsTime(call.ended_ns))
      later = later > 0 ? std::min(later, call.ended_ns) : call.ended_ns;
    span.end = span.open ? kForever
                         : std::max(later > 0    ? At(later)
                                    : latest > 0 ? At(latest)
                                                 : span.begin,
                                    span.begin);
  }
  std::ranges::sort(spans, {}, [](const Span& span) { return std::tuple(span.group, span.begin, span.call); });
  return spans;
}

void RecordedCalls::Add(const CallTrace& trace, const Origin& origin, const SourcePos& where) {
  const auto& rank = trace.rank ? trace.rank : origin.rank;
  const bool is_known = rank && IsRank(rank->value.value) && where.input < timeline_.inputs.size();
  if (!is_known || !timeline_.recorded_fits || !ranks_.insert(rank->value).second) {
    drawn_.left_out += trace.calls.size();
    return;
  }
  if (!timeline_.Holds(where)) {
    drawn_.other_attempts += trace.calls.size();
    return;
  }
  const TraceTrack of_rank = tracks_.OfRank(rank->value);
  const std::string who = TraceTracks::NameOf(0, rank->value);
  const std::string& path = timeline_.inputs[where.input].path;
  std::vector<TraceNote> notes;
  std::vector<TraceTrack> places_of_group;
  TracePlaces places;
  std::string group_name;
  const Group* group = nullptr;
  std::unordered_set<std::int64_t> flowed;
  std::uint32_t last_group = ~0u;
  for (const Span& span : SpansOf(trace)) {
    const CallTrace::Call& call = trace.calls[span.call];
    const CallForm& form = trace.forms[call.form];
    if (span.group != last_group) {
      last_group = span.group;
      group_name = NameOf(trace.groups[span.group]);
      const auto known = groups_.find(GroupKey(trace.groups[span.group].name, trace.groups[span.group].ranks));
      group = known == groups_.end() ? nullptr : &known->second;
      places_of_group.clear();
      places = {};
      flowed.clear();
    }
    const std::size_t place = places.Take(span.begin, span.end);
    if (place == places_of_group.size())
      places_of_group.push_back(writer_.NewTrack(of_rank, fmt::format("{}: {}", who, group_name)));
    TraceEvent event{.name = form.op, .category = call.pairwise ? "send-recv" : "collective"};
    // Calls that were launched as one share a number; the first stands for them.
    if (!call.pairwise && group != nullptr && group->shared.Holds(call.seq) && flowed.insert(call.seq).second)
      event.flow = FlowNumber(FlowOf::kRecorder, group->number, static_cast<std::uint64_t>(call.seq));
    notes.clear();
    notes.push_back({"seq", call.seq});
    notes.push_back({"group", std::string_view(group_name)});
    if (!form.inputs.empty()) notes.push_back({"numel_in", Elements(form.inputs)});
    if (!form.outputs.empty()) notes.push_back({"numel_out", Elements(form.outputs)});
    if (!form.dtypes.empty()) notes.push_back({"dtype", std::string_view(form.dtypes)});
    notes.push_back({"state", Name(span.open ? call.state : CallTrace::State::kCompleted)});
    if (IsTime(call.started_ns) && IsTime(call.created_ns))
      notes.push_back({"started_after_ms", static_cast<double>(call.started_ns - call.created_ns) / kMillisecond});
    if (!span.open && !IsTime(call.ended_ns)) notes.push_back({"end_is_known", false});
    if (call.to != CallTrace::Peer::kNone) notes.push_back({"peer", std::int64_t{call.peer}});
    if (call.gave_up) notes.push_back({"gave_up", true});
    if (call.site != 0) notes.push_back({"site", std::string_view(trace.sites[call.site])});
    notes.push_back({"source", std::string_view(path)});
    notes.push_back({"line", std::uint64_t{call.place}});
    event.notes = notes;
    writer_.Begin(places_of_group[place], span.begin, event);
    if (!span.open) writer_.End(places_of_group[place], span.end);
    ++drawn_.slices;
  }
}

}  // namespace inquest
