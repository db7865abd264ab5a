// One operation by what the logs print of it: what a verdict speaks of, and what a replay runs again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/rank_set.h"
#include "core/time.h"

namespace inquest {

/// The operation that a verdict speaks of, as the log prints it.
struct CollectiveRef {
  std::string op;
  std::optional<std::int64_t> seq, op_count, numel_in, numel_out, count, timeout_ms;
  std::optional<std::string> dtype;
  std::optional<int> root;
  std::optional<std::string> process_group, communicator;
  RankSet ranks_waiting, ranks_absent;
  std::optional<Timestamp> waiting_since;
};

}  // namespace inquest
