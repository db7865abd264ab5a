// Who is who: host:pid, rank, device, communicator, from all inputs together.
#include "timeline/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "core/host_name.h"

namespace inquest {
namespace {

constexpr std::string_view kBySender = "sender of the first channel line that the process printed";
constexpr std::string_view kByProxy = "number of the proxy that the process runs, a rank of its communicator";
constexpr std::string_view kByLargest = "rank in the communicator that spans the job";
constexpr std::string_view kByDevice = "device of the process, one of those that each device of the host has";

template <class T>
void Improve(std::optional<Known<T>>& known, const Known<T>& other) {
  if (!known || other.basis > known->basis) known = other;
}

/// The communicator whose ranks are the job's: the largest, if nothing says that the job is larger.
const CommunicatorRow* JobWide(const Timeline& timeline) {
  const CommunicatorRow* largest = nullptr;
  for (const CommunicatorRow& row : timeline.communicators)
    if (row.compares() && (largest == nullptr || row.nranks > largest->nranks)) largest = &row;
  if (largest != nullptr && timeline.world_size && timeline.world_size->value > largest->nranks) return nullptr;
  return largest;
}

/// How many processes torchelastic's agent ended or saw end, where one agent speaks and no rank is beyond them.
int AgentsChildren(const Timeline& timeline) {
  std::set<std::int64_t> pids;
  std::set<std::uint32_t> inputs;
  int ranks = 0;  // that spoke, if they are numbered from 0
  for (const Event& event : timeline.events) {
    if (event.origin.rank) ranks = std::max(ranks, event.origin.rank->value.value + 1);
    std::optional<std::int64_t> pid;
    if (const auto* sent = std::get_if<SignalSent>(&event.what)) pid = sent->pid;
    if (const auto* exit = std::get_if<ProcessExit>(&event.what);
        exit != nullptr && exit->reporter == Reporter::kTorchelastic)
      pid = exit->pid;
    if (const auto* exit = std::get_if<ProcessExit>(&event.what); exit != nullptr && exit->local_rank)
      ranks = std::max(ranks, exit->local_rank->value + 1);
    if (!pid) continue;
    pids.insert(*pid);
    inputs.insert(event.where.input);
  }
  return inputs.size() == 1 && ranks <= static_cast<int>(pids.size()) ? static_cast<int>(pids.size()) : 0;
}

void FindWorldSize(Timeline& timeline) {
  for (const Event& event : timeline.events) {
    const auto* size = std::get_if<WorldSize>(&event.what);
    if (size == nullptr || size->size <= 0) continue;
    if (!timeline.world_size || timeline.world_size->value < size->size)
      timeline.world_size = Known<int>{size->size, Basis::kObserved, {}};
  }
  if (timeline.world_size) return;
  if (const int children = AgentsChildren(timeline); children > 1) {
    timeline.world_size = Known<int>{children, Basis::kDerived, "processes that the only agent ended"};
    return;
  }
  if (const CommunicatorRow* row = JobWide(timeline); row != nullptr && row->nranks > 1)
    timeline.world_size = Known<int>{row->nranks, Basis::kDerived, "size of the largest communicator"};
}

void FindVersions(Timeline& timeline) {
  const auto add = [&](const char* what, const std::string& version) {
    auto& list = timeline.versions[what];
    if (!version.empty() && std::find(list.begin(), list.end(), version) == list.end()) list.push_back(version);
  };
  for (const Event& event : timeline.events) {
    if (const auto* nccl = std::get_if<NcclVersion>(&event.what)) {
      add("nccl", nccl->version);
      add("cuda", nccl->cuda);
    } else if (const auto* gpu = std::get_if<GpuSnapshot>(&event.what)) {
      add("driver", gpu->driver);
      add("cuda", gpu->cuda);
    } else if (const auto* notice = std::get_if<KernelNotice>(&event.what);
               notice != nullptr && notice->what == KernelNews::kDriverLoaded) {
      add("driver", notice->device);
    }
  }
  std::erase_if(timeline.versions, [](const auto& entry) { return entry.second.empty(); });
}

/// `[Proxy Service 3] Failed to execute operation Setup from rank 1, retcode 1`: the writer's own number, from 2.14 on.
std::optional<GlobalRank> RankOfProxy(const Event& event) {
  constexpr std::string_view kHead = "[Proxy Service ";
  const auto* message = std::get_if<LogMessage>(&event.what);
  if (message == nullptr || message->component != Component::kNccl) return std::nullopt;
  const std::size_t at = event.text.find(kHead);
  if (at == std::string::npos) return std::nullopt;
  const char* begin = event.text.data() + at + kHead.size();
  int rank = -1;
  const auto [end, error] = std::from_chars(begin, event.text.data() + event.text.size(), rank);
  const bool named =
      error == std::errc() && end != event.text.data() + event.text.size() && *end == ']' && IsRank(rank);
  return named ? std::optional(GlobalRank{rank}) : std::nullopt;
}

/// Of a process that drives several GPUs, the first stands for it.
void ApplyInit(ProcessRow& row, const CommInit& init) {
  if (row.bus_id && init.bus_id && row.bus_id != init.bus_id) return;
  if (init.cuda_dev) row.cuda_dev = init.cuda_dev;
  if (init.nvml_dev) row.nvml_dev = init.nvml_dev;
  if (init.bus_id) row.bus_id = init.bus_id;
}

/// The host of an event's writer, or of the process whose end it reports.
std::string HostNamed(const Event& event) {
  if (event.origin.host) return event.origin.host->value;
  const auto* exit = std::get_if<ProcessExit>(&event.what);
  return exit != nullptr && exit->host ? HostName(*exit->host).Short() : std::string();
}

}  // namespace

std::uint32_t Processes::Row(const std::string& host, std::int64_t pid) {
  const auto known = by_pid_.find(std::pair<std::string_view, std::int64_t>(host, pid));
  const std::uint32_t index = known != by_pid_.end() ? known->second : static_cast<std::uint32_t>(rows.size());
  if (known == by_pid_.end()) {
    ProcessRow& row = rows.emplace_back();
    if (!host.empty()) row.host = host;
    row.pid = pid;
    heard_.emplace_back();
    by_pid_[{host, pid}] = index;
  }
  ++heard_[index].times;
  heard_[index].last = ++now_;
  return index;
}

std::optional<std::uint32_t> Processes::Find(std::string_view host, std::int64_t pid) const {
  const auto known = by_pid_.find(std::pair(host, pid));
  return known == by_pid_.end() ? std::nullopt : std::optional(known->second);
}

std::vector<std::uint32_t> Processes::Thin(std::size_t most, const std::vector<bool>& kept) {
  std::vector<bool> stays = kept;
  stays.resize(rows.size());
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < rows.size(); ++i)
    if (!stays[i]) order.push_back(i);
  // One half for those that spoke last, one for those that spoke most: a job that failed before the noise, or after it.
  const auto take = [&](std::size_t count, auto more) {
    count = std::min(count, order.size());
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(order.begin(), end, order.end(), more);
    for (auto it = order.begin(); it != end; ++it) stays[*it] = true;
    order.erase(order.begin(), end);
  };
  take(most / 2, [&](std::uint32_t a, std::uint32_t b) { return heard_[a].last > heard_[b].last; });
  take(most - most / 2, [&](std::uint32_t a, std::uint32_t b) {
    return heard_[a].times != heard_[b].times ? heard_[a].times > heard_[b].times : a < b;
  });
  std::vector<std::uint32_t> numbers(rows.size(), kNone);
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (!stays[i]) continue;
    numbers[i] = next;
    if (next != i) {
      rows[next] = std::move(rows[i]);
      heard_[next] = heard_[i];
    }
    ++next;
  }
  rows.resize(next);
  heard_.resize(next);
  std::erase_if(by_pid_, [&](const auto& entry) { return numbers[entry.second] == kNone; });
  for (auto& [pid, row] : by_pid_) row = numbers[row];
  return numbers;
}

std::uint32_t Processes::Meet(const Event& event) {
  if (!event.origin.pid) return kNone;
  const std::uint32_t index = Row(WriterHost(event), *event.origin.pid);
  ProcessRow& row = rows[index];
  if (event.origin.rank) Improve(row.rank, *event.origin.rank);
  if (event.origin.local_rank && !row.local_rank) row.local_rank = event.origin.local_rank;
  if (const auto* init = std::get_if<CommInit>(&event.what)) ApplyInit(row, *init);
  if (const auto rank = RankOfProxy(event)) Improve(row.rank, Known<GlobalRank>{*rank, Basis::kAssumed, kByProxy});
  if (const auto* device = std::get_if<DeviceReported>(&event.what)) {
    if (!row.cuda_dev) row.cuda_dev = device->device;
    if (device->rank) Improve(row.rank, Known<GlobalRank>{*device->rank, Basis::kObserved, {}});
  }
  return index;
}

std::uint32_t Processes::Meet(const CallBatch::Process& process) {
  const std::uint32_t index = Row(process.host, process.pid);
  ProcessRow& row = rows[index];
  if (process.rank && IsRank(process.rank->value.value)) Improve(row.rank, *process.rank);
  if (process.local_rank && IsRank(process.local_rank->value) && !row.local_rank) row.local_rank = process.local_rank;
  if (!row.cuda_dev) row.cuda_dev = process.cuda_dev;
  if (process.sender && IsRank(process.sender->value))
    Improve(row.rank, Known<GlobalRank>{GlobalRank{process.sender->value}, Basis::kAssumed, kBySender});
  return index;
}

namespace {

/// A task whose lines tell of processes that it started, and ended, is an agent of torchelastic's.
bool IsOfAgent(const Event& event) {
  const auto* exit = std::get_if<ProcessExit>(&event.what);
  return std::holds_alternative<SignalSent>(event.what) ||
         (exit != nullptr && exit->reporter == Reporter::kTorchelastic);
}

// Where several processes of a host carry one task number, or an agent speaks under it, srun started an agent on each
// host and the number is no rank.
void DropSharedTasks(Timeline& timeline, std::vector<ProcessRow>& rows) {
  const auto is_task = [](const std::optional<Known<GlobalRank>>& rank) { return rank && rank->rule == kSrunTask; };
  std::set<std::pair<std::string, int>> seen;
  bool shared = false;
  for (const ProcessRow& row : rows)
    if (is_task(row.rank) && row.host) shared = !seen.insert({*row.host, row.rank->value.value}).second || shared;
  shared = shared || std::ranges::any_of(timeline.events, [&](const Event& event) {
             return is_task(event.origin.rank) && IsOfAgent(event);
           });
  if (!shared) return;
  for (ProcessRow& row : rows)
    if (is_task(row.rank)) row.rank.reset();
  for (Event& event : timeline.events)
    if (is_task(event.origin.rank)) event.origin.rank.reset();
}

/// A task of srun's is a rank, unless an agent of torchelastic's speaks: that one would be the task.
void NameTasks(Timeline& timeline) {
  const auto agent = [](const InputSummary& input) {
    return std::find(input.kinds.begin(), input.kinds.end(), "torchelastic") != input.kinds.end();
  };
  if (std::any_of(timeline.inputs.begin(), timeline.inputs.end(), agent)) return;
  // Of a job of several hosts that prints nothing that frameworks print, there is no agent to be thought of.
  constexpr std::array<std::string_view, 5> kOfFrameworks = {"python-traceback", "framework", "nccl",
                                                             "pytorch-watchdog", "pytorch-c10d"};
  const auto framework = [&](const InputSummary& input) {
    return std::ranges::find_first_of(input.kinds, kOfFrameworks) != input.kinds.end();
  };
  std::set<std::string> hosts;
  for (const Event& event : timeline.events)
    if (const auto* exit = std::get_if<ProcessExit>(&event.what); exit != nullptr && exit->task && exit->host)
      hosts.insert(*exit->host);
  if (hosts.size() > 1 && std::ranges::any_of(timeline.inputs, framework)) return;
  for (Event& event : timeline.events)
    if (auto* exit = std::get_if<ProcessExit>(&event.what); exit != nullptr && exit->task && !exit->rank)
      exit->rank = GlobalRank{*exit->task};
}

std::set<std::string> HostsOf(const std::vector<ProcessRow>& processes) {
  std::set<std::string> names;
  const std::string* last = nullptr;  // processes of one host stand together
  for (const ProcessRow& row : processes)
    if (row.host && (last == nullptr || *last != *row.host)) last = &*names.insert(*row.host).first;
  return names;
}

}  // namespace

// A parent's report of a child (torchelastic's pid, rank and local rank) names a process that may have spoken
// elsewhere.
void ResolveIdentity(Timeline& timeline, Processes processes) {
  DropSharedTasks(timeline, processes.rows);
  NameTasks(timeline);
  for (const Event& event : timeline.events) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    if (exit == nullptr || !exit->pid) continue;
    const std::string short_host = exit->host ? HostName(*exit->host).Short() : WriterHost(event);
    const std::uint32_t index = processes.Row(short_host, *exit->pid);
    if (exit->rank) Improve(processes.rows[index].rank, Known<GlobalRank>{*exit->rank, Basis::kObserved, {}});
    if (exit->local_rank && !processes.rows[index].local_rank) processes.rows[index].local_rank = exit->local_rank;
  }
  // A launcher that names task and host but no pid still says where a rank was.
  std::set<GlobalRank> placed;
  for (const ProcessRow& row : processes.rows)
    if (row.rank && row.host) placed.insert(row.rank->value);
  for (const Event& event : timeline.events) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    if (exit == nullptr || exit->pid || !exit->rank || !exit->host) continue;
    if (!placed.insert(*exit->rank).second) continue;
    const auto known = std::ranges::find_if(
        processes.rows, [&](const ProcessRow& row) { return row.rank && row.rank->value == *exit->rank && !row.host; });
    if (known != processes.rows.end()) {
      known->host = HostName(*exit->host).Short();
      continue;
    }
    ProcessRow row;
    row.host = HostName(*exit->host).Short();
    row.rank = Known<GlobalRank>{*exit->rank, Basis::kObserved, {}};
    processes.rows.push_back(std::move(row));
  }
  FindWorldSize(timeline);
  FindVersions(timeline);
  if (const CommunicatorRow* row = JobWide(timeline); row != nullptr) {
    std::vector<std::uint32_t> ranks_of(processes.rows.size());
    for (const CommunicatorRow::Member& member : row->members) ++ranks_of[member.process];
    for (const CommunicatorRow::Member& member : row->members) {
      auto& rank = processes.rows[member.process].rank;
      // Several communicator ranks in one process (one process for all GPUs) name no single rank of the process.
      if (ranks_of[member.process] == 1 && member.rank)
        Improve(rank,
                Known<GlobalRank>{GlobalRank{member.rank->value}, row->seen_from ? Basis::kAssumed : Basis::kDerived,
                                  row->seen_from ? kByDevice : kByLargest});
    }
  }
  timeline.processes = std::move(processes.rows);
  timeline.process_hosts = std::make_shared<const std::set<std::string>>(HostsOf(timeline.processes));
  timeline.process_by_pid = std::make_shared<const ProcessByPid>(std::move(processes.by_pid_));
  for (const ProcessRow& row : timeline.processes) timeline.by_local_rank.Add(row);
  std::set<std::string> hosts = timeline.ProcessHosts();
  std::set<std::string> of_job;
  for (const ProcessRow& row : timeline.processes)
    if (row.host && (row.rank || row.local_rank)) of_job.insert(*row.host);
  for (const Event& event : timeline.events) {
    const std::string host = HostNamed(event);
    if (host.empty()) continue;
    hosts.insert(host);
    if (!IsOfHost(event.what) && !IsOfKernel(event.what) && !std::holds_alternative<EnvironmentSet>(event.what) &&
        !std::holds_alternative<LogMessage>(event.what))
      of_job.insert(host);
  }
  timeline.job_hosts = of_job.size();
  for (const Event& event : timeline.events)  // a task that is no rank is a node
    if (const auto* exit = std::get_if<ProcessExit>(&event.what);
        exit != nullptr && !exit->rank && exit->task.value_or(0) > 0)
      timeline.job_hosts = std::max<std::size_t>(timeline.job_hosts, 2);
  timeline.hosts.assign(hosts.begin(), hosts.end());
  timeline.job_host_names = timeline.ProcessHosts().empty()
                                ? std::make_shared<const std::set<std::string>>(std::move(hosts))
                                : timeline.process_hosts;
}

namespace {

/// The moment in the year that brings it nearest to `reference`: a log that runs over New Year has two.
std::chrono::sys_time<std::chrono::nanoseconds> InYearOf(const Timestamp& yearless, const Timestamp& reference) {
  using std::chrono::year_month_day;
  const auto day = std::chrono::floor<std::chrono::days>(yearless.at);
  const year_month_day date(day);
  const auto year = year_month_day(std::chrono::floor<std::chrono::days>(reference.at)).year();
  std::optional<std::chrono::sys_time<std::chrono::nanoseconds>> nearest;
  for (const int step : {0, -1, 1}) {
    const year_month_day moved = (year + std::chrono::years(step)) / date.month() / date.day();
    if (!moved.ok()) continue;  // 29 February
    const auto at = std::chrono::sys_days(moved) + (yearless.at - day);
    if (!nearest || std::chrono::abs(at - reference.at) < std::chrono::abs(*nearest - reference.at)) nearest = at;
  }
  return nearest.value_or(yearless.at);
}

/// Of two dated events around another one, the nearer by line; one of the same input if there is one.
const Event& Nearer(const Event& event, const Event& before, const Event& after) {
  if ((before.where.input == event.where.input) != (after.where.input == event.where.input))
    return before.where.input == event.where.input ? before : after;
  if (before.where.input != event.where.input) return before;
  return event.where.line - before.where.line <= after.where.line - event.where.line ? before : after;
}

}  // namespace

void GiveHosts(Timeline& timeline) {
  for (Event& event : timeline.events) {
    if (event.origin.host || event.origin.pid || event.where.input >= timeline.inputs.size()) continue;
    event.origin.host = timeline.inputs[event.where.input].host;
  }
}

void GiveYears(std::vector<Event>& events) {
  std::vector<std::size_t> dated;
  for (std::size_t i = 0; i < events.size(); ++i)
    if (events[i].at && events[i].at->date == Timestamp::Date::kFull) dated.push_back(i);
  if (dated.empty()) return;
  std::size_t next = 0;  // the first dated one behind the event, as a place in `dated`
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (next < dated.size() && dated[next] == i) ++next;
    Event& event = events[i];
    if (!event.at || event.at->date != Timestamp::Date::kNoYear) continue;
    const Event& before = events[dated[next == 0 ? 0 : next - 1]];
    const Event& after = events[dated[std::min(next, dated.size() - 1)]];
    const Event& reference = next == 0 ? after : next == dated.size() ? before : Nearer(event, before, after);
    event.at->at = InYearOf(*event.at, *reference.at);
    event.at->date = Timestamp::Date::kFull;
  }
}

namespace {

std::string SignalName(int number) {
  switch (number) {
    case 1:
      return "SIGHUP";
    case 2:
      return "SIGINT";
    case 6:
      return "SIGABRT";
    case 7:
      return "SIGBUS";
    case 8:
      return "SIGFPE";
    case 9:
      return "SIGKILL";
    case 11:
      return "SIGSEGV";
    case 15:
      return "SIGTERM";
    default:
      return fmt::format("signal {}", number);
  }
}

/// A stronger statement about how a rank ended; weaker ones do not replace it.
int StateWeight(const std::string& state) {
  if (state.empty()) return 0;
  if (state == "timed out") return 1;
  if (state.rfind("exited", 0) == 0) return 2;
  if (state.rfind("killed", 0) == 0) return 3;
  return 4;
}

std::string StateOf(const Event& event) {
  if (std::holds_alternative<WorkTimedOut>(event.what)) return "timed out";
  if (const auto* exit = std::get_if<ProcessExit>(&event.what)) {
    if (exit->signal) return "killed by " + SignalName(*exit->signal);
    if (exit->exit_code) return fmt::format("exited with {}", *exit->exit_code);
  }
  if (const auto* raised = std::get_if<ExceptionRaised>(&event.what)) return "raised " + raised->type;
  if (std::holds_alternative<KernelKill>(event.what)) return "killed by SIGKILL";
  if (const auto* crash = std::get_if<KernelFault>(&event.what))
    return crash->how == kHardwareMemory ? "killed by SIGBUS" : "killed by SIGSEGV";
  if (const auto* end = std::get_if<CommEnd>(&event.what);
      end != nullptr && end->complete && end->how == CommEnd::How::kDestroy)
    return "closed its communicator";
  return "";
}

std::optional<GlobalRank> SubjectOf(const Timeline& timeline, const Event& event) {
  if (const auto* exit = std::get_if<ProcessExit>(&event.what); exit != nullptr && exit->rank) return exit->rank;
  const auto rank = timeline.RankOf(event);
  return rank ? std::optional(rank->value) : std::nullopt;
}

}  // namespace

void DescribeRanks(Timeline& timeline) {
  std::map<GlobalRank, RankRow> rows;
  std::set<GlobalRank> on_several;
  const auto row_of = [&](GlobalRank rank) -> RankRow& {
    RankRow& row = rows[rank];
    row.rank = rank;
    return row;
  };
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    const auto rank = SubjectOf(timeline, event);
    if (!rank) continue;
    RankRow& row = row_of(*rank);
    if (event.origin.host && event.origin.rank && event.origin.rank->value == *rank) {
      if (!row.host) row.host = event.origin.host->value;
      if (*row.host != event.origin.host->value) on_several.insert(*rank);
    }
    // What the kernel says of a rank tells how it ended, not that it spoke.
    if (!IsOfKernel(event.what)) {
      if (!row.first_event) row.first_event = i;
      row.last_event = i;
    }
    const std::string state = StateOf(event);
    if (StateWeight(state) >= StateWeight(row.final_state) && !state.empty()) row.final_state = state;
  }
  for (std::uint32_t i = 0; i < timeline.processes.size(); ++i)
    if (timeline.processes[i].rank) {
      RankRow& row = row_of(timeline.processes[i].rank->value);
      if (!row.process || timeline.processes[i].host) row.process = i;
    }
  for (const CommunicatorRow& comm : timeline.communicators)
    for (const CommunicatorRow::Member& member : comm.members) {
      const auto& rank = timeline.processes[member.process].rank;
      if (rank && member.last_op_count)
        row_of(rank->value).last_collective = fmt::format("{} call {}", member.last_call.op, member.calls);
    }
  for (const CollectiveRow& collective : timeline.collectives)
    for (const CollectiveRow::Waiter& waiter : collective.waiters) {
      RankRow& row = row_of(waiter.rank);
      row.last_collective = fmt::format("{}{} (timed out)", waiter.work.op.empty() ? "operation" : waiter.work.op,
                                        waiter.work.seq ? fmt::format(" #{}", waiter.work.seq->value) : "");
      if (row.final_state.empty()) row.final_state = "timed out";
    }
  for (auto& [rank, row] : rows) {
    if (on_several.contains(rank) || row.host == "localhost") row.host.reset();
    timeline.ranks.push_back(std::move(row));
  }
}

}  // namespace inquest
