// Ctrl-C: work that must end in order asks whether it came.
#include "cli/interrupt.h"

#include <atomic>

namespace inquest {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
std::atomic<bool> interrupted = false;

}  // namespace

CatchInterrupt::CatchInterrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &before_[i]);
    // nohup and scripts in the background have some ignored.
    if (before_[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
}

CatchInterrupt::~CatchInterrupt() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

bool Interrupted() { return interrupted; }

}  // namespace inquest
