// What ranks, wherever they are, say and do; deadlines; then the picture, the judgement and the end of everything.
#include "replay/supervisor.h"

#include <poll.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "replay/judgement.h"
#include "replay/local_node.h"
#include "replay/sequence_judgement.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kTick{50}, kProgress{200}, kHeartbeat{100}, kLinksApart{150};
constexpr milliseconds kLate{1000};        ///< behind the others, to be worth a note
constexpr std::size_t kMostLookedAt = 64;  ///< ranks, each of which may have a connection to each
constexpr milliseconds kSuspended{1000};   ///< between two looks, of which there are twenty a second
/// After a first event, for its causes to show too: an error of rank 0 may come before the news of rank 1's death.
constexpr milliseconds kSettleStopped{250}, kSettleInterrupt{400};
constexpr milliseconds kSettleDeath{100}, kSettleError{400}, kSettleMismatch{50};
constexpr milliseconds kGrace{300}, kKillPatience{2000}, kBacktraceLimit{5000}, kLogsLimit{30'000};
constexpr milliseconds kPictureLimit{1000};  ///< beyond kLinksApart: a node that does not answer is left out
constexpr milliseconds kTextsLimit{
    11'000};  ///< of NodeSetup::look and the libraries' dumps, which have limits of their own

class Run {
 public:
  Run(const Plan& plan, const RunSetup& setup, std::span<Node* const> nodes)
      : plan_(plan), setup_(setup), nodes_(nodes), call_(CallOf(plan)), begin_(Clock::now()), lost_(nodes.size()) {}

  RunOutcome Go() {
    Start();
    Watch();
    Decide();
    if (setup_.pace != nullptr && out_.verdict == RunVerdict::kPassed) setup_.pace->Passed(out_.decided_at);
    End();
    out_.bandwidth = BandwidthOf(out_, plan_);
    out_.took = Now();
    return std::move(out_);
  }

 private:
  struct Rank {
    std::size_t node = 0;
    bool alive = false;
    Clock::time_point moved{};  ///< the last new step
    milliseconds late{};        ///< behind the others, when it last began a step
  };

  /// Time that goes on while this process does, as of the last look at the clock: what it missed is nobody's delay, and
  /// what it misses from that look on is found by the next.
  Clock::time_point Moment() const { return looked_ - suspended_; }
  nanoseconds Now() const { return Moment() - begin_; }
  /// When something happened, by that time. What another node did while we were suspended, or shortly before, is heard
  /// afterwards: the whole gap counts as one tick, in which it keeps its order.
  nanoseconds TimeOf(Clock::time_point at) const {
    nanoseconds missed = suspended_;
    if (at < resumed_) {
      missed -= gap_ - kTick;
      const Clock::time_point paused = resumed_ - gap_;
      if (at > paused)
        at = paused + std::chrono::duration_cast<nanoseconds>(
                          kTick * (std::chrono::duration<double>(at - paused) / std::chrono::duration<double>(gap_)));
    }
    return std::max<nanoseconds>(at - missed - begin_, nanoseconds(0));
  }
  RankOutcome& Of(std::size_t rank) { return out_.ranks[rank]; }
  RankPlace PlaceOf(std::size_t rank) const { return rank < plan_.places.size() ? plan_.places[rank] : RankPlace{}; }

  // ---- start ------------------------------------------------------------------------------------------------------
  void Start() {
    const auto nranks = static_cast<std::size_t>(plan_.ranks.value);
    ranks_.resize(nranks);
    out_.ranks.resize(nranks);
    for (const std::string& name : setup_.nodes) out_.nodes.push_back({.name = name, .lost = "", .lost_at = {}});
    std::vector<StartOrder> orders(nodes_.size());
    for (std::size_t rank = 0; rank < nranks; ++rank) {
      const RankPlace place = PlaceOf(rank);
      ranks_[rank].node = static_cast<std::size_t>(place.node);
      ranks_[rank].moved = begin_;
      Of(rank).rank = static_cast<int>(rank);
      Of(rank).node = place.node;
      orders[ranks_[rank].node].ranks.push_back(
          {.rank = static_cast<int>(rank), .launcher = place.launcher, .env = place.env, .work = WorkOf(rank, place)});
    }
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      orders[node].env = plan_.env;
      orders[node].on_host = OnHostOf(node, orders);
      nodes_[node]->Start(orders[node]);
    }
    Poll(milliseconds(0));
  }

  int OnHostOf(std::size_t node, const std::vector<StartOrder>& orders) const {
    std::size_t ranks = orders[node].ranks.size();
    for (std::size_t other = 0; other < orders.size() && orders.size() <= setup_.hosts.size(); ++other)
      if (other != node && setup_.hosts[other] == setup_.hosts[node]) ranks += orders[other].ranks.size();
    return static_cast<int>(ranks);
  }

  StartWork WorkOf(std::size_t rank, const RankPlace& place) const {
    StartWork work{.engine = plan_.engine,
                   .setup = {},
                   .iterations = plan_.iterations,
                   .warm_up = plan_.warm_up,
                   .heartbeat = kHeartbeat,
                   .faults = {}};
    work.setup.rank = static_cast<int>(rank);
    work.setup.nranks = plan_.ranks.value;
    work.setup.call = call_;
    if (plan_.sequence) work.setup.sequence = inquest::WorkOf(*plan_.sequence, static_cast<int>(rank));
    work.setup.options = place.options;
    work.setup.options.insert(plan_.options.begin(), plan_.options.end());
    work.setup.patience = Patience();
    std::ranges::copy_if(plan_.faults, std::back_inserter(work.faults),
                         [&](const Fault& fault) { return fault.rank == static_cast<int>(rank); });
    return work;
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
    judge_at_ = Moment() + settle;
  }

  /// An event that an interrupt of everything brings about as well, and before we hear of that.
  bool MayBeOfInterrupt() const {
    const auto of_signal = [](const RankOutcome& rank) {
      return !rank.signal || *rank.signal == SIGINT || *rank.signal == SIGTERM || *rank.signal == SIGHUP;
    };
    const bool dead = std::ranges::any_of(out_.ranks, [](const RankOutcome& rank) { return rank.signal.has_value(); });
    const bool lost = std::ranges::any_of(out_.nodes, [](const NodeOutcome& node) { return !node.lost.empty(); });
    return ending_ == Ending::kEvent && (dead || lost) && std::ranges::all_of(out_.ranks, of_signal);
  }

  /// Stopped by a terminal, a scheduler, a debugger: nothing was watched meanwhile.
  void NoteSuspension() {
    const Clock::time_point now = Clock::now();
    const Clock::time_point before = std::exchange(looked_, now);
    const auto gap = now - before;
    if (!is_watching_ || gap < kSuspended || leaving_) return;
    suspended_ += gap - kTick;
    resumed_ = now;
    gap_ = gap;
    out_.notes.push_back(
        fmt::format("This program was itself suspended for {:.1f} s; no deadline and no lateness counts them.",
                    std::chrono::duration<double>(gap).count()));
  }

  void Watch() {
    is_watching_ = true;
    while (!ending_ || Moment() < judge_at_) {
      Poll(kTick);
      const Clock::time_point now = Moment();
      if (now >= next_progress_ && setup_.progress) {
        out_.took = Now();
        setup_.progress(out_);
        next_progress_ = now + kProgress;
      }
      if (setup_.interrupted) out_.interruption = setup_.interrupted();
      if (out_.interruption != Interruption::kNone) {
        if (MayBeOfInterrupt()) ending_ = Ending::kInterrupted;
        Note(Ending::kInterrupted, milliseconds(0));
      }
      if (!ending_) LookAtDeadlines(now);
      if (!ending_ &&
          std::ranges::all_of(out_.ranks, [](const RankOutcome& rank) { return rank.last.phase == Phase::kFinalized; }))
        Note(Ending::kAllDone, milliseconds(0));
    }
  }

  void Poll(milliseconds limit) {
    std::vector<pollfd> ready;
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      ready.push_back({lost_[node] ? -1 : nodes_[node]->fd(), POLLIN, 0});
    (void)::poll(ready.data(), ready.size(), static_cast<int>(limit.count()));
    NoteSuspension();
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (lost_[node]) continue;
      for (NodeEvent& event : nodes_[node]->Take()) {
        at_ = TimeOf(event.at);
        std::visit([&](auto& what) { Happened(node, what); }, event.what);
      }
    }
  }

  /// Whether that node may speak of that rank: what it says is never trusted.
  bool Has(std::size_t node, int rank) const {
    return rank >= 0 && static_cast<std::size_t>(rank) < ranks_.size() &&
           ranks_[static_cast<std::size_t>(rank)].node == node;
  }

  // ---- what nodes say ---------------------------------------------------------------------------------------------
  void Happened(std::size_t node, const RankSpawned& spawned) {
    if (!Has(node, spawned.rank)) return;
    const auto rank = static_cast<std::size_t>(spawned.rank);
    ranks_[rank].alive = true;
    ranks_[rank].moved = Moment();
    Of(rank).pid = spawned.pid;
    Of(rank).phases[Phase::kSpawned] = {.iteration = 0, .begun = at_, .reached = at_};
  }

  void Happened(std::size_t node, const RankNotSpawned& refused) {
    if (!Has(node, refused.rank)) return;
    RankOutcome& rank = Of(static_cast<std::size_t>(refused.rank));
    if (rank.error.empty()) rank.error = refused.error;
    if (rank.ended_at.count() == 0) rank.ended_at = at_;
    Note(Ending::kEvent, milliseconds(0));
  }

  void Happened(std::size_t node, const RankSaid& said) {
    if (Has(node, said.rank))
      std::visit([&](const auto& message) { Hear(static_cast<std::size_t>(said.rank), message); }, said.message);
  }

  void Happened(std::size_t node, RankEnded& ended) {
    if (!Has(node, ended.rank)) return;
    const auto rank = static_cast<std::size_t>(ended.rank);
    ranks_[rank].alive = false;
    Of(rank).output = std::move(ended.output);
    if (leaving_) {
      if (ended.exit_code == kExitAbortHung)
        out_.notes.push_back(
            fmt::format("Rank {}: the library's abort did not return within {:.1f} s; the process left without it.",
                        rank, std::chrono::duration<double>(plan_.deadlines.abort).count()));
      return;
    }
    Of(rank).ended_at = at_;
    Of(rank).exit_code = ended.exit_code;
    Of(rank).signal = ended.signal;
    Of(rank).ended_by = std::move(ended.why);
    const bool ended_by_somebody =
        ended.signal == SIGINT || ended.signal == SIGTERM || ended.signal == SIGHUP || ended.signal == SIGKILL;
    Note(Ending::kEvent, ended_by_somebody && nodes_.size() > 1 ? kSettleInterrupt : kSettleDeath);
  }

  void Happened(std::size_t node, const RankStopped& stopped) {
    // Once it is judged it is we who hold them, for a backtrace.
    if (!Has(node, stopped.rank) || leaving_ || out_.decided_at.count() > 0) return;
    Of(static_cast<std::size_t>(stopped.rank)).stopped = stopped.why;
    Note(Ending::kEvent, kSettleStopped);
  }

  void Happened(std::size_t node, NodeSaw& saw) {
    if (!saw.more) awaited_.erase({saw.id, node});
    for (RankSight& sight : saw.ranks) {
      if (!Has(node, sight.rank)) continue;
      RankOutcome& rank = Of(static_cast<std::size_t>(sight.rank));
      if (!sight.process_state.empty()) rank.process_state = std::move(sight.process_state);
      if (!sight.threads.empty()) rank.threads = std::move(sight.threads);
      if (!sight.backtrace.empty()) rank.backtrace = std::move(sight.backtrace);
    }
    for (SocketSight& socket : saw.sockets) {
      if (Has(node, socket.rank)) sockets_[saw.id].push_back(std::move(socket));
    }
    for (auto& [name, text] : saw.texts) {
      // Files of a rank have its number; those of a host are the same on all.
      const bool of_host = nodes_.size() > 1 && name.find(".rank") == std::string::npos;
      out_.dumps.insert_or_assign(of_host ? fmt::format("node{}.{}", node, name) : name, std::move(text));
    }
  }

  void Happened(std::size_t node, const NodeLost& lost) {
    lost_[node] = true;
    // Nodes that were not spoken to give their coordinator up.
    const bool was_away = resumed_ != Clock::time_point() && Clock::now() - resumed_ < kSuspended * 2;
    // What ends an agent in good order ends its ranks as well, of whom we may have heard first, or of what others had
    // of that: the agent had said so by then.
    const bool was_before = ending_ == Ending::kEvent && at_ <= out_.event_at + kTick;
    if (lost.interrupted && (was_before || MayBeOfInterrupt())) ending_ = Ending::kInterrupted;
    if (node < out_.nodes.size() && !leaving_) {
      out_.nodes[node].lost = lost.why;
      out_.nodes[node].lost_at = at_;
      out_.nodes[node].interrupted = lost.interrupted;
    }
    std::erase_if(awaited_, [&](const auto& entry) { return entry.second == node; });
    for (Rank& rank : ranks_) {
      if (rank.node == node) rank.alive = false;
    }
    if (lost.interrupted || was_away) return Note(Ending::kInterrupted, milliseconds(0));
    Note(Ending::kEvent, kSettleDeath);
  }

  // ---- what workers say --------------------------------------------------------------------------------------------
  void Hear(std::size_t rank, const Hello& hello) {
    Of(rank).host = hello.host;
    Of(rank).spoke = true;
    if (hello.wire == kWireVersion) return;
    Of(rank).error = fmt::format("the worker is of another version ({}, not {})", hello.wire, kWireVersion);
    Note(Ending::kEvent, milliseconds(0));
  }

  void Hear(std::size_t rank, const Began& began) {
    Of(rank).doing = began.step;
    Of(rank).phases[began.step.phase] = {.iteration = began.step.iteration, .begun = at_, .reached = {}};
    ranks_[rank].moved = Moment();
    NoteLateness(rank, began.step);
  }

  void Hear(std::size_t rank, const Reached& reached) {
    Of(rank).last = reached.step;
    Of(rank).phases[reached.step.phase].reached = at_;
    if (reached.took) Of(rank).times.push_back(*reached.took);
    // Who is at which address, as long as all connections stand: of one that breaks the kernel keeps nothing.
    if (reached.step.phase == Phase::kBuffersReady && ++ready_ == ranks_.size() && ranks_.size() <= kMostLookedAt)
      Order({.sockets = true});
    ranks_[rank].moved = Moment();
  }

  void Hear(std::size_t rank, const Heartbeat& beat) {
    if (beat.progress != Of(rank).progress) {
      Of(rank).progress = beat.progress;
      // Of many calls a rank may wait long for one that another comes to late: as long as anything moves, all is well.
      for (Rank& each : ranks_) each.moved = Moment();
    }
    if (beat.async_error.empty() || !Of(rank).error.empty()) return;
    Of(rank).error = beat.async_error;
    Of(rank).ended_at = at_;
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
    Of(rank).ended_at = at_;
    Of(rank).wrong_data = failed.wrong_data;
    if (!failed.wrong_data) Of(rank).error = failed.error.empty() ? "no reason given" : failed.error;
    // The others' nodes look now: those that fail next will not listen any more where this rank looked for them.
    if (!ending_ && !failed.wrong_data && nodes_.size() > 1) Order({.sockets = true});
    Note(Ending::kEvent, kSettleError);
  }

  void Hear(std::size_t rank, const Described& described) {
    Of(rank).describe = described.lines;
    Of(rank).verifies = described.verifies;
  }

  void Send(std::size_t rank, const ToWorker& message) {
    nodes_[ranks_[rank].node]->Tell(static_cast<int>(rank), message);
  }

  // ---- what workers do not say -------------------------------------------------------------------------------------
  /// Once all ranks have begun a step: who fell behind in it, against the median. After the operation it matters no
  /// more.
  void NoteLateness(std::size_t rank, const Step& step) {
    auto& begun = begun_[{step.phase, step.iteration}];
    begun[rank] = at_;
    if (begun.size() < ranks_.size()) return;
    std::vector<nanoseconds> times;
    for (const auto& [each, at] : begun) times.push_back(at);
    std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2));
    const nanoseconds median = times[(times.size() - 1) / 2];
    for (const auto& [each, at] : begun) {
      const auto late = std::chrono::duration_cast<milliseconds>(at - median);
      const milliseconds more = late - ranks_[each].late;
      if (more >= kLate && step.phase <= Phase::kCompleted) late_.push_back({static_cast<int>(each), step, more});
      ranks_[each].late = late;
    }
    begun_.erase({step.phase, step.iteration});
  }

  void LookAtDeadlines(Clock::time_point now) {
    const auto pace = setup_.pace == nullptr ? std::nullopt : setup_.pace->limit();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const RankOutcome& row = Of(rank);
      if (row.last.phase == Phase::kFinalized) continue;
      const Step next = row.last == row.doing ? StepAfter(row.doing, plan_) : row.doing;
      const milliseconds own = plan_.deadlines.For(next.phase), limit = std::min(own, pace.value_or(own));
      if (now - ranks_[rank].moved < limit) continue;
      waited_ = limit;
      out_.is_hurried = limit < own;
      return Note(Ending::kDeadline, milliseconds(0));
    }
  }

  // ---- the end ----------------------------------------------------------------------------------------------------
  /// Asks every node; the answers come as events.
  int Order(LookOrder order) {
    order.id = ++looks_;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (lost_[node]) continue;
      awaited_.insert({order.id, node});
      nodes_[node]->Look(order);
    }
    return order.id;
  }

  /// Until every node has answered that, or is lost.
  void Await(int id, milliseconds limit) {
    const auto waits = [&] {
      return std::ranges::any_of(awaited_, [&](const auto& entry) { return entry.first == id; });
    };
    for (const Clock::time_point last = Clock::now() + limit; waits() && Clock::now() < last;) Poll(kTick);
  }

  void Decide() {
    Poll(milliseconds(0));
    if (*ending_ != Ending::kAllDone) TakePicture();
    const Judgement judgement = Judge(out_, plan_, *ending_, waited_);
    out_.verdict = judgement.verdict;
    out_.sentence = judgement.sentence;
    out_.blamed = judgement.blamed;
    out_.cycle = judgement.cycle;
    if (judgement.verdict != RunVerdict::kPassed) out_.waiting = WaitingIn(out_, plan_);
    out_.decided_at = out_.took = Now();
    for (std::string& note : LatenessNotes(late_, out_)) out_.notes.push_back(std::move(note));
    if (setup_.decided) setup_.decided(out_);
    if (*ending_ == Ending::kDeadline && plan_.look_closely)
      Await(Order({.backtraces = ByBlame(), .limit = kBacktraceLimit, .texts = true, .dump_signal = plan_.dump_signal}),
            kBacktraceLimit + kTextsLimit);
  }

  void TakePicture() {
    const bool failed = std::ranges::any_of(out_.ranks, [](const RankOutcome& rank) { return !rank.error.empty(); });
    const bool sockets = *ending_ == Ending::kDeadline || failed;
    const int id = Order({.threads = true, .sockets = sockets, .apart = kLinksApart});
    Await(id, kLinksApart + kPictureLimit);
    out_.links = LinksBetween(sockets_[id]).links;
    for (const auto& [look, seen] : sockets_) out_.listeners.merge(LinksBetween(seen).listeners);
  }

  /// Those blamed first.
  std::vector<int> ByBlame() const {
    std::vector<int> order;
    const auto add = [&](int rank) {
      if (std::ranges::find(order, rank) == order.end()) order.push_back(rank);
    };
    for (const Blamed& blamed : out_.blamed) {
      if (blamed.rank) add(*blamed.rank);
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) add(static_cast<int>(rank));
    return order;
  }

  std::size_t Living() const {
    return static_cast<std::size_t>(std::ranges::count_if(ranks_, [](const Rank& rank) { return rank.alive; }));
  }
  std::uint64_t LogBytes() const {
    std::uint64_t bytes = 0;
    for (const Node* node : nodes_) bytes += node->log_bytes();
    return bytes;
  }
  /// Longer while logs are on their way.
  void AwaitEnd(milliseconds limit) {
    const Clock::time_point at_most = Clock::now() + kLogsLimit;
    std::uint64_t bytes = LogBytes();
    for (Clock::time_point last = Clock::now() + limit; Living() > 0 && Clock::now() < last;) {
      Poll(kTick);
      if (LogBytes() != bytes && Clock::now() < at_most) last = Clock::now() + limit;
      bytes = LogBytes();
    }
  }
  template <class Which>
  void Kill(Which which) {
    std::vector<std::vector<int>> ranks(nodes_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].alive && which(Of(rank))) ranks[ranks_[rank].node].push_back(static_cast<int>(rank));
    }
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!ranks[node].empty()) nodes_[node]->Kill(ranks[node]);
    }
  }

  void End() {
    leaving_ = true;
    const bool well = *ending_ == Ending::kAllDone;
    Kill([](const RankOutcome& rank) { return !rank.stopped.empty(); });  // it can hear nothing
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].alive && Of(rank).stopped.empty())
        Send(rank, well ? ToWorker(Leave{}) : ToWorker(AbortWork{plan_.deadlines.abort}));
    }
    const nanoseconds asked = Now();
    AwaitEnd(plan_.deadlines.abort + kGrace);
    out_.leaving = Now() - asked;
    Kill([](const RankOutcome&) { return true; });
    AwaitEnd(kKillPatience);
    if (Living() == 0) return;
    Await(Order({.threads = true}), kPictureLimit);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].alive)
        out_.notes.push_back(fmt::format("Rank {}: process {} could not be killed; it is in state {}.", rank,
                                         Of(rank).pid, Of(rank).process_state));
    }
  }

  const Plan& plan_;
  const RunSetup& setup_;
  std::span<Node* const> nodes_;
  Call call_;
  Clock::time_point begin_, next_progress_ = begin_, judge_at_{};
  nanoseconds at_{};  ///< of the event that is being heard
  RunOutcome out_;
  std::vector<Rank> ranks_;
  std::vector<bool> lost_;  ///< by node
  std::optional<Ending> ending_;
  milliseconds waited_{};
  bool leaving_ = false;
  nanoseconds suspended_{};  ///< all the time that this process did not run
  Clock::time_point looked_ = begin_, resumed_{};
  bool is_watching_ = false;  ///< all are started: looks at the clock follow one another closely
  nanoseconds gap_{};         ///< before `resumed_`
  std::set<std::size_t> agreed_;
  std::map<std::string, std::string> store_;
  std::map<std::string, std::set<std::size_t>> askers_;
  std::map<std::pair<Phase, int>, std::map<std::size_t, nanoseconds>> begun_;
  std::vector<Lateness> late_;
  int looks_ = 0;
  std::size_t ready_ = 0;
  std::set<std::pair<int, std::size_t>> awaited_;    ///< look and node
  std::map<int, std::vector<SocketSight>> sockets_;  ///< by look
};

}  // namespace

RunOutcome RunPlan(const Plan& plan, const RunSetup& setup) {
  LocalNode node(setup.local);
  Node* const nodes[] = {&node};
  return RunPlan(plan, setup, nodes);
}

RunOutcome RunPlan(const Plan& plan, const RunSetup& setup, std::span<Node* const> nodes) {
  return Run(plan, setup, nodes).Go();
}

}  // namespace inquest
