// Builds the timeline: folds repeated events, resolves who is who, matches what timed out.
#include "timeline/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "timeline/clocks.h"
#include "timeline/collectives.h"
#include "timeline/identity.h"
#include "timeline/kernel.h"
#include "timeline/ledger.h"
#include "timeline/witness.h"

namespace inquest {
namespace {

constexpr std::size_t kSameKept = 24;     ///< events of one kind, writer and meaning kept; then only the last
constexpr std::size_t kContextRing = 6;   ///< plain lines kept per writer: what it printed last
constexpr std::size_t kContextKept = 4096;  ///< plain lines kept because they stand before a telling one
constexpr std::size_t kContextAfter = 3;    ///< plain lines kept behind a telling one
constexpr std::size_t kMaxWriters = 1 << 14;

std::string GpuKey(const GpuId& id) { return fmt::format("|{}|{}|{}", id.index.value_or(-1), id.bus_id, id.uuid); }

/// Events that say the same: kind, writer, and what tells one meaning from another.
std::string SameKey(const Event& event) {
  std::string key = fmt::format("{}|{}|{}|{}", KindOf(event.what), event.where.input, event.origin.rank ? event.origin.rank->value.value : -1,
                                event.origin.pid.value_or(-1));
  if (const auto* message = std::get_if<LogMessage>(&event.what))
    for (const std::uint32_t hit : message->hits) key += fmt::format("|{}", hit);
  else if (const auto* warn = std::get_if<NcclWarn>(&event.what))
    key += warn->site;
  else if (const auto* back = std::get_if<NcclReturn>(&event.what))
    key += fmt::format("{}{}", back->site, back->result);
  else if (const auto* environment = std::get_if<EnvironmentSet>(&event.what))
    key += environment->name;
  else if (const auto* work = std::get_if<WorkTimedOut>(&event.what))
    key += fmt::format("|{}|{}", work->work.seq ? work->work.seq->value : -1, work->group_rank ? work->group_rank->value : -1);
  else if (const auto* status = std::get_if<GroupStatus>(&event.what))
    key += status->pg_guid + status->pg_id;
  else if (const auto* init = std::get_if<CommInit>(&event.what))
    key += fmt::format("|{:x}|{}", init->comm, init->complete);
  else if (const auto* via = std::get_if<ChannelsVia>(&event.what))
    key = fmt::format("via|{}|{}", event.origin.pid.value_or(-1), via->via);
  else if (const auto* raised = std::get_if<ExceptionRaised>(&event.what))
    key += raised->type + raised->frame;
  else if (const auto* exited = std::get_if<ProcessExit>(&event.what))
    key += fmt::format("|{}|{}", exited->pid.value_or(-1), exited->rank ? exited->rank->value : -1);
  else if (const auto* gpu = std::get_if<GpuSnapshot>(&event.what))
    key += GpuKey(gpu->id);
  else if (const auto* condition = std::get_if<GpuCondition>(&event.what))
    key += GpuKey(condition->id) + condition->property;
  else if (const auto* process = std::get_if<GpuProcess>(&event.what))
    key += fmt::format("{}|{}", GpuKey(process->id), process->pid);
  else if (const auto* row = std::get_if<GpuTopologyRow>(&event.what))
    key += fmt::format("|{}", row->index);
  else if (const auto* xid = std::get_if<XidReported>(&event.what))
    key += fmt::format("|{}|{}", xid->xid, xid->bus_id);
  else if (const auto* sxid = std::get_if<SxidReported>(&event.what))
    key += fmt::format("|{}|{}", sxid->sxid, sxid->device);
  else if (const auto* kill = std::get_if<KernelKill>(&event.what))
    key += fmt::format("|{}", kill->pid);
  else if (const auto* crash = std::get_if<KernelFault>(&event.what))
    key += fmt::format("|{}", crash->pid);
  else if (const auto* error = std::get_if<PcieError>(&event.what))
    key += fmt::format("|{}|{}", error->bus_id, static_cast<int>(error->severity));
  else if (const auto* notice = std::get_if<KernelNotice>(&event.what))
    key += notice->subsystem + notice->what + notice->device;
  else if (const auto* port = std::get_if<LinkPort>(&event.what))
    key += fmt::format("|{}|{}", port->device, port->port);
  else if (const auto* address = std::get_if<PortAddress>(&event.what))
    key += fmt::format("|{}|{}|{}|{}", address->device, address->port, address->index.value_or(-1), address->address);
  else if (const auto* limit = std::get_if<HostLimit>(&event.what))
    key += fmt::format("|{}", static_cast<int>(limit->of));
  else if (const auto* fact = std::get_if<HostFact>(&event.what))
    key += fmt::format("|{}", static_cast<int>(fact->of));
  else if (const auto* access = std::get_if<PcieAcs>(&event.what))
    key += access->bus_id;
  else if (const auto* link = std::get_if<PcieLink>(&event.what))
    key += link->bus_id;
  else if (const auto* used = std::get_if<NetworkUsed>(&event.what))
    key += fmt::format("|{}", static_cast<int>(used->use));
  else if (const auto* progress = std::get_if<RankProgress>(&event.what))
    key += fmt::format("|{}|{}|{}|{}", progress->comm, progress->rank ? progress->rank->value : -1, progress->op, static_cast<int>(progress->state));
  else if (const auto* diag = std::get_if<GpuDiag>(&event.what))
    key += fmt::format("|{}|{}", diag->test, diag->gpu.value_or(-1));
  // One file may hold the states of several hosts.
  if (IsOfHost(event.what) && event.origin.host) key += "|" + event.origin.host->value;
  return key;
}

std::string WriterKey(const Event& event) {
  return fmt::format("{}|{}|{}|{}|{}", event.where.input, event.origin.rank ? event.origin.rank->value.value : -1,
                     event.origin.local_rank ? event.origin.local_rank->value : -1, event.origin.pid.value_or(-1), event.origin.writer);
}

bool IsContext(const Event& event) {
  const auto* message = std::get_if<LogMessage>(&event.what);
  return message != nullptr && message->hits.empty();
}

/// Inputs that are more than states of hosts with the plain lines around them.
std::size_t CountLogs(const Timeline& timeline) {
  std::set<std::uint32_t> states, others;
  for (const Event& event : timeline.events)
    if (!IsContext(event)) (IsOfHost(event.what) ? states : others).insert(event.where.input);
  std::erase_if(states, [&](std::uint32_t input) { return others.contains(input); });
  return timeline.inputs.size() - states.size();
}

/// Where an event stands is known only when all are sorted; until then a birth is known by its line.
void PlaceBirths(Timeline& timeline, const std::vector<SourcePos>& births) {
  const auto before = [](const Event& event, const SourcePos& where) { return event.where < where; };
  for (CommunicatorRow& row : timeline.communicators)
    for (CommunicatorRow::Member& member : row.members) {
      if (!member.init_event) continue;
      const SourcePos& where = births[*member.init_event];
      member.init_event.reset();
      for (auto it = std::lower_bound(timeline.events.begin(), timeline.events.end(), where, before); it != timeline.events.end() && it->where == where; ++it)
        if (std::holds_alternative<CommInit>(it->what)) member.init_event = static_cast<EventIndex>(it - timeline.events.begin());
    }
}

}  // namespace

struct TimelineBuilder::State {
  struct Repeats { std::size_t count = 0; std::optional<std::size_t> last; };

  std::vector<Event> events;
  std::unordered_map<std::string, Repeats> repeats;
  std::map<std::string, std::deque<Event>> last_lines;  ///< per writer
  std::deque<Event> nearby;                             ///< of the input being read
  std::size_t context_kept = 0, after_left = 0;
  CallLedger ledger;
  Processes processes;
  std::vector<std::uint32_t> batch_processes;

  std::vector<SourcePos> births;  ///< by the number that the ledger knows them by

  void AddBirth(std::uint32_t process, const CommInit& init, const SourcePos& where);
  void AddContext(Event event);
  void AddTelling(Event event);
};

TimelineBuilder::TimelineBuilder() : state_(std::make_unique<State>()) {}
TimelineBuilder::~TimelineBuilder() = default;

void TimelineBuilder::State::AddBirth(std::uint32_t process, const CommInit& init, const SourcePos& where) {
  ledger.Init(process, init, static_cast<std::uint32_t>(births.size()));
  births.push_back(where);
}

void TimelineBuilder::State::AddContext(Event event) {
  if (!nearby.empty() && nearby.back().where.input != event.where.input) nearby.clear();
  if (after_left > 0 && !events.empty() && events.back().where.input == event.where.input && context_kept < kContextKept) {
    --after_left;
    ++context_kept;
    events.push_back(event);
  }
  nearby.push_back(event);
  if (nearby.size() > kContextRing) nearby.pop_front();
  const std::string key = WriterKey(event);
  if (last_lines.size() >= kMaxWriters && last_lines.find(key) == last_lines.end()) return;
  std::deque<Event>& ring = last_lines[key];
  ring.push_back(std::move(event));
  if (ring.size() > kContextRing) ring.pop_front();
}

void TimelineBuilder::State::AddTelling(Event event) {
  for (; !nearby.empty(); nearby.pop_front()) {
    if (nearby.front().where.input != event.where.input || context_kept >= kContextKept) continue;
    ++context_kept;
    events.push_back(std::move(nearby.front()));
  }
  after_left = kContextAfter;
  Repeats& same = repeats[SameKey(event)];
  if (auto* via = std::get_if<ChannelsVia>(&event.what); via != nullptr && same.last) {
    std::get<ChannelsVia>(events[*same.last].what).count += via->count;
    return;
  }
  if (same.count++ < kSameKept) {
    same.last = events.size();
    events.push_back(std::move(event));
  } else {
    events[*same.last] = std::move(event);
  }
}

void TimelineBuilder::Add(Event event) {
  const std::uint32_t process = state_->processes.Meet(event);
  if (const auto* init = std::get_if<CommInit>(&event.what); init != nullptr && process != Processes::kNone)
    state_->AddBirth(process, *init, event.where);
  if (const auto* end = std::get_if<CommEnd>(&event.what); end != nullptr && process != Processes::kNone) state_->ledger.End(process, *end);
  if (IsContext(event))
    state_->AddContext(std::move(event));
  else
    state_->AddTelling(std::move(event));
}

void TimelineBuilder::AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) {
  if (begin == 0) {
    state_->batch_processes.clear();
    for (const CallBatch::Process& process : batch.processes) state_->batch_processes.push_back(state_->processes.Meet(process));
  }
  state_->ledger.AddCalls(batch, begin, end, base, state_->batch_processes);
}

Timeline TimelineBuilder::Build(std::vector<InputSummary> inputs) {
  State& s = *state_;
  for (auto& [key, ring] : s.last_lines)
    for (Event& event : ring) s.events.push_back(std::move(event));
  Timeline timeline;
  timeline.inputs = std::move(inputs);
  timeline.events = std::move(s.events);
  std::stable_sort(timeline.events.begin(), timeline.events.end(), [](const Event& a, const Event& b) { return a.where < b.where; });
  // A line may stand both before a telling one and last of its writer; several events of one line are several facts.
  const auto same = [](const Event& a, const Event& b) { return a.where == b.where && IsContext(a) && IsContext(b); };
  timeline.events.erase(std::unique(timeline.events.begin(), timeline.events.end(), same), timeline.events.end());
  timeline.logs = CountLogs(timeline);
  GiveYears(timeline.events);
  GiveHosts(timeline);
  timeline.communicators = s.ledger.Take();
  PlaceBirths(timeline, s.births);
  ResolveIdentity(timeline, std::move(s.processes));
  JoinKernel(timeline);
  AlignClocks(timeline);
  JoinWitnesses(timeline);
  MatchWork(timeline);
  DescribeRanks(timeline);
  return timeline;
}

}  // namespace inquest
