// posix_spawn: quick however much memory the analysis holds.
#include "replay/spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "replay/wire.h"

namespace inquest {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// What the new process gets: its socket at a number, nothing to read but that, one pipe to print to.
class FileActions {
 public:
  FileActions(int socket, int number, int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, socket, number);
  }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

class Attributes {
 public:
  Attributes() {
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void OwnedFd::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

namespace {

/// Which limit it was, and what shows it.
std::string HintOf(int error) {
  const auto limit = [](__rlimit_resource_t which) {
    rlimit value{};
    return ::getrlimit(which, &value) != 0 || value.rlim_cur == RLIM_INFINITY ? "unlimited"
                                                                              : fmt::format("{}", value.rlim_cur);
  };
  if (error == EMFILE) return fmt::format("this process may have {} open files (ulimit -n)", limit(RLIMIT_NOFILE));
  if (error == ENFILE) return "the host has no more open files (sysctl fs.file-max)";
  if (error == EAGAIN)
    return fmt::format("this user may have {} processes (ulimit -u), and its cgroup perhaps fewer (pids.max)",
                       limit(RLIMIT_NPROC));
  if (error == ENOMEM) return "the host has no memory left";
  return "";
}

Result<WorkerProcess> Spawn(const std::vector<std::string>& command, const std::vector<std::string>& env, int kind,
                            int number) {
  std::array<int, 2> sockets{}, pipe{};
  const auto failed = [&](const char* what, int error) {
    return Error{fmt::format("{}: {}", what, std::strerror(error)), HintOf(error), command[0]};
  };
  if (::socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, sockets.data()) != 0) return failed("no socket", errno);
  WorkerProcess process;
  process.socket = OwnedFd(sockets[0]);
  const OwnedFd their_socket(sockets[1]);
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return failed("no pipe", errno);
  process.output = OwnedFd(pipe[0]);
  const OwnedFd their_output(pipe[1]);
  // Above the numbers that the new process gets, lest one be closed by the dup2 of another.
  const OwnedFd high_socket(::fcntl(their_socket.get(), F_DUPFD_CLOEXEC, kWorkerSocket + 1));
  const OwnedFd high_output(::fcntl(their_output.get(), F_DUPFD_CLOEXEC, kWorkerSocket + 1));
  if (!high_socket.is_open() || !high_output.is_open()) return failed("no descriptor", errno);
  const int error =
      ::posix_spawnp(&process.pid, command[0].c_str(), FileActions(high_socket.get(), number, high_output.get()).get(),
                     Attributes().get(), Pointers(command).data(), Pointers(env).data());
  if (error != 0) return failed("could not be started", error);
  process.pidfd = OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!process.pidfd.is_open()) {
    const int reason = errno;
    ::kill(process.pid, SIGKILL);
    ::waitpid(process.pid, nullptr, 0);
    return failed("this kernel has no pidfd_open (it is of before 5.3)", reason);
  }
  ::fcntl(process.socket.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(process.output.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(process.pidfd.get(), F_SETFD, FD_CLOEXEC);
  return process;
}

}  // namespace

Result<WorkerProcess> SpawnWorker(const std::vector<std::string>& command, const std::vector<std::string>& env) {
  return Spawn(command, env, SOCK_SEQPACKET, kWorkerSocket);
}

Result<WorkerProcess> SpawnReading(const std::vector<std::string>& command, const std::vector<std::string>& env) {
  return Spawn(command, env, SOCK_STREAM, STDIN_FILENO);
}

}  // namespace inquest
