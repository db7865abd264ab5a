// The only part of a replay that reads the environment for who else takes part.
#include "cli/replay_nodes.h"

#include <unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/host_name.h"
#include "replay/agent.h"
#include "replay/at_once.h"
#include "replay/layout.h"
#include "replay/local_node.h"
#include "replay/secret.h"
#include "report/terminal.h"

extern char** environ;

namespace inquest {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kJoin{60'000}, kJoinOfAgent{300'000};

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

bool IsThisHost(const std::string& host) {
  const std::string own = OwnHostName();
  return host == "localhost" || host == own || host == HostName(own).Short();
}

/// --hosts: node 0 is this host, with ranks where it is in the list.
Result<Launch> LaunchByHosts(const ReplayOptions& options) {
  if (options.nodes || options.node)
    return Error{"--hosts starts the nodes itself; --nnodes and --node-rank are for nodes that are started alike", "",
                 ""};
  Launch launch;
  launch.master = OwnHostName();
  launch.port = 0;
  if (options.master) {
    launch.master = options.master->host;
    launch.port = options.master->port.value_or(0);
  }
  launch.hosts = {OwnHostName()};
  for (const HostShare& share : options.hosts) {
    if (!IsThisHost(share.host)) launch.hosts.push_back(share.host);
  }
  launch.count = static_cast<int>(launch.hosts.size());
  launch.basis = Basis::kGiven;
  launch.rule = "--hosts";
  return launch;
}

/// Each node's number of ranks in the order of --hosts.
Result<std::vector<NodeShare>> SharesByHosts(Plan& plan, const Launch& launch, const ReplayOptions& options) {
  std::vector<NodeShare> shares;
  int next = 1, sum = 0;
  for (const HostShare& host : options.hosts) {
    shares.push_back({IsThisHost(host.host) ? 0 : next++, host.ranks.value_or(0)});
    sum += host.ranks.value_or(0);
  }
  if (plan.ranks.value < 1)
    plan.ranks = {.value = sum > 0 ? sum : launch.count,
                  .basis = Basis::kDerived,
                  .rule = sum > 0 ? "the sum of --hosts" : "one a node"};
  if (sum == 0) {
    const auto blocks = InBlocks(plan.ranks.value, static_cast<int>(shares.size()), false);
    for (const NodeShare& block : *blocks) shares[static_cast<std::size_t>(block.node)].ranks = block.ranks;
  } else if (sum != plan.ranks.value) {
    return Error{fmt::format("--hosts has places for {} ranks, and {} are to be run", sum, plan.ranks.value),
                 fmt::format("give places for {}, or --ranks {}", plan.ranks.value, sum), ""};
  }
  std::erase_if(shares, [](const NodeShare& share) { return share.ranks == 0; });
  return shares;
}

/// A line of standard input, and no byte more: its end means something later.
std::string LineOfInput() {
  std::string line;
  for (char c = 0; line.size() < 8192 && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

Result<std::vector<SshCommand>> SshCommands(const ReplayOptions& options, const Launch& launch, std::uint16_t port) {
  std::error_code error;
  const std::string self = fs::read_symlink("/proc/self/exe", error).string();
  const bool plain = self.find_first_of(" \t'\"\\$`*?[](){}<>|&;#~!") == std::string::npos;  // a remote shell reads it
  if (error || !plain)
    return Error{"the agents cannot be started by ssh",
                 fmt::format("the path {} has characters that a shell would change", self), ""};
  const std::string master = fmt::format(
      "{}:{}", launch.master.find(':') == std::string::npos ? launch.master : fmt::format("[{}]", launch.master), port);
  std::vector<SshCommand> commands;
  for (int node = 1; node < launch.count; ++node) {
    const std::string& host = launch.hosts[static_cast<std::size_t>(node)];
    SshCommand command{.host = host, .words = options.ssh_command};
    const std::string count = fmt::format("{}", launch.count), index = fmt::format("{}", node);
    const std::string words[] = {host,       self,  "replay",      "--agent", "--token-file", "-",
                                 "--nnodes", count, "--node-rank", index,     "--master",     master};
    command.words.insert(command.words.end(), std::begin(words), std::end(words));
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace

Result<Launch> LaunchOf(const ReplayOptions& options) {
  if (!options.hosts.empty()) return LaunchByHosts(options);
  return FindLaunch({.nodes = options.nodes, .node = options.node, .master = options.master}, Variable);
}

Result<Plan> OverNodes(Plan plan, const Launch& launch, const ReplayOptions& options) {
  if (!launch.note.empty()) plan.notes.push_back(launch.note);
  const bool by_hosts = !options.hosts.empty();
  if (launch.count == 1 && !by_hosts) {
    if (launch.basis != Basis::kAssumed) plan.nodes = {.value = 1, .basis = launch.basis, .rule = launch.rule};
    return plan;
  }
  if (options.share_gpu) return Error{"--share-gpu is for one host", "leave it out, or say --nnodes 1", ""};
  if (plan.ranks.value < 1 && !by_hosts)
    plan.ranks = {.value = launch.count,
                  .basis = Basis::kDerived,
                  .rule = fmt::format("one for each of {} processes", launch.count)};
  Result<std::vector<NodeShare>> shares = by_hosts
                                              ? SharesByHosts(plan, launch, options)
                                              : InBlocks(plan.ranks.value, launch.count, launch.is_several_on_host());
  if (!shares) return shares.error();
  plan.shares = std::move(*shares);
  plan.nodes = {.value = static_cast<int>(plan.shares.size()),
                .basis = launch.basis,
                .rule = fmt::format("{}; ranks {}", launch.rule, LayoutText(plan.shares))};
  if (plan.ranks.value < launch.count && !by_hosts)
    plan.notes.push_back(
        fmt::format("{} processes were started for {} ranks: the last have none", launch.count, plan.ranks.value));
  return plan;
}

namespace {

/// --hosts may say how many ranks go to each, and then which.
bool SaysWhere(const ReplayOptions& options) {
  return std::ranges::any_of(options.hosts, [](const HostShare& host) { return host.ranks.has_value(); });
}

}  // namespace

Plan WhereTheyWere(Plan plan, const Launch& launch, const ReplayOptions& options) {
  std::vector<CrewMember> members;
  for (const std::string& host : launch.hosts) members.push_back({.host = host});
  if (launch.count == 1 && members.empty()) members.push_back({.host = OwnHostName()});
  if (static_cast<int>(members.size()) != launch.count) return plan;
  return WhereTheyWere(std::move(plan), members, !SaysWhere(options));
}

Plan ReplayNodes::WhereTheyWere(Plan plan, const ReplayOptions& options) const {
  return crew_ ? inquest::WhereTheyWere(std::move(plan), crew_->members(), !SaysWhere(options)) : plan;
}

Result<std::string> TakeToken(const ReplayOptions& options, const Launch& launch) {
  const std::optional<std::string> variable = Variable(kTokenVariable);
  ::unsetenv(kTokenVariable);
  if (options.token_file == "-") return TokenFrom(LineOfInput(), "standard input");
  if (!options.token_file.empty()) {
    std::ifstream file(options.token_file, std::ios::binary);
    std::string line;
    if (!std::getline(file, line))
      return Error{"the job token cannot be read", "make one with `openssl rand -hex 32 > FILE; chmod 600 FILE`",
                   options.token_file};
    return TokenFrom(line, options.token_file);
  }
  if (variable) return TokenFrom(*variable, kTokenVariable);
  if (!options.hosts.empty()) return HexDigits(RandomBytes());  // it travels over ssh alone
  return Error{
      fmt::format("{} processes take part ({}), and there is no job token to know them by", launch.count, launch.rule),
      fmt::format("export {}=$(openssl rand -hex 32), the same for all of them; or --token-file FILE; --nnodes 1 runs "
                  "on this host alone",
                  kTokenVariable),
      ""};
}

Result<ReplayNodes> ReplayNodes::Gather(const ReplayOptions& options, const Launch& launch, const RunSetup& setup) {
  ReplayNodes nodes;
  if (launch.count == 1) return nodes;
  Result<std::string> token = TakeToken(options, launch);
  if (!token) return token.error();
  CrewSetup crew{.count = launch.count,
                 .port = launch.port,
                 .token = *token,
                 .host = OwnHostName(),
                 .version = std::string(Version()),
                 .names = launch.hosts,
                 .interrupted = [how = setup.interrupted] { return how && how() != Interruption::kNone; }};
  auto hopeless = std::make_shared<std::function<std::string()>>();
  crew.hopeless = [hopeless] { return *hopeless ? (*hopeless)() : std::string(); };
  Result<Crew> listening = Crew::Listen(std::move(crew));
  if (!listening) return listening.error();
  if (!options.hosts.empty()) {
    const auto commands = SshCommands(options, launch, listening->port());
    if (!commands) return commands.error();
    Result<SshAgents> ssh = SshAgents::Start(*commands, setup.local.env, *token);
    if (!ssh) return ssh.error();
    nodes.ssh_.emplace(std::move(*ssh));
    *hopeless = [&ssh = *nodes.ssh_] { return ssh.WhyHopeless(); };
  }
  const auto failed = listening->Join(options.join_timeout.value_or(kJoin));
  *hopeless = nullptr;
  if (failed) return *failed;
  nodes.crew_.emplace(std::move(*listening));
  for (std::size_t i = 0; i < nodes.crew_->members().size(); ++i)
    nodes.names_.push_back(
        fmt::format("{} {} ({})", launch.is_several_on_host() ? "task" : "node", i, nodes.crew_->members()[i].host));
  return nodes;
}

Result<std::vector<EngineProbe>> ReplayNodes::Probe(const Plan& plan, const std::optional<EngineProbe>& own) {
  if (!crew_) return std::vector<EngineProbe>{own.value_or(EngineProbe())};
  return crew_->Probe(plan.engine, plan.options, own);
}

Result<Plan> ReplayNodes::OnGpus(Plan plan, const std::vector<EngineProbe>& engines) const {
  std::vector<std::optional<int>> gpus;
  for (const EngineProbe& engine : engines) gpus.push_back(engine.gpus);
  return OnGpusThatAreHere(std::move(plan), gpus,
                           crew_ ? crew_->members() : std::vector<CrewMember>{{.host = OwnHostName()}});
}

RunOutcome ReplayNodes::Run(const Plan& plan, RunSetup setup) {
  if (!crew_) return RunPlan(plan, setup);
  return RunAtOnce({plan}, std::move(setup)).front();
}

std::vector<RunOutcome> ReplayNodes::RunAtOnce(std::vector<Plan> plans, RunSetup setup) {
  LocalNode local(setup.local);
  if (!crew_) {
    Node* const nodes[] = {&local};
    return inquest::RunAtOnce(plans, setup, nodes);
  }
  if (!lost_.empty()) {
    std::vector<RunOutcome> runs(plans.size());
    for (RunOutcome& run : runs) {
      run.verdict = RunVerdict::kInterrupted;
      run.sentence = fmt::format("Not run: {}", lost_);
    }
    return runs;
  }
  setup.nodes = names_;
  for (const CrewMember& member : crew_->members()) setup.hosts.push_back(member.net.substr(0, member.net.find('/')));
  for (Plan& plan : plans) plan = Placed(std::move(plan), crew_->members());
  std::vector<RunOutcome> runs = inquest::RunAtOnce(plans, setup, crew_->Nodes(&local));
  for (const RunOutcome& run : runs)
    if (run.verdict == RunVerdict::kNodeLost) lost_ = run.sentence;
  return runs;
}

std::vector<ReportNode> ReplayNodes::Report(const Plan& plan, const std::vector<EngineProbe>& engines) const {
  std::vector<ReportNode> nodes;
  if (!crew_) return nodes;
  for (std::size_t i = 0; i < crew_->members().size(); ++i) {
    const CrewMember& member = crew_->members()[i];
    nodes.push_back({.name = names_[i],
                     .host = member.host,
                     .address = member.address,
                     .engine = i < engines.size() ? engines[i].version : "",
                     .ranks = {}});
  }
  int rank = 0;
  for (const NodeShare& share : plan.shares) {
    for (int local = 0; local < share.ranks; ++local)
      nodes[static_cast<std::size_t>(share.node)].ranks.push_back(rank++);
  }
  return nodes;
}

void ReplayNodes::Farewell(int status, const std::string& complaint) {
  if (crew_) crew_->Farewell(status, complaint);
}

void DismissOthers(const ReplayOptions& options, const Launch& launch, const std::string& complaint) {
  constexpr milliseconds kPatience{3000};
  if (launch.count == 1 || !options.hosts.empty()) return;
  Result<std::string> token = TakeToken(options, launch);
  if (!token) return;
  Result<Crew> crew = Crew::Listen({.count = launch.count,
                                    .port = launch.port,
                                    .token = *token,
                                    .host = OwnHostName(),
                                    .version = std::string(Version())});
  if (!crew) return;
  if (!crew->Join(kPatience)) crew->Farewell(kExitCouldNotRun, complaint);
}

CommandResult RunAsAgent(const ReplayOptions& options, const Launch& launch, const NodeSetup& local,
                         const ProbeEngine& probe, const std::function<bool()>& interrupted) {
  Result<std::string> token = TakeToken(options, launch);
  if (!token) return CouldNotRun(token.error());
  std::error_code error;
  AgentSetup setup{.index = launch.index,
                   .count = launch.count,
                   .master = launch.master,
                   .port = launch.port,
                   .token = std::move(*token),
                   .host = OwnHostName(),
                   .version = std::string(Version()),
                   .local_rank = launch.local_rank,
                   .join = options.join_timeout.value_or(kJoinOfAgent),
                   .local = local,
                   .probe = probe,
                   .scratch = fs::temp_directory_path(error).string(),
                   .interrupted = interrupted,
                   .owner = options.is_agent ? std::optional(STDIN_FILENO) : std::nullopt};
  const AgentEnd end = RunAgent(setup);
  return {.status = end.status,
          .out = "",
          .err = end.complaint.empty() ? "" : fmt::format("inquest: {}\n", Sanitize(end.complaint))};
}

}  // namespace inquest
