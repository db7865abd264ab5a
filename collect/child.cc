// Runs one program with a time limit and keeps what it printed.
#include "collect/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace inquest {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTick{20}, kGrace{1000};

class Pipe {
 public:
  Pipe() { opened_ = ::pipe2(ends_.data(), O_CLOEXEC) == 0; }
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool opened() const { return opened_; }
  int read() const { return ends_[0]; }
  int write() const { return ends_[1]; }
  void CloseRead() { Close(ends_[0]); }
  void CloseWrite() { Close(ends_[1]); }

 private:
  static void Close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  std::array<int, 2> ends_{-1, -1};
  bool opened_ = false;
};

// Programs of the administrator (ibstat, ldconfig) are often not in a user's PATH. Words shall be English.
void SetEnvironment() {
  const char* path = std::getenv("PATH");
  const std::string longer = std::string(path == nullptr ? "/usr/bin:/bin" : path) + ":/usr/sbin:/sbin";
  ::setenv("PATH", longer.c_str(), 1);
  ::setenv("LC_ALL", "C", 1);
}

/// In the new process, of which this was the only thread. Returns only through exec; errno goes to `failure`.
[[noreturn]] void Become(const std::vector<char*>& words, int output, int failure) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  SetEnvironment();
  ::execvp(words[0], words.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(failure, &error, sizeof error);
  ::_exit(127);
}

class Watch {
 public:
  Watch(pid_t child, int output, const ChildLimits& limits)
      : child_(child), output_(output), limits_(limits), begin_(Clock::now()) {}

  ChildEnd Run() {
    while (!end_.cut && !Ended()) {
      end_.timed_out = Elapsed() >= limits_.time;
      end_.interrupted = limits_.interrupted();
      if (end_.timed_out || end_.interrupted) break;
      Drain(std::clamp(limits_.time - Elapsed(), milliseconds(0), kTick));
    }
    ::kill(-child_, SIGKILL);  // its own children too; it is not reaped yet, so that the number is still its
    Reap();
    Drain(milliseconds(0));
    end_.took = Elapsed();
    return std::move(end_);
  }

 private:
  milliseconds Elapsed() const { return std::chrono::duration_cast<milliseconds>(Clock::now() - begin_); }

  bool Ended() const {
    siginfo_t status{};
    return ::waitid(P_PID, static_cast<id_t>(child_), &status, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           status.si_pid == child_;
  }

  void Reap() {
    const Clock::time_point last = Clock::now() + kGrace;
    int status = 0;
    while (::waitpid(child_, &status, WNOHANG) != child_) {
      if (Clock::now() > last) return;
      ::poll(nullptr, 0, static_cast<int>(kTick.count()));
    }
    if (WIFEXITED(status)) end_.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) end_.signal = WTERMSIG(status);
  }

  /// Takes what is there; waits for it at most `time`, and never beyond the program's own.
  void Drain(milliseconds time) {
    std::array<char, 64 * 1024> piece;
    pollfd ready{output_, POLLIN, 0};
    int wait = static_cast<int>(time.count());
    while (::poll(output_closed_ ? nullptr : &ready, output_closed_ ? 0 : 1, wait) > 0) {
      const ssize_t got = ::read(output_, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      output_closed_ = got <= 0;
      if (output_closed_) return;
      const std::size_t room = limits_.output_bytes - std::min(limits_.output_bytes, end_.output.size());
      end_.output.append(piece.data(), std::min(room, static_cast<std::size_t>(got)));
      end_.cut = end_.cut || static_cast<std::size_t>(got) > room;
      if (end_.cut || Elapsed() >= limits_.time) return;
      wait = 0;
    }
  }

  pid_t child_;
  int output_;
  ChildLimits limits_;
  Clock::time_point begin_;
  ChildEnd end_;
  bool output_closed_ = false;
};

/// The errno of a child that could not become the program; 0: it did; nullopt: not in time, as from a disk that hangs.
std::optional<int> WaitForExec(int failure, const ChildLimits& limits) {
  pollfd ready{failure, POLLIN, 0};
  int code = 0;
  do code = ::poll(&ready, 1, static_cast<int>(limits.time.count()));
  while (code < 0 && errno == EINTR && !limits.interrupted());
  if (code <= 0) return std::nullopt;
  int error = 0;
  ssize_t told = 0;
  do told = ::read(failure, &error, sizeof error);
  while (told < 0 && errno == EINTR);
  return told == sizeof error ? error : 0;
}

std::string WhyNotStarted(const std::string& program, int error) {
  return error == ENOENT ? program + " is not installed"
                         : fmt::format("{} did not start: {}", program, std::strerror(error));
}

}  // namespace

ChildEnd RunChild(const std::vector<std::string>& command, const ChildLimits& limits) {
  ChildEnd end;
  Pipe output, failure;
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = output.opened() && failure.opened() ? ::fork() : -1;
  if (child < 0) {
    end.missing = WhyNotStarted(command[0], errno);
    return end;
  }
  if (child == 0) Become(words, output.write(), failure.write());
  ::setpgid(child, child);  // by whoever is first
  output.CloseWrite();
  failure.CloseWrite();
  const auto error = WaitForExec(failure.read(), limits);
  if (!error || *error == 0) return Watch(child, output.read(), error ? limits : ChildLimits{}).Run();
  ::waitpid(child, nullptr, 0);
  end.missing = WhyNotStarted(command[0], *error);
  return end;
}

}  // namespace inquest
