// The ledger of collective calls: which rank of which communicator called what, folded as soon as all agree.
#include "timeline/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <utility>

namespace inquest {
namespace {

constexpr std::size_t kFirstSlots = 4;
constexpr std::size_t kPlaces = 1 << 14;  ///< a power of two: lines of the newest calls, for citing
constexpr std::size_t kMostPlaces = 1 << 19;  ///< of all communicators
constexpr std::uint32_t kUnmapped = ~0u;
/// Calls that members may be ahead of others and still be compared, over all communicators: 64 MiB of slots. Reached only
/// where logs of some ranks are missing, or where each rank has a file of its own with many calls.
constexpr std::size_t kMostSlots = 1 << 23;

bool Pairwise(const std::string& op) { return op == "Send" || op == "Recv" || op == "PutSignal" || op == "Signal" || op == "WaitSignal"; }

}  // namespace

std::string CallText(const CallDescriptor& call, std::optional<std::uint64_t> op_count) {
  return fmt::format("{}: opCount {} ... count {} datatype {} op {} root {}", call.op,
                     op_count ? fmt::format("{:x}", *op_count) : "?", call.count, call.datatype, call.redop, call.root);
}

std::optional<std::string_view> DatatypeName(std::int32_t datatype) {
  static constexpr std::array<std::string_view, 12> kNames = {"int8", "uint8", "int32", "uint32", "int64", "uint64",
                                                              "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  if (datatype < 0 || static_cast<std::size_t>(datatype) >= kNames.size()) return std::nullopt;
  return kNames[static_cast<std::size_t>(datatype)];
}

std::uint32_t CallLedger::GroupOf(const std::string& key, int nranks) {
  const auto [it, is_new] = group_by_key_.try_emplace(key, static_cast<std::uint32_t>(groups_.size()));
  if (is_new) {
    Group group;
    group.id = next_group_++;
    group.whole = !forgotten_.MayHold(std::hash<std::string>()(key));
    group.nranks = nranks;
    group.slots.resize(kFirstSlots);
    slots_ += kFirstSlots;
    groups_.push_back(std::move(group));
  }
  return it->second;
}

std::uint32_t CallLedger::DescriptorOf(const CallDescriptor& descriptor) {
  const auto [it, is_new] = descriptor_numbers_.try_emplace(descriptor, static_cast<std::uint32_t>(descriptors_.size()));
  if (is_new) descriptors_.push_back(descriptor);
  return it->second;
}

// A pointer whose birth was not seen: its calls are counted under a key of its own process.
std::uint32_t CallLedger::MemberOf(std::uint32_t process, std::uint64_t pointer, int nranks) {
  const auto found = member_by_pointer_.find({process, pointer});
  if (found != member_by_pointer_.end()) return found->second;
  const int ordinal = children_[{process, fmt::format("orphan {}", nranks)}]++;
  Member member;
  member.process = process;
  member.group = GroupOf(fmt::format("orphan {} {}", nranks, ordinal), nranks);
  groups_[member.group].members.push_back(static_cast<std::uint32_t>(members_.size()));
  members_.push_back(member);
  ++generation_;
  return member_by_pointer_[{process, pointer}] = static_cast<std::uint32_t>(members_.size() - 1);
}

void CallLedger::Init(std::uint32_t process, const CommInit& init, const SourcePos& where) {
  const auto known = member_by_pointer_.find({process, init.comm});
  if (init.complete && known != member_by_pointer_.end() && !members_[known->second].ended) {
    Member& member = members_[known->second];
    if (member.started && !member.completed) {
      member.completed = true;
      member.init_at = where;
      if (init.comm_id && !groups_[member.group].comm_id) groups_[member.group].comm_id = Known<std::uint64_t>{*init.comm_id, Basis::kObserved, {}};
      return;
    }
  }
  std::string key;
  std::optional<Known<std::uint64_t>> comm_id;
  if (init.comm_id && *init.comm_id != 0) {
    key = fmt::format("id {:x} {}", *init.comm_id, init.nranks);
    comm_id = Known<std::uint64_t>{*init.comm_id, Basis::kObserved, {}};
  } else if (init.parent) {
    const auto parent = member_by_pointer_.find({process, *init.parent});
    const std::string parent_key = parent == member_by_pointer_.end() ? "?" : std::to_string(groups_[members_[parent->second].group].id);
    const int ordinal = init.split_count.value_or(children_[{process, "split " + parent_key}]++);
    key = fmt::format("split {} {} {} {}", parent_key, ordinal, init.color.value_or(0), init.nranks);
  } else {
    key = fmt::format("unnamed {} {}", init.nranks, children_[{process, fmt::format("unnamed {}", init.nranks)}]++);
  }
  Member member;
  member.process = process;
  member.group = GroupOf(key, init.nranks);
  member.rank = init.rank;
  member.started = true;
  member.whole = groups_[member.group].whole && (forgotten_.empty() || init.comm_id.value_or(0) != 0 || key.find('?') == std::string::npos);
  member.completed = init.complete;
  member.init_at = where;
  member.touched = ++now_;
  Group& group = groups_[member.group];
  if (comm_id && !group.comm_id) group.comm_id = comm_id;
  group.members.push_back(static_cast<std::uint32_t>(members_.size()));
  member_by_pointer_[{process, init.comm}] = static_cast<std::uint32_t>(members_.size());
  members_.push_back(std::move(member));
  ++generation_;
}

void CallLedger::End(std::uint32_t process, const CommEnd& end) {
  const auto found = member_by_pointer_.find({process, end.comm});
  if (found == member_by_pointer_.end()) return;
  Member& member = members_[found->second];
  if (end.how != CommEnd::How::kDestroy) member.aborted = true;
  if (!end.complete) return;
  member.ended = true;
  member_by_pointer_.erase(found);  // the next communicator may get the same address
  ++generation_;
}

void CallLedger::AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base,
                          const std::vector<std::uint32_t>& processes) {
  ++now_;
  if (begin == 0) {
    if (descriptors_.size() > most_descriptors_) most_descriptors_ = std::max(kFewDescriptors, 2 * ThinDescriptors());
    kinds_.clear();
    for (const CallDescriptor& descriptor : batch.descriptors) kinds_.push_back({DescriptorOf(descriptor), Pairwise(descriptor.op)});
  }
  if (begin == 0 || mapped_generation_ != generation_) lanes_.assign(batch.comms.size(), {kUnmapped});
  mapped_generation_ = generation_;
  for (Lane& lane : lanes_) {
    lane.last = 0;
    if (lane.index != kUnmapped) Aim(lane);
  }
  for (std::size_t i = begin; i < end; ++i) {
    const CallBatch::Call& call = batch.calls[i];
    Lane& lane = lanes_[call.comm];
    if (lane.member == nullptr) {
      const CallBatch::Comm& comm = batch.comms[call.comm];
      lane.index = MemberOf(processes[comm.process], comm.pointer, comm.nranks);
      Aim(lane);
      if (std::exchange(mapped_generation_, generation_) != generation_)
        for (Lane& other : lanes_)
          if (other.member != nullptr) Aim(other);
    }
    lane.last = static_cast<std::uint32_t>(i + 1);
    Member& member = *lane.member;
    const Kind kind = kinds_[call.descriptor];
    if (kind.pairwise) {
      ++member.sends;
      continue;
    }
    // Most calls are not the first of their number, and agree with the others.
    Group& group = *lane.group;
    const std::uint64_t number = member.calls++;
    Slot& slot = group.slot(number);
    if (number - group.base < group.size && slot.descriptor == kind.descriptor && member.whole && !group.diverged_at)
      ++slot.agreed;
    else
      Record(lane.index, number, kind.descriptor, {lane.index, base.input, base.line + call.line, base.parts});
  }
  for (const Lane& lane : lanes_) {
    if (lane.last == 0) continue;
    const CallBatch::Call& call = batch.calls[lane.last - 1];
    Member& member = *lane.member;
    const std::uint64_t line = base.line + call.line;
    member.touched = now_;
    if (member.last_input == base.input && member.last_line > line) continue;  // the same communicator, printed in two ways
    member.last_op_count = call.op_count;
    member.last_descriptor = kinds_[call.descriptor].descriptor;
    member.last_input = base.input;
    member.last_line = line;
    member.last_parts = base.parts;
  }
  if (end != batch.calls.size()) return;
  for (std::size_t i = 0; i < batch.comms.size(); ++i) {
    if (lanes_[i].member == nullptr) continue;
    Member& member = *lanes_[i].member;
    const CallBatch::Process& process = batch.processes[batch.comms[i].process];
    if (process.last_at) member.last_at = process.last_at;
    if (member.last_input != base.input || member.last_line != base.line + process.last_line) continue;
    member.last_text = process.last_text;
    member.text_input = member.last_input;
    member.text_line = member.last_line;
  }
}

void CallLedger::Aim(Lane& lane) {
  lane.member = &members_[lane.index];
  lane.group = &groups_[lane.member->group];
}

void CallLedger::Record(std::uint32_t index, std::uint64_t number, std::uint32_t descriptor, const Place& place) {
  const Member& member = members_[index];
  Group& group = groups_[member.group];
  if (!member.whole || group.nranks <= 1) return;
  if (group.diverged_at && number > *group.diverged_at) return;
  ForgetAgreed(group);
  if (number < group.base) return;
  if (number - group.base == group.size) {
    if (group.size == group.slots.size()) {
      if (slots_ + group.slots.size() > kMostSlots) ThinWindows(kMostSlots);
      if (group.size == group.slots.size()) Resize(group, group.slots.size() * 2);
    }
    if (group.places.size() < kPlaces && group.places.size() <= number && (group.places.empty() || places_ < kMostPlaces)) {
      const std::size_t larger = std::max(kFirstSlots, group.places.size() * 2);
      places_ += larger - group.places.size();
      group.places.resize(larger);
    }
    group.slot(number) = {descriptor, 1};
    group.places[number & (group.places.size() - 1)] = place;
    ++group.size;
    return;
  }
  Slot& slot = group.slot(number);
  if (slot.descriptor != descriptor) return Diverge(group, number, index, descriptor, place);
  ++slot.agreed;
}

// Left until the next call that is the first of its number: whether a call completes one cannot be predicted.
void CallLedger::ForgetAgreed(Group& group) {
  while (group.size > 0 && static_cast<int>(group.slot(group.base).agreed) >= group.nranks) {
    ++group.base;
    --group.size;
  }
}

void CallLedger::Diverge(Group& group, std::uint64_t number, std::uint32_t member, std::uint32_t descriptor, const Place& place) {
  if (!group.diverged_at || number < *group.diverged_at) {
    group.deviants.clear();
    group.diverged_at = number;
  }
  group.deviants.push_back({member, descriptor, place});
}

CommunicatorRow::Divergence CallLedger::Sides(const Group& group) const {
  CommunicatorRow::Divergence out;
  out.number = *group.diverged_at;
  struct Side { std::vector<int> ranks; std::optional<Place> place; };
  std::map<std::uint32_t, Side> sides;
  for (const Deviant& deviant : group.deviants) {
    Side& side = sides[deviant.descriptor];
    side.ranks.push_back(members_[deviant.member].rank ? members_[deviant.member].rank->value : -1);
    if (!side.place) side.place = deviant.place;
  }
  const std::uint32_t first = group.slot(out.number).descriptor;
  std::set<std::uint32_t> deviate;
  for (const Deviant& deviant : group.deviants) deviate.insert(deviant.member);
  for (const std::uint32_t index : group.members) {
    const Member& member = members_[index];
    if (member.calls > out.number && !deviate.contains(index) && member.rank) sides[first].ranks.push_back(member.rank->value);
  }
  const Place& place = group.places[out.number & (group.places.size() - 1)];
  if (out.number + group.places.size() > group.base + group.size) sides[first].place = place;
  for (auto& [descriptor, side] : sides) {
    std::sort(side.ranks.begin(), side.ranks.end());
    CommunicatorRow::Divergence::Side row{descriptors_[descriptor], side.ranks, {}, CallText(descriptors_[descriptor], std::nullopt)};
    if (side.place) row.where = {side.place->input, side.place->line, 0, side.place->parts};
    out.sides.push_back(std::move(row));
  }
  std::sort(out.sides.begin(), out.sides.end(), [](const auto& a, const auto& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size() : a.ranks < b.ranks;
  });
  return out;
}

CommunicatorRow CallLedger::Row(const Group& group) {
  CommunicatorRow row;
  row.comm_id = group.comm_id;
  row.nranks = group.nranks;
  for (const std::uint32_t index : group.members) {
    Member& member = members_[index];
    row.whole_history = row.whole_history && member.whole;
    CommunicatorRow::Member out;
    out.rank = member.rank.value_or(GroupRank{-1});
    out.process = member.process;
    out.started = member.started;
    out.completed = member.completed;
    out.ended = member.ended;
    out.aborted = member.aborted;
    out.calls = member.calls;
    out.init_at = member.init_at;
    if (member.calls + member.sends > 0) {
      out.last_op_count = member.last_op_count;
      out.last_call = descriptors_[member.last_descriptor];
      out.last_call_at = {member.last_input, member.last_line, 0, member.last_parts};
      const bool quoted = !member.last_text.empty() && member.text_input == member.last_input && member.text_line == member.last_line;
      out.last_call_text = quoted ? std::move(member.last_text) : CallText(out.last_call, member.last_op_count);
      out.last_call_time = member.last_at;
    }
    row.members.push_back(std::move(out));
  }
  std::stable_sort(row.members.begin(), row.members.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  if (group.diverged_at) row.divergence = Sides(group);
  return row;
}

std::vector<CommunicatorRow> CallLedger::Take(LeftOut& left_out) {
  std::vector<CommunicatorRow> rows;
  rows.reserve(groups_.size());
  for (Group& group : groups_) {
    rows.push_back(Row(group));
    group = {};
  }
  if (groups_left_out_ > 0) left_out["communicator"] += groups_left_out_;
  if (calls_left_out_ > 0) left_out["call"] += calls_left_out_;
  *this = CallLedger();
  return rows;
}

// ---- bounds ----------------------------------------------------------------------------------------------------

void CallLedger::Resize(Group& group, std::size_t slots) {
  std::vector<Slot> other(slots);
  for (std::uint64_t i = group.base; i < group.base + group.size; ++i) other[i & (slots - 1)] = group.slot(i);
  slots_ += slots - group.slots.size();
  group.slots = std::move(other);
}

/// The longest windows forget their oldest calls until none is longer than the others need to be.
void CallLedger::ThinWindows(std::size_t most) {
  std::vector<std::uint64_t> sizes;
  for (Group& group : groups_) {
    ForgetAgreed(group);
    sizes.push_back(group.size);
  }
  std::sort(sizes.begin(), sizes.end());
  std::uint64_t left = most / 4, level = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    level = left / (sizes.size() - i);
    if (sizes[i] > level) break;
    left -= sizes[i];
  }
  for (Group& group : groups_) {
    // Beyond the first difference nothing is compared, but what stood there first is shown.
    if (group.diverged_at && group.base + group.size > *group.diverged_at) group.size = *group.diverged_at + 1 - std::min(group.base, *group.diverged_at + 1);
    if (group.size > level && level > 0) {
      calls_left_out_ += group.size - level;
      group.base += group.size - level;
      group.size = level;
    }
    const std::size_t slots = std::bit_ceil(std::max<std::size_t>(group.size, kFirstSlots));
    if (slots < group.slots.size()) Resize(group, slots);
  }
}

/// Forgets descriptors that nothing refers to any more; returns how many are left.
std::size_t CallLedger::ThinDescriptors() {
  std::vector<std::uint32_t> numbers;
  std::uint32_t used = 0;
  const auto number_of = [&](std::uint32_t& descriptor) {
    if (descriptor >= numbers.size()) return;
    if (numbers[descriptor] == kUnmapped) numbers[descriptor] = used++;
    descriptor = numbers[descriptor];
  };
  std::size_t live = 0;
  for (Group& group : groups_) {
    ForgetAgreed(group);
    live += group.size;
  }
  if (live > 8 * kFewDescriptors) ThinWindows(32 * kFewDescriptors);
  numbers.assign(descriptors_.size(), kUnmapped);
  for (Member& member : members_) number_of(member.last_descriptor);
  for (Group& group : groups_) {
    for (std::uint64_t i = group.base; i < group.base + group.size; ++i) number_of(group.slot(i).descriptor);
    for (Deviant& deviant : group.deviants) number_of(deviant.descriptor);
  }
  std::vector<CallDescriptor> descriptors(used);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == kUnmapped) continue;
    descriptors[numbers[i]] = std::move(descriptors_[i]);
  }
  std::erase_if(descriptor_numbers_, [&](const auto& entry) { return numbers[entry.second] == kUnmapped; });
  for (auto& [descriptor, number] : descriptor_numbers_) number = numbers[number];
  descriptors_ = std::move(descriptors);
  return used;
}

std::vector<bool> CallLedger::InUse(std::size_t count) const {
  std::vector<bool> used(count);
  for (const Member& member : members_) used[member.process] = true;
  return used;
}

void CallLedger::Renumber(const std::vector<std::uint32_t>& numbers) {
  for (Member& member : members_) member.process = numbers[member.process];
  decltype(member_by_pointer_) by_pointer;
  for (const auto& [pointer, member] : member_by_pointer_) by_pointer[{numbers[pointer.first], pointer.second}] = member;
  member_by_pointer_ = std::move(by_pointer);
  decltype(children_) children;
  for (const auto& [child, ordinal] : children_)
    if (numbers[child.first] != kUnmapped) children[{numbers[child.first], child.second}] = ordinal;
  children_ = std::move(children);
  ++generation_;
}

void CallLedger::Thin(std::size_t most) {
  struct Weight { std::uint32_t group = 0; std::uint64_t touched = 0, calls = 0, bytes = 0; };
  std::vector<Weight> weights(groups_.size());
  for (std::uint32_t i = 0; i < groups_.size(); ++i) {
    weights[i].group = i;
    weights[i].bytes = kGroupBytes + groups_[i].members.size() * kMemberBytes;
    for (const std::uint32_t index : groups_[i].members) {
      weights[i].touched = std::max(weights[i].touched, members_[index].touched);
      weights[i].calls += members_[index].calls + members_[index].sends;
    }
  }
  std::vector<bool> stays(groups_.size());
  std::uint64_t taken = 0;
  const auto take = [&](std::uint64_t bytes, auto more) {
    std::sort(weights.begin(), weights.end(), more);
    for (const Weight& weight : weights) {
      if (stays[weight.group] || taken + weight.bytes > bytes) continue;
      stays[weight.group] = true;
      taken += weight.bytes;
    }
  };
  take(most / 2, [](const Weight& a, const Weight& b) { return a.touched != b.touched ? a.touched > b.touched : a.group < b.group; });
  take(most, [](const Weight& a, const Weight& b) { return a.calls != b.calls ? a.calls > b.calls : a.group < b.group; });

  std::vector<std::uint32_t> groups(groups_.size(), kUnmapped), members(members_.size(), kUnmapped);
  std::uint32_t next_group = 0, next_member = 0;
  for (std::uint32_t i = 0; i < groups_.size(); ++i) {
    if (!stays[i]) {
      slots_ -= groups_[i].slots.size();
      places_ -= groups_[i].places.size();
      ++groups_left_out_;
      continue;
    }
    groups[i] = next_group;
    if (next_group != i) groups_[next_group] = std::move(groups_[i]);
    ++next_group;
  }
  groups_.erase(groups_.begin() + next_group, groups_.end());
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    if (groups[members_[i].group] == kUnmapped) continue;
    members[i] = next_member;
    members_[i].group = groups[members_[i].group];
    if (next_member != i) members_[next_member] = std::move(members_[i]);
    ++next_member;
  }
  members_.erase(members_.begin() + next_member, members_.end());
  for (Group& group : groups_) {
    for (std::uint32_t& member : group.members) member = members[member];
    for (Deviant& deviant : group.deviants) deviant.member = members[deviant.member];
  }
  std::erase_if(member_by_pointer_, [&](const auto& entry) { return members[entry.second] == kUnmapped; });
  for (auto& [pointer, member] : member_by_pointer_) member = members[member];
  for (const auto& [key, group] : group_by_key_)
    if (groups[group] == kUnmapped) forgotten_.Add(std::hash<std::string>()(key));
  std::erase_if(group_by_key_, [&](const auto& entry) { return groups[entry.second] == kUnmapped; });
  for (auto& [key, group] : group_by_key_) group = groups[group];
  ++generation_;
}

}  // namespace inquest
