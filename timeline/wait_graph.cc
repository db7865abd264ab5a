// Who waits for whom, as the ranks' own recorders have it: over all process groups, down to where it began.
#include "timeline/wait_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace inquest {
namespace {

// A rank stands in the oldest call that had not ended: what it enqueued later waits behind that, whatever stream it is
// on. A collective waits for every member that stands somewhere else and is not through with it; if such a member
// stands in another call, that is what it really waits for. From there on the argument is the graph's: follow the
// arrows to where there are none, or to a circle.

using CounterKey = std::tuple<bool, std::uint32_t, std::int64_t>;  ///< pairwise, group or rank, number

struct Front {
  const RecordedRank* rank = nullptr;
  std::vector<const RecordedCall*> calls;  ///< of a pair, all that were launched with it
  std::uint32_t node = 0;
};

/// What is compared over ranks has their numbers; where those differ, the group alone.
CounterKey KeyOf(const Recorded& recorded, const RecordedRank& rank, const RecordedCall& call) {
  if (call.pairwise) return {true, static_cast<std::uint32_t>(rank.rank.value), 0};
  return {false, call.group, recorded.groups[call.group].mixed ? -1 : call.seq};
}

std::vector<Front> FrontsOf(const Recorded& recorded) {
  std::vector<Front> out;
  for (const RecordedRank& rank : recorded.ranks) {
    if (rank.open.empty()) continue;
    const RecordedCall& first = rank.open.front();
    Front front{&rank, {}, 0};
    for (const RecordedCall& call : rank.open)
      if (call.pairwise == first.pairwise && call.group == first.group && call.seq == first.seq)
        front.calls.push_back(&call);
    out.push_back(std::move(front));
  }
  return out;
}

class Builder {
 public:
  explicit Builder(const Recorded& recorded) : recorded_(recorded), fronts_(FrontsOf(recorded)) {}

  WaitGraph Run() {
    Number();
    for (const Front& front : fronts_) by_rank_.emplace(front.rank->rank.value, &front);
    for (WaitNode& node : graph_.nodes)
      if (node.pairwise)
        FillPair(node);
      else
        FillCollective(node);
    FindRoots();
    return std::move(graph_);
  }

 private:
  void Number() {
    std::map<CounterKey, std::vector<Front*>> keys;
    for (Front& front : fronts_) keys[KeyOf(recorded_, *front.rank, *front.calls.front())].push_back(&front);
    for (const auto& [key, fronts] : keys) {
      WaitNode node;
      const RecordedCall& call = *fronts.front()->calls.front();
      node.group = call.group;
      node.seq = call.seq;
      node.pairwise = call.pairwise;
      bool begun = false;
      for (Front* front : fronts) {
        front->node = static_cast<std::uint32_t>(graph_.nodes.size());
        const RecordedCall& own = *front->calls.front();
        node.ranks.Add(front->rank->rank.value);
        graph_.node_of.emplace(front->rank->rank.value, front->node);
        if (own.created_ns > 0 && (node.created_ns == 0 || own.created_ns < node.created_ns))
          node.created_ns = own.created_ns;
        begun = begun || own.state == CallTrace::State::kStarted;
        if (front->rank->timed && own.state == CallTrace::State::kScheduled)
          node.enqueued_only.Add(front->rank->rank.value);
      }
      if (!begun) node.enqueued_only = {};
      graph_.nodes.push_back(std::move(node));
    }
  }

  /// A member, or a peer, that does not stand in the node; `lost`: its ring may have lost it.
  void Miss(WaitNode& node, int rank, bool lost = false) {
    if (const auto front = by_rank_.find(rank); front != by_rank_.end()) {
      for (WaitNode::Edge& edge : node.edges)
        if (edge.node == front->second->node) return edge.ranks.Add(rank);
      node.edges.push_back({front->second->node, {}});
      return node.edges.back().ranks.Add(rank);
    }
    const RecordedRank* recorder = recorded_.Find(GlobalRank{rank});
    if (recorder == nullptr)
      node.unknown.Add(rank);
    else
      (lost || recorder->torn ? node.lost : node.idle).Add(rank);
  }

  /// What others had ended, a member had made: its dump is of another time, or of another job. Not so where a root is
  /// ahead of those whom it sends to, for what lies in buffers between them.
  static bool OfAnotherTime(const RecordedGroup& group, const RecordedMember& member) {
    constexpr std::int64_t kBuffered = 64;
    if (!member.calls || group.mixed) return false;
    return std::ranges::any_of(group.members, [&](const RecordedMember& other) {
      return other.last_completed && *other.last_completed > member.last + kBuffered;
    });
  }

  /// It was counted, and the rank's own recorder has nothing that had not ended: they are not of one moment.
  static bool MadeByCount(const RecordedGroup& group, const RecordedMember& member, std::int64_t seq) {
    return group.source != RecordedGroup::Source::kRecorders && member.last >= seq;
  }

  void FillCollective(WaitNode& node) {
    const RecordedGroup& group = recorded_.groups[node.group];
    for (const int rank : group.Members()) {
      if (node.ranks.contains(rank)) continue;
      const RecordedMember* member = group.Find(GlobalRank{rank});
      const bool through =
          member != nullptr && !group.mixed && member->last_completed && *member->last_completed >= node.seq;
      if (through)
        node.through.Add(rank);
      else
        Miss(node, rank,
             member != nullptr && ((!group.mixed && member->lost.value_or(-1) >= node.seq) ||
                                   (!by_rank_.contains(rank) &&
                                    (MadeByCount(group, *member, node.seq) || OfAnotherTime(group, *member)))));
    }
  }

  static bool Answers(const RecordedCall& call, GlobalRank rank, const RecordedCall& other) {
    return other.group == call.group && other.peer == rank && other.to != CallTrace::Peer::kNone && other.to != call.to;
  }

  std::int64_t ElementsOf(const RecordedCall& call) const {
    const CallForm& form = recorded_.forms[call.form];
    return Elements(call.to == CallTrace::Peer::kTo ? form.inputs : form.outputs);
  }

  void FillPair(WaitNode& node) {
    const GlobalRank rank{node.ranks.front()};
    const Front& own = *by_rank_.at(rank.value);
    for (const RecordedCall* call : own.calls) {
      if (!call->peer || call->to == CallTrace::Peer::kNone) continue;
      const auto peer = by_rank_.find(call->peer->value);
      const RecordedCall* answer = nullptr;
      if (peer != by_rank_.end())
        for (const RecordedCall* other : peer->second->calls)
          if (answer == nullptr && Answers(*call, rank, *other)) answer = other;
      if (answer == nullptr)
        Miss(node, call->peer->value);
      else if (!node.unequal && ElementsOf(*call) != ElementsOf(*answer))
        node.unequal = WaitNode::Unequal{*call, *answer, rank, *call->peer};
    }
  }

  /// All nodes from which `to` are reached, themselves among them.
  std::vector<bool> Reaching(const std::vector<std::uint32_t>& to) const {
    std::vector<bool> reach(graph_.nodes.size());
    for (const std::uint32_t node : to) reach[node] = true;
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
        if (reach[i] || !std::ranges::any_of(graph_.nodes[i].edges, [&](const auto& edge) { return reach[edge.node]; }))
          continue;
        reach[i] = more = true;
      }
    }
    return reach;
  }

  /// The shortest way from a node back to itself; empty: there is none.
  std::vector<std::uint32_t> CircleThrough(std::uint32_t start) const {
    constexpr std::uint32_t kNobody = ~0u;
    std::vector<std::uint32_t> from(graph_.nodes.size(), kNobody), queue = {start};
    for (std::size_t at = 0; at < queue.size(); ++at)
      for (const WaitNode::Edge& edge : graph_.nodes[queue[at]].edges) {
        if (edge.node == start) {
          std::vector<std::uint32_t> circle;
          for (std::uint32_t node = queue[at]; node != start; node = from[node]) circle.push_back(node);
          circle.push_back(start);
          std::ranges::reverse(circle);
          return circle;
        }
        if (from[edge.node] != kNobody) continue;
        from[edge.node] = queue[at];
        queue.push_back(edge.node);
      }
    return {};
  }

  void AddRoot(std::vector<std::uint32_t> nodes) {
    constexpr std::size_t kMostRoots = 256;
    if (graph_.roots.size() >= kMostRoots) return;
    WaitRoot root{std::move(nodes), {}, 0};
    const std::vector<bool> reach = Reaching(root.nodes);
    for (std::size_t i = 0; i < reach.size(); ++i)
      if (reach[i]) root.waiting.Add(graph_.nodes[i].ranks);
    for (const std::uint32_t node : root.nodes)
      if (const std::int64_t at = graph_.nodes[node].created_ns;
          root.created_ns == 0 || (at > 0 && at < root.created_ns))
        root.created_ns = at;
    graph_.roots.push_back(std::move(root));
  }

  void FindRoots() {
    constexpr std::size_t kMostNodes = 4096;  // a job of many thousand ranks waits in few places
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].edges.empty() || !graph_.nodes[i].idle.empty()) AddRoot({i});
    std::vector<bool> seen(graph_.nodes.size());
    for (std::uint32_t i = 0; i < graph_.nodes.size() && i < kMostNodes; ++i) {
      if (seen[i]) continue;
      const std::vector<std::uint32_t> circle = CircleThrough(i);
      for (const std::uint32_t node : circle) seen[node] = true;
      if (!circle.empty()) AddRoot(circle);
    }
    std::ranges::stable_sort(graph_.roots, [](const WaitRoot& a, const WaitRoot& b) {
      return std::tuple(b.waiting.size(), a.created_ns) < std::tuple(a.waiting.size(), b.created_ns);
    });
  }

  const Recorded& recorded_;
  std::vector<Front> fronts_;
  std::map<int, const Front*> by_rank_;
  WaitGraph graph_;
};

}  // namespace

std::string InWords(const Recorded& recorded, const WaitNode& node) {
  const RecordedGroup& group = recorded.groups[node.group];
  const RecordedCall& call = recorded.Find(GlobalRank{node.ranks.front()})->open.front();
  if (!node.pairwise)
    return fmt::format("{} #{} of group {}", InWords(recorded.forms[call.form]), node.seq, group.InWords());
  return fmt::format(
      "{}{} in group {}", InWords(recorded.forms[call.form]),
      call.peer ? fmt::format(" {} rank {}", call.to == CallTrace::Peer::kTo ? "to" : "from", call.peer->value) : "",
      group.InWords());
}

WaitGraph WaitsOf(const Recorded& recorded) { return Builder(recorded).Run(); }

}  // namespace inquest
