// Matches what the ranks' own recorders kept of their calls, dump after dump.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "timeline/left_out.h"
#include "timeline/recorded.h"

namespace inquest {

/// Groups of two ranks are one where their names and members agree.
std::string GroupKey(const std::string& name, const std::vector<int>& ranks);
/// By place, whether a call had not ended. One that a later call of its stream outlived had, whatever its recorder was
/// last told.
std::vector<bool> OpenCalls(const CallTrace& trace);
/// A group's calls run in order: those of all members, and those between two ranks alone. The other one, in the group;
/// -1: of all members.
std::int32_t PeerOf(const CallTrace::Call& call);

// How calls are matched: the n-th collective of a process group is the same on all its members, and the group's counter
// numbers them. What each number was on the rank that was read first is held against all others; of each rank its first
// and last number, what had not ended, and where it first differs are kept, so that memory follows ranks and groups and
// not what they recorded. Where rings were overwritten, only numbers that are there count. Sends and receives have no
// number in common: those that had not ended are matched by pair.
class TraceLedger {
 public:
  /// `where` is the place of the dump's first entry, but for its line.
  /// False: a dump of that rank is there.
  bool Add(const CallTrace& trace, GlobalRank rank, const SourcePos& where);
  /// The calls of a rank that are worth a line each: the first of every group, and with every peer, that had not ended;
  /// where there is none, the last.
  std::vector<Event> EventsOf(GlobalRank rank, const Origin& writer) const;
  void AddNameless() { ++out_.nameless; }
  /// What of it could not be compared, for want of memory, is added to `left_out`. Spent afterwards.
  Recorded Take(LeftOut& left_out);

 private:
  struct Slot {
    std::uint32_t form = kNoForm;
    std::uint32_t place = 0;
    std::uint32_t rank = 0;  ///< into ranks_read_
    std::uint32_t site = 0;  ///< into sites_
  };
  static constexpr std::uint32_t kNoForm = ~0u;
  struct Group {
    std::int64_t base = 0;
    std::vector<Slot> slots;
  };
  struct Reader {
    GlobalRank rank;
    SourcePos where;
  };

  std::uint32_t GroupOf(const CallTrace::Group& group);
  std::uint32_t FormOf(const CallForm& form);
  std::uint32_t FormOfBlock(const std::vector<std::uint32_t>& forms);
  std::uint32_t SiteOf(const std::string& site);
  Slot* SlotAt(Group& group, std::int64_t seq);
  void Compare(std::uint32_t group, RecordedMember& member, std::int64_t seq, const Slot& call);
  void Diverge(std::uint32_t group);

  Recorded out_;
  std::vector<Group> groups_;
  std::vector<std::map<GlobalRank, RecordedMember>> members_;  ///< of each group
  std::vector<Reader> ranks_read_;
  std::map<GlobalRank, RecordedRank> ranks_;
  std::vector<std::string> sites_ = {std::string()};
  std::map<std::string, std::uint32_t> group_numbers_, site_numbers_;
  std::map<CallForm, std::uint32_t> form_numbers_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> block_forms_;
  std::size_t slots_ = 0;
  std::uint64_t not_compared_ = 0;
};

}  // namespace inquest
