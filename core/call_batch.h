// Collective calls as NCCL_DEBUG_SUBSYS=COLL prints them: too many to be events, so they come in batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/time.h"

namespace inquest {

/// What a call asks for. Equal on all ranks of a correct program, but for Send, Recv and Signal calls.
struct CallDescriptor {
  std::string op;  ///< `AllReduce`, as NCCL prints it
  std::uint64_t count = 0;
  std::int32_t datatype = 0, redop = 0, root = 0;
  bool operator==(const CallDescriptor&) const = default;
};

/// Calls of one block, in line order. Indices refer to the vectors beside them.
struct CallBatch {
  struct Process {
    std::string host;
    std::int64_t pid = 0;
    int cuda_dev = 0;                       ///< of its first line here
    std::optional<Known<GlobalRank>> rank;  ///< of an envelope, never NCCL's own
    std::optional<LocalRank> local_rank;
    std::optional<GroupRank> sender;  ///< its rank by the channel lines it printed, where those agree
    std::optional<Timestamp> last_at;
    std::string last_text;  ///< its last call line here, cut at kCitedBytes
    std::uint32_t last_line = 0;
  };
  struct Call {
    std::uint32_t comm = 0;        ///< into comms
    std::uint32_t descriptor = 0;  ///< into descriptors
    std::uint32_t op_count = 0;    ///< low 32 bits
    std::uint32_t line = 0;        ///< in the block, from 0
  };
  struct Comm {
    std::uint32_t process = 0;  ///< into processes
    std::uint64_t pointer = 0;
    std::int32_t nranks = 0;  ///< 0: not printed
    std::uint64_t stream =
        0;  ///< on which these calls are: a communicator with two streams is here twice; 0: the default
  };
  std::vector<Process> processes;
  std::vector<Comm> comms;
  std::vector<CallDescriptor> descriptors;
  std::vector<Call> calls;
  std::vector<std::optional<Timestamp>> times;  ///< that each call's line prints; empty: nobody asked for them
};

}  // namespace inquest
