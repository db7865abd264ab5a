// Ctrl-C: work that must end in order asks whether it came.
#include "cli/interrupt.h"

#include <signal.h>

#include <atomic>

namespace inquest {
namespace {

std::atomic<bool> interrupted = false;

}  // namespace

void CatchInterrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &action, &before);
    // nohup and scripts in the background have some ignored.
    if (before.sa_handler == SIG_IGN) ::sigaction(signal, &before, nullptr);
  }
}

bool Interrupted() { return interrupted; }

}  // namespace inquest
