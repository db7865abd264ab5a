// A folder for temporary files goes with whoever made it, however that ends.
#include "replay/scratch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/catch.h"

using namespace inquest;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace scratch_test {

class Parent {
 public:
  Parent() { REQUIRE(::mkdtemp(path_.data()) != nullptr); }
  ~Parent() { fs::remove_all(path_); }
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;
  const std::string& path() const { return path_; }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }
  bool BecomesEmpty() const {
    for (int i = 0; i < 200 && entries() > 0; ++i) std::this_thread::sleep_for(25ms);
    return entries() == 0;
  }

 private:
  std::string path_ = (fs::temp_directory_path() / "scratch-test-XXXXXX").string();
};

void Touch(const std::string& path) { std::ofstream(path) << "x"; }

TEST_CASE("a scratch folder goes at its end, and with who is killed", "[replay][leftovers]") {
  const Parent parent;
  {
    Result<ScratchFolder> folder = ScratchFolder::In(parent.path());
    REQUIRE(folder);
    const ScratchFolder moved = std::move(*folder);
    Touch(moved.path() + "/file");
    CHECK(parent.entries() == 1);
  }
  CHECK(parent.entries() == 0);
  for (const int number : {SIGKILL, SIGTERM, SIGHUP, SIGQUIT}) {
    CAPTURE(number);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::setpgid(0, 0);
      for (const int each : {SIGTERM, SIGHUP, SIGQUIT}) ::signal(each, SIG_DFL);  // Catch has handlers
      const Result<ScratchFolder> folder = ScratchFolder::In(parent.path());
      Touch(folder->path() + "/file");
      ::raise(SIGSTOP);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, WUNTRACED);
    CHECK(parent.entries() == 1);
    ::kill(-child, number);  // its whole group, as a terminal does
    ::kill(-child, SIGCONT);
    ::waitpid(child, nullptr, 0);
    CHECK(parent.BecomesEmpty());
  }
}

TEST_CASE("what a scratch folder's owner could not remove, the next one does", "[replay][leftovers]") {
  const Parent parent;
  const std::string old = parent.path() + "/inquest-replay-old", held = parent.path() + "/inquest-replay-held",
                    young = parent.path() + "/inquest-replay-young", other = parent.path() + "/somebody-else",
                    kept = parent.path() + "/inquest-replay-job42";
  // What says of a folder that it is ours, as one of us leaves it.
  const std::string marker = [&] {
    const Result<ScratchFolder> ours = ScratchFolder::In(parent.path());
    REQUIRE(ours);
    const fs::directory_iterator entry(ours->path());
    REQUIRE(entry != fs::directory_iterator());
    return entry->path().filename().string();
  }();
  for (const std::string& folder : {old, held, young, other, kept}) {
    fs::create_directory(folder);
    Touch(folder + "/file");
    if (folder != kept) Touch(folder + "/" + marker);
  }
  for (const std::string& folder : {old, held, other, kept})
    fs::last_write_time(folder, fs::file_time_type::clock::now() - 1h);
  const OwnedFd lock(::open(held.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
  const Result<ScratchFolder> folder = ScratchFolder::In(parent.path());
  REQUIRE(folder);
  CHECK_FALSE(fs::exists(old));
  CHECK(fs::exists(held));
  CHECK(fs::exists(young));
  CHECK(fs::exists(other));
  CHECK(fs::exists(kept + "/file"));  // a user's own, as --logs may name it
}

TEST_CASE("a scratch folder that cannot be made is an error that names TMPDIR", "[replay]") {
  const Result<ScratchFolder> folder = ScratchFolder::In("/nonexistent/folder");
  REQUIRE_FALSE(folder);
  CHECK(folder.error().hint.find("TMPDIR") != std::string::npos);
}

}  // namespace scratch_test
