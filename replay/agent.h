// The ranks of one node of several: joins the coordinator, does what it says, and ends with it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "replay/node.h"

namespace inquest {

struct AgentSetup {
  int index = 1, count = 2;  ///< which of how many, the coordinator being 0
  std::string master;        ///< host name or address of the coordinator
  std::uint16_t port = 0;
  std::string token;
  std::string host;     ///< what to call this one
  std::string version;  ///< of inquest
  std::optional<int> local_rank = {};
  std::chrono::milliseconds join{60'000};  ///< for the coordinator to be there
  NodeSetup local;
  ProbeEngine probe;
  std::string scratch;  ///< an existing folder; what libraries log waits there for being sent, and is then removed
  std::function<bool()> interrupted = {};
  std::optional<int> owner = {};  ///< a descriptor at whose end the agent ends
};

struct AgentEnd {
  int status = 3;         ///< of the run, where the coordinator told it
  std::string complaint;  ///< why it ended, if not in order
};

/// Returns when the coordinator has said so and closed the connection, is gone, or says nothing for some seconds of a
/// run; no worker is left then. To be called from a thread that outlives it: when that dies, so do the workers.
AgentEnd RunAgent(const AgentSetup& setup);

}  // namespace inquest
