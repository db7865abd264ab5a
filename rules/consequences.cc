// What of the findings follows from what.
#include "rules/consequences.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "timeline/breaks.h"
#include "timeline/ends.h"

namespace inquest {
namespace {

bool HasTrait(const RuleBook& book, const Finding& finding, std::string_view trait) {
  return book.CauseIs(finding.cause, trait);
}

CauseLayer LayerOf(const RuleBook& book, const Finding& finding) { return book.LayerOf(finding.cause); }

/// What silences a rank from outside the framework, or inside it.
bool KillsARank(const RuleBook& book, const Finding& finding) {
  return !HasTrait(book, finding, "aftermath") && finding.strength != Strength::kHint;
}

/// The moment or place at which the others gave up waiting: what comes later explains nothing of it.
std::optional<EventIndex> FirstTimeOut(const Timeline& timeline) {
  std::optional<EventIndex> first;
  for (const CollectiveRow& row : timeline.collectives)
    for (const auto& waiter : row.waiters)
      if (!first || waiter.event < *first) first = waiter.event;
  return first;
}

/// Order by clocks alone: where a snapshot or an epilog stands in a file says nothing about when it happened.
std::partial_ordering ClockOrder(const Timeline& timeline, EventIndex a, EventIndex b) {
  const bool timed =
      timeline.events[a].at && timeline.events[b].at && timeline.events[a].at->date == timeline.events[b].at->date;
  return timed ? timeline.Order(a, b) : std::partial_ordering::unordered;
}

bool Explains(const Timeline& timeline, const RuleBook& book, const Finding& by, const Finding& what) {
  if (&by == &what || by.cause == what.cause) return false;
  const auto order = OrderOf(timeline, by, what);
  // What follows from something else is no reason of what was there before it.
  if (HasTrait(book, by, "aftermath") && what.strength != Strength::kHint && !what.cause.empty() &&
      order == std::partial_ordering::greater)
    return false;
  if (NamesOther(by, what)) return order != std::partial_ordering::greater || NamesOther(what, by) == false;
  if (by.cause.empty()) return false;
  if (by.strength == Strength::kHint) return false;
  if (HasTrait(book, what, "stop"))
    return order != std::partial_ordering::greater && !HasTrait(book, by, "lost-peer") && !NamesOther(what, by);
  const CauseLayer layer = LayerOf(book, by);
  const bool from_below = layer == CauseLayer::kDevice || layer == CauseLayer::kHost;
  if (LayerOf(book, what) == CauseLayer::kNetwork && KillsARank(book, by) && layer != CauseLayer::kNetwork) {
    // A dead peer looks like a broken network from afar; a network error that says what it is yields only to an earlier
    // death.
    return what.strength == Strength::kDecisive ? order == std::partial_ordering::less
                                                : order != std::partial_ordering::greater;
  }
  if (HasTrait(book, what, "absence") && what.strength != Strength::kDecisive && KillsARank(book, by)) {
    // The absence begins before the time-out that shows it; a death counts if it is not later than that time-out.
    const auto death = FirstEventOf(by), shown = FirstTimeOut(timeline);
    // A line of a wait that was given up shows it itself.
    if (death && !shown && book.FindRule(what.rule) != nullptr) return order != std::partial_ordering::greater;
    return !death || !shown ||
           (from_below ? ClockOrder(timeline, *death, *shown) : timeline.Order(*death, *shown)) !=
               std::partial_ordering::greater;
  }
  return false;
}

void SetAside(const Timeline& timeline, const RuleBook& book, std::vector<Finding>& findings) {
  for (Finding& what : findings) {
    if (what.cause.empty() || !what.explained_by.empty()) continue;
    for (const Finding& by : findings) {
      if (!by.explained_by.empty() || !Explains(timeline, book, by, what)) continue;
      // Two that name one another: the earlier explains; where clocks cannot tell, the surer.
      if (NamesOther(what, by) && NamesOther(by, what)) {
        const auto order = OrderOf(timeline, by, what);
        if (order == std::partial_ordering::greater) continue;
        if (order != std::partial_ordering::less && by.confidence <= what.confidence && by.rule > what.rule) continue;
      }
      what.explained_by = by.rule;
      break;
    }
  }
}

/// Behind a time-out the ranks abort, and with them go the connections and the store that the others still ask.
void NoteWhatFollowsATimeOut(const Evidence& evidence, std::vector<Finding>& findings) {
  const auto first = evidence.course.first_time_out();
  if (!first) return;
  for (Finding& finding : findings) {
    const bool consequence = HasTrait(evidence.book, finding, "aftermath") &&
                             !HasTrait(evidence.book, finding, "absence") &&
                             !HasTrait(evidence.book, finding, "stop") && finding.strength != Strength::kDecisive;
    const auto shown = FirstEventOf(finding);
    if (consequence && finding.explained_by.empty() && shown &&
        evidence.timeline.Order(*first, *shown) == std::partial_ordering::less)
      finding.explained_by = "time-out";
  }
}

/// The agent on whose host the store lives ends with its workers, and the agents of the other hosts lose it: behind a
/// worker's bad end a network that fails says nothing new. Nor does one anywhere, that is but a hint, where a launcher
/// says which rank ended first: it says so once the rest has fallen apart.
void NoteWhatFollowsAWorker(const Evidence& evidence, std::vector<Finding>& findings) {
  const Timeline& timeline = evidence.timeline;
  const auto lost = FirstWorkerLost(timeline);
  const bool first_is_told = std::ranges::any_of(timeline.events, [](const Event& event) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    return exit != nullptr && exit->first_observed && exit->rank && IsBadExit(*exit);
  });
  if (!lost && !first_is_told) return;
  for (Finding& finding : findings) {
    const auto shown = FirstEventOf(finding);
    if (!HasTrait(evidence.book, finding, "aftermath") || LayerOf(evidence.book, finding) != CauseLayer::kNetwork ||
        finding.strength == Strength::kDecisive || !finding.explained_by.empty() || !shown)
      continue;
    if ((lost && timeline.Order(*lost, *shown) == std::partial_ordering::less) ||
        (first_is_told && finding.strength == Strength::kHint))
      finding.explained_by = "worker-ended";
  }
}

/// Of what several ranks did to themselves that is the first which befell those for whom the others waited, or because
/// of whom they were ended, or who were gone before them; or, where all that tells nothing, which stands before what
/// the others ended of: a rank can complain of anything while the job is being ended.
void NoteWhatCameLater(const Evidence& evidence, std::vector<Finding>& findings) {
  std::vector<const Finding*> own;
  for (const Finding& finding : findings)
    if (finding.explained_by.empty() && IsOfProgram(evidence, finding)) own.push_back(&finding);
  if (own.size() < 2) return;
  const BreakGraph graph(evidence.timeline);
  const auto went_first = [&](const Finding& by, const Finding& what) {
    const auto told = OrderOf(evidence.timeline, by, what);
    return told != std::partial_ordering::greater && std::ranges::all_of(by.culprits, [&](const Culprit& first) {
             return std::ranges::all_of(what.culprits, [&](const Culprit& later) {
               const auto gone = graph.Order(*first.rank, *later.rank);
               return gone == std::partial_ordering::less ||
                      (first.rank != later.rank && gone == std::partial_ordering::unordered &&
                       told == std::partial_ordering::less && graph.ends().EndedUntold(*first.rank) &&
                       graph.ends().EndedUntold(*later.rank));
             });
           });
  };
  std::map<const Finding*, std::string> later;
  for (const Finding* what : own)
    for (const Finding* by : own)
      if (by->strength != Strength::kHint && went_first(*by, *what)) {
        later.emplace(what, by->rule);
        break;
      }
  for (Finding& finding : findings)
    if (const auto by = later.find(&finding); by != later.end()) finding.explained_by = by->second;
}

}  // namespace

std::optional<EventIndex> FirstEventOf(const Finding& finding) {
  for (const Citation& citation : finding.citations)
    if (citation.role == LineRole::kCause) return citation.event;
  return std::nullopt;
}

std::partial_ordering OrderOf(const Timeline& timeline, const Finding& a, const Finding& b) {
  const auto x = FirstEventOf(a), y = FirstEventOf(b);
  if (!x || !y) return std::partial_ordering::unordered;
  return timeline.Order(*x, *y);
}

bool NamesOther(const Finding& finding, const Finding& other) {
  return std::any_of(finding.explains.begin(), finding.explains.end(),
                     [&](const std::string& what) { return what == other.rule || what == other.cause; });
}

bool IsOfProgram(const Evidence& evidence, const Finding& finding) {
  if (LayerOf(evidence.book, finding) != CauseLayer::kProgram || HasTrait(evidence.book, finding, "aftermath"))
    return false;
  const auto event = FirstEventOf(finding);
  if (!event || finding.culprits.empty()) return false;
  const What& what = evidence.timeline.events[*event].what;
  return !IsOfKernel(what) && !IsOfHost(what) &&
         std::ranges::all_of(finding.culprits, [](const Culprit& culprit) { return culprit.rank.has_value(); });
}

namespace {

/// Which processes set up a communicator, and the last time.
class Joined {
 public:
  explicit Joined(const Timeline& timeline) : timeline_(timeline) {
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
      const auto* init = std::get_if<CommInit>(&timeline.events[i].what);
      if (init != nullptr && init->complete && init->nranks > 1) last_[WriterOf(timeline.events[i])] = i;
    }
  }
  /// Whoever complained of this did so behind it: what had failed was tried again.
  bool Anew(const Evidence& evidence, const Finding& finding) const {
    return std::ranges::all_of(evidence.matches, [&](const LineMatch& match) {
      if (evidence.book.rules[match.rule].id != finding.rule) return true;
      const Event& complaint = timeline_.events[match.event];
      const auto joined = complaint.origin.pid ? last_.find(WriterOf(complaint)) : last_.end();
      return joined != last_.end() && joined->second > match.event;
    });
  }

 private:
  using Writer = std::tuple<std::uint32_t, std::optional<std::int64_t>, std::optional<std::string>>;
  Writer WriterOf(const Event& event) const { return {event.where.input, event.origin.pid, timeline_.HostOf(event)}; }
  const Timeline& timeline_;
  std::map<Writer, EventIndex> last_;
};

}  // namespace

void NoteWhatWorkOutlived(const Evidence& evidence, std::vector<Finding>& findings) {
  std::map<std::string_view, EventIndex> last;
  for (const LineMatch& match : evidence.matches) {
    const auto [line, is_new] = last.try_emplace(evidence.book.rules[match.rule].id, match.event);
    // What Python ignored says nothing of what the same words meant elsewhere.
    if (!is_new && !evidence.course.WasIgnored(match.event)) line->second = match.event;
  }
  std::optional<Joined> joined;  // asked of few jobs
  for (Finding& finding : findings) {
    const auto line = last.find(finding.rule);
    if (finding.cause.empty() || line == last.end()) continue;
    const What& what = evidence.timeline.events[line->second].what;
    const bool of_job = !IsOfKernel(what) && !IsOfHost(what), decisive = finding.strength == Strength::kDecisive;
    const bool anew =
        of_job && decisive && (joined ? *joined : joined.emplace(evidence.timeline)).Anew(evidence, finding);
    if (decisive && !anew && !(of_job && evidence.course.LongOutlived(line->second))) continue;
    const bool came_up = finding.strength == Strength::kHint &&
                         (evidence.course.ServedAfter(line->second) || evidence.course.LoopRanBehind(line->second));
    if (of_job && (came_up || evidence.course.WentOn(line->second, anew ? 1 : Course::kStepsThatUndo)))
      finding.explained_by = "work-went-on";
    else if (evidence.course.ended_well() && evidence.course.IsBehindEnd(line->second))
      finding.explained_by = "program-had-ended";
    if (!finding.explained_by.empty()) finding.strength = Strength::kHint;
  }
}

void NoteWhatFollows(const Evidence& evidence, std::vector<Finding>& findings) {
  NoteWhatFollowsAWorker(evidence, findings);
  NoteWhatCameLater(evidence, findings);
  SetAside(evidence.timeline, evidence.book, findings);
  NoteWhatFollowsATimeOut(evidence, findings);
}

}  // namespace inquest
