// What costs most to read: a job that its launcher starts again and again, and a log in which everything is new.
#pragma once

#include <cstdint>

#include "bench/job.h"

namespace inquest::bench {

/// Start, training, an exception of the culprit, the others' time-outs, the launcher's report, the next start: until
/// `bytes`.
void WriteCrashLoop(Job job, std::uint64_t bytes, LogWriter& log);
/// Lines of a dozen kinds, each of a host, a process, a device, an operation or in words that no line before it named.
void WriteAllNew(const Job& job, std::uint64_t bytes, LogWriter& log);

}  // namespace inquest::bench
