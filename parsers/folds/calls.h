// NCCL's lines of NCCL_DEBUG_SUBSYS=COLL, parsed and folded at the speed of memory.
// Format:  one line a call; printed by NCCL src/enqueue.cc before it enqueues, in 2.4 to 2.30:
//            node017:41234:41777 [3] NCCL INFO AllReduce: opCount 2a sendbuff 0x7f.. recvbuff 0x7f.. count 1048576
//            datatype 9 op 0 root 0 comm 0x55.. [nranks=16] stream 0x55..                       (one line)
// Clock:   the envelope's, or NCCL_DEBUG_TIMESTAMP_LEVELS'.     Not read: buffers.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/call_batch.h"
#include "parsers/fold.h"

namespace inquest {

/// What follows `host:pid:tid [dev` in NCCL's lines.
inline constexpr std::string_view kNcclInfo = "] NCCL INFO ";

/// Whether it stands there; as many bytes must be readable.
inline bool IsNcclInfo(const char* text) {
  std::uint64_t head[2] = {}, tail[2] = {};
  std::memcpy(&head[0], text, 8);
  std::memcpy(&head[1], kNcclInfo.data(), 8);
  std::memcpy(&tail[0], text + 4, 8);
  std::memcpy(&tail[1], kNcclInfo.data() + 4, 8);
  return ((head[0] ^ head[1]) | (tail[0] ^ tail[1])) == 0;
}

/// What it says behind its prefix.
inline std::string_view MessageOf(const Folder::Line& line) { return line.text.substr(line.mark + kNcclInfo.size()); }

enum class CallLine : std::uint8_t { kNotACall, kCall, kTorn };

/// Folds one block's calls into a CallBatch. What was once seen is remembered from block to block: a training loop
/// makes the same calls again and again. A message is cut in front of ` comm `: its head is the same on all ranks but
/// for opCount and the buffers, its tail the same in all calls of a thread on a communicator; where both are known,
/// opCount is read and no more. Lines must be followed by kPadding readable bytes.
class CallFolder {
 public:
  explicit CallFolder(Code code = BestCode());
  ~CallFolder();
  /// A line that NCCL wrote. Its piece is given back by last_pieces(); its hash is that of the speaker, 0 where the
  /// line is too short to be looked up.
  using Line = Folder::Line;
  /// Starts a block.
  void Begin();
  /// The first look. A few lines are best looked at before the first of them is added: what will be asked for then is
  /// fetched in the meantime.
  void Look(Line& line) const;
  /// Folder's, of calls that were seen before, but for opCount and the buffers.
  void TakeKnown(std::string_view block, std::size_t at, std::uint32_t number, std::uint32_t piece,
                 std::vector<std::uint32_t>& ends);
  CallLine Add(const Line& line);
  /// The process of this block that wrote a line, also where it is no call.
  std::optional<std::uint32_t> ProcessOf(const Line& line);
  CallBatch::Process& process(std::uint32_t index) { return batch_.processes[index]; }
  /// Ends the block.
  CallBatch Take();
  /// The pieces of the last line of each process in the batch that Take() gave.
  const std::vector<std::uint32_t>& last_pieces() const { return last_pieces_; }

 private:
  struct Fields;
  struct Writer;   ///< a `host:pid` seen by this folder
  struct Thread;   ///< a `host:pid:tid [dev` seen: its writer
  struct Head;     ///< what was called, as it is printed
  struct Speaker;  ///< a thread on a communicator: what it prints in front of a head, and behind
  struct Comm;     ///< a communicator that a writer named
  struct Descriptor;

  /// From hashes to numbers from 1 on, of rows that the caller compares.
  class Places {
   public:
    Places();
    void Add(std::uint32_t hash, std::uint32_t number);
    void Fetch(std::uint32_t hash) const { __builtin_prefetch(&slots_[hash >> shift_]); }
    /// Numbers entered under a hash, one after the other; 0: no more.
    std::size_t Begin(std::uint32_t hash) const { return hash >> shift_; }
    std::uint32_t Next(std::size_t& at, std::uint32_t hash) const {
      for (; slots_[at].number != 0; at = (at + 1) & last_)
        if (slots_[at].hash == hash) return slots_[std::exchange(at, (at + 1) & last_)].number;
      return 0;
    }

   private:
    struct Slot {
      std::uint32_t hash = 0, number = 0;
    };  ///< number 0: free
    void Enter(const Slot& slot);
    std::vector<Slot> slots_;  ///< by the highest bits of the hash; the next one where that is taken
    std::size_t used_ = 0, last_ = 0;
    int shift_ = 0;
  };

  static bool ParseFields(std::string_view message, std::size_t op_size, Fields& out);
  template <class Code>
  Head* HeadOf(std::string_view text);
  template <class Code>
  Speaker* SpeakerOf(const Line& line);
  struct Known {
    Speaker* speaker = nullptr;
    Head* head = nullptr;
  };  ///< head null: the line is not known
  template <class Code>
  Known Find(const Line& line);
  Known FindAvx2(const Line& line);
  void Meet(Speaker& speaker, Head& head, const Line& line);
  void LookAt(Line& line) const;
  bool IsKnownHead(std::string_view text);
  bool IsKnownSpeaker(const Line& line);
  template <class Code>
  void TakeKnownBy(std::string_view block, std::size_t at, std::uint32_t number, std::uint32_t piece,
                   std::vector<std::uint32_t>& ends);
  void TakeKnownAvx512(std::string_view block, std::size_t at, std::uint32_t number, std::uint32_t piece,
                       std::vector<std::uint32_t>& ends);
  void TakeKnownAvx2(std::string_view block, std::size_t at, std::uint32_t number, std::uint32_t piece,
                     std::vector<std::uint32_t>& ends);
  CallLine AddSlowly(const Line& line);
  /// nullopt: no prefix stands there.
  std::optional<std::uint32_t> ThreadOf(const Line& line);
  // What a block is the first to name gets its number in the batch.
  void Enter(Writer& writer, const char* bracket);
  void Enter(Speaker& speaker, const Line& line);
  void Enter(Head& head);
  std::uint32_t NumberOf(Comm& comm);
  std::uint32_t NumberOf(Descriptor& descriptor);
  void Wrote(Writer& writer, const Line& line);
  void RememberHead(std::string_view text, const Fields& fields, std::uint32_t descriptor);
  void RememberSpeaker(const Line& line, std::string_view tail, const Thread& thread, std::uint32_t comm);
  std::uint32_t CommOf(std::uint32_t writer, const Fields& fields);
  std::uint32_t DescriptorOf(std::string_view op, const Fields& fields);
  void Forget();

  Code code_;
  CallBatch batch_;
  std::vector<std::uint32_t> last_pieces_, batch_writers_, batch_speakers_;
  std::vector<Writer> writers_;
  std::vector<Thread> threads_;
  std::vector<Comm> comms_;
  std::vector<Descriptor> descriptors_;
  std::unordered_map<std::string, std::uint32_t> writer_by_name_, thread_by_prefix_;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::int32_t, std::uint64_t>, std::uint32_t> comm_by_pointer_;
  std::map<std::tuple<std::string, std::uint64_t, std::int32_t, std::int32_t, std::int32_t>, std::uint32_t>
      descriptor_by_fields_;
  std::vector<Head> heads_;
  std::vector<Speaker> speakers_;
  Places head_places_, speaker_places_;
  std::uint32_t stamp_ = 0;
};

}  // namespace inquest
