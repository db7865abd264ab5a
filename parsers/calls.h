// NCCL's lines of NCCL_DEBUG_SUBSYS=COLL, parsed and folded at the speed of memory.
// Format:  one line a call; printed by NCCL src/enqueue.cc before it enqueues, in 2.4 to 2.30:
//            node017:41234:41777 [3] NCCL INFO AllReduce: opCount 2a sendbuff 0x7f.. recvbuff 0x7f.. count 1048576
//            datatype 9 op 0 root 0 comm 0x55.. [nranks=16] stream 0x55..                       (one line)
// Clock:   the envelope's, or NCCL_DEBUG_TIMESTAMP_LEVELS'.     Not read: buffers and streams.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/event.h"

namespace inquest {

/// Offset of the `]` of `] NCCL INFO ` within the first 256 bytes of a line; npos if it is not such a line. The line
/// must be followed by 64 readable bytes.
std::size_t FindNcclInfo(std::string_view line);

enum class CallLine : std::uint8_t { kNotACall, kCall, kTorn };

/// Folds one block's calls into a CallBatch. Lines must be followed by 64 readable bytes.
class CallFolder {
 public:
  CallFolder();
  /// Starts a block.
  void Begin();
  /// `bracket`: FindNcclInfo's answer; `line_number` in the block; `piece` is given back by LastPiece.
  CallLine Add(std::string_view line, std::size_t bracket, std::uint32_t line_number, std::uint32_t piece);
  /// The process that wrote an NCCL line of this block, also where it is no call.
  std::optional<std::uint32_t> ProcessOf(std::string_view line, std::size_t bracket, std::uint32_t piece);
  /// Pieces (as given to Add) of each process' last call.
  const std::vector<std::uint32_t>& last_pieces() const { return last_pieces_; }
  CallBatch Take();

 private:
  struct PrefixSlot { std::uint64_t tail = 0; const char* begin = nullptr; std::uint32_t size = 0, process = 0, stamp = 0; };
  struct CommSlot { std::uint64_t pointer = 0; std::uint32_t process = 0, comm = 0, stamp = 0; };
  struct DescriptorSlot { std::uint64_t hash = 0; std::uint32_t descriptor = 0, stamp = 0; };
  struct Fields;
  static bool ParseFields(const char* message, std::size_t op_size, const char* line_end, Fields& out);
  std::uint32_t CommOf(std::uint32_t process, const Fields& fields);
  std::uint32_t DescriptorOf(std::string_view op, const Fields& fields);
  std::optional<std::uint32_t> NewPrefix(std::string_view line, std::size_t bracket, PrefixSlot& slot, std::uint64_t tail);

  CallBatch batch_;
  std::vector<std::uint32_t> last_pieces_;
  std::vector<PrefixSlot> prefixes_;
  std::vector<CommSlot> comms_;
  std::vector<DescriptorSlot> descriptors_;
  std::unordered_map<std::string_view, std::uint32_t> process_by_name_;
  std::uint32_t stamp_ = 0;
};

}  // namespace inquest
