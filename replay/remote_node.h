// A node on another host, spoken to through its agent.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "replay/agent_wire.h"
#include "replay/channel.h"

namespace inquest {

class RemoteNode final : public Node {
 public:
  RemoteNode(Channel channel, AgentHello hello, std::string address);

  int fd() const override { return channel_.fd(); }
  std::vector<NodeEvent> Take() override;
  void Start(const StartOrder& order) override;
  void Tell(int rank, const ToWorker& message) override { Send(ToldRank{rank, message}); }
  void Look(const LookOrder& order) override { Send(LookAround{order}); }
  void Kill(const std::vector<int>& ranks) override { Send(KillRanks{ranks}); }

  void Send(const ToAgent& message) { channel_.Send(Encode(message)); }
  /// Between runs: waits for the answer to a ProbeOrder. nullopt: it did not come, or the node is lost.
  std::optional<ProbeAnswer> AwaitProbe(std::chrono::milliseconds limit);
  std::uint64_t log_bytes() const override { return log_bytes_; }
  const AgentHello& hello() const { return hello_; }
  const std::string& address() const { return address_; }
  Channel& channel() { return channel_; }

 private:
  using Clock = std::chrono::steady_clock;
  void Hear(ToCoordinator message, std::vector<NodeEvent>& events);
  Clock::time_point Here(Clock::time_point there);
  std::string WhyLost() const;
  void AppendLog(const LogPiece& piece);

  Channel channel_;
  AgentHello hello_;
  std::string address_;
  std::optional<ProbeAnswer> answer_;
  int run_ = 0;
  bool lost_ = false;
  Clock::time_point heard_{}, next_beat_{}, taken_{};
  std::optional<Clock::duration> offset_;  ///< what its clock lacks, and the shortest way of a message
  struct Log {
    std::string path;  ///< of our own making
    std::size_t bytes = 0;
  };
  std::map<int, Log> logs_;  ///< by rank
  std::uint64_t log_bytes_ = 0;
};

}  // namespace inquest
