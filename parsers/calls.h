// NCCL's lines of NCCL_DEBUG_SUBSYS=COLL, parsed and folded at the speed of memory.
// Format:  one line a call; printed by NCCL src/enqueue.cc before it enqueues, in 2.4 to 2.30:
//            node017:41234:41777 [3] NCCL INFO AllReduce: opCount 2a sendbuff 0x7f.. recvbuff 0x7f.. count 1048576
//            datatype 9 op 0 root 0 comm 0x55.. [nranks=16] stream 0x55..                       (one line)
// Clock:   the envelope's, or NCCL_DEBUG_TIMESTAMP_LEVELS'.     Not read: buffers and streams.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.h"

namespace inquest {

/// Offset of the `]` of `] NCCL INFO ` within the first 256 bytes of a line; npos if it is not such a line. The line
/// must be followed by 64 readable bytes.
/// `guess`: where it stood in the line before, tried first.
std::size_t FindNcclInfo(std::string_view line, std::size_t guess);

enum class CallLine : std::uint8_t { kNotACall, kCall, kTorn };

/// Folds one block's calls into a CallBatch. What was once seen is remembered from block to block: a training loop makes
/// the same calls again and again, and a line whose tail (from ` count ` on) is known needs its opCount read and no more.
/// Lines must be followed by 64 readable bytes.
class CallFolder {
 public:
  CallFolder();
  ~CallFolder();
  /// Starts a block.
  void Begin();
  /// `bracket`: FindNcclInfo's answer; `line_number` in the block; `piece` is given back by last_pieces().
  CallLine Add(std::string_view line, std::size_t bracket, std::uint32_t line_number, std::uint32_t piece);
  /// The process of this block that wrote an NCCL line, also where it is no call.
  std::optional<std::uint32_t> ProcessOf(std::string_view line, std::size_t bracket, std::uint32_t piece);
  /// Pieces (as given to Add) of each process' last line.
  const std::vector<std::uint32_t>& last_pieces() const { return last_pieces_; }
  CallBatch& batch() { return batch_; }
  CallBatch Take();

 private:
  struct Fields;
  struct Writer;      ///< a `host:pid` seen by this folder
  struct PrefixSlot;  ///< a `host:pid:tid [dev` seen, and its writer
  struct TailSlot;    ///< a call's op and tail seen, and what they mean
  struct CommSlot;
  struct DescriptorSlot;

  static bool ParseFields(const char* message, std::size_t op_size, const char* line_end, Fields& out);
  /// nullptr: no prefix stands there. Not an optional number: building one on the stack stalls this path.
  Writer* WriterOf(std::string_view line, std::size_t bracket);
  Writer* NewPrefix(std::string_view line, std::size_t bracket, PrefixSlot* slot);
  void Enter(Writer& writer, const char* bracket);
  std::uint32_t InBatch(Writer& writer, const char* bracket, std::uint32_t piece);
  std::uint32_t CommOf(std::uint32_t process, std::uint64_t pointer, std::int32_t nranks);
  std::uint32_t DescriptorOf(std::string_view op, const Fields& fields);
  CallLine AddSlowly(std::string_view line, std::size_t bracket, std::size_t op_size, std::uint32_t line_number, std::uint32_t piece);
  void Forget();

  CallBatch batch_;
  std::vector<std::uint32_t> last_pieces_;
  std::vector<Writer> writers_;
  std::map<std::string, std::uint32_t, std::less<>> writer_by_name_;
  std::vector<PrefixSlot> prefixes_;
  std::vector<TailSlot> tails_;
  std::vector<CommSlot> comms_;
  std::vector<DescriptorSlot> descriptors_;
  std::uint32_t stamp_ = 0;
};

}  // namespace inquest
