// The ledger of collective calls: which rank of which communicator called what, folded as soon as all agree.
#include "timeline/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace inquest {
namespace {

constexpr std::size_t kPlaces = 1 << 14;      ///< a power of two: lines of the newest calls, for citing
constexpr std::size_t kMostPlaces = 1 << 19;  ///< of all communicators
/// Calls that members may be ahead of others and still be compared, over all communicators: 64 MiB of slots. Reached
/// only where logs of some ranks are missing, or where each rank has a file of its own with many calls.
constexpr std::size_t kMostSlots = 1 << 23;

bool Pairwise(const std::string& op) {
  return op == "Send" || op == "Recv" || op == "PutSignal" || op == "Signal" || op == "WaitSignal";
}

}  // namespace

std::string CallText(const CallDescriptor& call, std::optional<std::uint64_t> op_count) {
  return fmt::format("{}: opCount {} ... count {} datatype {} op {} root {}", call.op,
                     op_count ? fmt::format("{:x}", *op_count) : "?", call.count, call.datatype, call.redop, call.root);
}

std::optional<std::string_view> DatatypeName(std::int32_t datatype) {
  static constexpr std::array<std::string_view, 12> kNames = {"int8",    "uint8",    "int32",      "uint32",
                                                              "int64",   "uint64",   "float16",    "float32",
                                                              "float64", "bfloat16", "float8e4m3", "float8e5m2"};
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
  const auto [it, is_new] =
      descriptor_numbers_.try_emplace(descriptor, static_cast<std::uint32_t>(descriptors_.size()));
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
  member.stepwise = ordinal == 0;
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
      if (init.comm_id && !groups_[member.group].comm_id)
        groups_[member.group].comm_id = Known<std::uint64_t>{*init.comm_id, Basis::kObserved, {}};
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
    const std::string parent_key =
        parent == member_by_pointer_.end() ? "?" : std::to_string(groups_[members_[parent->second].group].id);
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
  member.whole = groups_[member.group].whole &&
                 (forgotten_.empty() || init.comm_id.value_or(0) != 0 || key.find('?') == std::string::npos);
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
    for (const CallDescriptor& descriptor : batch.descriptors)
      kinds_.push_back({DescriptorOf(descriptor), Pairwise(descriptor.op)});
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
    if (member.stepwise) {
      if (number == 0) member.first_op_count = call.op_count;
      member.stepwise = call.op_count == member.first_op_count + number;
    }
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
    if (member.last_input == base.input && member.last_line > line)
      continue;  // the same communicator, printed in two ways
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

void CallLedger::EachOf(const CallBatch& batch, std::size_t begin, std::size_t end,
                        const std::function<void(const Numbered&)>& each) const {
  std::unordered_map<std::uint32_t, std::uint64_t> next;  // of members that made some of them
  const auto is_numbered = [&](const CallBatch::Call& call) { return !kinds_[call.descriptor].pairwise; };
  for (std::size_t i = begin; i < end; ++i)
    if (is_numbered(batch.calls[i])) ++next[lanes_[batch.calls[i].comm].index];
  for (auto& [member, number] : next) number = members_[member].calls - number;
  for (std::size_t i = begin; i < end; ++i) {
    const CallBatch::Call& call = batch.calls[i];
    const Lane& lane = lanes_[call.comm];
    Numbered numbered{i, lane.group->id, std::nullopt};
    if (is_numbered(call)) numbered.number = next[lane.index]++;
    each(numbered);
  }
}

std::optional<std::uint64_t> CallLedger::CommunicatorAt(std::uint32_t process, std::uint64_t pointer) const {
  const auto known = member_by_pointer_.find({process, pointer});
  if (known == member_by_pointer_.end()) return std::nullopt;
  return groups_[members_[known->second].group].id;
}

void CallLedger::Aim(Lane& lane) {
  lane.member = &members_[lane.index];
  lane.group = &groups_[lane.member->group];
}

void CallLedger::Record(std::uint32_t index, std::uint64_t number, std::uint32_t descriptor, const Place& place) {
  const Member& member = members_[index];
  Group& group = groups_[member.group];
  if ((!member.whole && !member.stepwise) || group.nranks <= 1) return;
  if (group.diverged_at && number > *group.diverged_at) return;
  ForgetAgreed(group);
  if (number < group.base) return;
  if (number - group.base == group.size) {
    if (group.size == group.slots.size()) {
      if (slots_ + group.slots.size() > kMostSlots) ThinWindows(kMostSlots);
      if (group.size == group.slots.size()) Resize(group, group.slots.size() * 2);
    }
    if (group.places.size() < kPlaces && group.places.size() <= number &&
        (group.places.empty() || places_ < kMostPlaces)) {
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

void CallLedger::Diverge(Group& group, std::uint64_t number, std::uint32_t member, std::uint32_t descriptor,
                         const Place& place) {
  if (!group.diverged_at || number < *group.diverged_at) {
    group.deviants.clear();
    group.diverged_at = number;
  }
  group.deviants.push_back({member, descriptor, place});
}

CommunicatorRow::Divergence CallLedger::Sides(const Group& group, std::optional<std::uint64_t> from) const {
  CommunicatorRow::Divergence out;
  out.number = *group.diverged_at;
  const auto op_count = from ? std::optional(*from + out.number) : std::nullopt;
  struct Side {
    std::vector<int> ranks;
    std::optional<Place> place;
  };
  std::map<std::uint32_t, Side> sides;
  for (const Deviant& deviant : group.deviants) {
    Side& side = sides[deviant.descriptor];
    if (members_[deviant.member].rank) side.ranks.push_back(members_[deviant.member].rank->value);
    if (!side.place) side.place = deviant.place;
  }
  const std::uint32_t first = group.slot(out.number).descriptor;
  std::set<std::uint32_t> deviate;
  for (const Deviant& deviant : group.deviants) deviate.insert(deviant.member);
  for (const std::uint32_t index : group.members) {
    const Member& member = members_[index];
    if (member.calls > out.number && !deviate.contains(index) && member.rank)
      sides[first].ranks.push_back(member.rank->value);
  }
  const Place& place = group.places[out.number & (group.places.size() - 1)];
  if (out.number + group.places.size() > group.base + group.size) sides[first].place = place;
  for (auto& [descriptor, side] : sides) {
    std::sort(side.ranks.begin(), side.ranks.end());
    CommunicatorRow::Divergence::Side row{
        descriptors_[descriptor], side.ranks, {}, CallText(descriptors_[descriptor], op_count)};
    if (side.place) row.where = {side.place->input, side.place->line, 0, side.place->parts};
    out.sides.push_back(std::move(row));
  }
  std::sort(out.sides.begin(), out.sides.end(), [](const auto& a, const auto& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size() : a.ranks < b.ranks;
  });
  return out;
}

/// The device's number is the rank where each device of one host, from 0, has a process of its own.
bool CallLedger::NameByDevice(const Group& group, const std::vector<ProcessRow>& processes,
                              const std::vector<std::uint32_t>& communicators) {
  if (group.members.size() != static_cast<std::size_t>(group.nranks)) return false;
  const Member& first = members_[group.members.front()];
  std::vector<bool> named(group.members.size());
  for (const std::uint32_t index : group.members) {
    const Member& member = members_[index];
    if (!member.stepwise || member.first_op_count != first.first_op_count || member.process >= processes.size())
      return false;
    const ProcessRow& process = processes[member.process];
    const auto device = static_cast<std::size_t>(process.cuda_dev.value_or(-1));
    if (process.host != processes[first.process].host || device >= named.size() || named[device]) return false;
    if (communicators[member.process] != 1) return false;
    named[device] = true;
  }
  for (const std::uint32_t index : group.members)
    members_[index].rank = GroupRank{*processes[members_[index].process].cuda_dev};
  return true;
}

CommunicatorRow CallLedger::Row(const Group& group, bool named) {
  CommunicatorRow row;
  row.comm_id = group.comm_id;
  row.nranks = group.nranks;
  row.number = group.id;
  if (named) row.seen_from = members_[group.members.front()].first_op_count;
  for (const std::uint32_t index : group.members) {
    Member& member = members_[index];
    row.whole_history = row.whole_history && member.whole;
    CommunicatorRow::Member out;
    out.rank = member.rank;
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
      const bool quoted =
          !member.last_text.empty() && member.text_input == member.last_input && member.text_line == member.last_line;
      out.last_call_text = quoted ? std::move(member.last_text) : CallText(out.last_call, member.last_op_count);
      out.last_call_time = member.last_at;
    }
    row.members.push_back(std::move(out));
  }
  std::stable_sort(row.members.begin(), row.members.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  if (group.diverged_at && row.compares()) row.divergence = Sides(group, row.seen_from);
  return row;
}

std::vector<CommunicatorRow> CallLedger::Take(LeftOut& left_out, const std::vector<ProcessRow>& processes) {
  std::vector<CommunicatorRow> rows;
  rows.reserve(groups_.size());
  std::vector<std::uint32_t> communicators(processes.size());  // by process
  for (const Member& member : members_)
    if (member.process < communicators.size()) ++communicators[member.process];
  for (Group& group : groups_) {
    rows.push_back(Row(group, NameByDevice(group, processes, communicators)));
    group = {};
  }
  if (groups_left_out_ > 0) left_out["communicator"] += groups_left_out_;
  if (calls_left_out_ > 0) left_out["call"] += calls_left_out_;
  *this = CallLedger();
  return rows;
}

}  // namespace inquest
