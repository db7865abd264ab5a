// Agents that this process starts on other hosts itself, by ssh or what the user has in its place.
#pragma once

#include <string>
#include <vector>

#include "replay/spawn.h"

namespace inquest {

struct SshCommand {
  std::string host;
  std::vector<std::string> words;  ///< ssh, its options, the host, and what to run there
};

/// Their standard input is a socket of ours: the token is its first line, and its end is the agents'. When this process
/// dies, however it does, that socket is closed, and with it the agents.
class SshAgents {
 public:
  static Result<SshAgents> Start(const std::vector<SshCommand>& commands, const std::vector<std::string>& env,
                                 const std::string& token);
  SshAgents() = default;
  SshAgents(SshAgents&&) = default;
  SshAgents& operator=(SshAgents&&) = delete;
  ~SshAgents();

  /// Which of them has ended before its time, and its last words; empty: none.
  std::string WhyHopeless();

 private:
  struct Started {
    std::string host;
    WorkerProcess process;
    std::string output;
  };
  void Read(Started& one);
  std::vector<Started> started_;
};

}  // namespace inquest
