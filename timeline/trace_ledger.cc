// Matches what the ranks' own recorders kept of their calls, dump after dump.
#include "timeline/trace_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace inquest {
namespace {

using State = CallTrace::State;

/// Slots of all groups: 64 MiB.
constexpr std::size_t kMostTraceSlots = std::size_t{1} << 22;
constexpr std::size_t kMostForms = std::size_t{1} << 16;
constexpr std::size_t kMostSites = std::size_t{1} << 16;
constexpr std::int64_t kWidestWindow = std::int64_t{1} << 20;
constexpr std::size_t kMostOpen = 64;

/// What must be equal on all members. Parts of an all-to-all, and the side of a gather or scatter that only its root
/// has, need not be.
CallForm Compared(CallForm form) {
  const bool one_sided = form.op == "gather" || form.op == "scatter";
  if (!one_sided && form.op.find("all_to_all") == std::string::npos && form.op.find("alltoall") == std::string::npos)
    return form;
  if (form.op == "gather") {
    form.outputs.clear();
  } else if (form.op == "scatter") {
    form.inputs.clear();
  } else {
    form.inputs.clear();
    form.outputs.clear();
  }
  return form;
}

Event EventOf(const Recorded& recorded, const RecordedCall& call, bool ended, const Origin& writer) {
  const RecordedGroup& group = recorded.groups[call.group];
  const CallForm& form = recorded.forms[call.form];
  CallRecorded what{.pg_name = group.name,
                    .pg_desc = group.desc,
                    .work = {},
                    .pairwise = call.pairwise,
                    .ended = ended,
                    .gave_up = call.gave_up};
  what.work.seq = SeqId{call.seq};
  what.work.op = WorkName(form.op);
  if (!form.inputs.empty()) what.work.numel_in = Elements(form.inputs);
  if (!form.outputs.empty()) what.work.numel_out = Elements(form.outputs);
  if (recorded.timeout_ms > 0) what.work.timeout_ms = recorded.timeout_ms;
  Event event;
  event.where = call.where;
  event.origin = writer;
  event.text = LineOf(recorded, call).substr(0, kCitedBytes);
  event.what = std::move(what);
  if (call.created_ns > 0) {
    Timestamp time;
    time.at = std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(call.created_ns));
    time.zone_known = true;
    time.resolution = std::chrono::microseconds(1);
    event.at = time;
  }
  return event;
}

}  // namespace

std::string GroupKey(const std::string& name, const std::vector<int>& ranks) {
  std::uint64_t hash = ranks.size();
  for (const int rank : ranks) hash = (hash ^ static_cast<std::uint64_t>(rank)) * 0x9e3779b97f4a7c15U + 1;
  return fmt::format("{}\n{:x}", name, hash);
}

std::int32_t PeerOf(const CallTrace::Call& call) { return call.to == CallTrace::Peer::kNone ? -1 : call.peer; }

std::vector<bool> OpenCalls(const CallTrace& trace) {
  using Stream = std::pair<std::uint32_t, std::int32_t>;  // group, peer
  std::vector<bool> open(trace.calls.size());
  std::map<Stream, bool> outlived;
  Stream last;
  bool* last_outlived = nullptr;
  for (std::size_t i = trace.calls.size(); i-- > 0;) {
    const CallTrace::Call& call = trace.calls[i];
    const Stream stream(call.group, PeerOf(call));
    if (last_outlived == nullptr || stream != last) {
      last_outlived = &outlived[stream];
      last = stream;
    }
    if (call.state == State::kCompleted)
      *last_outlived = true;
    else
      open[i] = !*last_outlived;
  }
  return open;
}

std::vector<Event> TraceLedger::EventsOf(GlobalRank rank, const Origin& writer) const {
  constexpr std::size_t kMost = 16;
  const RecordedRank& row = ranks_.at(rank);
  std::set<std::pair<std::uint32_t, std::optional<GlobalRank>>> lanes;
  std::vector<Event> out;
  for (const RecordedCall& call : row.open)
    if (out.size() < kMost && lanes.insert({call.group, call.peer}).second)
      out.push_back(EventOf(out_, call, false, writer));
  if (out.empty() && row.last) out.push_back(EventOf(out_, *row.last, true, writer));
  return out;
}

std::uint32_t TraceLedger::GroupOf(const CallTrace::Group& group) {
  const auto [it, is_new] =
      group_numbers_.try_emplace(GroupKey(group.name, group.ranks), static_cast<std::uint32_t>(out_.groups.size()));
  if (is_new) {
    out_.groups.emplace_back();
    out_.groups.back().name = group.name;
    out_.groups.back().ranks = group.ranks;
    groups_.emplace_back();
    members_.emplace_back();
  }
  RecordedGroup& row = out_.groups[it->second];
  if (row.desc.empty()) row.desc = group.desc;
  row.mixed = row.mixed || group.mixed;
  return it->second;
}

std::uint32_t TraceLedger::FormOf(const CallForm& form) {
  const auto [it, is_new] = form_numbers_.try_emplace(form, static_cast<std::uint32_t>(out_.forms.size()));
  if (is_new) out_.forms.push_back(form);
  return it->second;
}

/// Of calls that were launched as one.
std::uint32_t TraceLedger::FormOfBlock(const std::vector<std::uint32_t>& forms) {
  if (forms.size() == 1) return forms.front();
  const auto [it, is_new] = block_forms_.try_emplace(forms, 0);
  if (!is_new) return it->second;
  CallForm block;
  std::vector<std::pair<std::string, int>> ops;
  for (const std::uint32_t number : forms) {
    const CallForm& form = out_.forms[number];
    block.inputs.insert(block.inputs.end(), form.inputs.begin(), form.inputs.end());
    block.outputs.insert(block.outputs.end(), form.outputs.begin(), form.outputs.end());
    if (block.dtypes.empty()) block.dtypes = form.dtypes;
    if (form.op == "coalesced") continue;
    if (ops.empty() || ops.back().first != form.op) ops.emplace_back(form.op, 0);
    ++ops.back().second;
  }
  std::vector<std::string> parts;
  for (const auto& [op, count] : ops) parts.push_back(count == 1 ? op : fmt::format("{} x{}", op, count));
  block.op = fmt::format("coalesced({})", fmt::join(parts, ", "));
  return it->second = FormOf(block);
}

std::uint32_t TraceLedger::SiteOf(const std::string& site) {
  if (sites_.size() >= kMostSites) return 0;
  const auto [it, is_new] = site_numbers_.try_emplace(site, static_cast<std::uint32_t>(sites_.size()));
  if (is_new) sites_.push_back(site);
  return it->second;
}

/// nullptr: too far from all others, or too many of them.
TraceLedger::Slot* TraceLedger::SlotAt(Group& group, std::int64_t seq) {
  const auto size = static_cast<std::int64_t>(group.slots.size());
  if (size == 0) group.base = seq;
  std::int64_t front = group.base - seq, back = seq - group.base - size + 1;
  if (front <= 0 && back <= 0) return &group.slots[static_cast<std::size_t>(seq - group.base)];
  const std::int64_t more = std::max(front, back);
  if (more > kWidestWindow || size + more > kWidestWindow || slots_ + static_cast<std::size_t>(more) > kMostTraceSlots)
    return nullptr;
  slots_ += static_cast<std::size_t>(more);
  if (front > 0) {
    group.slots.insert(group.slots.begin(), static_cast<std::size_t>(front), Slot{});
    group.base = seq;
  } else {
    group.slots.resize(static_cast<std::size_t>(size + back));
  }
  return &group.slots[static_cast<std::size_t>(seq - group.base)];
}

void TraceLedger::Compare(std::uint32_t group, RecordedMember& member, std::int64_t seq, const Slot& call) {
  Slot* const slot = SlotAt(groups_[group], seq);
  if (slot == nullptr) {
    ++not_compared_;
    return;
  }
  if (slot->form == kNoForm) {
    *slot = call;
    return;
  }
  if (member.deviation && member.deviation->seq + 1 == seq) member.deviation->next_form = call.form;
  if (slot->form == call.form || member.deviation) return;
  SourcePos where = ranks_read_[call.rank].where;
  where.line = call.place;
  member.deviation = RecordedMember::Deviation{seq, call.form, std::nullopt, where, sites_[call.site]};
}

bool TraceLedger::Add(const CallTrace& trace, GlobalRank rank, const SourcePos& where) {
  const auto [reader, is_new] = ranks_.try_emplace(rank);
  if (!is_new) {
    ++not_compared_;  // an older dump of it, or a newer: which of them is of this run nobody says
    return false;
  }
  if (out_.version.empty()) out_.version = trace.version;
  RecordedRank& row = reader->second;
  row.rank = rank;
  row.input = where.input;
  row.entries = trace.entries;
  row.timed = trace.timed;
  row.torn = !trace.problem.empty();
  const auto reader_number = static_cast<std::uint32_t>(ranks_read_.size());
  ranks_read_.push_back({rank, where});
  out_.timeout_ms = std::max(out_.timeout_ms, trace.timeout_ms);

  std::vector<std::uint32_t> groups, forms, compared, sites;
  for (const CallTrace::Group& group : trace.groups) groups.push_back(GroupOf(group));
  for (const CallForm& form : trace.forms) {
    const bool room = form_numbers_.size() < kMostForms;
    forms.push_back(room ? FormOf(form) : kNoForm);
    compared.push_back(room ? FormOf(Compared(form)) : kNoForm);
  }
  for (const std::string& site : trace.sites) sites.push_back(site.empty() ? 0 : SiteOf(site));

  std::vector<bool> held(groups.size());
  for (const CallTrace::Call& call : trace.calls) held[call.group] = held[call.group] || !call.pairwise;
  const bool overwritten = !trace.calls.empty() && trace.calls.front().seq > 1;
  for (std::size_t local = 0; local < groups.size(); ++local) {
    if (held[local] || !overwritten) continue;
    const std::optional<std::int64_t>& own = trace.groups[local].last_enqueued;
    const auto lost = own                ? own
                      : trace.has_status ? trace.enqueued_elsewhere
                                         : std::numeric_limits<std::int64_t>::max();
    if (!lost) continue;
    RecordedMember& member = members_[groups[local]][rank];
    member.rank = rank;
    member.lost = lost;
  }

  // Calls of one group under one number are one.
  struct Pending {
    std::vector<std::uint32_t> forms;
    std::int64_t seq = -1;
    Slot slot;
    RecordedMember* member = nullptr;
    bool cut = false;  ///< it may be a part of what was launched as one
  };
  std::vector<Pending> pending(groups.size());
  const auto flush = [&](std::size_t local) {
    Pending& one = pending[local];
    if (one.forms.empty()) return;
    one.slot.form = FormOfBlock(one.forms);
    if (one.slot.form != kNoForm && !one.cut) Compare(groups[local], *one.member, one.seq, one.slot);
    one.forms.clear();
  };
  const std::vector<bool> open = OpenCalls(trace);
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    const CallTrace::Call& call = trace.calls[i];
    Pending& one = pending[call.group];
    if (one.member == nullptr) {
      one.member = &members_[groups[call.group]][rank];
      one.member->rank = rank;
    }
    row.latest_ns = std::max(row.latest_ns, call.created_ns);
    out_.gave_up = out_.gave_up || call.gave_up;
    if (!call.pairwise) {
      RecordedMember& member = *one.member;
      if (!member.calls || call.seq < member.first) member.first = call.seq;
      if (!member.calls || call.seq > member.last) member.last = call.seq;
      member.calls = true;
      if (!open[i]) member.last_completed = std::max(member.last_completed.value_or(call.seq), call.seq);
      if (one.seq != call.seq) {
        flush(call.group);
        one.seq = call.seq;
        one.slot = {kNoForm, call.place, reader_number, sites[call.site]};
        one.cut = false;
      }
      one.forms.push_back(compared[call.form]);
      // A ring loses its oldest, and a torn dump ends with its newest, wherever that is.
      const bool head = one.slot.place == trace.calls.front().place && call.seq > 1;
      one.cut =
          (head && (call.coalesced || one.forms.size() > 1)) || (i + 1 == trace.calls.size() && !trace.problem.empty());
    }
    const bool newest = i + 1 == trace.calls.size();
    if ((!open[i] || row.open.size() >= kMostOpen) && !newest) continue;
    RecordedCall kept;
    kept.group = groups[call.group];
    kept.form = forms[call.form] == kNoForm ? 0 : forms[call.form];
    kept.seq = call.seq;
    kept.created_ns = call.created_ns;
    kept.state = open[i] ? call.state : State::kCompleted;
    kept.to = call.to;
    const std::vector<int>& ranks = out_.groups[kept.group].ranks;
    if (call.to != CallTrace::Peer::kNone && static_cast<std::size_t>(call.peer) < ranks.size())
      kept.peer = GlobalRank{ranks[static_cast<std::size_t>(call.peer)]};
    kept.pairwise = call.pairwise;
    kept.coalesced = call.coalesced;
    kept.gave_up = call.gave_up;
    kept.where = where;
    kept.where.line = call.place;
    kept.site = trace.sites[call.site];
    if (open[i] && row.open.size() < kMostOpen) row.open.push_back(kept);
    if (newest) row.last = std::move(kept);
  }
  for (std::size_t local = 0; local < pending.size(); ++local) flush(local);
  return true;
}

/// The sides of a group's first difference. Who deviates later agreed there with whoever was read first.
void TraceLedger::Diverge(std::uint32_t number) {
  RecordedGroup& group = out_.groups[number];
  const RecordedMember::Deviation* first = nullptr;
  for (const RecordedMember& member : group.members)
    if (member.deviation && (first == nullptr || member.deviation->seq < first->seq)) first = &*member.deviation;
  if (first == nullptr || group.mixed) return;
  const std::int64_t seq = first->seq;
  RecordedGroup::Divergence out{seq, {}};
  const auto slot_at = [&](std::int64_t at) -> const Slot* {
    const auto index = static_cast<std::size_t>(at - groups_[number].base);
    return at >= groups_[number].base && index < groups_[number].slots.size() ? &groups_[number].slots[index] : nullptr;
  };
  const auto side_of = [&](std::uint32_t form) -> RecordedGroup::Divergence::Side& {
    for (auto& side : out.sides)
      if (side.form == form) return side;
    out.sides.emplace_back();
    out.sides.back().form = form;
    return out.sides.back();
  };
  const Slot& slot = *slot_at(seq);
  const Slot* const next = slot_at(seq + 1);
  for (const RecordedMember& member : group.members) {
    if (!member.calls || seq < member.first || seq > member.last) continue;
    const bool deviates = member.deviation && member.deviation->seq == seq;
    auto& side = side_of(deviates ? member.deviation->form : slot.form);
    if (side.ranks.empty() && deviates) {
      side.where = member.deviation->where;
      side.site = member.deviation->site;
      side.next_form = member.deviation->next_form;
    } else if (side.ranks.empty()) {
      side.where = ranks_read_[slot.rank].where;
      side.where.line = slot.place;
      side.site = sites_[slot.site];
      if (next != nullptr && next->form != kNoForm) side.next_form = next->form;
    }
    side.ranks.Add(member.rank.value);
  }
  std::ranges::stable_sort(out.sides, [](const auto& a, const auto& b) {
    return std::pair(b.ranks.size(), a.ranks.front()) < std::pair(a.ranks.size(), b.ranks.front());
  });
  if (out.sides.size() > 1) group.divergence = std::move(out);
}

Recorded TraceLedger::Take(LeftOut& left_out) {
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    for (auto& [rank, member] : members_[i]) out_.groups[i].members.push_back(std::move(member));
    Diverge(i);
  }
  for (auto& [rank, row] : ranks_) out_.ranks.push_back(std::move(row));
  if (not_compared_ > 0) left_out["recorded call"] += not_compared_;
  return std::move(out_);
}

}  // namespace inquest
