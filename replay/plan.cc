// Plans: combinations of what is not known, what options replace, and what a reader is told of every argument.
#include "replay/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "replay/ops.h"

namespace inquest {
namespace {

constexpr int kMostRanksOfGloo =
    256;  ///< it connects each rank with each, and its list of all addresses has to fit into a packet of wire.h

template <class T>
void Give(Argument<T>& argument, const std::optional<T>& value, const char* option) {
  if (value) argument = {.value = *value, .basis = Basis::kGiven, .rule = option};
}

template <class T>
std::vector<T> Values(const Argument<T>& argument) {
  return argument.sweep.empty() ? std::vector<T>{argument.value} : argument.sweep;
}

template <class T>
void Fix(Argument<T>& argument, const T& value) {
  argument.value = value;
  argument.sweep.clear();
}

template <class T>
std::string Origin(const Argument<T>& argument) {
  std::string text;
  if (argument.basis == Basis::kGiven)
    text = fmt::format("given by {}", argument.rule);
  else
    text = argument.rule.empty() ? std::string(Name(argument.basis))
                                 : fmt::format("{}: {}", Name(argument.basis), argument.rule);
  if (argument.at) text += fmt::format(", {}:{}", argument.at->path, argument.at->line);
  return text;
}

template <class T, class Print>
ArgumentLine LineOf(std::string_view name, const Argument<T>& argument, Print print) {
  ArgumentLine line{
      .name = name, .value = print(argument.value), .origin = Origin(argument), .basis = argument.basis, .sweep = {}};
  for (const T& value : argument.sweep) line.sweep.push_back(print(value));
  return line;
}

}  // namespace

Call CallOf(const Plan& plan) {
  const ReplayOp& op = RowOf(plan.operation.value);
  Call call{.operation = op.operation, .datatype = plan.datatype.value, .in_place = plan.in_place.value};
  call.count = op.operation == Operation::kBarrier ? 1 : plan.count.value;
  if (op.needs_redop) call.redop = plan.redop.value;
  if (op.needs_root) call.root = plan.root.value;
  if (op.needs_peer) call.peer = plan.peer.value;
  if (op.operation == Operation::kAllToAll) call.splits = plan.splits;
  return call;
}

std::string TitleOf(const Plan& plan) { return plan.sequence ? Describe(*plan.sequence) : Describe(CallOf(plan)); }

Sequence SequenceOf(const Plan& plan) {
  if (plan.sequence) return *plan.sequence;
  Sequence one{.communicators = {{.name = "all ranks", .ranks = {}}}, .calls = {CallOf(plan)}, .steps = {}, .rule = ""};
  for (int rank = 0; rank < plan.ranks.value; ++rank) {
    one.communicators[0].ranks.push_back(rank);
    const bool takes_part =
        plan.operation.value != Operation::kSendRecv || rank == one.calls[0].root || rank == one.calls[0].peer;
    one.steps.push_back(takes_part ? std::vector{SequenceStep{}} : std::vector<SequenceStep>());
  }
  Complete(one);
  return one;
}

std::vector<Plan> Combinations(const Plan& plan, std::size_t limit) {
  if (plan.sequence) return {plan};
  const ReplayOp& op = RowOf(plan.operation.value);
  std::vector<Plan> plans;
  for (const int root : op.needs_root ? Values(plan.root) : std::vector{plan.root.value}) {
    for (const RedOp redop : op.needs_redop ? Values(plan.redop) : std::vector{plan.redop.value}) {
      for (const Datatype datatype : Values(plan.datatype)) {
        if (plans.size() == limit) return plans;
        Plan one = plan;
        Fix(one.root, root);
        Fix(one.redop, redop);
        Fix(one.datatype, datatype);
        plans.push_back(std::move(one));
      }
    }
  }
  return plans;
}

Plan WithGiven(Plan plan, const GivenArguments& given) {
  Give(plan.operation, given.operation, "--op");
  Give(plan.count, given.count, "--count");
  Give(plan.datatype, given.datatype, "--dtype");
  Give(plan.redop, given.redop, "--redop");
  Give(plan.root, given.root, "--root");
  Give(plan.peer, given.peer, "--peer");
  Give(plan.ranks, given.ranks, "--ranks");
  return plan;
}

std::optional<Error> WhyNotRunnable(const Plan& plan) {
  if (plan.ranks.value < 1)
    return Error{plan.at_least > 0
                     ? fmt::format("the number of ranks is not known: at least {}, which the logs name", plan.at_least)
                     : "the number of ranks is not known",
                 "give --ranks", ""};
  if (plan.ranks.basis != Basis::kGiven && plan.ranks.value < plan.at_least)
    return Error{fmt::format("{} ranks would be run ({}), and the logs name {}", plan.ranks.value, plan.ranks.rule,
                             plan.at_least),
                 "give --ranks", ""};
  const int most = plan.engine == "gloo" ? kMostRanksOfGloo : kMostRanks;
  if (plan.ranks.value > most)
    return Error{fmt::format("{} ranks are more than a replay with {} can start", plan.ranks.value, plan.engine),
                 fmt::format("at most {}", most), ""};
  if (plan.sequence) {
    const std::string why = WhyInvalid(*plan.sequence);
    return why.empty() ? std::nullopt : std::optional(Error{why, "a smaller --last may be one that can be run", ""});
  }
  if (plan.operation.value == Operation::kSendRecv && plan.ranks.value < 2)
    return Error{"send-recv needs two ranks", "give --ranks 2", ""};
  if (plan.count.value == 0 && plan.count.basis == Basis::kAssumed && plan.splits.empty() &&
      plan.operation.value != Operation::kBarrier)
    return Error{"the number of elements is not known", "give --count", ""};
  for (const Plan& one : Combinations(plan, 4096)) {
    if (const std::string why = WhyInvalid(CallOf(one), one.ranks.value); !why.empty())
      return Error{why, "inquest replay --help names the options that say it", ""};
  }
  return std::nullopt;
}

std::vector<ArgumentLine> Arguments(const Plan& plan) {
  const ReplayOp& op = RowOf(plan.operation.value);
  const auto number = [](auto value) { return fmt::format("{}", value); };
  const auto name = [](auto value) { return std::string(Name(value)); };
  const auto known = [](auto value) { return value > 0 ? fmt::format("{}", value) : "unknown"; };
  if (plan.sequence) return {LineOf("ranks", plan.ranks, known)};
  std::vector<ArgumentLine> lines = {LineOf("op", plan.operation, name)};
  if (!plan.has_operation()) lines.front().value = "unknown";
  if (op.operation != Operation::kBarrier) {
    lines.push_back(LineOf("count", plan.count, known));
    lines.push_back(LineOf("dtype", plan.datatype, name));
  }
  if (op.needs_redop) lines.push_back(LineOf("redop", plan.redop, name));
  if (op.needs_root) lines.push_back(LineOf("root", plan.root, number));
  if (op.needs_peer) lines.push_back(LineOf("peer", plan.peer, number));
  lines.push_back(LineOf("ranks", plan.ranks, known));
  if (plan.nodes.basis != Basis::kAssumed) lines.push_back(LineOf("nodes", plan.nodes, number));
  return lines;
}

}  // namespace inquest
