// The event loop: sockets, deaths, output, deadlines; then the picture, the judgement and the end of everything.
#include "replay/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <set>

#include "replay/judgement.h"
#include "replay/links.h"
#include "replay/proc.h"
#include "replay/spawn.h"
#include "replay/wire.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kTick{50}, kProgress{200}, kHeartbeat{100}, kLinksApart{150};
/// Without a heartbeat for this long a rank is looked at: frozen, or only short of a processor?
constexpr milliseconds kSilence{800};
constexpr milliseconds kLate{1000};  ///< behind the others, to be worth a note
/// After a first event, for its causes to show too: an error of rank 0 may come before the news of rank 1's death.
constexpr milliseconds kSettleDeath{100}, kSettleError{400}, kSettleMismatch{50};
constexpr milliseconds kGrace{300}, kKillPatience{2000}, kBacktraceLimit{5000};
constexpr std::size_t kOutputBytes = 32 * 1024, kMostBacktraces = 4;

class Run {
 public:
  Run(const Plan& plan, const RunSetup& setup) : plan_(plan), setup_(setup), call_(CallOf(plan)), begin_(Clock::now()) {}

  RunOutcome Go() {
    Start();
    if (!ending_) Watch();
    Decide();
    End();
    out_.bandwidth = BandwidthOf(out_, plan_);
    out_.took = Now();
    return std::move(out_);
  }

 private:
  struct Rank {
    WorkerProcess process;
    bool alive = false, socket_open = false, output_open = false;
    Clock::time_point heard{}, moved{};  ///< any packet; the last new step
    milliseconds late{};                 ///< behind the others, when it last began a step
  };

  nanoseconds Now() const { return Clock::now() - begin_; }
  RankOutcome& Of(std::size_t rank) { return out_.ranks[rank]; }

  // ---- start ------------------------------------------------------------------------------------------------------
  void Start() {
    const auto nranks = static_cast<std::size_t>(plan_.ranks.value);
    ranks_.resize(nranks);
    out_.ranks.resize(nranks);
    for (std::size_t rank = 0; rank < nranks && !ending_; ++rank) {
      Of(rank).rank = static_cast<int>(rank);
      StartRank(rank);
    }
  }

  void StartRank(std::size_t rank) {
    const RankPlace place = rank < plan_.places.size() ? plan_.places[rank] : RankPlace{};
    std::vector<std::string> command = place.launcher;
    command.insert(command.end(), {setup_.worker, "work", fmt::format("{}", ::getpid())});
    Result<WorkerProcess> process = SpawnWorker(command, Environment(place));
    if (!process) {
      Of(rank).error = fmt::format("{}: {}", process.error().where, process.error().message);
      Of(rank).doing = Of(rank).last = {Phase::kSpawned, 0};
      return Note(Ending::kEvent, milliseconds(0));
    }
    Rank& state = ranks_[rank];
    state.process = std::move(*process);
    state.alive = state.socket_open = state.output_open = true;
    state.heard = state.moved = Clock::now();
    Of(rank).pid = state.process.pid;
    Of(rank).phases[Phase::kSpawned] = {.iteration = 0, .begun = Now(), .reached = Now()};

    StartWork work{.engine = plan_.engine, .setup = {}, .iterations = plan_.iterations, .warm_up = plan_.warm_up, .heartbeat = kHeartbeat, .faults = {}};
    work.setup.rank = static_cast<int>(rank);
    work.setup.nranks = plan_.ranks.value;
    work.setup.call = call_;
    work.setup.options = place.options;
    work.setup.options.insert(plan_.options.begin(), plan_.options.end());
    work.setup.patience = Patience();
    std::ranges::copy_if(plan_.faults, std::back_inserter(work.faults), [&](const Fault& fault) { return fault.rank == static_cast<int>(rank); });
    Send(rank, ToWorker(work));
  }

  std::vector<std::string> Environment(const RankPlace& place) const {
    std::map<std::string, std::string> variables;
    for (const std::string& entry : setup_.env) {
      const std::size_t equals = entry.find('=');
      if (equals != std::string::npos) variables[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
    for (const auto* more : {&plan_.env, &place.env}) {
      for (const auto& [name, value] : *more) variables[name] = value;
    }
    std::vector<std::string> entries;
    for (const auto& [name, value] : variables) entries.push_back(fmt::format("{}={}", name, value));
    return entries;
  }

  milliseconds Patience() const {
    milliseconds longest = plan_.deadlines.each;
    for (const auto& [phase, limit] : plan_.deadlines.of) longest = std::max(longest, limit);
    return longest * 2 + std::chrono::minutes(1);
  }

  // ---- the loop ---------------------------------------------------------------------------------------------------
  /// The first event counts; `settle` later all is judged.
  void Note(Ending ending, milliseconds settle) {
    if (ending_) return;
    ending_ = ending;
    out_.event_at = Now();
    judge_at_ = Clock::now() + settle;
  }

  void Watch() {
    while (true) {
      Poll(kTick);
      const Clock::time_point now = Clock::now();
      if (now >= next_progress_ && setup_.progress) {
        out_.took = Now();
        setup_.progress(out_);
        next_progress_ = now + kProgress;
      }
      if (setup_.interrupted && setup_.interrupted()) Note(Ending::kInterrupted, milliseconds(0));
      if (!ending_) LookForSilence(now);
      if (!ending_) LookAtDeadlines(now);
      if (!ending_ && std::ranges::all_of(out_.ranks, [](const RankOutcome& rank) { return rank.last.phase == Phase::kFinalized; }))
        Note(Ending::kAllDone, milliseconds(0));
      if (ending_ && now >= judge_at_) return;
    }
  }

  void Poll(milliseconds limit) {
    std::vector<pollfd> ready;
    std::vector<std::pair<std::size_t, int>> owners;  // rank, and which of its three descriptors
    const auto add = [&](std::size_t rank, int which, int fd) {
      ready.push_back({fd, POLLIN, 0});
      owners.emplace_back(rank, which);
    };
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const Rank& state = ranks_[rank];
      if (state.socket_open) add(rank, 0, state.process.socket.get());
      if (state.output_open) add(rank, 1, state.process.output.get());
      if (state.alive) add(rank, 2, state.process.pidfd.get());
    }
    if (::poll(ready.data(), ready.size(), static_cast<int>(limit.count())) <= 0) return;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (ready[i].revents == 0) continue;
      const auto [rank, which] = owners[i];
      if (which == 0) Receive(rank);
      if (which == 1) ReadOutput(rank);
      if (which == 2) Bury(rank);
    }
  }

  void Receive(std::size_t rank) {
    while (ranks_[rank].socket_open) {
      const ssize_t got = ::recv(ranks_[rank].process.socket.get(), packet_.data(), packet_.size(), 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) {
        ranks_[rank].socket_open = false;
        return;
      }
      ranks_[rank].heard = Clock::now();
      if (const auto message = DecodeToSupervisor({packet_.data(), static_cast<std::size_t>(got)}))
        std::visit([&](const auto& m) { Hear(rank, m); }, *message);
    }
  }

  void ReadOutput(std::size_t rank) {
    std::string& output = Of(rank).output;
    while (ranks_[rank].output_open) {
      const ssize_t got = ::read(ranks_[rank].process.output.get(), packet_.data(), packet_.size());
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) {
        ranks_[rank].output_open = false;
        return;
      }
      output.append(packet_.data(), static_cast<std::size_t>(got));
      if (output.size() > kOutputBytes) output.erase(0, output.size() - kOutputBytes);
    }
  }

  /// It has ended: what it said last, how, and when.
  void Bury(std::size_t rank) {
    Rank& state = ranks_[rank];
    Receive(rank);
    ReadOutput(rank);
    siginfo_t status{};
    if (::waitid(P_PID, static_cast<id_t>(state.process.pid), &status, WEXITED | WNOHANG) != 0 || status.si_pid == 0) return;
    state.alive = false;
    state.process.pidfd.Close();
    if (leaving_) {
      if (status.si_code == CLD_EXITED && status.si_status == kExitAbortHung)
        out_.notes.push_back(fmt::format("Rank {}: the library's abort did not return within {:.1f} s; the process left without it.", rank,
                                         std::chrono::duration<double>(plan_.deadlines.abort).count()));
      return;
    }
    Of(rank).ended_at = Now();
    (status.si_code == CLD_EXITED ? Of(rank).exit_code : Of(rank).signal) = status.si_status;
    Note(Ending::kEvent, kSettleDeath);
  }

  // ---- what workers say --------------------------------------------------------------------------------------------
  void Hear(std::size_t rank, const Hello& hello) {
    Of(rank).host = hello.host;
    if (hello.wire == kWireVersion) return;
    Of(rank).error = fmt::format("the worker is of another version ({}, not {})", hello.wire, kWireVersion);
    Note(Ending::kEvent, milliseconds(0));
  }

  void Hear(std::size_t rank, const Began& began) {
    Of(rank).doing = began.step;
    Of(rank).phases[began.step.phase] = {.iteration = began.step.iteration, .begun = Now(), .reached = {}};
    ranks_[rank].moved = Clock::now();
    NoteLateness(rank, began.step);
  }

  void Hear(std::size_t rank, const Reached& reached) {
    Of(rank).last = reached.step;
    Of(rank).phases[reached.step.phase].reached = Now();
    if (reached.took) Of(rank).times.push_back(*reached.took);
    ranks_[rank].moved = Clock::now();
  }

  void Hear(std::size_t rank, const Heartbeat& beat) {
    if (beat.view.async_error.empty() || !Of(rank).error.empty()) return;
    Of(rank).error = beat.view.async_error;
    Of(rank).ended_at = Now();
    Note(Ending::kEvent, kSettleError);
  }

  void Hear(std::size_t rank, const Descriptor& descriptor) {
    if (plan_.compare_descriptors && descriptor.call != call_) {
      Of(rank).asked = descriptor.call;
      return Note(Ending::kEvent, kSettleMismatch);
    }
    agreed_.insert(rank);
    if (agreed_.size() < ranks_.size()) return;
    agreed_.clear();
    for (std::size_t each = 0; each < ranks_.size(); ++each) Send(each, ToWorker(Proceed{descriptor.iteration}));
  }

  void Hear(std::size_t, const StoreSet& set) {
    store_[set.key] = set.bytes;
    for (const std::size_t rank : askers_[set.key]) Send(rank, ToWorker(StoreValue{set.key, set.bytes}));
    askers_.erase(set.key);
  }

  void Hear(std::size_t rank, const StoreGet& get) {
    const auto found = store_.find(get.key);
    if (found == store_.end())
      askers_[get.key].insert(rank);
    else
      Send(rank, ToWorker(StoreValue{get.key, found->second}));
  }

  void Hear(std::size_t rank, const WorkFailed& failed) {
    Of(rank).doing = failed.step;
    Of(rank).ended_at = Now();
    Of(rank).wrong_data = failed.wrong_data;
    if (!failed.wrong_data) Of(rank).error = failed.error.empty() ? "no reason given" : failed.error;
    // Now: those that fail next will not listen any more where this rank looked for them.
    if (!ending_ && !failed.wrong_data) out_.listeners = LinksBetween(Pids(), milliseconds(0)).listeners;
    Note(Ending::kEvent, kSettleError);
  }

  void Hear(std::size_t rank, const Described& described) { Of(rank).describe = described.lines; }

  void Send(std::size_t rank, const ToWorker& message) {
    const std::string packet = Encode(message);
    // A worker that does not take its packets is found by its silence.
    (void)::send(ranks_[rank].process.socket.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // ---- what workers do not say -------------------------------------------------------------------------------------
  /// Once all ranks have begun a step: who fell behind in it, against the median. After the operation it matters no more.
  void NoteLateness(std::size_t rank, const Step& step) {
    auto& begun = begun_[{step.phase, step.iteration}];
    begun[rank] = Now();
    if (begun.size() < ranks_.size()) return;
    std::vector<nanoseconds> times;
    for (const auto& [each, at] : begun) times.push_back(at);
    std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2));
    const nanoseconds median = times[(times.size() - 1) / 2];
    for (const auto& [each, at] : begun) {
      const auto late = std::chrono::duration_cast<milliseconds>(at - median);
      const milliseconds more = late - ranks_[each].late;
      if (more >= kLate && step.phase <= Phase::kCompleted) out_.notes.push_back(fmt::format("Rank {} was {:.1f} s late at {}.", each, std::chrono::duration<double>(more).count(), Text(step)));
      ranks_[each].late = late;
    }
    begun_.erase({step.phase, step.iteration});
  }

  void LookForSilence(Clock::time_point now) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      Rank& state = ranks_[rank];
      if (!state.alive || now - state.heard < kSilence) continue;
      const pid_t pid = state.process.pid;
      const char letter = StateOf(pid);
      std::string& stopped = Of(rank).stopped;
      if (letter == 'T') stopped = "stopped (SIGSTOP or its like, state T)";
      if (letter == 't') stopped = fmt::format("held by a debugger, process {} (state t)", TracerOf(pid));
      if (stopped.empty() && IsFrozen(pid)) stopped = "held by the cgroup freezer";
      if (!stopped.empty()) Note(Ending::kEvent, milliseconds(0));
    }
  }

  void LookAtDeadlines(Clock::time_point now) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const RankOutcome& row = Of(rank);
      if (row.last.phase == Phase::kFinalized) continue;
      const Step next = row.last == row.doing ? StepAfter(row.doing, plan_) : row.doing;
      const milliseconds limit = plan_.deadlines.For(next.phase);
      if (now - ranks_[rank].moved < limit) continue;
      waited_ = limit;
      return Note(Ending::kDeadline, milliseconds(0));
    }
  }

  // ---- the end ----------------------------------------------------------------------------------------------------
  void Decide() {
    Poll(milliseconds(0));
    if (*ending_ != Ending::kAllDone) TakePicture();
    const Judgement judgement = Judge(out_, plan_, *ending_, waited_);
    out_.verdict = judgement.verdict;
    out_.sentence = judgement.sentence;
    out_.blamed = judgement.blamed;
    out_.decided_at = out_.took = Now();
    if (setup_.decided) setup_.decided(out_);
    if (*ending_ != Ending::kDeadline) return;
    if (setup_.look) out_.dumps = setup_.look(out_);
    TakeBacktraces();
  }

  std::map<int, pid_t> Pids() const {
    std::map<int, pid_t> pids;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].alive) pids.emplace(static_cast<int>(rank), ranks_[rank].process.pid);
    }
    return pids;
  }

  void TakePicture() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!ranks_[rank].alive) continue;
      const pid_t pid = ranks_[rank].process.pid;
      Of(rank).process_state = StateText(pid);
      Of(rank).threads = ThreadsOf(pid);
    }
    const bool failed = std::ranges::any_of(out_.ranks, [](const RankOutcome& rank) { return !rank.error.empty(); });
    if (*ending_ != Ending::kDeadline && !failed) return;
    LinkPicture picture = LinksBetween(Pids(), kLinksApart);
    out_.links = std::move(picture.links);
    out_.listeners.merge(picture.listeners);
  }

  /// Of those blamed first.
  void TakeBacktraces() {
    if (!setup_.run_program) return;
    std::vector<std::size_t> order;
    for (const Blamed& blamed : out_.blamed) {
      if (blamed.rank) order.push_back(static_cast<std::size_t>(*blamed.rank));
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) order.push_back(rank);
    std::set<std::size_t> done;
    const Clock::time_point last = Clock::now() + kBacktraceLimit;
    for (const std::size_t rank : order) {
      const auto left = std::chrono::duration_cast<milliseconds>(last - Clock::now());
      if (done.size() == kMostBacktraces || left <= milliseconds(0)) return;
      if (!ranks_[rank].alive || !done.insert(rank).second) continue;
      Of(rank).backtrace = setup_.run_program({"gdb", "-p", fmt::format("{}", ranks_[rank].process.pid), "-nx", "-batch", "-ex", "thread apply all bt"}, left);
    }
  }

  std::size_t Living() const {
    return static_cast<std::size_t>(std::ranges::count_if(ranks_, [](const Rank& rank) { return rank.alive; }));
  }
  void AwaitEnd(milliseconds limit) {
    for (const Clock::time_point last = Clock::now() + limit; Living() > 0 && Clock::now() < last;) Poll(kTick);
  }

  void End() {
    leaving_ = true;
    const bool well = *ending_ == Ending::kAllDone;
    const auto kill_group = [&](std::size_t rank) {
      if (ranks_[rank].alive) ::kill(-ranks_[rank].process.pid, SIGKILL);
    };
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!Of(rank).stopped.empty())
        kill_group(rank);  // it can hear nothing
      else if (ranks_[rank].alive)
        Send(rank, well ? ToWorker(Leave{}) : ToWorker(AbortWork{plan_.deadlines.abort}));
    }
    AwaitEnd(plan_.deadlines.abort + kGrace);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) kill_group(rank);
    AwaitEnd(kKillPatience);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].alive)
        out_.notes.push_back(fmt::format("Rank {}: process {} could not be killed; it is in state {}.", rank, ranks_[rank].process.pid, StateText(ranks_[rank].process.pid)));
    }
  }

  const Plan& plan_;
  const RunSetup& setup_;
  Call call_;
  Clock::time_point begin_, next_progress_ = begin_, judge_at_{};
  RunOutcome out_;
  std::vector<Rank> ranks_;
  std::optional<Ending> ending_;
  milliseconds waited_{};
  bool leaving_ = false;
  std::set<std::size_t> agreed_;
  std::map<std::string, std::string> store_;
  std::map<std::string, std::set<std::size_t>> askers_;
  std::map<std::pair<Phase, int>, std::map<std::size_t, nanoseconds>> begun_;
  std::string packet_ = std::string(kPacketBytes, '\0');
};

}  // namespace

RunOutcome RunPlan(const Plan& plan, const RunSetup& setup) { return Run(plan, setup).Go(); }

}  // namespace inquest
