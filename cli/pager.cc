// What is longer than a screen goes through the user's pager, as git's does.
#include "cli/pager.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"

extern char** environ;

namespace inquest {
namespace {

constexpr int kNotFound = 127, kNotExecutable = 126;  // of a shell

bool IsOnPath(const std::string& program) {
  const char* const path = std::getenv("PATH");
  const std::string folders = path != nullptr ? path : "";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    if (end > begin && ::access((folders.substr(begin, end - begin) + "/" + program).c_str(), X_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

/// A line for the shell; nullopt: none is wanted, or there is none.
std::optional<std::string> PagerOfUser() {
  for (const char* const name : {"INQUEST_PAGER", "PAGER"})
    if (const char* const value = std::getenv(name)) {
      const std::string pager = value;
      return pager.empty() || pager == "cat" ? std::nullopt : std::optional(pager);
    }
  return IsOnPath("less") ? std::optional<std::string>("less") : std::nullopt;
}

/// Its process; nullopt: it could not be started. Signals are its own again: Ctrl-C is for the pager.
std::optional<pid_t> Start(const std::string& pager, int input) {
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  std::string less = "LESS=FRX", lv = "LV=-c";
  if (std::getenv("LESS") == nullptr) environment.push_back(less.data());
  if (std::getenv("LV") == nullptr) environment.push_back(lv.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  ::posix_spawnattr_init(&attributes);
  sigset_t own;
  ::sigemptyset(&own);
  ::sigaddset(&own, SIGPIPE);
  ::sigaddset(&own, SIGINT);
  ::posix_spawnattr_setsigdefault(&attributes, &own);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::string shell = "sh", option = "-c", line = pager;
  char* const arguments[] = {shell.data(), option.data(), line.data(), nullptr};
  pid_t process = 0;
  const int error = ::posix_spawn(&process, "/bin/sh", &files, &attributes, arguments, environment.data());
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  return error == 0 ? std::optional(process) : std::nullopt;
}

}  // namespace

void ThroughPager(const std::function<void()>& print) {
  const std::optional<std::string> pager = OutputIsTerminal() ? PagerOfUser() : std::nullopt;
  int pipe[2];
  if (!pager || ::pipe2(pipe, O_CLOEXEC) != 0) return print();
  const int terminal = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const std::optional<pid_t> process = terminal >= 0 ? Start(*pager, pipe[0]) : std::nullopt;
  ::close(pipe[0]);
  if (process) ::dup2(pipe[1], STDOUT_FILENO);
  ::close(pipe[1]);
  int status = 0;
  if (process) {
    const auto before = std::signal(SIGINT, SIG_IGN);
    print();
    ::dup2(terminal, STDOUT_FILENO);  // the pager reads an end
    while (::waitpid(*process, &status, 0) < 0 && errno == EINTR) {
    }
    std::signal(SIGINT, before);
  }
  if (terminal >= 0) ::close(terminal);
  const bool ran =
      process && !(WIFEXITED(status) && (WEXITSTATUS(status) == kNotFound || WEXITSTATUS(status) == kNotExecutable));
  if (!ran) print();
}

}  // namespace inquest
