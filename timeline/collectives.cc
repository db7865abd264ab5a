// What timed out, matched over its participants: process groups and the operations that did not end.
#include "timeline/collectives.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "timeline/agreement.h"

namespace inquest {
namespace {

/// A rank's status line follows its time-out within a few events of its own.
constexpr EventIndex kStatusWithin = 1024;

std::string GroupName(const GroupStatus& status) { return !status.pg_guid.empty() ? status.pg_guid : status.pg_id; }

/// `[rankN]:` is global and decides; `[Rank n]` of WorkNCCL is the group's, and stands in only where nothing else does.
std::optional<Known<GlobalRank>> Who(const Timeline& timeline, const Event& event,
                                     std::optional<GroupRank> group_rank) {
  if (auto rank = timeline.RankOf(event)) return rank;
  if (group_rank) return Known<GlobalRank>{GlobalRank{group_rank->value}, Basis::kDerived, kBracketRule};
  return std::nullopt;
}

/// Process groups by name.
using Numbers = std::map<std::string, std::uint32_t>;

std::uint32_t GroupIndex(Timeline& timeline, Numbers& numbers, const std::string& name, const std::string& desc) {
  const auto [it, is_new] = numbers.try_emplace(name, static_cast<std::uint32_t>(timeline.groups.size()));
  if (is_new) timeline.groups.push_back({name, desc, {}, {}});
  GroupRow& group = timeline.groups[it->second];
  if (group.desc.empty()) group.desc = desc;
  return it->second;
}

/// Groups, by name and description, in which a rank says that its work of a number failed: all, and by the line.
struct FailedWork {
  std::set<std::pair<std::string, std::string>> groups;
  std::map<EventIndex, const std::pair<std::string, std::string>*> by_event;
};
using Failed = std::map<std::pair<GlobalRank, std::int64_t>, FailedWork>;

Failed ReadStatuses(Timeline& timeline, Numbers& numbers) {
  Failed failed;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* status = std::get_if<GroupStatus>(&timeline.events[i].what);
    if (status == nullptr) continue;
    const auto rank = Who(timeline, timeline.events[i], status->group_rank);
    if (!rank) continue;
    GroupRow& group = timeline.groups[GroupIndex(timeline, numbers, GroupName(*status), status->pg_desc)];
    GroupRow::Member& member = group.members[rank->value];
    if (status->group_rank) member.group_rank = status->group_rank;
    if (status->failed_work) member.failed_work = status->failed_work;
    if (status->last_enqueued) member.last_enqueued = status->last_enqueued;
    if (status->last_completed) member.last_completed = status->last_completed;
    member.status_event = i;
    if (!status->failed_work) continue;
    FailedWork& work = failed[{rank->value, *status->failed_work}];
    work.by_event[i] = &*work.groups.insert({GroupName(*status), status->pg_desc}).first;
  }
  return failed;
}

/// The process group of a time-out: that of the same rank's status line about the same work, the nearest after it;
/// where that stands in another file, the only one that the rank's lines name.
std::pair<std::string, std::string> GroupOf(const Failed& failed, EventIndex at, const Known<GlobalRank>& rank,
                                            const WorkTimedOut& work) {
  const auto known = work.work.seq ? failed.find({rank.value, work.work.seq->value}) : failed.end();
  if (known == failed.end()) return {};
  const auto& [groups, by_event] = known->second;
  const auto next = by_event.lower_bound(at);
  if (next != by_event.end() && next->first < at + kStatusWithin) return *next->second;
  return groups.size() == 1 ? *groups.begin() : std::pair<std::string, std::string>();
}

/// Who is in a group, and how far each had come, as the ranks' own recorders have it. Two groups of one name with other
/// members are one here, and nothing is known of it.
void ReadRecorded(Timeline& timeline, Numbers& numbers) {
  if (!timeline.recorded_fits) return;
  std::map<std::string_view, int> names;
  for (const RecordedGroup& group : timeline.recorded->groups) ++names[group.name];
  for (const RecordedGroup& recorded : timeline.recorded->groups) {
    if (names[recorded.name] > 1 || recorded.source != RecordedGroup::Source::kRecorders) continue;
    GroupRow& group = timeline.groups[GroupIndex(timeline, numbers, recorded.name, recorded.desc)];
    if (!recorded.ranks.empty()) group.declared = RankSet::Of(recorded.ranks);
    for (const RecordedMember& member : recorded.members) {
      if (!member.calls) continue;
      GroupRow::Member& row = group.members[member.rank];
      row.last_enqueued = std::max(row.last_enqueued.value_or(member.last), member.last);
      if (member.last_completed && !row.last_completed) row.last_completed = member.last_completed;
    }
  }
}

/// A time-out, or a call that had not ended when its rank's recorder was dumped.
struct Wait {
  Known<GlobalRank> rank;
  WorkTimedOut work;
  std::string group, desc;
};

std::optional<Wait> WaitOf(const Timeline& timeline, const Failed& failed, EventIndex at) {
  const Event& event = timeline.events[at];
  if (const auto* call = std::get_if<CallRecorded>(&event.what)) {
    const auto rank = timeline.RankOf(event);
    if (call->ended || call->pairwise || !rank || !timeline.recorded_fits || !timeline.recorded->Hung())
      return std::nullopt;
    return Wait{*rank,
                {.how = WorkTimedOut::How::kQuoted, .group_rank = {}, .work = call->work, .ran_ms = {}},
                call->pg_name,
                call->pg_desc};
  }
  const auto* work = std::get_if<WorkTimedOut>(&event.what);
  if (work == nullptr) return std::nullopt;
  const auto rank = Who(timeline, event, work->group_rank);
  if (!rank) return std::nullopt;
  auto [name, desc] = GroupOf(failed, at, *rank, *work);
  return Wait{*rank, *work, std::move(name), std::move(desc)};
}

/// By group and number.
using Rows = std::map<std::tuple<std::uint32_t, std::optional<SeqId>>, CollectiveRow>;

/// nullopt: none is named, or several are.
std::optional<std::uint32_t> OnlyNamedGroup(const Timeline& timeline) {
  std::optional<std::uint32_t> only;
  for (std::uint32_t i = 0; i < timeline.groups.size(); ++i) {
    if (timeline.groups[i].name.empty()) continue;
    if (only) return std::nullopt;
    only = i;
  }
  return only;
}

/// A number that two groups do not share by chance.
bool IsHigh(SeqId seq) {
  constexpr std::int64_t kByChance = 64;
  return seq.value > kByChance;
}

/// A waiter whose group no line names waits with those of the one named group that waits in the same operation; where
/// only the default group is named at all, with those at the same number, if it is one that two groups do not share by
/// chance.
void JoinUnnamed(const Timeline& timeline, Rows& rows) {
  const auto only = OnlyNamedGroup(timeline);
  const bool by_numbers = only && timeline.groups[*only].is_default();
  std::multimap<std::optional<SeqId>, CollectiveRow*> named;
  for (auto& [key, row] : rows)
    if (!timeline.groups[row.group].name.empty()) named.emplace(std::get<1>(key), &row);
  for (auto& [key, row] : rows) {
    if (!timeline.groups[row.group].name.empty() || named.count(std::get<1>(key)) != 1) continue;
    CollectiveRow* const home = named.find(std::get<1>(key))->second;
    std::set<GlobalRank> there;
    for (const auto& waiter : home->waiters) there.insert(waiter.rank);
    const std::optional<SeqId>& seq = std::get<1>(key);
    const bool by_number = by_numbers && seq && IsHigh(*seq);
    const auto is_same = [&](const CollectiveRow::Waiter& waiter) {
      return waiter.work.op == home->waiters.front().work.op &&
             waiter.work.numel_in == home->waiters.front().work.numel_in;
    };
    const auto joins = [&](const CollectiveRow::Waiter& waiter) {
      return (is_same(waiter) || (by_number && !waiter.work.op.empty() && waiter.work.numel_in)) &&
             !there.contains(waiter.rank);
    };
    std::vector<CollectiveRow::Waiter> joining;
    std::copy_if(row.waiters.begin(), row.waiters.end(), std::back_inserter(joining), joins);
    std::erase_if(row.waiters, joins);
    home->guessed = home->guessed || !std::ranges::all_of(joining, is_same);
    home->waiters.insert(home->waiters.end(), joining.begin(), joining.end());
  }
}

/// Some rank's status of the group is that of a wait in this number: it stands in it, or in front of it.
bool StandsAt(const GroupRow& group, SeqId seq) {
  return std::ranges::any_of(group.members, [&](const auto& member) {
    const GroupRow::Member& rank = member.second;
    return rank.last_enqueued && rank.last_completed && *rank.last_enqueued >= seq.value - 1 &&
           *rank.last_completed < seq.value;
  });
}

/// Where the lines that name the group of a wait are left out, and those of other ranks name but one, and stand where
/// the wait does: it is that one. So it is, at a guess, if they stand near, that group is the job's, and the numbers
/// are high.
void NameByStatus(const Timeline& timeline, Rows& rows) {
  const auto only = OnlyNamedGroup(timeline);
  if (!only) return;
  const GroupRow& group = timeline.groups[*only];
  const auto stands_near = [&](SeqId seq) {
    constexpr std::int64_t kNear = 16;
    if (!group.is_default() || !IsHigh(seq)) return false;
    const auto next = rows.lower_bound({*only, SeqId{seq.value - kNear}});
    return next != rows.end() && std::get<0>(next->first) == *only &&
           std::get<1>(next->first)->value <= seq.value + kNear;
  };
  for (auto& [key, row] : rows) {
    const std::optional<SeqId>& seq = std::get<1>(key);
    if (!timeline.groups[row.group].name.empty() || !seq || rows.contains({*only, seq})) continue;
    const bool stands_at = StandsAt(group, *seq);
    if (!stands_at && !stands_near(*seq)) continue;
    row.group = *only;
    row.guessed = row.guessed || !stands_at;
  }
}

CollectiveRow::Waiter WaiterOf(const Event& event, EventIndex index, const Known<GlobalRank>& rank,
                               const WorkTimedOut& work) {
  CollectiveRow::Waiter waiter;
  waiter.rank = rank.value;
  waiter.known = rank;
  waiter.group_rank = work.group_rank;
  waiter.work = work.work;
  waiter.ran_ms = work.ran_ms;
  waiter.event = index;
  waiter.at = event.at;
  if (event.at && work.ran_ms) {
    waiter.enqueued_at = event.at;
    waiter.enqueued_at->at -= std::chrono::milliseconds(*work.ran_ms);
  }
  return waiter;
}

/// Where no line of a wait is given, only those of the ranks that were told of one and dumped what they knew: who had
/// enqueued more than had ended waits in the first that no rank had ended, and so does who gave the signal.
void AddSignalled(const Timeline& timeline, Rows& rows, std::vector<Rows::key_type>& order) {
  if (!rows.empty()) return;
  std::map<SourcePos, EventIndex> signals;
  for (EventIndex i = 0; i < timeline.events.size(); ++i)
    if (std::holds_alternative<DumpSignal>(timeline.events[i].what)) signals.emplace(timeline.events[i].where, i);
  if (signals.empty()) return;
  for (std::uint32_t i = 0; i < timeline.groups.size(); ++i) {
    std::vector<std::pair<GlobalRank, const GroupRow::Member*>> told;
    for (const auto& [rank, member] : timeline.groups[i].members)
      if (member.status_event && member.last_enqueued && member.last_completed &&
          signals.contains(timeline.events[*member.status_event].where))
        told.push_back({rank, &member});
    if (told.empty()) continue;
    std::int64_t ended = -1;
    for (const auto& [rank, member] : told) ended = std::max(ended, *member->last_completed);
    CollectiveRow row;
    row.group = i;
    row.whole = false;
    WorkTimedOut wait;
    row.work.seq = wait.work.seq = SeqId{ended + 1};
    std::map<GlobalRank, EventIndex> waiting;
    for (const auto& [rank, member] : told)
      if (*member->last_enqueued > ended) waiting.emplace(rank, *member->status_event);
    if (waiting.empty()) continue;
    for (const auto& [where, signal] : signals)
      if (const auto from = std::get<DumpSignal>(timeline.events[signal].what).from) waiting.emplace(*from, signal);
    for (const auto& [rank, event] : waiting)
      row.waiters.push_back(WaiterOf(timeline.events[event], event, {.value = rank}, wait));
    order.push_back({i, row.work.seq});
    rows.emplace(order.back(), std::move(row));
  }
}

/// The fields that most waiters printed; ties go to who timed out first.
WorkFields Majority(const std::vector<CollectiveRow::Waiter>& waiters) {
  using Fields = std::tuple<std::string, std::optional<std::int64_t>, std::optional<std::int64_t>>;
  const auto fields_of = [](const CollectiveRow::Waiter& waiter) {
    return Fields(waiter.work.op, waiter.work.numel_in, waiter.work.numel_out);
  };
  std::map<Fields, std::pair<int, const WorkFields*>> votes;
  for (const auto& waiter : waiters) {
    auto& vote = votes[fields_of(waiter)];
    if (vote.first++ == 0) vote.second = &waiter.work;
  }
  std::vector<const CollectiveRow::Waiter*> by_event;
  for (const auto& waiter : waiters) by_event.push_back(&waiter);
  std::sort(by_event.begin(), by_event.end(), [](const auto* a, const auto* b) { return a->event < b->event; });
  const std::pair<int, const WorkFields*>* best = nullptr;
  for (const auto* waiter : by_event) {
    const auto& vote = votes[fields_of(*waiter)];
    if (best == nullptr || vote.first > best->first) best = &vote;
  }
  return best != nullptr ? *best->second : WorkFields{};
}

}  // namespace

void MatchWork(Timeline& timeline) {
  Numbers numbers;
  const Failed failed = ReadStatuses(timeline, numbers);
  Rows rows;
  std::set<std::tuple<std::optional<SeqId>, GlobalRank, std::string>> waiting;  ///< number, rank and operation
  std::map<Rows::key_type, std::set<GlobalRank>> waiters_of;
  std::vector<Rows::key_type> order;
  timeline.recorded_fits = !HoldTogether(timeline).of_another_run();
  ReadRecorded(timeline, numbers);
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto wait = WaitOf(timeline, failed, i);
    if (!wait) continue;
    const auto& [rank, work, name, desc] = *wait;
    const std::optional<SeqId> seq = work.work.seq;
    if (name.empty() && waiting.contains({seq, rank.value, work.work.op}))
      continue;  // `what():` and "terminated with exception" repeat the first line
    const std::tuple key(GroupIndex(timeline, numbers, name, desc), seq);
    const auto [it, is_new] = rows.try_emplace(key);
    if (is_new) {
      order.push_back(key);
      it->second.group = std::get<0>(key);
    }
    if (!waiters_of[key].insert(rank.value).second) continue;
    waiting.insert({seq, rank.value, work.work.op});
    it->second.waiters.push_back(WaiterOf(timeline.events[i], i, rank, work));
  }
  JoinUnnamed(timeline, rows);
  NameByStatus(timeline, rows);
  AddSignalled(timeline, rows, order);
  for (const auto& key : order) {
    CollectiveRow& row = rows[key];
    if (row.waiters.empty()) continue;
    std::sort(row.waiters.begin(), row.waiters.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    row.work = Majority(row.waiters);
    row.recorded = std::ranges::all_of(row.waiters, [&](const CollectiveRow::Waiter& waiter) {
      return std::holds_alternative<CallRecorded>(timeline.events[waiter.event].what);
    });
    row.whole = row.whole && !timeline.waits_left_out.MayHold(HashOfWait(std::get<1>(key))) &&
                !timeline.left_out.contains(HeartbeatLost::kKind);
    timeline.collectives.push_back(std::move(row));
  }
  // What was enqueued first is what stood first; where some clock is missing, the first to speak goes first.
  const auto enqueued = [](const CollectiveRow& row) {
    std::optional<Timestamp> first;
    for (const auto& waiter : row.waiters)
      if (waiter.enqueued_at && (!first || waiter.enqueued_at->at < first->at)) first = waiter.enqueued_at;
    return first;
  };
  const bool timed = std::all_of(timeline.collectives.begin(), timeline.collectives.end(),
                                 [&](const CollectiveRow& row) { return enqueued(row).has_value(); });
  if (timed)
    std::stable_sort(timeline.collectives.begin(), timeline.collectives.end(),
                     [&](const auto& a, const auto& b) { return enqueued(a)->at < enqueued(b)->at; });
}

}  // namespace inquest
