// The ranks' own recorders show who never came to the call in which the others wait, or who called something else.
//
// What holds: a call that had not ended has members that stand somewhere else, and following those leads to ranks that
// stand nowhere, to a circle, or to a call to which all came with different sizes. Why that implies the cause: a call
// ends on no rank before all have come to it with the same, and who waits himself is not the one to blame. What looks
// like it: recorders that were asked while the job ran, where some rank is always a moment behind; a rank of which no
// recorder was given, of which nothing is known; the last call that a watchdog had not looked at yet; sizes that may
// differ (all-to-all, the root's side of a gather).
#include <fmt/format.h>

#include <algorithm>

#include "rules/detectors.h"
#include "timeline/wait_graph.h"

namespace inquest {
namespace recorded_calls {

constexpr FindingRow kFindings[] = {
    {"recorded-rank-behind", "gave-up long-ago just-asked", "ranks call waiting last chain"},
    {"recorded-not-begun", "gave-up long-ago just-asked", "ranks call begun"},
    {"recorded-dump-missing", "only-they", "ranks call"},
    {"recorded-call-differs", "not-ended went-on", "number group first-call first-ranks other-call other-ranks"},
    {"recorded-order-differs", "not-ended", "number group first-ranks other-ranks first-call other-call"},
    {"recorded-circle", "gave-up long-ago just-asked", "circle"},
    {"recorded-pair-differs", "not-ended", "rank call peer other-call"},
};
using Found = FoundIn<kFindings>;

enum class Sure : std::uint8_t { kGaveUp, kLongAgo, kJustAsked };

class Recorders {
 public:
  explicit Recorders(const Evidence& evidence)
      : timeline_(evidence.timeline), recorded_(*evidence.timeline.recorded), graph_(WaitsOf(recorded_)) {
    sure_ = HowSure();
  }

  std::vector<Relation> Run() const {
    std::vector<Relation> out;
    if (auto found = FromDivergence()) out.push_back(std::move(*found));
    if (auto found = FromRoots()) out.push_back(std::move(*found));
    return out;
  }

 private:
  // ---- how it is told ----

  const RecordedCall& FrontOf(int rank) const { return recorded_.Find(GlobalRank{rank})->open.front(); }

  Citation CiteCall(GlobalRank rank, const SourcePos& where, std::string text, LineRole role) const {
    Citation out;
    const auto event = std::ranges::lower_bound(timeline_.events, where, {}, &Event::where);
    out.event = event == timeline_.events.end() ? 0 : static_cast<EventIndex>(event - timeline_.events.begin());
    out.role = role;
    out.where = where;
    out.rank = rank;
    out.text = std::move(text);
    return out;
  }

  Citation CiteRecorded(GlobalRank rank, const RecordedCall& call, LineRole role) const {
    return CiteCall(rank, call.where, LineOf(recorded_, call), role);
  }

  CollectiveRef RefOf(const CallForm& form, const RecordedGroup& group) const {
    CollectiveRef ref;
    ref.op = WorkName(form.op);
    if (!form.inputs.empty()) ref.numel_in = Elements(form.inputs);
    if (!form.outputs.empty()) ref.numel_out = Elements(form.outputs);
    if (!form.dtypes.empty()) ref.dtype = form.dtypes;
    if (recorded_.timeout_ms > 0) ref.timeout_ms = recorded_.timeout_ms;
    ref.process_group = group.name;
    return ref;
  }

  CollectiveRef RefOf(const WaitNode& node) const {
    CollectiveRef ref = RefOf(recorded_.forms[FrontOf(node.ranks.front()).form], recorded_.groups[node.group]);
    if (!node.pairwise) ref.seq = node.seq;
    ref.ranks_waiting = node.ranks;
    return ref;
  }

  /// The grade by how sure it is that they hung.
  Found::Held BySure(Found::Held gave_up, Found::Held long_ago, Found::Held just_asked) const {
    return sure_ == Sure::kGaveUp ? gave_up : sure_ == Sure::kLongAgo ? long_ago : just_asked;
  }

  /// A watchdog gave up, here or in a log; or what waits has waited for most of its time. Else the dumps may have been
  /// asked for.
  Sure HowSure() const {
    if (recorded_.gave_up) return Sure::kGaveUp;
    for (const Event& event : timeline_.events)
      if (std::holds_alternative<WorkTimedOut>(event.what) || std::holds_alternative<HeartbeatLost>(event.what))
        return Sure::kGaveUp;
    return recorded_.Hung() ? Sure::kLongAgo : Sure::kJustAsked;
  }

  // ---- what it is ----

  /// A call that differs hangs there, or, where NCCL took it, spoils what comes after.
  std::optional<Relation> FromDivergence() const {
    const RecordedGroup* worst = nullptr;
    bool open = false;
    for (const RecordedGroup& group : recorded_.groups) {
      if (!group.divergence) continue;
      const bool here = OpenFrom(group, group.divergence->seq);
      if (worst != nullptr && (open || !here)) continue;
      worst = &group;
      open = here;
    }
    if (worst == nullptr) return std::nullopt;
    const auto& sides = worst->divergence->sides;
    const bool swapped = sides[0].next_form && sides[1].next_form && *sides[0].next_form == sides[1].form &&
                         *sides[1].next_form == sides[0].form;
    if (!open && !OpenFrom(*worst, 0)) return std::nullopt;  // all of it ended: what may differ did
    Found found({"recorded-call-differs", "went-on"});
    if (open && swapped)
      found.Grade({"recorded-order-differs", "not-ended"});
    else if (open)
      found.Grade({"recorded-call-differs", "not-ended"});
    const CallForm &first = recorded_.forms[sides[0].form], &other = recorded_.forms[sides[1].form];
    found.Say("number", std::to_string(worst->divergence->seq));
    found.Say("group", worst->InWords());
    found.Say("first-call", InWords(first));
    found.Say("first-ranks", RanksWithin(sides[0].ranks));
    found.Say("other-call", InWords(other));
    found.Say("other-ranks", RanksWithin(sides[1].ranks));
    for (std::size_t i = sides.size(); i-- > 0;)
      found.citations.push_back(
          CiteCall(GlobalRank{sides[i].ranks.front()}, sides[i].where,
                   fmt::format("{} #{} of group {}{}", InWords(recorded_.forms[sides[i].form]), worst->divergence->seq,
                               worst->InWords(), sides[i].site.empty() ? "" : "; " + sides[i].site),
                   i + 1 == sides.size() || found.citations.size() < 2 ? LineRole::kCause : LineRole::kSymptom));
    if (sides[0].ranks.size() > sides[1].ranks.size())
      for (std::size_t i = 1; i < sides.size(); ++i)
        for (const int rank : sides[i].ranks)
          found.culprits.push_back(
              BlameRank(timeline_, GlobalRank{rank},
                        fmt::format("called {}{}{}", InWords(recorded_.forms[sides[i].form]),
                                    sides[i].site.empty() ? "" : " in " + sides[i].site, ", unlike the majority")));
    CollectiveRef ref = RefOf(first, *worst);
    ref.seq = worst->divergence->seq;
    for (const auto& side : sides) ref.ranks_waiting.Add(side.ranks);
    found.collective = std::move(ref);
    return found;
  }

  /// Some rank has a collective of the group that had not ended, at a number or behind it.
  bool OpenFrom(const RecordedGroup& group, std::int64_t seq) const {
    return std::ranges::any_of(recorded_.ranks, [&](const RecordedRank& rank) {
      return std::ranges::any_of(rank.open, [&](const RecordedCall& call) {
        return &recorded_.groups[call.group] == &group && !call.pairwise && call.seq >= seq;
      });
    });
  }

  std::optional<Relation> FromRoots() const {
    for (const WaitRoot& root : graph_.roots) {
      const WaitNode& node = graph_.nodes[root.nodes.front()];
      const auto counted = [&](std::uint32_t at) {
        return recorded_.groups[graph_.nodes[at].group].source != RecordedGroup::Source::kRecorders;
      };
      if (std::ranges::any_of(root.nodes, counted)) continue;  // of which less is known: `ras-report` speaks of it
      if (root.nodes.size() > 1) return FromCircle(root);
      if (!node.idle.empty()) return FromIdle(root, node);
      if (node.unequal) return FromPair(node);
      if (!node.unknown.empty()) return FromUnknown(node);
      if (!node.enqueued_only.empty() && node.enqueued_only.size() < node.ranks.size()) return FromNotBegun(node);
    }
    return std::nullopt;
  }

  /// Ranks that are nowhere, in this call and in others that wait for such alone.
  RankSet AllIdle(const WaitNode& node) const {
    RankSet all = node.idle;
    for (const WaitRoot& root : graph_.roots)
      if (root.nodes.size() == 1) all.Add(graph_.nodes[root.nodes.front()].idle);
    return all.size() * 2 <= recorded_.ranks.size() ? all : node.idle;
  }

  /// `ranks 0-2 wait`, `rank 1 waits`.
  static std::string Wait(const RankSet& ranks) {
    return RanksWithin(ranks) + (ranks.size() == 1 ? " waits" : " wait");
  }

  std::string Chain(const WaitRoot& root, const WaitNode& node) const {
    const RankSet behind = root.waiting.Without(node.ranks);
    if (behind.empty()) return {};
    return fmt::format("; {} for those who wait there", Wait(behind));
  }

  std::optional<Relation> FromIdle(const WaitRoot& root, const WaitNode& node) const {
    const RankSet idle = AllIdle(node);
    Found found(BySure({"recorded-rank-behind", "gave-up"}, {"recorded-rank-behind", "long-ago"},
                       {"recorded-rank-behind", "just-asked"}));
    found.Say("ranks", RanksInWords(idle));
    found.Say("call", InWords(recorded_, node));
    found.Say("waiting", Wait(node.ranks));
    found.Say("chain", Chain(root, node));
    const RecordedRank* first = recorded_.Find(GlobalRank{idle.front()});
    found.Say("last", first != nullptr && first->last
                          ? fmt::format("; its last call was {} #{}{}", InWords(recorded_.forms[first->last->form]),
                                        first->last->seq, first->last->site.empty() ? "" : " in " + first->last->site)
                          : std::string());
    found.collective = RefOf(node);
    found.collective->ranks_absent = idle;
    for (const int rank : idle) {
      const RecordedRank* recorder = recorded_.Find(GlobalRank{rank});
      std::string why = "never came to it";
      if (recorder != nullptr && recorder->last) {
        why = fmt::format("its last call, #{} of group {}, had ended{}", recorder->last->seq,
                          recorded_.groups[recorder->last->group].InWords(),
                          recorder->last->site.empty() ? "" : ": " + recorder->last->site);
        if (found.citations.size() < 2)
          found.citations.push_back(CiteRecorded(GlobalRank{rank}, *recorder->last, LineRole::kCause));
      }
      found.culprits.push_back(BlameRank(timeline_, GlobalRank{rank}, why));
    }
    CiteWaiters(node, found);
    return found;
  }

  void CiteWaiters(const WaitNode& node, Found& found) const {
    for (const int rank : node.ranks) {
      if (found.citations.size() >= 4) return;
      found.citations.push_back(CiteRecorded(GlobalRank{rank}, FrontOf(rank), LineRole::kSymptom));
    }
  }

  std::optional<Relation> FromUnknown(const WaitNode& node) const {
    RankSet unknown;
    for (const WaitNode& other : graph_.nodes) unknown.Add(other.unknown);
    if (unknown.size() * 2 >= recorded_.ranks.size() + 1) return std::nullopt;  // much of the job was not given
    Found found({"recorded-dump-missing", "only-they"});
    found.Say("ranks", RanksWithin(node.unknown));
    found.Say("call", InWords(recorded_, node));
    found.collective = RefOf(node);
    for (const int rank : node.unknown)
      found.culprits.push_back(BlameRank(timeline_, GlobalRank{rank}, "no dump of it was given"));
    CiteWaiters(node, found);
    if (!found.citations.empty()) found.citations.front().role = LineRole::kCause;
    return found;
  }

  std::optional<Relation> FromNotBegun(const WaitNode& node) const {
    Found found(BySure({"recorded-not-begun", "gave-up"}, {"recorded-not-begun", "long-ago"},
                       {"recorded-not-begun", "just-asked"}));
    const RankSet begun = node.ranks.Without(node.enqueued_only);
    found.Say("ranks", RanksInWords(node.enqueued_only));
    found.Say("call", InWords(recorded_, node));
    found.Say("begun", RanksWithin(begun));
    found.collective = RefOf(node);
    for (const int rank : node.enqueued_only) {
      found.culprits.push_back(
          BlameRank(timeline_, GlobalRank{rank}, "had enqueued it, and its device had not begun it"));
      if (found.citations.size() < 2)
        found.citations.push_back(CiteRecorded(GlobalRank{rank}, FrontOf(rank), LineRole::kCause));
    }
    found.citations.push_back(CiteRecorded(GlobalRank{begun.front()}, FrontOf(begun.front()), LineRole::kSymptom));
    return found;
  }

  std::optional<Relation> FromCircle(const WaitRoot& root) const {
    Found found(
        BySure({"recorded-circle", "gave-up"}, {"recorded-circle", "long-ago"}, {"recorded-circle", "just-asked"}));
    std::string circle;
    for (std::size_t i = 0; i < root.nodes.size(); ++i) {
      const WaitNode& node = graph_.nodes[root.nodes[i]];
      const std::uint32_t next = root.nodes[(i + 1) % root.nodes.size()];
      RankSet awaited;
      for (const WaitNode::Edge& edge : node.edges)
        if (edge.node == next) awaited = edge.ranks;
      circle += fmt::format("{}{} in {} for {}", i == 0 ? "" : ", ", Wait(node.ranks), InWords(recorded_, node),
                            RanksWithin(awaited));
      if (found.citations.size() < 4)
        found.citations.push_back(CiteRecorded(GlobalRank{node.ranks.front()}, FrontOf(node.ranks.front()),
                                               i < 2 ? LineRole::kCause : LineRole::kSymptom));
    }
    found.Say("circle", circle);
    found.collective = RefOf(graph_.nodes[root.nodes.front()]);
    return found;
  }

  std::optional<Relation> FromPair(const WaitNode& node) const {
    const WaitNode::Unequal& pair = *node.unequal;
    Found found({"recorded-pair-differs", "not-ended"});
    found.Say("rank", std::to_string(pair.rank.value));
    found.Say("peer", std::to_string(pair.peer.value));
    found.Say("call", InWords(recorded_.forms[pair.one.form]));
    found.Say("other-call", InWords(recorded_.forms[pair.other.form]));
    found.citations.push_back(CiteRecorded(pair.rank, pair.one, LineRole::kCause));
    found.citations.push_back(CiteRecorded(pair.peer, pair.other, LineRole::kCause));
    for (const GlobalRank rank : {pair.rank, pair.peer})
      found.culprits.push_back(BlameRank(timeline_, rank, "one of the two whose sizes differ"));
    found.collective = RefOf(node);
    return found;
  }

  const Timeline& timeline_;
  const Recorded& recorded_;
  WaitGraph graph_;
  Sure sure_ = Sure::kJustAsked;
};

std::vector<Relation> Run(const Evidence& evidence) {
  if (evidence.timeline.recorded->Given().empty() || !evidence.timeline.recorded_fits) return {};
  return Recorders(evidence).Run();
}

}  // namespace recorded_calls

extern const Detector kRecordedCalls{"recorded-calls",
                                     "The ranks' own recorders show who never came, or who called something else.",
                                     recorded_calls::kFindings, &recorded_calls::Run};

}  // namespace inquest
