// The proofs, the surest first: the list that a recorder kept of the group; nranks of the communicator; the elements in
// and out of a gather; the size of the job where the group is all of it. Ranks that time out are some of those in it,
// and a log of one of them is no job of one rank.
#include "replay/members.h"

#include <algorithm>
#include <limits>
#include <map>

namespace inquest {
namespace {

/// The job's ranks that are known to be in a communicator.
RankSet RanksOf(const Timeline& timeline, const CommunicatorRow& row) {
  RankSet ranks;
  for (const auto& member : row.members)
    if (const auto& rank = timeline.processes[member.process].rank) ranks.Add(rank->value.value);
  return ranks;
}

/// The numbers that ranks have in the group, by rank, as their own lines say.
std::map<int, int> NumbersIn(const CollectiveRow& row) {
  std::map<int, int> numbers;
  for (const auto& waiter : row.waiters)
    if (waiter.group_rank && waiter.known.rule != kBracketRule)
      numbers.emplace(waiter.rank.value, waiter.group_rank->value);
  return numbers;
}

/// How many ranks there are at least where one has this number; the number is a line's, and may be any.
int AtLeast(int number) { return std::min(number, std::numeric_limits<int>::max() - 1) + 1; }

class Membership {
 public:
  Membership(const Timeline& timeline, const CollectiveRef& collective, const MembersAsked& asked)
      : timeline_(timeline), collective_(collective), asked_(asked), seen_(collective.ranks_waiting) {
    seen_.Add(collective.ranks_absent);
    found_.at_least = static_cast<int>(std::min<std::uint64_t>(seen_.size(), std::numeric_limits<int>::max()));
    // They count from 0.
    if (IsDefault() && !seen_.empty()) found_.at_least = AtLeast(seen_.back());
    if (asked_.row == nullptr) return;
    for (const auto& [rank, number] : NumbersIn(*asked_.row)) {
      found_.at_least = std::max(found_.at_least, AtLeast(number));
      rank_under_.emplace(number, rank);
    }
  }

  OperationMembers Run() {
    Prove();
    if (asked_.given) Take(*asked_.given);
    if (!found_.processes.empty()) Describe();
    return std::move(found_);
  }

 private:
  const std::string& Group() const {
    static const std::string kNone;
    return collective_.process_group ? *collective_.process_group : kNone;
  }
  /// Whether ranks count in the group as in the job.
  bool IsDefault() const {
    if (!Group().empty() && Group() != "0" && Group() != "default_pg") return false;
    // Nothing tells in what numbers the ranks of a nameless group are, unless they are all there are.
    if (asked_.row == nullptr)
      return !Group().empty() || (timeline_.world_size && seen_ == RankSet::Below(timeline_.world_size->value));
    return std::ranges::all_of(asked_.row->waiters, [](const CollectiveRow::Waiter& waiter) {
      return !waiter.group_rank || waiter.known.rule == kBracketRule || waiter.group_rank->value == waiter.rank.value;
    });
  }

  void Prove() {
    if (asked_.recorded != nullptr && !asked_.recorded->ranks.empty())
      return ByList(asked_.recorded->ranks, "members of the group, as its recorders list them", RecordedAt());
    if (asked_.called_on != nullptr && asked_.called_on->nranks > 0) return ByCommunicator({asked_.called_on});
    const auto communicators = ByPlace();
    const bool of_job = IsDefault() && timeline_.world_size && timeline_.world_size->basis == Basis::kObserved &&
                        timeline_.world_size->value >= found_.at_least;
    if (of_job && (communicators.empty() || communicators.front()->nranks < timeline_.world_size->value))
      return ByJob();
    if (!communicators.empty()) return ByCommunicator(communicators);
    if (asked_.by_elements) {
      found_.count = {.value = *asked_.by_elements,
                      .basis = Basis::kDerived,
                      .rule = "number of elements out and in",
                      .at = WorkLine()};
      return InOrder();
    }
    found_.count = {.value = 0, .basis = Basis::kAssumed, .rule = "nothing in the logs says how many there are"};
  }

  void ByList(const std::vector<int>& ranks, const char* rule, std::optional<SourceLine> at) {
    found_.count = {
        .value = static_cast<int>(ranks.size()), .basis = Basis::kObserved, .rule = rule, .at = std::move(at)};
    if (!CanBePlaced()) return;
    for (const int rank : ranks) Add(rank, ProcessOf(rank));
  }

  void ByJob() {
    found_.count = {
        .value = timeline_.world_size->value, .basis = timeline_.world_size->basis, .rule = "size of the job"};
    for (const Event& event : timeline_.events)
      if (const auto* size = std::get_if<WorldSize>(&event.what);
          size != nullptr && size->size == timeline_.world_size->value) {
        found_.count.at = LineAt(timeline_, event.where);
        break;
      }
    InOrder();
  }

  /// Those of one size, that one of them is.
  void ByCommunicator(const std::vector<const CommunicatorRow*>& communicators) {
    const CommunicatorRow& first = *communicators.front();
    found_.count = {.value = first.nranks, .basis = Basis::kObserved, .rule = "nranks of the communicator"};
    for (const auto& member : first.members)
      if (const SourcePos where = member.init_at.value_or(member.last_call_at); !found_.count.at && where.line > 0)
        found_.count.at = LineAt(timeline_, where);
    if (communicators.size() > 1 || !CanBePlaced()) return;  // one of several alike
    const auto count = static_cast<std::size_t>(first.nranks);
    std::vector<const CommunicatorRow::Member*> by_rank(count);
    for (const auto& member : first.members)
      if (member.rank && static_cast<std::size_t>(member.rank->value) < count)
        by_rank[static_cast<std::size_t>(member.rank->value)] = &member;
    const bool of_job = IsDefault() && communicators.front()->nranks >= Largest();
    for (std::size_t rank = 0; rank < count; ++rank) {
      const auto* member = by_rank[rank];
      if (member == nullptr) {
        of_job ? Add(static_cast<int>(rank), ProcessOf(static_cast<int>(rank))) : Add(std::nullopt, std::nullopt);
        continue;
      }
      const auto& known = timeline_.processes[member->process].rank;
      Add(known ? std::optional(known->value.value) : RankUnder(static_cast<int>(rank)), member->process);
      if (member->init_event) Place(found_.places.back(), *member->init_event);
    }
  }

  /// The job's rank that has this number in the group, as it says itself.
  std::optional<int> RankUnder(int number) const {
    const auto found = rank_under_.find(number);
    return found == rank_under_.end() ? std::nullopt : std::optional(found->second);
  }

  int Largest() const {
    int largest = timeline_.world_size ? timeline_.world_size->value : 0;
    for (const CommunicatorRow& row : timeline_.communicators) largest = std::max(largest, row.nranks);
    return largest;
  }

  /// Communicators of one size of which one is the operation's; empty: that cannot be told.
  std::vector<const CommunicatorRow*> ByPlace() const {
    std::vector<const CommunicatorRow*> all = CommunicatorsOf(timeline_, collective_, asked_.row);
    std::erase_if(all, [](const CommunicatorRow* row) { return row->nranks <= 0; });
    if (all.empty()) return all;
    std::ranges::stable_sort(all, std::ranges::greater{}, &CommunicatorRow::nranks);
    const auto keep = [&](int nranks) {
      std::erase_if(all, [&](const CommunicatorRow* row) { return row->nranks != nranks; });
      // Communicators of the same ranks stand for one another.
      const RankSet ranks = RanksOf(timeline_, *all.front());
      if (std::ranges::all_of(all, [&](const CommunicatorRow* row) { return RanksOf(timeline_, *row) == ranks; }))
        all.resize(1);
      return all;
    };
    const auto is_exact = [&](const CommunicatorRow* row) {
      return static_cast<std::uint64_t>(row->nranks) == seen_.size() && RanksOf(timeline_, *row) == seen_;
    };
    const bool exact = std::ranges::any_of(all, is_exact);
    if (IsDefault() && !(Group().empty() && exact)) return keep(all.front()->nranks);
    if (exact) return keep(static_cast<int>(seen_.size()));
    // A group with a name of its own is seldom all of the job.
    const int smallest = all.back()->nranks, largest = Largest();
    if (std::ranges::any_of(
            all, [&](const CommunicatorRow* row) { return row->nranks != smallest && row->nranks != largest; }))
      return {};
    return keep(smallest);
  }

  /// A number that a line says takes no memory of ours.
  bool CanBePlaced() const { return found_.count.value <= kMostRanks; }

  void Add(std::optional<int> rank, std::optional<std::uint32_t> process) {
    found_.places.push_back({.rank = rank});
    found_.processes.push_back(process);
  }
  /// Ranks of the group are the job's; or they are those that are named, where all are.
  void InOrder() {
    found_.places.clear();
    found_.processes.clear();
    if (!CanBePlaced()) return;
    if (IsDefault()) {
      for (int rank = 0; rank < found_.count.value; ++rank) Add(rank, ProcessOf(rank));
    } else if (seen_.size() == static_cast<std::uint64_t>(found_.count.value)) {
      for (const int rank : seen_) Add(rank, ProcessOf(rank));
    }
  }

  /// What an option says goes before what is proved; who they are is known only where it is as many.
  void Take(int given) {
    const bool same = found_.count.value == given, proved = found_.count.value > 0;
    found_.count = {.value = given, .basis = Basis::kGiven, .rule = "--ranks"};
    if (same) return;
    found_.places.clear();
    found_.processes.clear();
    if (!proved && given >= found_.at_least) InOrder();
  }

  std::optional<std::uint32_t> ProcessOf(int rank) const {
    const RankRow* row = timeline_.FindRank(GlobalRank{rank});
    return row == nullptr ? std::nullopt : row->process;
  }

  void Place(JobPlace& place, EventIndex index) const {
    const auto* init = std::get_if<CommInit>(&timeline_.events[index].what);
    if (init == nullptr) return;
    place.bus_id = init->bus_id.value_or("");
    place.device = init->cuda_dev;
    place.at = LineAt(timeline_, timeline_.events[index].where);
  }

  void Describe() {
    std::map<std::uint32_t, EventIndex> inits;
    for (EventIndex i = 0; i < timeline_.events.size(); ++i)
      if (std::holds_alternative<CommInit>(timeline_.events[i].what))
        if (const auto process = timeline_.ProcessOf(timeline_.events[i])) inits.emplace(*process, i);
    for (std::size_t rank = 0; rank < found_.places.size(); ++rank) {
      if (!found_.processes[rank]) continue;
      JobPlace& place = found_.places[rank];
      const ProcessRow& process = timeline_.processes[*found_.processes[rank]];
      place.host = process.host.value_or("");
      if (place.at) continue;
      if (const auto init = inits.find(*found_.processes[rank]); init != inits.end()) {
        Place(place, init->second);
      } else {
        place.bus_id = process.bus_id.value_or("");
        place.device = process.cuda_dev;
      }
    }
  }

  std::optional<SourceLine> WorkLine() const {
    if (asked_.row == nullptr || asked_.row->waiters.empty()) return std::nullopt;
    return LineAt(timeline_, timeline_.events[asked_.row->waiters.front().event].where);
  }
  std::optional<SourceLine> RecordedAt() const {
    if (auto line = WorkLine()) return line;
    for (const RecordedMember& member : asked_.recorded->members)
      if (const RecordedRank* rank = timeline_.recorded->Find(member.rank); rank != nullptr && rank->last)
        return LineAt(timeline_, rank->last->where);
    return std::nullopt;
  }

  const Timeline& timeline_;
  const CollectiveRef& collective_;
  const MembersAsked& asked_;
  RankSet seen_;
  std::map<int, int> rank_under_;  ///< the job's rank by its number in the group, as it says itself
  OperationMembers found_;
};

}  // namespace

OperationMembers MembersOf(const Timeline& timeline, const CollectiveRef& collective, const MembersAsked& asked) {
  return Membership(timeline, collective, asked).Run();
}

std::optional<SourceLine> LineAt(const Timeline& timeline, const SourcePos& where) {
  if (where.input >= timeline.inputs.size()) return std::nullopt;
  return SourceLine{timeline.inputs[where.input].path, where.InputLine()};
}

std::vector<const CommunicatorRow*> CommunicatorsOf(const Timeline& timeline, const CollectiveRef& collective,
                                                    const CollectiveRow* row) {
  RankSet seen = collective.ranks_waiting, placed;
  seen.Add(collective.ranks_absent);
  std::vector<RankSet> ranks;
  for (const CommunicatorRow& communicator : timeline.communicators) {
    ranks.push_back(RanksOf(timeline, communicator));
    placed.Add(ranks.back());
  }
  const RankSet unplaced = seen.Without(placed);
  const std::uint64_t least = seen.size();
  const std::map<int, int> number_of = row != nullptr ? NumbersIn(*row) : std::map<int, int>();
  const auto fits = [&](std::size_t i, bool by_number) {
    const CommunicatorRow& communicator = timeline.communicators[i];
    if (communicator.nranks > 0 && static_cast<std::uint64_t>(communicator.nranks) < least) return false;
    const RankSet elsewhere = seen.Without(ranks[i]);
    const bool full = communicator.nranks > 0 && ranks[i].size() == static_cast<std::uint64_t>(communicator.nranks);
    if (!elsewhere.empty() && (full || unplaced != elsewhere)) return false;
    if (!by_number) return true;
    return std::ranges::all_of(communicator.members, [&](const CommunicatorRow::Member& member) {
      const auto& rank = timeline.processes[member.process].rank;
      const auto number = rank ? number_of.find(rank->value.value) : number_of.end();
      return !member.rank || number == number_of.end() || number->second == member.rank->value;
    });
  };
  std::vector<const CommunicatorRow*> found;
  for (const bool by_number : {true, false}) {  // old releases print a number that is stale
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (fits(i, by_number)) found.push_back(&timeline.communicators[i]);
    if (!found.empty()) break;
  }
  return found;
}

}  // namespace inquest
