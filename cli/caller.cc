// A caller that is killed says nothing: what it started gets another parent, and a pipe to it has no reader.
#include "cli/caller.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

namespace inquest {
namespace {

bool Ignores(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool HasTerminal() {
  const int terminal = ::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal >= 0) ::close(terminal);
  return terminal >= 0;
}

}  // namespace

Caller::Caller()
    : parent_(::getppid()),
      may_hang_up_(!Ignores(SIGHUP)),
      is_alone_(!may_hang_up_ || Ignores(SIGINT) || ::getsid(0) == ::getpid()) {}

bool Caller::IsGone() const { return !is_alone_ && ::getppid() != parent_ && !HasTerminal(); }

bool Caller::ReadsNoMore() const {
  struct stat output {};
  if (!may_hang_up_ || ::fstat(STDOUT_FILENO, &output) != 0) return false;
  if (!S_ISFIFO(output.st_mode) && !S_ISSOCK(output.st_mode)) return false;
  pollfd reader{STDOUT_FILENO, 0, 0};
  return ::poll(&reader, 1, 0) > 0 && (reader.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace inquest
