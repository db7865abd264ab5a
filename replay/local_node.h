// The node of this host: worker processes, their sockets, their output, /proc.
#pragma once

#include <sys/types.h>

#include <deque>
#include <mutex>
#include <thread>

#include "replay/memory.h"
#include "replay/node.h"
#include "replay/spawn.h"

namespace inquest {

/// To be used by one thread that outlives the run: when it dies, so do the workers. The end of a LocalNode kills what
/// is left.
class LocalNode final : public Node {
 public:
  /// `setup` outlives it.
  explicit LocalNode(const NodeSetup& setup);
  ~LocalNode() override;

  int fd() const override { return epoll_.get(); }
  std::vector<NodeEvent> Take() override;
  void Start(const StartOrder& order) override;
  void Tell(int rank, const ToWorker& message) override;
  void Look(const LookOrder& order) override;
  void Kill(const std::vector<int>& ranks) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Rank {
    WorkerProcess process;
    std::map<std::string, std::string> env;  ///< what the order sets for it
    std::string output;
    OomKills before;            ///< when it was started
    SequenceProgress progress;  ///< that was told last
    Clock::time_point heard{};  ///< any packet
    bool alive = true, socket_open = true, output_open = true, told_stopped = false;
  };

  template <class What>
  void Add(What what) {
    events_.push_back({Clock::now(), std::move(what)});
  }
  bool Spawn(const StartOrder& order, const RankOrder& rank);
  std::vector<std::string> Environment(const std::map<std::string, std::string>& ordered) const;
  void Watch(int fd, int rank, int which);
  void Receive(int rank);
  void Hear(int rank, ToSupervisor message);
  void ReadOutput(int rank);
  bool IsDump(int rank, std::string_view printed);
  void Bury(int rank);
  void LookForSilence();
  std::map<int, pid_t> Pids() const;
  void JoinLooks();
  std::map<std::string, std::string> TakeDumps(const std::map<int, pid_t>& pids, int signal);

  const NodeSetup& setup_;
  OwnedFd epoll_, wake_;
  std::map<int, Rank> ranks_;
  std::vector<NodeEvent> events_;
  std::string packet_;
  bool failure_seen_ = false;
  Clock::time_point taken_{};  ///< when Take was called last

  std::vector<std::thread> looks_;
  std::mutex mutex_;           ///< guards what follows
  std::vector<NodeSaw> seen_;  ///< by a look, not yet taken
  bool dumping_ = false;       ///< what ranks print belongs to dumps_
  std::map<int, std::string> dumps_;
};

}  // namespace inquest
