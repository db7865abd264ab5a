// Builds the timeline: folds repeated events, resolves who is who, matches what timed out.
#include "timeline/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "timeline/callers.h"
#include "timeline/clocks.h"
#include "timeline/collectives.h"
#include "timeline/counts.h"
#include "timeline/identity.h"
#include "timeline/kept_events.h"
#include "timeline/kernel.h"
#include "timeline/trace_ledger.h"
#include "timeline/witness.h"

namespace inquest {
namespace {

constexpr std::size_t kEventBytes = 48 << 20, kRecordBytes = 256 << 20;
constexpr std::size_t kLineBytes = 24 << 20;

/// Inputs that are more than states of hosts with the plain lines around them.
std::size_t CountLogs(const Timeline& timeline) {
  std::set<std::uint32_t> states, others;
  for (const Event& event : timeline.events)
    if (!IsContext(event)) (IsOfHost(event.what) ? states : others).insert(event.where.input);
  std::erase_if(states, [&](std::uint32_t input) { return others.contains(input); });
  return timeline.inputs.size() - states.size();
}

/// Calls are no events, and where a log holds nothing else one of them stands for all: what is said of calls is placed
/// by the events around.
void AddACall(Timeline& timeline) {
  for (const CommunicatorRow& row : timeline.communicators)
    for (const CommunicatorRow::Member& member : row.members) {
      if (!member.last_op_count) continue;
      Event event;
      event.where = member.last_call_at;
      event.text = member.last_call_text;
      event.what = LogMessage{Component::kNccl, {}, {}, false};
      timeline.events.push_back(std::move(event));
      return;
    }
}

/// A traceback without its exception tells that something was raised where the log ends in it; elsewhere others wrote
/// into it, and the exception stands behind, or it was a stack that somebody printed.
void DropWhatWasNotCut(Timeline& timeline) {
  constexpr std::uint64_t kSource = 4;  ///< lines that may stand below the last frame: its source, and a mark under it
  std::erase_if(timeline.events, [&](const Event& event) {
    const auto* stack = std::get_if<StackSeen>(&event.what);
    return stack != nullptr && stack->raised && stack->at == Activity::kNone &&
           event.where.InputLine() + kSource < timeline.inputs[event.where.input].lines;
  });
}

}  // namespace

void PlaceBirths(Timeline& timeline) {
  const auto before = [](const Event& event, const SourcePos& where) { return event.where < where; };
  for (CommunicatorRow& row : timeline.communicators)
    for (CommunicatorRow::Member& member : row.members) {
      member.init_event.reset();  // it may be of another attempt
      if (!member.init_at) continue;
      for (auto it = std::lower_bound(timeline.events.begin(), timeline.events.end(), *member.init_at, before);
           it != timeline.events.end() && it->where == *member.init_at; ++it)
        if (std::holds_alternative<CommInit>(it->what))
          member.init_event = static_cast<EventIndex>(it - timeline.events.begin());
    }
}

struct TimelineBuilder::State {
  explicit State(Devices of) : devices(of), kept(of == Devices::kWhole ? kRecordBytes : kEventBytes, kLineBytes, of) {}

  Devices devices;
  KeptEvents kept;
  Callers callers;
  TraceLedger traces;
};

TimelineBuilder::TimelineBuilder(Devices devices) : state_(std::make_unique<State>(devices)) {}
TimelineBuilder::~TimelineBuilder() = default;

void TimelineBuilder::Add(Event event) {
  if (state_->devices == Devices::kArgued && IsForTheRecord(event.what)) return;
  state_->callers.Add(event);
  if (IsContext(event))
    state_->kept.AddContext(std::move(event));
  else
    state_->kept.AddTelling(std::move(event));
}

void TimelineBuilder::AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) {
  state_->callers.AddCalls(batch, begin, end, base);
}

void TimelineBuilder::AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos& where) {
  const auto& rank = trace.rank ? trace.rank : origin.rank;
  if (!rank || !IsRank(rank->value.value)) return state_->traces.AddNameless();
  if (!state_->traces.Add(trace, rank->value, where)) return;
  Origin writer = origin;
  writer.rank = rank;
  for (Event& event : state_->traces.EventsOf(rank->value, writer)) Add(std::move(event));
}

Timeline TimelineBuilder::Build(std::vector<InputSummary> inputs) {
  State& s = *state_;
  Timeline timeline;
  timeline.inputs = std::move(inputs);
  timeline.events = s.kept.Take(timeline.inputs, timeline.left_out);
  DropWhatWasNotCut(timeline);
  timeline.waits_left_out = s.kept.waits_left_out();
  timeline.logs = CountLogs(timeline);
  GiveYears(timeline.events);
  GiveHosts(timeline);
  timeline.communicators = s.callers.ledger().Take(timeline.left_out, s.callers.processes().rows);
  if (timeline.events.empty()) AddACall(timeline);
  Recorded recorded = s.traces.Take(timeline.left_out);
  if (s.callers.processes_left_out() > 0) timeline.left_out["process"] += s.callers.processes_left_out();
  PlaceBirths(timeline);
  ResolveIdentity(timeline, std::move(s.callers.processes()));
  JoinKernel(timeline);
  AlignClocks(timeline);
  JoinWitnesses(timeline);
  AddCounts(timeline, recorded);
  timeline.recorded = std::make_shared<const Recorded>(std::move(recorded));
  MatchWork(timeline);
  DescribeRanks(timeline);
  return timeline;
}

}  // namespace inquest
