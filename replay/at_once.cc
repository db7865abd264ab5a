// A thread a plan, in which its supervisor runs as ever, over nodes that are only its share of the real ones. The real
// nodes are touched by the calling thread alone: it hands orders on, and shares out what is heard, by rank. Ranks are
// numbered through over all plans there; a supervisor knows its own numbers only.
#include "replay/at_once.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "replay/spawn.h"

namespace inquest {
namespace {

constexpr int kTickMs = 50;

/// What several threads leave for one, with something to poll.
template <class T>
class Inbox {
 public:
  Inbox() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const { return wake_.get(); }
  void Put(T what) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(what));
    ::eventfd_write(wake_.get(), 1);
  }
  std::vector<T> Take() {
    const std::lock_guard lock(mutex_);
    eventfd_t ignored = 0;
    ::eventfd_read(wake_.get(), &ignored);
    return std::exchange(items_, {});
  }

 private:
  OwnedFd wake_;
  std::mutex mutex_;
  std::vector<T> items_;
};

/// To be done by the thread that has the nodes.
using Orders = Inbox<std::function<void()>>;

class Share;
struct RankOf {
  Share* share = nullptr;
  int rank = 0;  ///< by its own plan's numbers
};

/// One real node, as the calling thread has it.
struct Shared {
  Node* node = nullptr;
  StartOrder order = {};    ///< of all plans, until the last one has said its part
  std::size_t awaited = 0;  ///< plans that have not
  std::set<int> spawned = {};
  int looks = 0;
  std::map<int, std::pair<Share*, int>> asked = {};  ///< look -> whose, and by what id there
  std::atomic<std::uint64_t> log_bytes = 0;
};

/// One node as the supervisor of one plan has it.
class Share final : public Node {
 public:
  Share(Shared& shared, Orders& orders, int first, std::map<int, RankOf>& ranks)
      : shared_(shared), orders_(orders), first_(first), ranks_(ranks) {}

  int fd() const override { return events_.fd(); }
  std::vector<NodeEvent> Take() override { return events_.Take(); }
  std::uint64_t log_bytes() const override { return shared_.log_bytes; }

  void Start(const StartOrder& order) override {
    orders_.Put([this, order] {
      for (RankOrder rank : order.ranks) {
        ranks_[first_ + rank.rank] = {this, rank.rank};
        mine_.insert(rank.rank);
        rank.rank += first_;
        rank.env.insert(order.env.begin(), order.env.end());  // what is of every rank of one plan is not of all
        shared_.order.ranks.push_back(std::move(rank));
      }
      shared_.order.on_host += order.on_host;
      if (--shared_.awaited > 0) return;
      // Nobody is spawned behind one that cannot be: who that is must not hang on which thread was first.
      std::ranges::sort(shared_.order.ranks, {}, &RankOrder::rank);
      shared_.node->Start(std::exchange(shared_.order, {}));
    });
  }
  void Tell(int rank, const ToWorker& message) override {
    orders_.Put([this, rank, message] { shared_.node->Tell(first_ + rank, message); });
  }
  void Look(const LookOrder& order) override {
    orders_.Put([this, order] {
      LookOrder real = order;
      real.id = ++shared_.looks;
      shared_.asked[real.id] = {this, order.id};
      for (int& rank : real.backtraces) rank += first_;
      // Texts and signals are of all ranks of a node, and the others are still at work.
      real.texts = false;
      real.dump_signal.reset();
      shared_.node->Look(real);
    });
  }
  void Kill(const std::vector<int>& ranks) override {
    orders_.Put([this, ranks] {
      std::vector<int> numbers;
      for (const int rank : ranks) numbers.push_back(first_ + rank);
      shared_.node->Kill(numbers);
    });
  }

  // ---- of the calling thread
  // -----------------------------------------------------------------------------------------
  void Put(NodeEvent event) { events_.Put(std::move(event)); }
  bool has_ranks() const { return !mine_.empty(); }
  /// A rank of this plan that was never spawned; nullopt: all were.
  std::optional<int> Unspawned() const {
    for (const int rank : mine_)
      if (!shared_.spawned.contains(first_ + rank)) return rank;
    return std::nullopt;
  }

 private:
  Shared& shared_;
  Orders& orders_;
  int first_;                     ///< the number of its plan's rank 0 among all
  std::map<int, RankOf>& ranks_;  ///< of that node, by the number among all
  std::set<int> mine_;
  Inbox<NodeEvent> events_;
};

class Several {
 public:
  Several(std::span<const Plan> plans, const RunSetup& setup, std::span<Node* const> nodes)
      : plans_(plans), setup_(setup), shared_(nodes.size()), ranks_(nodes.size()), outcomes_(plans.size()) {
    setup_.progress = nullptr;
    setup_.decided = nullptr;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      shared_[node] = std::make_unique<Shared>();
      shared_[node]->node = nodes[node];
      shared_[node]->awaited = plans.size();
    }
    int first = 0;
    for (const Plan& plan : plans) {
      auto& shares = shares_.emplace_back();
      for (std::size_t node = 0; node < nodes.size(); ++node)
        shares.push_back(std::make_unique<Share>(*shared_[node], orders_, first, ranks_[node]));
      first += plan.ranks.value;
    }
  }

  std::vector<RunOutcome> Go() {
    std::vector<std::thread> threads;
    left_ = plans_.size();
    for (std::size_t plan = 0; plan < plans_.size(); ++plan) {
      try {
        threads.emplace_back([this, plan] { RunOne(plan); });
      } catch (const std::system_error& error) {
        NotRun(plan, error.what());
      }
    }
    while (left_ > 0) Pump();
    for (std::thread& thread : threads) thread.join();
    Obey();  // what was asked last: that stragglers be killed
    return std::move(outcomes_);
  }

 private:
  void RunOne(std::size_t plan) {
    std::vector<Node*> nodes;
    for (const auto& share : shares_[plan]) nodes.push_back(share.get());
    outcomes_[plan] = RunPlan(plans_[plan], setup_, nodes);
    orders_.Put([this] { --left_; });
  }

  /// The others must not wait for its part.
  void NotRun(std::size_t plan, const std::string& why) {
    outcomes_[plan].verdict = RunVerdict::kCouldNotRun;
    outcomes_[plan].sentence = "No thread could be started to watch it: " + why + ".";
    for (const auto& share : shares_[plan]) share->Start({});
    --left_;
  }

  void Obey() {
    for (const auto& order : orders_.Take()) order();
  }

  void Pump() {
    std::vector<pollfd> ready = {{orders_.fd(), POLLIN, 0}};
    for (const auto& shared : shared_)
      ready.push_back({lost_.contains(shared.get()) ? -1 : shared->node->fd(), POLLIN, 0});
    (void)::poll(ready.data(), ready.size(), kTickMs);
    Obey();
    for (std::size_t node = 0; node < shared_.size(); ++node) {
      Shared& shared = *shared_[node];
      if (shared.awaited > 0 || lost_.contains(&shared)) continue;  // it speaks of the run before
      for (NodeEvent& event : shared.node->Take())
        std::visit([&](auto& what) { ShareOut(node, event.at, what); }, event.what);
      shared.log_bytes = shared.node->log_bytes();
    }
  }

  template <class OfRank>
  void ShareOut(std::size_t node, std::chrono::steady_clock::time_point at, OfRank& what) {
    const auto found = ranks_[node].find(what.rank);
    if (found == ranks_[node].end()) return;
    if constexpr (std::is_same_v<OfRank, RankSpawned>) shared_[node]->spawned.insert(what.rank);
    const RankOf own = found->second;
    what.rank = own.rank;
    if constexpr (std::is_same_v<OfRank, RankNotSpawned>) TellUnspawned(node, at, own.share, what.error);
    own.share->Put({at, std::move(what)});
  }

  /// Nobody is spawned after one that cannot be, so that other plans lack ranks too.
  void TellUnspawned(std::size_t node, std::chrono::steady_clock::time_point at, const Share* but,
                     const std::string& why) {
    for (const auto& shares : shares_) {
      Share& share = *shares[node];
      if (&share == but) continue;
      if (const auto rank = share.Unspawned()) share.Put({at, RankNotSpawned{*rank, why}});
    }
  }

  void ShareOut(std::size_t node, std::chrono::steady_clock::time_point at, NodeSaw& saw) {
    const auto asked = shared_[node]->asked.find(saw.id);
    std::map<Share*, NodeSaw> parts;
    const auto part = [&](int rank) -> NodeSaw* {
      const auto found = ranks_[node].find(rank);
      if (found == ranks_[node].end()) return nullptr;
      Share* const share = found->second.share;
      if (saw.id != 0 && (asked == shared_[node]->asked.end() || asked->second.first != share)) return nullptr;
      return &parts.try_emplace(share, NodeSaw{}).first->second;
    };
    if (asked != shared_[node]->asked.end())
      parts.try_emplace(asked->second.first, NodeSaw{});  // who asked is answered
    for (RankSight& sight : saw.ranks) {
      if (NodeSaw* to = part(sight.rank)) {
        sight.rank = ranks_[node][sight.rank].rank;
        to->ranks.push_back(std::move(sight));
      }
    }
    for (SocketSight& socket : saw.sockets) {
      if (NodeSaw* to = part(socket.rank)) {
        socket.rank = ranks_[node][socket.rank].rank;
        to->sockets.push_back(std::move(socket));
      }
    }
    for (auto& [share, one] : parts) {
      one.id = saw.id == 0 ? 0 : asked->second.second;
      one.more = saw.more;
      share->Put({at, std::move(one)});
    }
  }

  /// It is the plans' that have ranks there; where none has, all have lost a node.
  void ShareOut(std::size_t node, std::chrono::steady_clock::time_point at, NodeLost& lost) {
    lost_.insert(shared_[node].get());
    const bool any = std::ranges::any_of(shares_, [&](const auto& shares) { return shares[node]->has_ranks(); });
    for (const auto& shares : shares_)
      if (!any || shares[node]->has_ranks()) shares[node]->Put({at, lost});
  }

  std::span<const Plan> plans_;
  RunSetup setup_;
  Orders orders_;
  std::vector<std::unique_ptr<Shared>> shared_;              ///< by node
  std::vector<std::map<int, RankOf>> ranks_;                 ///< by node
  std::vector<std::vector<std::unique_ptr<Share>>> shares_;  ///< by plan and node
  std::set<const Shared*> lost_;
  std::vector<RunOutcome> outcomes_;
  std::size_t left_ = 0;  ///< plans that run
};

}  // namespace

std::vector<RunOutcome> RunAtOnce(std::span<const Plan> plans, const RunSetup& setup, std::span<Node* const> nodes) {
  if (plans.size() == 1) return {RunPlan(plans.front(), setup, nodes)};
  return Several(plans, setup, nodes).Go();
}

}  // namespace inquest
