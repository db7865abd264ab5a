// What NCCL itself writes during a replay, read back by the analyzer that reads a job's logs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/options.h"
#include "replay/plan.h"
#include "replay/scratch.h"

namespace inquest {

/// A folder that is gone at the end, unless the user named it.
class NcclLogs {
 public:
  /// `kept` empty: a new one among the temporary files. Fails where it cannot be made.
  static Result<NcclLogs> In(const std::string& kept);
  /// Of an engine that writes none.
  static NcclLogs None() { return NcclLogs("", std::nullopt); }

  /// The plan, writing into a folder of its own below this one; the logs of the run before stay only in a named folder.
  Plan Attach(Plan plan);
  /// Several that run at once: each into a folder of its own below that one.
  std::vector<Plan> Attach(std::vector<Plan> plans);

  /// Beside the logs of the plan attached last, for Read and for the user: texts by file name.
  void Keep(const std::map<std::string, std::string>& texts) const;

  struct Reading {
    std::set<std::string> used;      ///< `P2P/IPC`, `NET/Socket`: the transports that channels went over
    std::vector<std::string> cards;  ///< `mlx5_0:1`: the RDMA ports that it had to choose from
    std::string says;  ///< the analyzer's verdict in words; empty: nothing is wrong in them, or there are none
  };
  /// Of the plans attached last.
  Reading Read(const AnalysisOptions& options) const;

 private:
  NcclLogs(std::string folder, std::optional<ScratchFolder> scratch)
      : folder_(std::move(folder)), scratch_(std::move(scratch)) {}
  void Next();
  std::string folder_, current_;
  std::optional<ScratchFolder> scratch_;  ///< nullopt: the user named the folder
  int runs_ = 0;
};

}  // namespace inquest
