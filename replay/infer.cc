// Infers the arguments of a replay from a timeline: observed ones with their line, derived ones with their rule.
//
// Three places tell of an operation, each a part: NCCL's COLL lines (everything, in NCCL's own meaning of count), the
// watchdog's WorkNCCL(...) (numbers of elements in and out, but neither type nor root), and the sizes of the groups.
// What NCCL printed goes before what follows from the framework's numbers; those before what is assumed. An assumed
// type or root is not guessed once but tried: the plan lists the values.
#include "replay/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "replay/members.h"
#include "replay/ops.h"
#include "replay/settings.h"

namespace inquest {
namespace {

constexpr int kMostRootsTried = 8;

bool IsOf(const Timeline& timeline, const CollectiveRow& row, const CollectiveRef& collective) {
  const GroupRow& group = timeline.groups[row.group];
  const std::string& asked = collective.process_group.value_or("");
  const bool same_group = asked.empty() || asked == group.name || asked == group.desc;
  const bool same_seq = !collective.seq || !row.work.seq || row.work.seq->value == *collective.seq;
  return row.work.op == collective.op && same_seq && same_group;
}

/// When the first of its ranks began to wait.
std::optional<Timestamp> BegunAt(const CollectiveRow& row) {
  std::optional<Timestamp> first;
  for (const auto& waiter : row.waiters)
    if (waiter.enqueued_at && (!first || waiter.enqueued_at->at < first->at)) first = waiter.enqueued_at;
  return first;
}

/// By the numbers of one group, which its ranks count alike; by clocks where it is another group.
bool IsEarlier(const CollectiveRow& row, const CollectiveRow& than) {
  if (row.group == than.group) return row.work.seq && than.work.seq && row.work.seq->value < than.work.seq->value;
  const auto begun = BegunAt(row), other = BegunAt(than);
  return begun && other && begun->date == other->date && begun->at < other->at;
}

/// Of all that did not end, what was to end first: the others wait behind it.
const CollectiveRow* EarliestUnfinished(const Timeline& timeline, const CollectiveRef& collective) {
  const CollectiveRow* earliest = nullptr;
  for (const CollectiveRow& row : timeline.collectives)
    if (IsOf(timeline, row, collective)) {
      earliest = &row;
      break;
    }
  if (earliest == nullptr) return nullptr;
  for (const CollectiveRow& row : timeline.collectives)
    if (IsEarlier(row, *earliest)) earliest = &row;
  return earliest;
}

/// What is asked for, or the operation in front of it.
CollectiveRef RefOf(const Timeline& timeline, const CollectiveRow* row, const CollectiveRef& asked) {
  if (row == nullptr || IsOf(timeline, *row, asked)) return asked;
  CollectiveRef ref;
  ref.op = row->work.op;
  ref.numel_in = row->work.numel_in;
  ref.numel_out = row->work.numel_out;
  if (row->work.seq) ref.seq = row->work.seq->value;
  const GroupRow& group = timeline.groups[row->group];
  ref.process_group = group.desc.empty() ? group.name : group.desc;
  for (const auto& waiter : row->waiters) ref.ranks_waiting.Add(waiter.rank.value);
  // Who waits in what comes later has made this call.
  RankSet later;
  for (const CollectiveRow& other : timeline.collectives)
    if (other.group == row->group)
      for (const auto& waiter : other.waiters) later.Add(waiter.rank.value);
  if (asked.process_group == ref.process_group) ref.ranks_absent = asked.ranks_absent.Without(later);
  return ref;
}

/// The group of the operation as the ranks' own recorders have it: of several of its name, the one of those who wait.
const RecordedGroup* RecordedGroupOf(const Timeline& timeline, const CollectiveRef& collective) {
  for (const RecordedGroup& group : timeline.recorded->groups)
    if (group.name == collective.process_group && collective.ranks_waiting.Without(group.Members()).empty())
      return &group;
  return nullptr;
}

/// A communicator's call line that is of the operation, and how many of its members made it last.
struct LoggedCall {
  const CommunicatorRow* communicator = nullptr;
  CallDescriptor call;
  SourcePos where;
  std::size_t members = 0;
};

class Inference {
 public:
  Inference(const Timeline& timeline, const ToReplay& what)
      : timeline_(timeline),
        what_(what),
        row_(EarliestUnfinished(timeline, what.collective)),
        collective_(RefOf(timeline, row_, what.collective)),
        group_(RecordedGroupOf(timeline, collective_)),
        op_(FindOp(collective_.op)) {}

  Plan Run() {
    if (op_ == nullptr) {
      plan_.cannot.push_back(fmt::format("{} is no single operation that can be run again; name one with --op",
                                         collective_.op.empty() ? "what did not end" : collective_.op));
      return plan_;
    }
    plan_.operation = {.value = op_->operation, .basis = Basis::kObserved, .rule = collective_.op, .at = WorkLine()};
    // Of a group only two are in it.
    if (op_->operation == Operation::kSendRecv && collective_.ranks_waiting.size() >= 2) collective_.ranks_absent = {};
    logged_ = FindLogged();
    Ranks();
    Count();
    TypeAndReduction();
    Root();
    plan_ = WithSettings(std::move(plan_), timeline_, processes_);
    Notes();
    Cannot();
    CiteRest();
    return plan_;
  }

 private:
  std::optional<SourceLine> Line(const SourcePos& where) const { return LineAt(timeline_, where); }
  std::optional<SourceLine> WorkLine() const {
    if (row_ == nullptr || row_->waiters.empty()) return std::nullopt;
    return Line(timeline_.events[row_->waiters.front().event].where);
  }
  /// What the timeline does not place stands where the verdict cites the operation.
  void CiteRest() {
    if (!what_.cited) return;
    const auto place = [&](auto& argument) {
      if ((argument.basis == Basis::kDerived || argument.basis == Basis::kObserved) && !argument.at)
        argument.at = Line(*what_.cited);
    };
    place(plan_.operation);
    place(plan_.count);
    place(plan_.datatype);
    place(plan_.redop);
    place(plan_.root);
    place(plan_.ranks);
  }

  std::optional<std::uint64_t> In() const { return Elements(collective_.numel_in); }
  std::optional<std::uint64_t> Out() const { return Elements(collective_.numel_out); }
  /// An unknown number is printed as the largest there is.
  static std::optional<std::uint64_t> Elements(std::optional<std::int64_t> printed) {
    if (!printed || *printed < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*printed);
  }

  bool CountFits(const CallDescriptor& call) const {
    const auto wanted = op_->operation == Operation::kReduceScatter ? Out() : In();
    return !wanted || op_->operation == Operation::kAllToAll || call.count == *wanted;
  }

  /// The last call that most members of one communicator made, among those of this operation and size.
  std::optional<LoggedCall> FindLogged() const {
    std::optional<LoggedCall> best;
    for (const CommunicatorRow* row : CommunicatorsOf(timeline_, collective_, row_)) {
      if (collective_.communicator &&
          (!row->comm_id || fmt::format("0x{:x}", row->comm_id->value) != *collective_.communicator))
        continue;
      std::vector<LoggedCall> calls;
      for (const auto& member : row->members) {
        if (member.calls == 0 || FindOp(member.last_call.op) != op_ || !CountFits(member.last_call)) continue;
        const auto same = std::ranges::find(calls, member.last_call, &LoggedCall::call);
        if (same != calls.end())
          ++same->members;
        else
          calls.push_back({row, member.last_call, member.last_call_at, 1});
      }
      for (const LoggedCall& call : calls) {
        if (!best || call.members > best->members) best = call;
      }
    }
    return best;
  }

  void Ranks() {
    MembersAsked asked{.row = row_, .recorded = group_, .by_elements = RanksByRatio(), .given = what_.ranks};
    if (logged_) asked.called_on = logged_->communicator;
    OperationMembers members = MembersOf(timeline_, collective_, asked);
    if (op_->operation == Operation::kSendRecv && !what_.ranks) Pair(members);
    plan_.ranks = std::move(members.count);
    plan_.at_least = members.at_least;
    if (what_.ranks && *what_.ranks < members.at_least)
      plan_.notes.push_back(
          fmt::format("the logs name at least {} ranks, and {} are run", members.at_least, *what_.ranks));
    processes_ = std::move(members.processes);
    plan_.places.resize(members.places.size());
    for (std::size_t rank = 0; rank < members.places.size(); ++rank)
      plan_.places[rank].was = std::move(members.places[rank]);
  }

  /// The two that are named, if they are two.
  void Pair(OperationMembers& members) const {
    std::vector<JobPlace> places;
    std::vector<std::optional<std::uint32_t>> processes;
    for (std::size_t i = 0; i < members.places.size(); ++i) {
      const auto& rank = members.places[i].rank;
      if (!rank || !(collective_.ranks_waiting.contains(*rank) || collective_.ranks_absent.contains(*rank))) continue;
      places.push_back(members.places[i]);
      processes.push_back(members.processes[i]);
    }
    if (places.size() != 2) {
      places.clear();
      processes.clear();
    }
    members = {.count = {.value = 2,
                         .basis = Basis::kDerived,
                         .rule = "a send and its receive are replayed between two ranks",
                         .at = WorkLine()},
               .at_least = 2,
               .places = std::move(places),
               .processes = std::move(processes)};
  }

  std::optional<int> RanksByRatio() const {
    const bool gathers = op_->operation == Operation::kAllGather;
    if (!gathers && op_->operation != Operation::kReduceScatter) return std::nullopt;
    const auto small = gathers ? In() : Out(), large = gathers ? Out() : In();
    if (!small || !large || *small == 0 || *large % *small != 0 || *large / *small < 2 || *large / *small > 1'000'000)
      return std::nullopt;
    return static_cast<int>(*large / *small);
  }

  void Count() {
    if (op_->operation == Operation::kBarrier) return;
    if (logged_) {
      plan_.count = {.value = logged_->call.count,
                     .basis = Basis::kObserved,
                     .rule = "count of NCCL's line",
                     .at = Line(logged_->where)};
    } else if (collective_.count && *collective_.count > 0) {
      plan_.count = {
          .value = static_cast<std::uint64_t>(*collective_.count), .basis = Basis::kObserved, .rule = "count"};
    } else if (op_->operation == Operation::kReduceScatter && Out()) {
      plan_.count = {.value = *Out(), .basis = Basis::kObserved, .rule = "NumelOut", .at = WorkLine()};
    } else if (op_->operation == Operation::kAllToAll && In()) {
      EvenSplits();
    } else if (In()) {
      plan_.count = {.value = *In(), .basis = Basis::kObserved, .rule = "NumelIn", .at = WorkLine()};
    }
  }

  void EvenSplits() {
    if (plan_.ranks.value < 1) {
      plan_.count.rule = "NumelIn is that for all ranks, and nothing says how many there are";
      return;
    }
    const auto ranks = static_cast<std::uint64_t>(plan_.ranks.value);
    plan_.count = {.value = std::max<std::uint64_t>(*In() / ranks, 1),
                   .basis = Basis::kDerived,
                   .rule = "NumelIn over ranks",
                   .at = WorkLine()};
    plan_.notes.emplace_back(*In() % ranks == 0
                                 ? "the log does not print the splits of an all-to-all; they are taken as even"
                                 : "the splits of this all-to-all were not even and the log does not print them");
  }

  void TypeAndReduction() {
    if (logged_ && logged_->call.datatype >= 0 &&
        static_cast<std::size_t>(logged_->call.datatype) < kDatatypes.size()) {
      plan_.datatype = {.value = static_cast<Datatype>(logged_->call.datatype),
                        .basis = Basis::kObserved,
                        .rule = "datatype of NCCL's line",
                        .at = Line(logged_->where)};
      ObservedReduction(logged_->call.redop);
      return;
    }
    if (const auto printed = FindDatatype(collective_.dtype.value_or("")); printed) {
      plan_.datatype = {.value = *printed, .basis = Basis::kObserved, .rule = *collective_.dtype};
      return;
    }
    if (const auto usual = UsualDatatype()) {
      plan_.datatype = {.value = static_cast<Datatype>(usual->last_call.datatype),
                        .basis = Basis::kDerived,
                        .rule = "the type of the job's other calls",
                        .at = Line(usual->last_call_at)};
      return;
    }
    plan_.datatype = {.value = Datatype::kFloat32, .basis = Basis::kAssumed, .rule = "the log does not print it"};
    // A barrier's single element is a float32 in new releases; gradients and weights are one of the two.
    if (op_->operation != Operation::kBarrier && plan_.count.value > 1)
      plan_.datatype.sweep = {Datatype::kFloat32, Datatype::kBfloat16};
  }

  /// Sums above the five built-in ones are made by the program and cannot be had back.
  void ObservedReduction(std::int32_t printed) {
    if (!op_->needs_redop) return;
    if (printed >= 0 && static_cast<std::size_t>(printed) < kRedOps.size()) {
      plan_.redop = {.value = static_cast<RedOp>(printed),
                     .basis = Basis::kObserved,
                     .rule = "op of NCCL's line",
                     .at = Line(logged_->where)};
    } else {
      plan_.redop = {.value = RedOp::kSum,
                     .basis = Basis::kAssumed,
                     .rule = "the job's own reduction, as a sum",
                     .at = Line(logged_->where)};
    }
  }

  /// One that made such a call, where all calls are of one type; nullptr: they are not.
  const CommunicatorRow::Member* UsualDatatype() const {
    std::map<std::int32_t, const CommunicatorRow::Member*> types;
    for (const CommunicatorRow& row : timeline_.communicators)
      for (const auto& member : row.members)
        if (member.calls > 0 && member.last_call.count > 1 && member.last_call.datatype >= 0 &&
            static_cast<std::size_t>(member.last_call.datatype) < kDatatypes.size())
          types.emplace(member.last_call.datatype, &member);
    return types.size() == 1 ? types.begin()->second : nullptr;
  }

  void Root() {
    if (!op_->needs_root || op_->needs_peer) return;
    if (logged_) {
      plan_.root = {.value = logged_->call.root,
                    .basis = Basis::kObserved,
                    .rule = "root of NCCL's line",
                    .at = Line(logged_->where)};
    } else if (collective_.root) {
      plan_.root = {.value = *collective_.root, .basis = Basis::kObserved, .rule = "root"};
    } else if (const auto* waiter = RootOfGather()) {
      const int root = waiter->group_rank ? waiter->group_rank->value : waiter->rank.value;
      plan_.root = {.value = root,
                    .basis = Basis::kDerived,
                    .rule = "alone has elements in and out",
                    .at = Line(timeline_.events[waiter->event].where)};
    } else {
      plan_.root = {.value = 0, .basis = Basis::kAssumed, .rule = "frameworks start at 0"};
      for (int root = 0; plan_.ranks.value <= kMostRootsTried && root < plan_.ranks.value; ++root)
        plan_.root.sweep.push_back(root);
    }
  }

  /// Gathers and scatters print no elements on one side except on the root.
  const CollectiveRow::Waiter* RootOfGather() const {
    if (row_ == nullptr || (op_->operation != Operation::kGather && op_->operation != Operation::kScatter))
      return nullptr;
    const CollectiveRow::Waiter* root = nullptr;
    for (const auto& waiter : row_->waiters) {
      if (waiter.work.numel_out.value_or(0) <= 0) continue;
      if (root != nullptr) return nullptr;
      root = &waiter;
    }
    return root;
  }

  void Notes() {
    if (collective_.op.find("oalesced") != std::string::npos || collective_.op.find("COALESCED") != std::string::npos)
      plan_.notes.emplace_back("the log prints the first tensor's size only, so the count is a lower bound");
    if (op_->operation == Operation::kAllReduce && plan_.count.value == 1)
      plan_.notes.emplace_back("an all-reduce of one element is most likely a barrier");
    if (const auto nccl = timeline_.versions.find("nccl"); nccl != timeline_.versions.end() && !nccl->second.empty())
      plan_.notes.push_back(fmt::format("the job ran NCCL {}", fmt::join(nccl->second, " and ")));
  }

  void Cannot() {
    if (!collective_.ranks_absent.empty())
      plan_.cannot.push_back(fmt::format(
          "rank {} never called the operation: a replay shows whether the machines can do it, not why {} did not",
          FoldRanks(collective_.ranks_absent), collective_.ranks_absent.size() == 1 ? "that rank" : "those ranks"));
    for (const std::string& claim : what_.disagreements)
      plan_.cannot.push_back(
          fmt::format("the ranks did not all do the same, and a replay asks all of them for one call: {}", claim));
    if (const std::string elsewhere = WaitedElsewhere(); !elsewhere.empty()) plan_.cannot.push_back(elsewhere);
    if (!what_.disagreements.empty()) return;
    if (group_ != nullptr && group_->divergence && collective_.seq == group_->divergence->seq)
      plan_.cannot.push_back(fmt::format(
          "the ranks called different things under number {} of the group: one call of all of them passes, which "
          "acquits the machines and not the program",
          group_->divergence->seq));
    const bool called_otherwise = std::ranges::any_of(
        timeline_.communicators, [](const CommunicatorRow& row) { return row.divergence.has_value(); });
    if (called_otherwise || AskedOtherwise())
      plan_.cannot.emplace_back(
          "the ranks asked for different calls: that is in the program, and a replay asks all ranks for the same");
  }

  /// In the operations of which each rank prints its own sizes all the same, others are a mismatch.
  bool AskedOtherwise() const {
    if (row_ == nullptr) return false;
    const bool alike = op_->operation == Operation::kAllReduce || op_->operation == Operation::kBroadcast ||
                       op_->operation == Operation::kReduce;
    return std::ranges::any_of(row_->waiters, [&](const CollectiveRow::Waiter& waiter) {
      return FindOp(waiter.work.op) != op_ || (alike && waiter.work.numel_in != row_->work.numel_in);
    });
  }

  /// Ranks of the group that had gone on, or were to be somewhere else.
  std::string WaitedElsewhere() const {
    if (row_ == nullptr) return "";
    for (const CollectiveRow& other : timeline_.collectives) {
      if (&other == row_ || other.group != row_->group) continue;
      std::vector<int> ranks;
      for (const auto& waiter : other.waiters)
        if (!collective_.ranks_waiting.contains(waiter.rank.value)) ranks.push_back(waiter.rank.value);
      if (ranks.empty()) continue;
      return fmt::format(
          "the ranks were at different operations: rank {} waited in {}{}, and a replay asks all ranks for one call",
          FoldRanks(ranks), other.work.op, other.work.seq ? fmt::format(" #{}", other.work.seq->value) : "");
    }
    return "";
  }

  const Timeline& timeline_;
  const ToReplay& what_;
  const CollectiveRow* row_;
  CollectiveRef collective_;
  const RecordedGroup* group_;
  const ReplayOp* op_;
  std::optional<LoggedCall> logged_;
  std::vector<std::optional<std::uint32_t>> processes_;  ///< by rank, beside the plan's places
  Plan plan_;
};

}  // namespace

Plan PlanFrom(const Timeline& timeline, const ToReplay& what) { return Inference(timeline, what).Run(); }

bool TellsOfDisagreement(std::string_view cause, bool weighs, const CollectiveRef& collective) {
  if (cause == "collective-mismatch") return true;
  // Ranks that never came are named from the operation itself, where that is known.
  return cause == "rank-absent" && weighs && collective.ranks_absent.empty();
}

std::string CommandLine(const Plan& plan) {
  if (plan.ranks.value < 2 || WhyNotRunnable(plan)) return "";
  std::string command = "inquest replay";
  for (const ArgumentLine& argument : Arguments(plan)) {
    if (argument.basis > Basis::kAssumed) command += fmt::format(" --{} {}", argument.name, argument.value);
  }
  return command;
}

}  // namespace inquest
