// Ranks that stand still though nobody sent them a signal: held by a debugger, or by the cgroup freezer.
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/catch.h"
#include "tests/replay/replay_runs.h"

using namespace inquest;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace stopped_test {

/// Three ranks of which rank 1 waits for ever; once it does, `hold` is called with its process.
RunOutcome RunHolding(const std::function<void(pid_t)>& hold) {
  Plan plan = SmallPlan();
  plan.faults = *ParseFaults("1:hang@enqueued", plan);
  RunSetup setup = TestSetup();
  bool held = false;
  setup.progress = [&](const RunOutcome& run) {
    if (held || run.ranks[1].last.phase != Phase::kDescriptorAgreed) return;
    held = true;
    hold(static_cast<pid_t>(run.ranks[1].pid));
  };
  return RunPlan(plan, setup);
}

/// A debugger's grip: every thread is attached and stays so. Ends with the process that it holds.
pid_t Debug(pid_t worker) {
  const pid_t debugger = ::fork();
  if (debugger != 0) return debugger;
  for (const auto& thread : fs::directory_iterator("/proc/" + std::to_string(worker) + "/task"))
    ::ptrace(PTRACE_ATTACH, static_cast<pid_t>(std::stol(thread.path().filename().string())), nullptr, nullptr);
  while (::waitpid(-1, nullptr, __WALL) > 0) {
  }
  ::_exit(0);
}

/// A group of cgroup version 2 that this test may freeze; empty: none can be made here.
std::string FreezableGroup() {
  for (const char* root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    const std::string group = std::string(root) + "/inquest-test-" + std::to_string(::getpid());
    std::error_code error;
    if (!fs::exists(std::string(root) + "/cgroup.procs") || !fs::create_directory(group, error)) continue;
    if (std::ofstream(group + "/cgroup.freeze") << "0" << std::flush) return group;
    fs::remove(group, error);
  }
  return "";
}

TEST_CASE("a rank that a debugger holds is named, with the debugger", "[replay][faults]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  pid_t debugger = 0;
  const RunOutcome run = RunHolding([&](pid_t worker) { debugger = Debug(worker); });
  REQUIRE(debugger > 0);
  ::waitpid(debugger, nullptr, 0);
  INFO(run.sentence);
  CHECK(run.verdict == RunVerdict::kRankStopped);
  CHECK(Has(run.sentence, "Rank 1 is held by a debugger, process " + std::to_string(debugger) + " (state t)"));
  CHECK(run.decided_at - run.event_at < 2s);
}

TEST_CASE("a rank that the cgroup freezer holds is named", "[replay][faults]") {
  const std::string group = FreezableGroup();
  if (!kHaveGloo || group.empty()) {
    WARN("this build has no Gloo, or no cgroup can be made and frozen here");
    return;
  }
  const RunOutcome run = RunHolding([&](pid_t worker) {
    std::ofstream(group + "/cgroup.procs") << worker << std::flush;
    std::ofstream(group + "/cgroup.freeze") << "1" << std::flush;
  });
  std::ofstream(group + "/cgroup.freeze") << "0" << std::flush;
  INFO(run.sentence);
  CHECK(run.verdict == RunVerdict::kRankStopped);
  CHECK(Has(run.sentence, "Rank 1 is held by the cgroup freezer"));
  CHECK(run.notes.empty());  // a frozen process can be killed
  fs::remove(group);
}

}  // namespace stopped_test
