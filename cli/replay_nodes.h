// `inquest replay` over several nodes: who takes part, the job token, and the agent that all but the first one become.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/launch.h"
#include "cli/options.h"
#include "cli/replay_report.h"
#include "replay/crew.h"
#include "replay/ssh_agents.h"
#include "replay/supervisor.h"

namespace inquest {

/// Where the job token is, and what no child inherits.
inline constexpr const char* kTokenVariable = "INQUEST_REPLAY_TOKEN";

/// By the options, among them --hosts, and the environment.
Result<Launch> LaunchOf(const ReplayOptions& options);

/// The plan with its nodes and the ranks of each; a number of ranks that nothing says is that of the processes.
Result<Plan> OverNodes(Plan plan, const Launch& launch, const ReplayOptions& options);

/// The same before anyone has come: by the names that --hosts gives, or on this host.
Plan WhereTheyWere(Plan plan, const Launch& launch, const ReplayOptions& options);

/// Takes the token out of the environment, so that no child inherits it.
Result<std::string> TakeToken(const ReplayOptions& options, const Launch& launch);

/// Those of a run, the coordinator among them. Of one host: nobody else.
class ReplayNodes {
 public:
  /// Listens, starts agents by ssh where it has to, and waits for all.
  static Result<ReplayNodes> Gather(const ReplayOptions& options, const Launch& launch, const RunSetup& setup);
  ReplayNodes(ReplayNodes&&) = default;
  ~ReplayNodes() = default;

  /// The plan with every rank where it was in the job, as far as those nodes are here.
  Plan WhereTheyWere(Plan plan, const ReplayOptions& options) const;
  /// The sentence of the run that lost a node, after which none can be run; empty: all are there.
  const std::string& lost() const { return lost_; }
  /// Of each node, this one first.
  Result<std::vector<EngineProbe>> Probe(const Plan& plan, const std::optional<EngineProbe>& own);
  /// The plan with every rank on a GPU that its node has, by what those found.
  Result<Plan> OnGpus(Plan plan, const std::vector<EngineProbe>& engines) const;
  RunOutcome Run(const Plan& plan, RunSetup setup);
  /// All of them at the same time; their ranks have places of their own.
  std::vector<RunOutcome> RunAtOnce(std::vector<Plan> plans, RunSetup setup);
  std::vector<ReportNode> Report(const Plan& plan, const std::vector<EngineProbe>& engines) const;
  /// The others end with that status.
  void Farewell(int status, const std::string& complaint = "");

 private:
  ReplayNodes() = default;
  std::optional<SshAgents> ssh_;
  std::optional<Crew> crew_;  ///< ends before ssh_
  std::vector<std::string> names_;
  std::string lost_;
};

/// Where node 0 cannot even begin: those that wait for it are told, and end.
void DismissOthers(const ReplayOptions& options, const Launch& launch, const std::string& complaint);

/// This process as one of the others. Prints nothing but what went wrong.
CommandResult RunAsAgent(const ReplayOptions& options, const Launch& launch, const NodeSetup& local,
                         const ProbeEngine& probe, const std::function<bool()>& interrupted);

}  // namespace inquest
