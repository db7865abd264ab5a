// Nodes that do not fit together: each is a sentence at hello, before anything runs.
#include "replay/crew.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "replay/agent.h"
#include "tests/catch.h"
#include "tests/replay/replay_runs.h"

using namespace inquest;
using namespace std::chrono_literals;

namespace crew_test {

const std::string kToken = "a token that only this test knows";

CrewSetup Coordinator(int count = 2) {
  return {.count = count, .port = 0, .token = kToken, .host = "hosta", .version = "1.0"};
}

struct Agent {
  const char* version = "1.0";
  const char* engine = "NCCL 2.28.9 of /usr/lib/libnccl.so.2, 8 GPUs";
  int index = 1, count = 2;
};

/// An agent in a process of its own; its end is its status.
pid_t Start(std::uint16_t port, const Agent& agent) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  AgentSetup setup{.index = agent.index,
                   .count = agent.count,
                   .master = "localhost",
                   .port = port,
                   .token = kToken,
                   .host = "hostb",
                   .version = agent.version,
                   .join = 10s,
                   .local = TestSetup().local,
                   .probe = {},
                   .scratch = std::filesystem::temp_directory_path().string()};
  setup.probe = [&](const std::string&, const std::map<std::string, std::string>&) -> Result<EngineProbe> {
    if (*agent.engine == '\0') return Error{"no GPU can be used", "use --engine gloo", ""};
    return EngineProbe{agent.engine, ""};
  };
  ::_exit(RunAgent(setup).status);
}

int StatusOf(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("nodes of other versions are named at hello, with both versions", "[replay][leftovers]") {
  struct Row {
    Agent agent;
    const char* says;
  };
  const Row rows[] = {
      {{.version = "9.9"}, "node 0 (hosta) has inquest 1.0, node 1 (hostb) has inquest 9.9"},
      {{.engine = "NCCL 2.21.5 of /opt/libnccl.so.2, 8 GPUs"},
       "node 0 (hosta) has NCCL 2.28.9 of /lib/libnccl.so.2, 8 GPUs, node 1 (hostb) has NCCL 2.21.5 of "
       "/opt/libnccl.so.2, 8 GPUs"},
      {{.engine = ""}, "node 1 (hostb): no GPU can be used"},
      {{.count = 3}, "node 1 (hostb) was started as one of 3 nodes, node 0 (hosta) as one of 2"},
      {{.index = 2, .count = 2}, "node 2 (hostb) has a number that none of 2 nodes has"},
      {{}, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.says);
    auto crew = Crew::Listen(Coordinator());
    REQUIRE(crew);
    const pid_t agent = Start(crew->port(), row.agent);
    std::optional<Error> error = crew->Join(10s);
    if (!error) {
      const auto engines = crew->Probe("nccl", {}, EngineProbe{"NCCL 2.28.9 of /lib/libnccl.so.2, 8 GPUs", ""});
      if (!engines) error = engines.error();
      crew->Farewell(error ? 3 : 0, "");
    }
    CHECK((error ? error->message : "") == row.says);
    { const Crew closed(std::move(*crew)); }  // an agent waits for that
    CHECK(StatusOf(agent) == (error ? 3 : 0));
  }
}

TEST_CASE("two nodes with one number, and one that goes before all are there", "[replay][leftovers]") {
  auto crew = Crew::Listen(Coordinator(3));
  REQUIRE(crew);
  const pid_t one = Start(crew->port(), {.count = 3}), two = Start(crew->port(), {.count = 3});
  const auto error = crew->Join(10s);
  REQUIRE(error);
  CHECK(Has(error->message, "two nodes came as node 1"));
  { const Crew closed(std::move(*crew)); }
  CHECK(StatusOf(one) == 3);
  CHECK(StatusOf(two) == 3);

  auto again = Crew::Listen(Coordinator(3));
  const pid_t gone = Start(again->port(), {.count = 3});
  std::thread killer([&] {
    std::this_thread::sleep_for(500ms);
    ::kill(gone, SIGKILL);
  });
  const auto lost = again->Join(10s);
  killer.join();
  REQUIRE(lost);
  CHECK(Has(lost->message, "node 1 (hostb) was lost before all were there"));
  StatusOf(gone);
}

}  // namespace crew_test
