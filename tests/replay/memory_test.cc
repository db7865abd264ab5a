// What ranks may take of a host, by orders that nobody vouches for; whom the kernel killed for it.
#include "replay/memory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/catch.h"

using namespace inquest;

namespace {

StartWork Work(Operation operation, std::uint64_t count, int rank, int nranks) {
  StartWork work{.engine = "gloo", .setup = {}, .faults = {}};
  work.setup.rank = rank;
  work.setup.nranks = nranks;
  work.setup.call.operation = operation;
  work.setup.call.count = count;
  return work;
}

}  // namespace

TEST_CASE("memory: an order from elsewhere is not counted before it is fit", "[unit][replay]") {
  const MemoryRoom room{.bytes = std::uint64_t{1} << 34U, .of = "this host"};
  const auto why = [&](const StartWork& work, int on_host = 1) { return WhyTooLarge({work}, room, on_host); };
  CHECK(why(Work(Operation::kAllToAll, 1000, 1, 4)).empty());
  StartWork split = Work(Operation::kAllToAll, 1000, 3, 4);
  split.setup.call.splits = {1, 2};
  CHECK(why(split) == "2 splits for 4 ranks");
  split.setup.call.splits = {1, 2, std::uint64_t{1} << 63U, std::uint64_t{1} << 63U};
  CHECK(why(split) == "the number of elements cannot be right");
  CHECK(why(Work(Operation::kAllToAll, 1000, -1, 4)) == "rank -1 is none of 4 ranks");
  CHECK_FALSE(why(Work(Operation::kAllGather, std::uint64_t{1} << 44U, 0, 1 << 20)).empty());
  // Sums above 64 bits do not fit either.
  for (const int on_host : {1, 32, 64, 1024, 2'000'000'000}) {
    CAPTURE(on_host);
    CHECK_FALSE(why(Work(Operation::kAllGather, std::uint64_t{1} << 48U, 0, 1024), on_host).empty());
  }
}

TEST_CASE("memory: the count of a cgroup goes before the host's, in which all cgroups are", "[unit][replay]") {
  std::string file = (std::filesystem::temp_directory_path() / "memory-test-XXXXXX").string();
  const int made = ::mkstemp(file.data());
  REQUIRE(made >= 0);
  ::close(made);
  std::ofstream(file) << "oom 4\noom_kill 3\n";
  CHECK(WhyOom({.file = file, .cgroup = 2, .host = 0}).find("its cgroup") != std::string::npos);
  CHECK(WhyOom({.file = file, .cgroup = 3, .host = 0}).empty());
  std::filesystem::remove(file);
  const std::string of_host = WhyOom({.file = file, .cgroup = 3, .host = 0});  // it may be 0 there
  CHECK((of_host.empty() || of_host.find("a process of this host") != std::string::npos));
}
