// Calls of ranks, written down in short: what a recorder would have kept, and how it is shown again.
#include "tests/support/call_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/result.h"
#include "timeline/timeline.h"
#include "timeline/trace_ledger.h"

namespace inquest {
namespace {

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> out;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, at);) out.push_back(part);
  return out;
}

std::uint32_t FormOf(CallTrace& trace, const CallForm& form) {
  const auto known = std::ranges::find(trace.forms, form);
  const auto number = static_cast<std::uint32_t>(known - trace.forms.begin());
  if (known == trace.forms.end()) trace.forms.push_back(form);
  return number;
}

CallTrace::Call CallOf(CallTrace& trace, const std::string& text) {
  CallTrace::Call call;
  std::istringstream stream(text);
  std::string number, name, state;
  stream >> number >> name >> state;
  INQUEST_CHECK(!state.empty());
  const auto group = std::ranges::find(trace.groups, number.substr(0, number.find('#')), &CallTrace::Group::name);
  INQUEST_CHECK(group != trace.groups.end());
  call.group = static_cast<std::uint32_t>(group - trace.groups.begin());
  call.seq = std::stoll(number.substr(number.find('#') + 1));
  const std::vector<std::string> parts = Split(name, ':');
  CallForm form;
  const std::size_t arrow = parts[0].find_first_of("<>");
  form.op = parts[0].substr(0, arrow);
  call.coalesced = form.op == "coalesced";
  if (arrow != std::string::npos) {
    call.pairwise = true;
    call.to = parts[0][arrow] == '>' ? CallTrace::Peer::kTo : CallTrace::Peer::kFrom;
    call.peer = std::stoi(parts[0].substr(arrow + 1));
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (call.to != CallTrace::Peer::kFrom) form.inputs.push_back({std::stoll(parts[i])});
    if (call.to != CallTrace::Peer::kTo) form.outputs.push_back({std::stoll(parts[i])});
  }
  call.form = FormOf(trace, form);
  call.state = state[0] == '+'   ? CallTrace::State::kCompleted
               : state[0] == '~' ? CallTrace::State::kStarted
                                 : CallTrace::State::kScheduled;
  call.gave_up = state.find('!') != std::string::npos;
  trace.timed = trace.timed || state[0] == '~';
  return call;
}

std::string ShowForm(const CallForm& form) {
  std::vector<std::string> out = {form.op};
  for (const auto& shape : form.inputs.empty() ? form.outputs : form.inputs)
    out.push_back(fmt::format("{}", fmt::join(shape, "x")));
  return fmt::format("{}", fmt::join(out, ":"));
}

std::string ShowNode(const Recorded& recorded, const WaitNode& node) {
  const std::string& group = recorded.groups[node.group].name;
  return node.pairwise ? fmt::format("{} pair of {}", group, node.ranks.front())
                       : fmt::format("{}#{}", group, node.seq);
}

}  // namespace

CallTrace TraceOf(const std::vector<TracedGroup>& groups, int rank, std::string_view calls) {
  CallTrace trace;
  trace.recorder = "flight-recorder";
  trace.sites.emplace_back();
  for (const TracedGroup& group : groups)
    if (group.ranks.empty() || std::ranges::find(group.ranks, rank) != group.ranks.end())
      trace.groups.push_back({.name = group.name,
                              .desc = {},
                              .ranks = group.ranks,
                              .mixed = false,
                              .last_enqueued = {},
                              .last_started = {},
                              .last_completed = {}});
  for (const std::string& text : Split(calls, '|')) {
    if (text.find("torn") != std::string::npos) trace.problem = "cut";
    if (const std::size_t at = text.find('='); at != std::string::npos) {
      std::string name = text.substr(0, at);
      std::erase(name, ' ');
      const auto group = std::ranges::find(trace.groups, name, &CallTrace::Group::name);
      INQUEST_CHECK(group != trace.groups.end());
      group->last_enqueued = std::stoll(text.substr(at + 1));
      trace.has_status = true;
    }
    if (text.find('#') == std::string::npos) continue;
    CallTrace::Call call = CallOf(trace, text);
    call.place = static_cast<std::uint32_t>(trace.calls.size() + 1);
    trace.calls.push_back(call);
  }
  trace.entries = trace.calls.size();
  return trace;
}

Recorded RecordedOf(const std::vector<TracedGroup>& groups, const std::map<int, std::string>& ranks, bool last_first) {
  std::vector<int> order;
  for (const auto& [rank, calls] : ranks) order.push_back(rank);
  if (last_first) std::ranges::reverse(order);
  TraceLedger ledger;
  std::uint32_t input = 0;
  for (const int rank : order)
    ledger.Add(TraceOf(groups, rank, ranks.at(rank)), GlobalRank{rank}, {.input = input++, .line = 1});
  LeftOut left_out;
  return ledger.Take(left_out);
}

std::string ShowDivergences(const Recorded& recorded) {
  std::vector<std::string> out;
  for (const RecordedGroup& group : recorded.groups) {
    if (!group.divergence) continue;
    std::vector<std::string> sides;
    for (const auto& side : group.divergence->sides)
      sides.push_back(fmt::format("{} by {}", ShowForm(recorded.forms[side.form]), FoldRanks(side.ranks)));
    out.push_back(fmt::format("{}#{}: {}", group.name, group.divergence->seq, fmt::join(sides, ", ")));
  }
  return fmt::format("{}", fmt::join(out, "; "));
}

std::string ShowWaits(const Recorded& recorded, const WaitGraph& graph) {
  std::vector<std::string> out;
  for (const WaitNode& node : graph.nodes) {
    std::string text = fmt::format("{} by {}", ShowNode(recorded, node), FoldRanks(node.ranks));
    const auto add = [&](std::string_view what, const RankSet& ranks) {
      if (!ranks.empty()) text += fmt::format(", {} {}", what, FoldRanks(ranks));
    };
    add("idle", node.idle);
    add("unknown", node.unknown);
    add("through", node.through);
    add("lost", node.lost);
    add("not begun by", node.enqueued_only);
    for (const WaitNode::Edge& edge : node.edges)
      text += fmt::format(", waits for {} ({})", ShowNode(recorded, graph.nodes[edge.node]), FoldRanks(edge.ranks));
    if (node.unequal)
      text += fmt::format(", unlike: {} and {}", ShowForm(recorded.forms[node.unequal->one.form]),
                          ShowForm(recorded.forms[node.unequal->other.form]));
    out.push_back(std::move(text));
  }
  for (const WaitRoot& root : graph.roots) {
    std::vector<std::string> nodes;
    for (const std::uint32_t node : root.nodes) nodes.push_back(ShowNode(recorded, graph.nodes[node]));
    out.push_back(fmt::format("root {}: {}", fmt::join(nodes, " > "), FoldRanks(root.waiting)));
  }
  return fmt::format("{}", fmt::join(out, "; "));
}

}  // namespace inquest
