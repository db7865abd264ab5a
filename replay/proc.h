// What /proc says of a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "replay/outcome.h"

namespace inquest {

/// `R`, `S`, `D`, `T`, `t`, `Z`; 0: no such process.
char StateOf(pid_t pid);
/// `T (stopped)`; empty: no such process.
std::string StateText(pid_t pid);
/// Whether the cgroup freezer holds it. Its state letter does not say so.
bool IsFrozen(pid_t pid);
/// The process that traces it; 0: none.
pid_t TracerOf(pid_t pid);
/// Every thread, at most 256; what may not be read stays empty.
std::vector<ThreadState> ThreadsOf(pid_t pid);
/// Inodes of its open sockets.
std::vector<std::uint64_t> SocketsOf(pid_t pid);

}  // namespace inquest
