// Nothing outlives a run: no process, no shared memory, no descriptor; not even when the supervisor is killed.
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "tests/catch.h"
#include "tests/replay/replay_runs.h"

using namespace inquest;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace leftovers_test {

std::set<std::string> Entries(const char* folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.insert(entry->path().filename().string());
  return names;
}
std::size_t OpenDescriptors() { return Entries("/proc/self/fd").size(); }

/// Workers started by this process (or by `supervisor`), dead ones included.
std::vector<pid_t> Workers(pid_t supervisor) {
  std::vector<pid_t> found;
  for (const std::string& name : Entries("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file("/proc/" + name + "/cmdline");
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    const std::string tail = std::string("work") + '\0' + std::to_string(supervisor) + '\0';
    if (Has(line, "inquest-replay-worker") && Has(line, tail)) found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

void RunMany(int times) {
  const char* faults[] = {"", "1:kill@completed", "2:stop@enqueued", "0:count=3", "1:corrupt", ""};
  RunWith(SmallPlan());  // what the first run of a process opens for good
  const std::size_t descriptors = OpenDescriptors();
  const std::set<std::string> shared = Entries("/dev/shm");
  for (int i = 0; i < times; ++i) {
    const char* fault = faults[static_cast<std::size_t>(i) % std::size(faults)];
    CAPTURE(i, fault);
    const RunOutcome run =
        RunWith(SmallPlan(Operation::kAllReduce, 64, 2 + i % 3 + (std::string(fault)[0] == '2' ? 1 : 0)), fault);
    INFO(run.sentence);
    CHECK((run.verdict == RunVerdict::kPassed) == (*fault == '\0'));
    REQUIRE(OpenDescriptors() == descriptors);
    REQUIRE(Workers(::getpid()).empty());
  }
  const std::set<std::string> now = Entries("/dev/shm");
  std::vector<std::string> added;
  std::ranges::set_difference(now, shared, std::back_inserter(added));
  for (const std::string& name : added) CHECK_FALSE(Has(name, "inquest"));
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("20 runs in a row leave no process, no shared memory, no descriptor", "[replay][leftovers]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  RunMany(20);
}

TEST_CASE("200 runs in a row leave no process, no shared memory, no descriptor", "[.slow][slow][replay]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  RunMany(200);
}

TEST_CASE("workers die with a supervisor that is killed", "[replay][leftovers]") {
  if (!kHaveGloo) {
    WARN("this build has no Gloo");
    return;
  }
  const pid_t supervisor = ::fork();
  REQUIRE(supervisor >= 0);
  if (supervisor == 0) {
    RunWith(SmallPlan(), "1:hang@enqueued;2:stop@enqueued");
    ::_exit(0);
  }
  const auto wait_for = [&](auto condition) {
    for (int i = 0; i < 400 && !condition(); ++i) std::this_thread::sleep_for(25ms);
    return condition();
  };
  CHECK(wait_for([&] { return Workers(supervisor).size() == 3; }));
  ::kill(supervisor, SIGKILL);
  ::waitpid(supervisor, nullptr, 0);
  CHECK(wait_for([&] { return Workers(supervisor).empty(); }));
}

}  // namespace leftovers_test
