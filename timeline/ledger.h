// The ledger of collective calls: which rank of which communicator called what, folded as soon as all agree.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/call_batch.h"
#include "core/event.h"
#include "timeline/timeline.h"

namespace inquest {

// How calls are matched. NCCL prints a line a call, before it enqueues. On a correct program the k-th collective call
// on a communicator is the same on all its ranks, so the k-th lines of all members are held against each other. A call
// that every member has made alike is forgotten; memory follows how far the fastest member is ahead of the slowest, at
// eight bytes a call. opCount is no key: it counts launched plans, and since NCCL 2.27 not even those on every rank.
// Sends and receives differ from rank to rank by nature and are only counted. Assumed: a member's history is whole from
// the Init line on. Where a communicator's birth was not seen, as in the end of a log, its calls are counted; they are
// compared where opCount shows that all members are seen from the same call on, each call alone in its launch, and each
// of its processes, one to each device of a host, has no other.
class CallLedger {
 public:
  /// Process numbers are the caller's.
  void Init(std::uint32_t process, const CommInit& init, const SourcePos& where);
  void End(std::uint32_t process, const CommEnd& end);
  /// `processes[i]` is the caller's number of batch.processes[i]. A new batch starts with begin == 0.
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base,
                const std::vector<std::uint32_t>& processes);
  /// One call. Its communicator's number is never given to another; its own, from 0, is the same on all members, and a
  /// send or receive has none.
  struct Numbered {
    std::size_t call = 0;  ///< of the batch
    std::uint64_t communicator = 0;
    std::optional<std::uint64_t> number;
  };
  /// The calls that AddCalls was given last: nothing else happened since.
  void EachOf(const CallBatch& batch, std::size_t begin, std::size_t end,
              const std::function<void(const Numbered&)>& each) const;
  /// The communicator that a process knows by a pointer now.
  std::optional<std::uint64_t> CommunicatorAt(std::uint32_t process, std::uint64_t pointer) const;
  /// Of what is known of communicators; the calls that are still to be matched have a bound of their own.
  std::size_t bytes() const {
    return members_.size() * kMemberBytes + groups_.size() * kGroupBytes + children_.size() * kChildBytes;
  }
  /// Forgets whole communicators, those that called the least and have been silent for longest, until the others take
  /// no more than `bytes`.
  void Thin(std::size_t bytes);
  /// By number, which of `count` processes are members of some communicator.
  std::vector<bool> InUse(std::size_t count) const;
  /// The caller's numbers of processes changed. Those of members are all still there.
  void Renumber(const std::vector<std::uint32_t>& numbers);
  /// Communicators in the order in which they were first seen. What was
  /// forgotten is added to `left_out`. `processes`: by the caller's number. Spent afterwards.
  std::vector<CommunicatorRow> Take(LeftOut& left_out, const std::vector<ProcessRow>& processes);

 private:
  // With what their maps take.
  static constexpr std::size_t kMemberBytes = 304, kGroupBytes = 416, kChildBytes = 128;
  static constexpr std::size_t kFewDescriptors = 1 << 16;
  static constexpr std::size_t kFirstSlots = 4;
  static constexpr std::uint32_t kUnmapped = ~0u;
  struct Slot {
    std::uint32_t descriptor = 0, agreed = 0;
  };
  struct Place {
    std::uint32_t member = 0, input = 0;
    std::uint64_t line = 0, parts = 0;
  };
  using Pointer = std::pair<std::uint32_t, std::uint64_t>;  ///< of a process
  struct HashOfPointer {
    std::size_t operator()(const Pointer& p) const {
      return static_cast<std::size_t>((p.second ^ std::uint64_t{p.first} << 40) * 0x9e3779b97f4a7c15U >> 20);
    }
  };
  struct ByFields {
    bool operator()(const CallDescriptor& a, const CallDescriptor& b) const {
      return std::tie(a.count, a.datatype, a.redop, a.root, a.op) <
             std::tie(b.count, b.datatype, b.redop, b.root, b.op);
    }
  };
  struct Deviant {
    std::uint32_t member = 0, descriptor = 0;
    Place place;
  };
  /// One communicator on one process.
  struct Member {
    std::uint32_t process = 0, group = 0;
    std::optional<GroupRank> rank;
    bool whole = false, started = false, completed = false, ended = false, aborted = false;
    bool stepwise = false;  ///< its birth was not seen, and each call had the opCount behind the one before
    std::uint64_t calls = 0, sends = 0;
    std::uint32_t first_op_count = 0;
    std::uint32_t last_descriptor = 0, last_op_count = 0, last_input = 0;
    std::uint64_t last_line = 0, last_parts = 0;
    std::string last_text;
    std::uint32_t text_input = 0;  ///< where last_text stands; it is the last call's only if that stands there too
    std::uint64_t text_line = 0;
    std::optional<Timestamp> last_at;
    std::optional<SourcePos> init_at;
    std::uint64_t touched = 0;  ///< the slice of calls, or the birth, that spoke of it last
  };
  struct Group {
    // A ring of the calls that some member has made and another has not yet, and of some that all have made.
    std::vector<Slot> slots;
    std::uint64_t base = 0, size = 0;
    std::optional<std::uint64_t> diverged_at;
    std::vector<Place> places;  ///< of the newest calls' first line, a ring of its own
    std::uint64_t id = 0;       ///< never given again, as its place is
    bool whole = true;          ///< no member of it was forgotten
    std::optional<Known<std::uint64_t>> comm_id;
    int nranks = 0;
    std::vector<std::uint32_t> members;
    std::vector<Deviant> deviants;
    Slot& slot(std::uint64_t number) { return slots[number & (slots.size() - 1)]; }
    const Slot& slot(std::uint64_t number) const { return slots[number & (slots.size() - 1)]; }
  };
  /// A batch's communicator. The pointers hold until a member is added.
  struct Lane {
    std::uint32_t index = 0;  ///< of the member
    std::uint32_t last = 0;   ///< of the slice: the last call's number + 1
    Member* member = nullptr;
    Group* group = nullptr;
  };
  struct Kind {
    std::uint32_t descriptor = 0;
    bool pairwise = false;
  };  ///< pairwise: Send, Recv and their like

  std::uint32_t MemberOf(std::uint32_t process, std::uint64_t pointer, int nranks);
  std::uint32_t GroupOf(const std::string& key, int nranks);
  std::uint32_t DescriptorOf(const CallDescriptor& descriptor);
  void Aim(Lane& lane);
  static void ForgetAgreed(Group& group);
  void Record(std::uint32_t member, std::uint64_t number, std::uint32_t descriptor, const Place& place);
  void Diverge(Group& group, std::uint64_t number, std::uint32_t member, std::uint32_t descriptor, const Place& place);
  std::size_t ThinDescriptors();
  void ThinWindows(std::size_t most);
  void Resize(Group& group, std::size_t slots);
  bool NameByDevice(const Group& group, const std::vector<ProcessRow>& processes,
                    const std::vector<std::uint32_t>& communicators);
  CommunicatorRow Row(const Group& group, bool named);
  CommunicatorRow::Divergence Sides(const Group& group, std::optional<std::uint64_t> from) const;

  std::vector<Group> groups_;
  std::vector<Member> members_;
  std::vector<CallDescriptor> descriptors_;
  std::size_t most_descriptors_ = kFewDescriptors;  ///< before those that nothing refers to are forgotten
  std::map<CallDescriptor, std::uint32_t, ByFields> descriptor_numbers_;
  std::unordered_map<std::string, std::uint32_t> group_by_key_;
  Forgotten forgotten_;  ///< by key; whoever comes later under such a key is not whole
  std::unordered_map<Pointer, std::uint32_t, HashOfPointer> member_by_pointer_;
  std::map<std::pair<std::uint32_t, std::string>, int> children_;  ///< splits of a parent, per process
  std::uint64_t generation_ = 0, mapped_generation_ = 0, now_ = 0, next_group_ = 0;
  std::size_t slots_ = 0, places_ = 0;  ///< of all rings
  std::uint64_t groups_left_out_ = 0, calls_left_out_ = 0;
  std::vector<Lane> lanes_;  ///< of a batch, by its communicators
  std::vector<Kind> kinds_;  ///< of a batch, by its descriptors
};

/// `AllReduce: opCount 2a count 1048576 datatype 7 op 0 root 0`: a call line cut to what matters.
std::string CallText(const CallDescriptor& call, std::optional<std::uint64_t> op_count);
/// `float32` for 7; nullopt for numbers NCCL does not have.
std::optional<std::string_view> DatatypeName(std::int32_t datatype);

}  // namespace inquest
