// Ctrl-C: work that must end in order asks whether it came.
#pragma once

namespace inquest {

/// From now on the first SIGINT, SIGTERM or SIGHUP is noted, also while the report is written; a second one ends the
/// program, and with it what it started.
void CatchInterrupts();

/// Whether one was noted.
bool Interrupted();

}  // namespace inquest
