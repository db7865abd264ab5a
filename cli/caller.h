// Who started this program, and whether anybody still waits for what it does: a replay may run for hours.
#pragma once

#include <sys/types.h>

namespace inquest {

/// From any thread.
class Caller {
 public:
  /// Remembers it; early, since it may be gone soon.
  Caller();

  /// The process that started this one has ended, and nothing shows that this one was to go on without it: it has no
  /// terminal, leads no session (setsid), ignores neither SIGHUP (nohup) nor SIGINT (`&` in a script).
  bool IsGone() const;
  /// What this program prints goes into a pipe or socket that nobody reads any more. With nohup nobody needs to.
  bool ReadsNoMore() const;

 private:
  pid_t parent_;
  bool may_hang_up_, is_alone_;
};

}  // namespace inquest
