// Ctrl-C: work that must end in order asks whether it came.
#pragma once

#include <signal.h>

#include <array>

namespace inquest {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP is noted; a second one ends the program, and with it what it
/// started.
class CatchInterrupt {
 public:
  CatchInterrupt();
  ~CatchInterrupt();
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;

 private:
  std::array<struct sigaction, 3> before_{};
};

/// Whether one was noted.
bool Interrupted();

}  // namespace inquest
