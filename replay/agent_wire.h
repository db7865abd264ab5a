// What coordinator and agents say to one another: one JSON text a frame of channel.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "replay/node.h"

namespace inquest {

// ---- to an agent ----------------------------------------------------------------------------------------------------
struct ProbeOrder {  ///< answered by ProbeAnswer
  static constexpr std::string_view kKind = "probe";
  std::string engine;
  std::map<std::string, std::string> options;
};
struct Begin {
  static constexpr std::string_view kKind = "begin";
  int run = 0;  ///< counted by the coordinator; reports name it, so that those of the run before are known
  StartOrder order;
};
struct ToldRank {  ///< for one of its ranks
  static constexpr std::string_view kKind = "told";
  int rank = 0;
  ToWorker message;
};
struct LookAround {
  static constexpr std::string_view kKind = "look";
  LookOrder order;
};
struct KillRanks {
  static constexpr std::string_view kKind = "kill";
  std::vector<int> ranks;
};
struct CoordinatorBeat {
  static constexpr std::string_view kKind = "beat";
};
struct AgentFarewell {  ///< the agent ends
  static constexpr std::string_view kKind = "farewell";
  int status = 0;
  std::string complaint;  ///< for its standard error; empty: none
};
using ToAgent = std::variant<ProbeOrder, Begin, ToldRank, LookAround, KillRanks, CoordinatorBeat, AgentFarewell>;

// ---- to the coordinator ---------------------------------------------------------------------------------------------
/// The first message. Agents of other versions must be able to read and write it: keys are only ever added.
struct AgentHello {
  static constexpr std::string_view kKind = "hello";
  int index = 0, count = 0;  ///< which of how many, the coordinator being 0
  std::string host, net;     ///< net: NetOfThisThread
  std::string address;       ///< its own end of the connection: what its ranks can listen at
  std::string version;       ///< of inquest
  int wire = kWireVersion;
  std::optional<int> local_rank;  ///< where a launcher started one agent for each rank
};
struct Report {
  static constexpr std::string_view kKind = "report";
  int run = 0;
  NodeEvent event;  ///< `at` by the agent's own clock
};
/// The next piece of a log that the library wrote for a rank; all of them come before its RankEnded.
struct LogPiece {
  static constexpr std::string_view kKind = "log";
  int rank = 0;
  std::string text;
};
struct AgentBeat {
  static constexpr std::string_view kKind = "beat";
  std::chrono::steady_clock::time_point at{};  ///< by the agent's own clock
};
using ToCoordinator = std::variant<AgentHello, ProbeAnswer, Report, LogPiece, AgentBeat>;

std::string Encode(const ToAgent& message);
std::string Encode(const ToCoordinator& message);
/// nullopt: not a message of ours. The other side is never trusted.
std::optional<ToAgent> DecodeToAgent(std::string_view text);
std::optional<ToCoordinator> DecodeToCoordinator(std::string_view text);

}  // namespace inquest
