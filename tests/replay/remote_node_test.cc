// What comes from another node: its clock, its logs, its looks.
#include "replay/remote_node.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "replay/agent.h"
#include "replay/crew.h"
#include "replay/local_node.h"
#include "replay/recipes.h"
#include "tests/catch.h"
#include "tests/replay/replay_runs.h"

using namespace inquest;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace remote_node_test {

using Clock = std::chrono::steady_clock;
const std::string kToken = "a token that only this test knows";

/// A folder with a program in the worker's place, gone at the end.
struct Folder {
  explicit Folder(const std::string& script) {
    std::string name = (fs::temp_directory_path() / "inquest-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
    std::ofstream(worker()) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(worker(), fs::perms::owner_all);
    fs::create_directory(path / "scratch");
  }
  ~Folder() { fs::remove_all(path); }
  std::string worker() const { return (path / "worker").string(); }
  fs::path path;
};

/// A run of two ranks on an agent in a process of its own.
RunOutcome RunThere(const Folder& folder, const Plan& plan) {
  auto crew = Crew::Listen({.count = 2, .port = 0, .token = kToken, .host = "hosta", .version = "1"});
  REQUIRE(crew);
  const pid_t agent = ::fork();
  if (agent == 0) {
    NodeSetup local{.worker = folder.worker(), .env = {"PATH=/usr/bin:/bin"}};
    local.look = [](const std::vector<LiveRank>& ranks) {
      std::map<std::string, std::string> texts;
      for (const LiveRank& rank : ranks) texts[std::to_string(rank.rank)] = rank.env.at("MARK");
      return texts;
    };
    ::_exit(RunAgent({.index = 1,
                      .count = 2,
                      .master = "localhost",
                      .port = crew->port(),
                      .token = kToken,
                      .host = "hostb",
                      .version = "1",
                      .local = local,
                      .probe = {},
                      .scratch = (folder.path / "scratch").string()})
                .status);
  }
  REQUIRE_FALSE(crew->Join(10s));
  RunSetup setup = TestSetup();
  setup.nodes = {"node 0 (hosta)", "node 1 (hostb)"};
  LocalNode own(setup.local);
  RunOutcome run = RunPlan(plan, setup, crew->Nodes(&own));
  crew->Farewell(0, "");
  { const Crew closed(std::move(*crew)); }
  int status = -1;
  ::waitpid(agent, &status, 0);
  CHECK(status == 0);
  CHECK(fs::is_empty(folder.path / "scratch"));
  return run;
}

Plan TwoThere(const Folder& folder) {
  Plan plan = LoggedTo(SmallPlan(Operation::kBroadcast, 10, 2), folder.path.string());
  for (std::size_t rank = 0; rank < 2; ++rank) {
    plan.places[rank].node = 1;
    plan.places[rank].env["MARK"] = "mark " + std::to_string(rank);
  }
  return plan;
}

std::string Content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("a report that the network held up is dated when it was made", "[unit][replay]") {
  std::array<int, 2> ends = {-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
  Channel agent(OwnedFd{ends[1]}, Side::kAgent, kToken), coordinator(OwnedFd{ends[0]}, Side::kCoordinator, kToken);
  for (int i = 0; i < 3; ++i) {
    (void)agent.Work();
    (void)coordinator.Work();
  }
  REQUIRE(coordinator.state() == Channel::State::kOpen);
  RemoteNode node(std::move(coordinator), AgentHello{}, "");
  node.Start({});
  const auto there = [] { return Clock::now() + 1000h; };  // another clock
  const auto say = [&](const ToCoordinator& message) { agent.Send(Encode(message)); };
  say(AgentBeat{there()});
  CHECK(node.Take().empty());
  say(Report{1, {there() - 3s, RankSpawned{0, 1}}});
  say(Report{1, {there(), RankSpawned{1, 2}}});
  say(Report{2, {there(), RankSpawned{1, 3}}});  // of a run that is not this one
  const std::vector<NodeEvent> events = node.Take();
  REQUIRE(events.size() == 2);
  const auto age = [](const NodeEvent& event) { return Clock::now() - event.at; };
  CHECK(age(events[0]) > 2900ms);
  CHECK(age(events[0]) < 3500ms);
  CHECK(age(events[1]) < 500ms);
}

TEST_CASE("logs of another node are there when its rank has ended, begin and end of long ones", "[replay][leftovers]") {
  const Folder folder(R"(echo "first $MARK" > "$NCCL_DEBUG_FILE"
[ "$MARK" = "mark 1" ] && head -c 6000000 /dev/zero | tr '\0' 'x' >> "$NCCL_DEBUG_FILE"
echo "last" >> "$NCCL_DEBUG_FILE"
sleep 0.2
exit 7)");
  const RunOutcome run = RunThere(folder, TwoThere(folder));
  INFO(run.sentence);
  CHECK(run.verdict == RunVerdict::kCouldNotRun);  // a worker that says nothing is none
  CHECK(Has(run.sentence, "on node 1 (hostb) exited with 7"));
  CHECK(Content(folder.path / "nccl.0.log") == "first mark 0\nlast\n");
  const std::string cut = Content(folder.path / "nccl.1.log");
  CHECK(cut.starts_with("first mark 1\nx"));
  CHECK(cut.ends_with("xlast\n"));
  CHECK(Has(cut, " bytes left out here]"));
  CHECK(cut.size() < 4'300'000);
}

TEST_CASE("at a deadline each node looks at its own ranks", "[replay][leftovers]") {
  const Folder folder("sleep 60");
  Plan plan = TwoThere(folder);
  plan.deadlines.each = 500ms;
  const RunOutcome run = RunThere(folder, plan);
  INFO(run.sentence);
  CHECK(run.verdict == RunVerdict::kCouldNotRun);
  CHECK(Has(run.sentence, "The workers of ranks 0, 1 said nothing within 0.5 s"));
  CHECK(run.dumps == std::map<std::string, std::string>{{"node1.0", "mark 0"}, {"node1.1", "mark 1"}});
  for (const RankOutcome& rank : run.ranks) {
    CHECK(rank.process_state == "S (sleeping)");
    CHECK_FALSE(rank.threads.empty());
  }
}

}  // namespace remote_node_test
