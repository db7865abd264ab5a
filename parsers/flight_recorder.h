// Dumps of PyTorch's Flight Recorder: what a rank had enqueued, started and completed.
// Format:  one dictionary, pickled by torch/csrc/jit/serialization/pickler.cpp (or by Python again), or as JSON;
//          keys of versions 1.1 to 2.10 in torch/csrc/distributed/c10d/FlightRecorder.hpp (before: TraceUtils.h)
// Clock:   nanoseconds since the epoch, of the rank's host.
// Not read: nccl_comm_state, thread names.
#pragma once

#include <string_view>

#include "core/call_trace.h"

namespace inquest {

/// Whether a file that begins so is a dump, pickled or in JSON. Its name plays no part.
bool IsFlightDump(std::string_view head);

/// Never fails: what cannot be read of it is told in `problem`.
CallTrace ReadFlightDump(std::string_view bytes);

}  // namespace inquest
