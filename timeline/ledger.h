// The ledger of collective calls: which rank of which communicator called what, folded as soon as all agree.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/event.h"
#include "timeline/timeline.h"

namespace inquest {

// How calls are matched. NCCL prints a line a call, before it enqueues. On a correct program the k-th collective call on
// a communicator is the same on all its ranks, so the k-th lines of all members are held against each other. A call that
// every member has made alike is forgotten; memory follows how far the fastest member is ahead of the slowest, at eight
// bytes a call. opCount is no key: it counts launched plans, and since NCCL 2.27 not even those on every rank. Sends and
// receives differ from rank to rank by nature and are only counted. Assumed: a member's history is whole from the Init
// line on; where a communicator's birth was not seen, its calls are counted and not compared.
class CallLedger {
 public:
  /// Process numbers are the caller's.
  void Init(std::uint32_t process, const CommInit& init, std::uint32_t init_event);
  void End(std::uint32_t process, const CommEnd& end);
  /// `processes[i]` is the caller's number of batch.processes[i]. A new batch starts with begin == 0.
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base,
                const std::vector<std::uint32_t>& processes);
  /// Communicators in the order in which they were first seen. init_event is still the number given to Init.
  std::vector<CommunicatorRow> Take();

 private:
  struct Slot { std::uint32_t descriptor = 0, agreed = 0; };
  struct Place { std::uint32_t member = 0, input = 0; std::uint64_t line = 0; };
  using Pointer = std::pair<std::uint32_t, std::uint64_t>;  ///< of a process
  struct HashOfPointer {
    std::size_t operator()(const Pointer& p) const { return static_cast<std::size_t>((p.second ^ std::uint64_t{p.first} << 40) * 0x9e3779b97f4a7c15U >> 20); }
  };
  struct ByFields {
    bool operator()(const CallDescriptor& a, const CallDescriptor& b) const {
      return std::tie(a.count, a.datatype, a.redop, a.root, a.op) < std::tie(b.count, b.datatype, b.redop, b.root, b.op);
    }
  };
  struct Deviant { std::uint32_t member = 0, descriptor = 0; Place place; };
  /// One communicator on one process.
  struct Member {
    std::uint32_t process = 0, group = 0;
    std::optional<GroupRank> rank;
    bool whole = false, started = false, completed = false, ended = false, aborted = false;
    std::uint64_t calls = 0, sends = 0;
    std::uint32_t last_descriptor = 0, last_op_count = 0, last_input = 0;
    std::uint64_t last_line = 0;
    std::string last_text;
    std::uint32_t text_input = 0;  ///< where last_text stands; it is the last call's only if that stands there too
    std::uint64_t text_line = 0;
    std::optional<Timestamp> last_at;
    std::optional<std::uint32_t> init_event;
  };
  struct Group {
    // A ring of the calls that some member has made and another has not yet, and of some that all have made.
    std::vector<Slot> slots;
    std::uint64_t base = 0, size = 0;
    std::optional<std::uint64_t> diverged_at;
    std::vector<Place> places;  ///< of the newest calls' first line, a ring of its own
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
  struct Kind { std::uint32_t descriptor = 0; bool pairwise = false; };  ///< pairwise: Send, Recv and their like

  std::uint32_t MemberOf(std::uint32_t process, std::uint64_t pointer, int nranks);
  std::uint32_t GroupOf(const std::string& key, int nranks);
  std::uint32_t DescriptorOf(const CallDescriptor& descriptor);
  void Aim(Lane& lane);
  static void ForgetAgreed(Group& group);
  void Record(std::uint32_t member, std::uint64_t number, std::uint32_t descriptor, const Place& place);
  void Diverge(Group& group, std::uint64_t number, std::uint32_t member, std::uint32_t descriptor, const Place& place);
  CommunicatorRow Row(const Group& group) const;
  CommunicatorRow::Divergence Sides(const Group& group) const;

  std::vector<Group> groups_;
  std::vector<Member> members_;
  std::vector<CallDescriptor> descriptors_;
  std::map<CallDescriptor, std::uint32_t, ByFields> descriptor_numbers_;
  std::map<std::string, std::uint32_t> group_by_key_;
  std::unordered_map<Pointer, std::uint32_t, HashOfPointer> member_by_pointer_;
  std::map<std::pair<std::uint32_t, std::string>, int> children_;  ///< splits of a parent, per process
  std::uint64_t generation_ = 0, mapped_generation_ = 0;
  std::vector<Lane> lanes_;  ///< of a batch, by its communicators
  std::vector<Kind> kinds_;  ///< of a batch, by its descriptors
};

/// `AllReduce: opCount 2a count 1048576 datatype 7 op 0 root 0`: a call line cut to what matters.
std::string CallText(const CallDescriptor& call, std::optional<std::uint64_t> op_count);
/// `float32` for 7; nullopt for numbers NCCL does not have.
std::optional<std::string_view> DatatypeName(std::int32_t datatype);

}  // namespace inquest
