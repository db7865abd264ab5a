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

#include "replay/ops.h"

namespace inquest {
namespace {

constexpr int kMostRootsTried = 8;

/// The operation that timed out, if it is the one meant.
const CollectiveRow* RowFor(const Timeline& timeline, const CollectiveRef& collective) {
  for (const CollectiveRow& row : timeline.collectives) {
    const bool same_seq = !collective.seq || !row.work.seq || row.work.seq->value == *collective.seq;
    if (row.work.op == collective.op && same_seq) return &row;
  }
  return nullptr;
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
  Inference(const Timeline& timeline, const CollectiveRef& collective)
      : timeline_(timeline),
        collective_(collective),
        row_(RowFor(timeline, collective)),
        group_(RecordedGroupOf(timeline, collective)),
        op_(FindOp(collective.op)) {}

  Plan Run() {
    if (op_ == nullptr) {
      plan_.cannot.push_back(fmt::format("{} is no single operation that can be run again; name one with --op",
                                         collective_.op.empty() ? "what did not end" : collective_.op));
      return plan_;
    }
    plan_.operation = {.value = op_->operation, .basis = Basis::kObserved, .rule = collective_.op, .at = WorkLine()};
    logged_ = FindLogged();
    Ranks();
    Count();
    TypeAndReduction();
    Root();
    Environment();
    Notes();
    return plan_;
  }

 private:
  std::optional<SourceLine> Line(const SourcePos& where) const {
    if (where.input >= timeline_.inputs.size()) return std::nullopt;
    return SourceLine{timeline_.inputs[where.input].path, where.InputLine()};
  }
  std::optional<SourceLine> WorkLine() const {
    if (row_ == nullptr || row_->waiters.empty()) return std::nullopt;
    return Line(timeline_.events[row_->waiters.front().event].where);
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
    for (const CommunicatorRow& row : timeline_.communicators) {
      if (collective_.communicator &&
          (!row.comm_id || fmt::format("0x{:x}", row.comm_id->value) != *collective_.communicator))
        continue;
      std::vector<LoggedCall> calls;
      for (const auto& member : row.members) {
        if (member.calls == 0 || FindOp(member.last_call.op) != op_ || !CountFits(member.last_call)) continue;
        const auto same = std::ranges::find(calls, member.last_call, &LoggedCall::call);
        if (same != calls.end())
          ++same->members;
        else
          calls.push_back({&row, member.last_call, member.last_call_at, 1});
      }
      for (const LoggedCall& call : calls) {
        if (!best || call.members > best->members) best = call;
      }
    }
    return best;
  }

  void Ranks() {
    RankSet seen = collective_.ranks_waiting;
    seen.Add(collective_.ranks_absent);
    if (op_->operation == Operation::kSendRecv) {
      plan_.ranks = {
          .value = 2, .basis = Basis::kDerived, .rule = "a send and its receive are replayed between two ranks"};
    } else if (logged_ && logged_->communicator->nranks > 0) {
      plan_.ranks = {.value = logged_->communicator->nranks,
                     .basis = Basis::kObserved,
                     .rule = "nranks of the communicator",
                     .at = Line(logged_->where)};
    } else if (group_ != nullptr && !group_->ranks.empty()) {
      plan_.ranks = {.value = static_cast<int>(group_->ranks.size()),
                     .basis = Basis::kObserved,
                     .rule = "members of the group, as its recorders list them",
                     .at = WorkLine()};
    } else if (const auto ratio = RanksByRatio()) {
      plan_.ranks = {
          .value = *ratio, .basis = Basis::kDerived, .rule = "number of elements out and in", .at = WorkLine()};
    } else if (IsDefaultGroup() && timeline_.world_size &&
               timeline_.world_size->value >= static_cast<int>(seen.size())) {
      plan_.ranks = {
          .value = timeline_.world_size->value, .basis = timeline_.world_size->basis, .rule = "size of the job"};
    } else {
      plan_.ranks = {.value = static_cast<int>(seen.size()),
                     .basis = Basis::kDerived,
                     .rule = "ranks that the logs name for it",
                     .at = WorkLine()};
    }
  }

  bool IsDefaultGroup() const {
    const std::string group = collective_.process_group.value_or("");
    return group.empty() || group == "0" || group == "default_pg";
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
    const auto ranks = static_cast<std::uint64_t>(std::max(plan_.ranks.value, 1));
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
      plan_.datatype = {.value = *usual, .basis = Basis::kDerived, .rule = "the type of the job's other calls"};
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

  std::optional<Datatype> UsualDatatype() const {
    std::map<std::int32_t, std::size_t> votes;
    for (const CommunicatorRow& row : timeline_.communicators)
      for (const auto& member : row.members)
        if (member.calls > 0 && member.last_call.count > 1 && member.last_call.datatype >= 0 &&
            static_cast<std::size_t>(member.last_call.datatype) < kDatatypes.size())
          ++votes[member.last_call.datatype];
    if (votes.size() != 1) return std::nullopt;
    return static_cast<Datatype>(votes.begin()->first);
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

  /// What the job set for NCCL and all ranks that print it agree on. What makes NCCL load code or touch files is named
  /// and left to the user: a log could come from anywhere.
  void Environment() {
    std::map<std::string, std::set<std::string>> values;
    for (const Event& event : timeline_.events) {
      const auto* set = std::get_if<EnvironmentSet>(&event.what);
      if (set != nullptr && set->name.starts_with("NCCL_") && !IsOfTheRun(set->name))
        values[set->name].insert(set->value);
    }
    for (const auto& [name, seen] : values) {
      if (seen.size() > 1)
        plan_.notes.push_back(fmt::format("the ranks set {} differently; the replay leaves it alone", name));
      else if (NamesFile(name))
        plan_.notes.push_back(
            fmt::format("the job set {}={}; set it yourself if the replay shall too", name, *seen.begin()));
      else
        plan_.env[name] = *seen.begin();
    }
  }

  static bool IsOfTheRun(std::string_view name) {
    return name.starts_with("NCCL_DEBUG") || name == "NCCL_HOSTID" || name == "NCCL_COMM_ID";
  }
  static bool NamesFile(std::string_view name) {
    return name.ends_with("_PLUGIN") || name.ends_with("_FILE") || name.ends_with("_PATH") ||
           name.ends_with("_LIBRARY") || name.ends_with("_LIB");
  }

  void Notes() {
    if (collective_.op.find("oalesced") != std::string::npos || collective_.op.find("COALESCED") != std::string::npos)
      plan_.notes.emplace_back("the log prints the first tensor's size only, so the count is a lower bound");
    if (op_->operation == Operation::kAllReduce && plan_.count.value == 1)
      plan_.notes.emplace_back("an all-reduce of one element is most likely a barrier");
    if (const auto nccl = timeline_.versions.find("nccl"); nccl != timeline_.versions.end() && !nccl->second.empty())
      plan_.notes.push_back(fmt::format("the job ran NCCL {}", fmt::join(nccl->second, " and ")));
    if (group_ != nullptr && group_->divergence && collective_.seq == group_->divergence->seq)
      plan_.cannot.push_back(fmt::format(
          "the ranks called different things under number {} of the group: one call of all of them passes, which "
          "acquits the machines and not the program",
          group_->divergence->seq));
    if (!collective_.ranks_absent.empty())
      plan_.cannot.push_back(fmt::format(
          "rank {} never called the operation: a replay shows whether the machines can do it, not why {} did not",
          FoldRanks(collective_.ranks_absent), collective_.ranks_absent.size() == 1 ? "that rank" : "those ranks"));
    const bool differs = std::ranges::any_of(timeline_.communicators,
                                             [](const CommunicatorRow& row) { return row.divergence.has_value(); });
    if (differs)
      plan_.cannot.emplace_back(
          "the ranks asked for different calls: that is in the program, and a replay asks all ranks for the same");
  }

  const Timeline& timeline_;
  const CollectiveRef& collective_;
  const CollectiveRow* row_;
  const RecordedGroup* group_;
  const ReplayOp* op_;
  std::optional<LoggedCall> logged_;
  Plan plan_;
};

}  // namespace

Plan PlanFrom(const Timeline& timeline, const CollectiveRef& collective) {
  return Inference(timeline, collective).Run();
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
