// What one rank's own recorder kept of its collective calls: a dump of PyTorch's Flight Recorder, a profiler's trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"

namespace inquest {

/// What a recorded call asks for. Equal on all ranks of a correct program, but for sends, receives and uneven splits.
struct CallForm {
  std::string op;  ///< `all_reduce`, `_allgather_base`: as the recorder names it, without the backend
  std::vector<std::vector<std::int64_t>> inputs, outputs;  ///< one shape a tensor
  std::string dtypes;                                      ///< `Float`, `Float -> BFloat16`; empty: not recorded
  bool operator==(const CallForm&) const = default;
  auto operator<=>(const CallForm&) const = default;
};

/// Calls of one rank, oldest first. Indices refer to the vectors beside them.
struct CallTrace {
  enum class State : std::uint8_t { kScheduled, kStarted, kCompleted };
  enum class Peer : std::uint8_t { kNone, kTo, kFrom };
  struct Call {
    std::uint32_t group = 0;  ///< into groups
    std::uint32_t form = 0;   ///< into forms
    std::uint32_t site = 0;   ///< into sites
    std::uint32_t place = 0;  ///< of the entry in the dump, from 1
    std::int64_t seq = 0;     ///< the group's counter of collectives; of a send or receive, the rank's own in the group
    std::int64_t created_ns = 0;                ///< since the epoch, by the host's clock; 0: not recorded
    std::int64_t started_ns = 0, ended_ns = 0;  ///< when that was noticed, by the same clock
    std::int32_t peer = 0;                      ///< its rank in the group, of a send or receive
    State state = State::kScheduled;
    Peer to = Peer::kNone;
    bool pairwise = false;   ///< a send, a receive, or several of them as one
    bool coalesced = false;  ///< stands for the calls before it under the same number
    bool gave_up = false;    ///< the watchdog took it off its list although it had not ended
  };
  struct Group {
    std::string name, desc;
    std::vector<int> ranks;  ///< global, by group rank; empty: not recorded
    bool mixed = false;      ///< sends counted as collectives, so that numbers say nothing to other ranks
    std::optional<std::int64_t> last_enqueued, last_started, last_completed;
  };
  std::string recorder;                   ///< `flight-recorder`, `profiler`
  std::string version;                    ///< of the dump's schema, `2.10`
  std::string nccl_version;               ///< empty: not recorded
  std::optional<Known<GlobalRank>> rank;  ///< as its content says it
  std::optional<int> world_size;
  std::vector<Group> groups;
  bool has_status = false;  ///< it counts what each group enqueued, also where the entries are gone
  std::optional<std::int64_t> enqueued_elsewhere;  ///< the largest count of groups of which it holds no entry
  std::vector<CallForm> forms;
  std::vector<std::string> sites;  ///< `train_step at train.py:88`; the first is empty: none was recorded
  std::vector<Call> calls;
  std::int64_t timeout_ms = 0;  ///< the largest of an open call; 0: not recorded
  std::uint64_t entries = 0;    ///< of the dump; of those, `calls` are what could be read
  std::string problem;          ///< why it is not whole; empty: it is
  bool timed = false;           ///< the recorder was told when calls start: kScheduled means not started
};

std::string_view Name(CallTrace::State state);
/// Of a shape, or of all of them together: the number of elements.
std::int64_t Elements(const std::vector<std::vector<std::int64_t>>& shapes);

}  // namespace inquest
