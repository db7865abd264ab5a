// One epoll over the sockets, outputs and process handles of all ranks. Pictures, which take their time, are taken by
// threads of their own.
#include "replay/local_node.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "replay/proc.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;

/// Without a heartbeat for this long a rank is looked at: frozen, or only short of a processor?
constexpr milliseconds kSilence{800};
constexpr std::size_t kOutputBytes = 32 * 1024, kDumpBytes = 64 * 1024, kMostBacktraces = 4;
/// Libraries print their dumps in milliseconds, or not at all.
constexpr milliseconds kDumpLimit{1500}, kDumpQuiet{250}, kDumpTick{25};
enum Which : int { kSocket, kOutput, kProcess, kWake };

std::uint64_t Key(int rank, int which) {
  return static_cast<std::uint64_t>(rank) * 4 + static_cast<std::uint64_t>(which);
}

}  // namespace

LocalNode::LocalNode(const NodeSetup& setup)
    : setup_(setup),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      packet_(kPacketBytes, '\0') {
  Watch(wake_.get(), 0, kWake);
}

LocalNode::~LocalNode() {
  JoinLooks();
  for (const auto& [rank, pid] : Pids()) {
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, WNOHANG);
  }
}

void LocalNode::JoinLooks() {
  for (std::thread& look : looks_) look.join();
  looks_.clear();
}

void LocalNode::Watch(int fd, int rank, int which) {
  epoll_event wanted{.events = EPOLLIN, .data = {.u64 = Key(rank, which)}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &wanted);
}

// ---- start ----------------------------------------------------------------------------------------------------------

void LocalNode::Start(const StartOrder& order) {
  JoinLooks();
  ranks_.clear();
  events_.clear();
  failure_seen_ = false;
  taken_ = {};
  std::vector<StartWork> works;
  for (const RankOrder& rank : order.ranks) works.push_back(rank.work);
  // Each alone would find that there is room, and all of them would be killed for it.
  if (const std::string why = WhyTooLarge(works, RoomForRanks(), order.on_host); !why.empty()) {
    Add(RankNotSpawned{order.ranks.front().rank, why});
    return;
  }
  for (const RankOrder& rank : order.ranks) {
    if (!Spawn(order, rank)) return;
  }
}

bool LocalNode::Spawn(const StartOrder& order, const RankOrder& wanted) {
  if (ranks_.contains(wanted.rank)) return true;
  std::vector<std::string> command = wanted.launcher;
  command.insert(command.end(), {setup_.worker, "work", fmt::format("{}", ::getpid())});
  std::map<std::string, std::string> ordered = order.env;
  for (const auto& [name, value] : wanted.env) ordered[name] = value;
  Result<WorkerProcess> process = SpawnWorker(command, Environment(ordered));
  if (!process) {
    Add(RankNotSpawned{wanted.rank, fmt::format("{}: {}", process.error().where, process.error().message) +
                                        (process.error().hint.empty() ? "" : "; " + process.error().hint)});
    return false;
  }
  Rank& rank = ranks_[wanted.rank];
  rank.process = std::move(*process);
  rank.env = std::move(ordered);
  rank.before = OomKillsAround(rank.process.pid);
  rank.heard = Clock::now();
  Watch(rank.process.socket.get(), wanted.rank, kSocket);
  Watch(rank.process.output.get(), wanted.rank, kOutput);
  Watch(rank.process.pidfd.get(), wanted.rank, kProcess);
  Add(RankSpawned{wanted.rank, rank.process.pid});
  Tell(wanted.rank, ToWorker(wanted.work));
  return true;
}

std::vector<std::string> LocalNode::Environment(const std::map<std::string, std::string>& ordered) const {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : setup_.env) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  for (const auto& [name, value] : ordered) variables[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

// ---- what ranks do --------------------------------------------------------------------------------------------------

std::vector<NodeEvent> LocalNode::Take() {
  std::array<epoll_event, 64> ready;
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t key = ready[static_cast<std::size_t>(i)].data.u64;
    const int rank = static_cast<int>(key / 4);
    switch (key % 4) {
      case kSocket:
        Receive(rank);
        break;
      case kOutput:
        ReadOutput(rank);
        break;
      case kProcess:
        Bury(rank);
        break;
      default: {
        eventfd_t ignored = 0;
        ::eventfd_read(wake_.get(), &ignored);
        const std::lock_guard lock(mutex_);
        for (NodeSaw& saw : seen_) Add(std::move(saw));
        seen_.clear();
      }
    }
  }
  // Where this process itself stood still, its silence is nobody's.
  const Clock::time_point now = Clock::now();
  if (taken_ != Clock::time_point() && now - taken_ > kSilence / 2) {
    for (auto& [number, rank] : ranks_) rank.heard = now;
  }
  taken_ = now;
  LookForSilence();
  return std::exchange(events_, {});
}

void LocalNode::Receive(int number) {
  Rank& rank = ranks_[number];
  while (rank.socket_open) {
    const ssize_t got = ::recv(rank.process.socket.get(), packet_.data(), packet_.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      rank.socket_open = false;
      rank.process.socket.Close();
      return;
    }
    rank.heard = Clock::now();
    if (auto message = DecodeToSupervisor({packet_.data(), static_cast<std::size_t>(got)})) {
      Hear(number, std::move(*message));
      continue;
    }
    rank.socket_open = false;
    rank.process.socket.Close();
    Add(RankNotSpawned{number,
                       fmt::format("what the worker of rank {} says is not understood: {} is of another version, "
                                   "or its memory is spoilt",
                                   number, setup_.worker)});
  }
}

void LocalNode::Hear(int rank, ToSupervisor message) {
  if (const auto* beat = std::get_if<Heartbeat>(&message)) {
    const bool moved = std::exchange(ranks_[rank].progress, beat->progress) != beat->progress;
    if (beat->async_error.empty() && !moved) return;
  }
  const auto* failed = std::get_if<WorkFailed>(&message);
  const bool first = failed != nullptr && !failed->wrong_data && !std::exchange(failure_seen_, true);
  // Now: those that fail next will not listen any more where this rank looked for them.
  if (first) Add(NodeSaw{.id = 0, .ranks = {}, .sockets = LookAtSockets(Pids(), milliseconds(0)), .texts = {}});
  Add(RankSaid{rank, std::move(message)});
}

void LocalNode::ReadOutput(int number) {
  constexpr int kMostReads = 16;  // one that prints without an end must not keep us
  Rank& rank = ranks_[number];
  for (int reads = 0; rank.output_open && reads < kMostReads; ++reads) {
    const ssize_t got = ::read(rank.process.output.get(), packet_.data(), packet_.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      rank.output_open = false;
      rank.process.output.Close();
      return;
    }
    if (IsDump(number, {packet_.data(), static_cast<std::size_t>(got)})) continue;
    rank.output.append(packet_.data(), static_cast<std::size_t>(got));
    if (rank.output.size() > kOutputBytes) rank.output.erase(0, rank.output.size() - kOutputBytes);
  }
}

bool LocalNode::IsDump(int rank, std::string_view printed) {
  const std::lock_guard lock(mutex_);
  if (!dumping_) return false;
  std::string& dump = dumps_[rank];
  dump.append(printed.substr(0, kDumpBytes - std::min(kDumpBytes, dump.size())));  // its head says most
  return true;
}

/// It has ended: what it said last, and how.
void LocalNode::Bury(int number) {
  Rank& rank = ranks_[number];
  if (!rank.alive) return;
  Receive(number);
  ReadOutput(number);
  siginfo_t status{};
  if (::waitid(P_PID, static_cast<id_t>(rank.process.pid), &status, WEXITED | WNOHANG) != 0 || status.si_pid == 0)
    return;
  rank.alive = false;
  rank.process.pidfd.Close();
  RankEnded ended{.rank = number, .exit_code = {}, .signal = {}, .output = rank.output};
  (status.si_code == CLD_EXITED ? ended.exit_code : ended.signal) = status.si_status;
  if (ended.signal == SIGKILL) ended.why = WhyOom(rank.before);
  Add(std::move(ended));
}

void LocalNode::LookForSilence() {
  const Clock::time_point now = Clock::now();
  for (auto& [number, rank] : ranks_) {
    if (!rank.alive || rank.told_stopped || now - rank.heard < kSilence) continue;
    const pid_t pid = rank.process.pid;
    const char letter = StateOf(pid);
    std::string why;
    if (letter == 'T') why = "stopped (SIGSTOP or its like, state T)";
    if (letter == 't') why = fmt::format("held by a debugger, process {} (state t)", TracerOf(pid));
    if (why.empty() && IsFrozen(pid)) why = "held by the cgroup freezer";
    if (why.empty()) continue;
    rank.told_stopped = true;
    Add(RankStopped{number, std::move(why)});
  }
}

// ---- what is done to them -------------------------------------------------------------------------------------------

void LocalNode::Tell(int rank, const ToWorker& message) {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end() || !found->second.socket_open) return;
  const std::string packet = Encode(message);
  // A worker that does not take its packets is found by its silence.
  (void)::send(found->second.process.socket.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void LocalNode::Kill(const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    const auto found = ranks_.find(rank);
    if (found != ranks_.end() && found->second.alive) ::kill(-found->second.process.pid, SIGKILL);
  }
}

std::map<int, pid_t> LocalNode::Pids() const {
  std::map<int, pid_t> pids;
  for (const auto& [number, rank] : ranks_) {
    if (rank.alive) pids.emplace(number, rank.process.pid);
  }
  return pids;
}

void LocalNode::Look(const LookOrder& order) {
  std::vector<LiveRank> living;
  for (const auto& [number, rank] : ranks_) {
    if (rank.alive) living.push_back({number, rank.process.pid, rank.env});
  }
  auto look = [this, order, living = std::move(living), pids = Pids()] {
    NodeSaw saw{.id = order.id, .ranks = {}, .sockets = {}, .texts = {}};
    std::map<int, RankSight> sights;
    if (order.threads) {
      for (const auto& [rank, pid] : pids)
        sights[rank] = {.rank = rank, .process_state = StateText(pid), .threads = ThreadsOf(pid), .backtrace = {}};
    }
    if (order.sockets) saw.sockets = LookAtSockets(pids, order.apart);
    if (order.texts && setup_.look) saw.texts = setup_.look(living);
    const Clock::time_point last = Clock::now() + order.limit;
    std::size_t taken = 0;
    for (const int rank : order.backtraces) {
      const auto left = std::chrono::duration_cast<milliseconds>(last - Clock::now());
      if (!setup_.run_program || taken == kMostBacktraces || left <= milliseconds(0)) break;
      const auto found = pids.find(rank);
      if (found == pids.end()) continue;
      ++taken;
      sights[rank].rank = rank;
      sights[rank].backtrace = setup_.run_program(
          {"gdb", "-p", fmt::format("{}", found->second), "-nx", "-batch", "-ex", "thread apply all bt"}, left);
    }
    if (order.dump_signal) saw.texts.merge(TakeDumps(pids, *order.dump_signal));
    for (auto& [rank, sight] : sights) saw.ranks.push_back(std::move(sight));
    {
      const std::lock_guard lock(mutex_);
      seen_.push_back(std::move(saw));
    }
    ::eventfd_write(wake_.get(), 1);
  };
  try {
    looks_.emplace_back(look);
  } catch (const std::system_error&) {
    look();  // no thread can be had: late, and all the same
  }
}

/// From the thread of a look; the node's own reads what they print. Last of all, since a handler may hang or spoil what
/// others show.
std::map<std::string, std::string> LocalNode::TakeDumps(const std::map<int, pid_t>& pids, int signal) {
  const auto bytes = [this] {
    const std::lock_guard lock(mutex_);
    std::size_t all = 0;
    for (const auto& [rank, dump] : dumps_) all += dump.size();
    return all;
  };
  {
    const std::lock_guard lock(mutex_);
    dumping_ = true;
    dumps_.clear();
  }
  for (const auto& [rank, pid] : pids) ::kill(pid, signal);
  const Clock::time_point last = Clock::now() + kDumpLimit;
  Clock::time_point quiet = Clock::now() + kDumpQuiet;
  for (std::size_t before = 0; Clock::now() < std::min(last, quiet);) {
    std::this_thread::sleep_for(kDumpTick);
    const std::size_t now = bytes();
    if (now != before) quiet = Clock::now() + kDumpQuiet;
    before = now;
  }
  const std::lock_guard lock(mutex_);
  dumping_ = false;
  std::map<std::string, std::string> texts;
  for (auto& [rank, dump] : dumps_) texts[fmt::format("proxy.rank{}.txt", rank)] = std::move(dump);
  return texts;
}

}  // namespace inquest
