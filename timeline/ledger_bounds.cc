// What the ledger forgets so that its memory has a bound whatever a log says: see KeptEvents for the rule.
#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "timeline/ledger.h"

namespace inquest {

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
    if (group.diverged_at && group.base + group.size > *group.diverged_at)
      group.size = *group.diverged_at + 1 - std::min(group.base, *group.diverged_at + 1);
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
  for (const auto& [pointer, member] : member_by_pointer_)
    by_pointer[{numbers[pointer.first], pointer.second}] = member;
  member_by_pointer_ = std::move(by_pointer);
  decltype(children_) children;
  for (const auto& [child, ordinal] : children_)
    if (numbers[child.first] != kUnmapped) children[{numbers[child.first], child.second}] = ordinal;
  children_ = std::move(children);
  ++generation_;
}

void CallLedger::Thin(std::size_t most) {
  struct Weight {
    std::uint32_t group = 0;
    std::uint64_t touched = 0, calls = 0, bytes = 0;
  };
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
  take(most / 2, [](const Weight& a, const Weight& b) {
    return a.touched != b.touched ? a.touched > b.touched : a.group < b.group;
  });
  take(most,
       [](const Weight& a, const Weight& b) { return a.calls != b.calls ? a.calls > b.calls : a.group < b.group; });

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
