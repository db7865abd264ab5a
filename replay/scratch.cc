// A shell waits for the end of its standard input, which the kernel brings about whatever ends us, and removes the
// folder. Where it is killed as well (a cgroup, a container), the folder is found unlocked by the next of us.
#include "replay/scratch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

namespace inquest {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "inquest-replay-";
/// Is in every one that we made, and in no folder of that name that a user keeps.
constexpr const char* kMarker = ".inquest-scratch";
/// One that is younger may not be locked yet.
constexpr std::time_t kYoung = 60;

void Sweep(const std::string& parent) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(kName)) continue;
    const OwnedFd folder(::open(entry->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!folder.is_open() || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid() ||
        std::time(nullptr) - status.st_mtime < kYoung ||
        ::fstatat(folder.get(), kMarker, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode) ||
        ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0)
      continue;
    std::error_code ignored;
    fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

Result<ScratchFolder> ScratchFolder::In(const std::string& parent) {
  std::string name = fmt::format("{}/{}XXXXXX", parent, kName);
  if (::mkdtemp(name.data()) == nullptr)
    return Error{fmt::format("no folder for temporary files can be made there: {}", std::strerror(errno)),
                 "TMPDIR names another", parent};
  ScratchFolder folder(name);
  folder.lock_ = OwnedFd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.lock_.is_open()) ::flock(folder.lock_.get(), LOCK_EX | LOCK_NB);
  const OwnedFd marker(::openat(folder.lock_.get(), kMarker, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  auto cleaner = SpawnReading({"/bin/sh", "-c", "trap '' HUP INT QUIT TERM; read -r _; rm -rf -- \"$1\"", "sh", name},
                              {"PATH=/usr/bin:/bin"});
  if (cleaner) folder.cleaner_ = std::move(*cleaner);
  Sweep(parent);
  return folder;
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")),
      lock_(std::move(other.lock_)),
      cleaner_(std::exchange(other.cleaner_, WorkerProcess())) {}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
  if (cleaner_.pid <= 0) return;
  cleaner_.socket.Close();
  ::waitpid(cleaner_.pid, nullptr, 0);
}

}  // namespace inquest
