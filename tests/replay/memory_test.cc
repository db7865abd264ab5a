// What ranks may take of a host, by orders that nobody vouches for; whom the kernel killed for it.
#include "replay/memory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"

using namespace inquest;

namespace memory_test {

StartWork Work(Operation operation, std::uint64_t count, int rank, int nranks) {
  StartWork work{.engine = "gloo", .setup = {}, .faults = {}};
  work.setup.rank = rank;
  work.setup.nranks = nranks;
  work.setup.call.operation = operation;
  work.setup.call.count = count;
  return work;
}

/// What the kernel says of cgroups, as files in a folder.
class Kernel {
 public:
  Kernel() {
    REQUIRE(::mkdtemp(top_.data()) != nullptr);
    Write("/proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\n");
  }
  ~Kernel() { std::filesystem::remove_all(top_); }
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(top_ + path).parent_path());
    std::ofstream(top_ + path) << text;
  }
  void IsIn(const std::string& list) const { Write("/proc/" + std::to_string(::getpid()) + "/cgroup", list); }
  const std::string& top() const { return top_; }

 private:
  std::string top_ = (std::filesystem::temp_directory_path() / "memory-test-XXXXXX").string();
};

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

TEST_CASE("memory: cgroups of version 2, where the narrowest limit is not the process's own", "[unit][replay]") {
  const Kernel kernel;
  kernel.IsIn("0::/job/rank\n");
  kernel.Write("/sys/fs/cgroup/job/rank/memory.max", "max\n");
  kernel.Write("/sys/fs/cgroup/job/rank/memory.current", "100000000\n");
  kernel.Write("/sys/fs/cgroup/job/rank/memory.events", "low 0\nhigh 0\nmax 9\noom 4\noom_kill 2\noom_group_kill 7\n");
  kernel.Write("/sys/fs/cgroup/job/memory.max", "400000000\n");
  kernel.Write("/sys/fs/cgroup/job/memory.current", "300000000\n");
  kernel.Write("/sys/fs/cgroup/job/memory.stat", "anon 5\nfile 7\ninactive_anon 3\ninactive_file 100000000\n");
  kernel.Write("/sys/fs/cgroup/job/memory.events", "oom_kill 40\n");
  const auto room = RoomForRanks(kernel.top());
  REQUIRE(room);
  CHECK(room->bytes == 200'000'000);
  CHECK(room->of == "its cgroup (limit 400.0 MB)");
  const OomKills before = OomKillsAround(::getpid(), kernel.top());
  CHECK(before.cgroup == 2);
  CHECK(WhyOom(before).empty());
  kernel.Write("/sys/fs/cgroup/job/rank/memory.events", "oom 4\noom_kill 3\n");
  CHECK(WhyOom(before).find("its cgroup") != std::string::npos);
}

TEST_CASE("memory: cgroups as containers and both versions at once show them", "[unit][replay]") {
  struct Row {
    std::string name, list;
    std::vector<std::pair<std::string, std::string>> files;
    std::uint64_t bytes;
    std::optional<std::uint64_t> kills;
  };
  const std::string root = "/sys/fs/cgroup";
  const std::vector<Row> rows = {
      {"version 2, in a container: its own group is the top",
       "0::/\n",
       {{root + "/memory.max", "500\n"},
        {root + "/memory.current", "200\n"},
        {root + "/memory.events", "oom_kill 1\n"}},
       300,
       1},
      {"version 2, a path of the host that the container does not see",
       "0::/../../kubepods/pod7\n",
       {{root + "/memory.max", "500\n"},
        {root + "/memory.current", "900\n"},
        {root + "/memory.events", "oom_kill 6\n"}},
       0,
       6},
      {"version 2, a group without the controller",
       "0::/user.slice/run\n",
       {{root + "/user.slice/run/cgroup.procs", "1\n"},
        {root + "/user.slice/memory.max", "700\n"},
        {root + "/user.slice/memory.current", "100\n"},
        {root + "/user.slice/memory.events", "oom_kill 5\n"}},
       600,
       5},
      {"version 2 without limits",
       "0::/job\n",
       {{root + "/job/memory.max", "max\n"}, {root + "/job/memory.current", "9\n"}},
       8'192'000'000,
       std::nullopt},
      {"both versions, memory in version 1",
       "4:memory:/job\n0::/\n",
       {{root + "/memory/job/memory.limit_in_bytes", "800\n"},
        {root + "/memory/job/memory.usage_in_bytes", "300\n"},
        {root + "/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n"},
        {root + "/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 8\n"}},
       600,
       8},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Kernel kernel;
    kernel.IsIn(row.list);
    for (const auto& [path, text] : row.files) kernel.Write(path, text);
    const auto room = RoomForRanks(kernel.top());
    REQUIRE(room);
    CHECK(room->bytes == row.bytes);
    CHECK(OomKillsAround(::getpid(), kernel.top()).cgroup == row.kills);
  }
}

}  // namespace memory_test
