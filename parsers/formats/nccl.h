// The prefix that every NCCL line carries, and NCCL's spelling of PCI addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/event.h"
#include "parsers/fold.h"

namespace inquest {

/// `node017:41234:41777 [3] misc/socket.cc:484 NCCL WARN message`. Views into the text.
struct NcclPrefix {
  enum class Level : std::uint8_t { kInfo, kWarn, kTrace, kCall, kAbort };
  std::string_view host;
  std::int64_t pid = 0, tid = 0;
  std::optional<int> cuda_dev;  ///< never on CALL lines
  std::optional<Timestamp> at;  ///< NCCL_DEBUG_TIMESTAMP_LEVELS', where its format is one that we read
  Level level = Level::kInfo;
  std::string_view site;     ///< `misc/socket.cc:484`; empty on INFO and CALL lines
  std::string_view message;  ///< ends at a NUL: NCCL 2.13 to 2.19 wrote garbage behind over-long lines
};
/// nullopt where any part of the prefix is not whole.
std::optional<NcclPrefix> ParseNcclPrefix(std::string_view text);

/// NCCL's own prefix names host, pid and device. False: the text does not begin with one.
bool ReadNcclOrigin(std::string_view text, Origin& origin);

/// An INFO line from where its prefix is whole: what stands in front, a collector put there. Else the text.
std::string_view WithoutForeignHead(std::string_view text);

/// `0000:3b:00.0` from NCCL's `3b000` (domain<<20 | bus<<12 | device<<4 | function) or from the long spellings
/// `0000:3B:00.0` and `00000000:3B:00.0`.
std::optional<std::string> ParseBusId(std::string_view text);

/// `Bootstrap : Using eth0:10.3.0.17<0>`, `NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.3.0.17<0>`.
std::optional<NetworkUsed> ReadNetwork(std::string_view message);

/// Of its calls and connections, by folds/nccl.cc.
extern const Folding kNcclFold;

}  // namespace inquest
