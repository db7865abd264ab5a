// Weighs findings into one verdict.
#include "rules/judge.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "rules/consequences.h"
#include "rules/host_states.h"
#include "rules/tell.h"
#include "rules/thresholds.h"

namespace inquest {
namespace {

// How a verdict is reached.
//  1. Symptoms are never causes. They make the chain of the summary.
//  2. A finding is set aside where another explains it: it says so itself, or the kinds of the two say so: what a stop
//     from outside, a lost connection or an absent rank can follow from, it follows from, unless it is clearly earlier.
//  3. A hint counts only when nothing better stands and something failed, or a few lines are all that was given. A hint
//     about the transport gains weight where everybody was in the operation and nothing moved.
//  4. Of what stands: stronger before weaker, then earlier before later where the clocks or the lines decide, then
//  surer.
//  5. A verdict that rests on a weak hint is none: `unknown`, with the alternatives and what to collect.
//  6. `healthy` needs an ending seen, after everything that looks bad.

bool Is(const RuleBook& book, const Finding& finding, std::string_view trait) {
  return book.CauseIs(finding.cause, trait);
}

/// Decides although nothing else says that the job failed.
bool IsAlone(const RuleBook& book, const Finding& finding) {
  const Rule* rule = book.FindRule(finding.rule);
  const FindingRule* relation = book.FindFinding(finding.rule);
  return (rule != nullptr && rule->alone) || (relation != nullptr && relation->alone);
}

/// Everybody is in and nothing moves.
bool IsStall(const RuleBook& book, const Finding& finding) {
  const FindingRule* relation = book.FindFinding(finding.rule);
  return relation != nullptr && relation->stall;
}

/// The only candidate, beside a sign of failure that is not older than it, decides: something has to be the cause.
void LiftLoneCandidate(const Evidence& evidence, std::vector<Finding>& findings) {
  if (!evidence.course.failed()) return;
  Finding* lone = nullptr;
  std::string_view cause;
  for (Finding& finding : findings) {
    if (finding.cause.empty() || !finding.explained_by.empty()) continue;
    // States of hosts beside the job's log are no rivals.
    const bool elsewhere =
        !finding.citations.empty() &&
        finding.citations.front().where.input != evidence.timeline.events[*evidence.course.since()].where.input;
    if (finding.strength == Strength::kHint && elsewhere) continue;
    const bool relation = evidence.book.FindRule(finding.rule) == nullptr;
    if (relation && finding.strength != Strength::kHint) return;
    if (!cause.empty() && cause != finding.cause) return;
    cause = finding.cause;
    if (!relation && (lone == nullptr || finding.confidence > lone->confidence)) lone = &finding;
  }
  if (lone == nullptr || lone->confidence >= thresholds::kLeastConfidence ||
      lone->confidence < thresholds::kLeastOfALone)
    return;
  const auto event = FirstEventOf(*lone);
  if (event && evidence.timeline.Order(*evidence.course.since(), *event) != std::partial_ordering::less)
    lone->confidence = thresholds::kLoneCandidate;
}

bool AnyCommunicatorIsComplete(const Timeline& timeline) {
  return std::any_of(timeline.events.begin(), timeline.events.end(), [](const Event& event) {
    const auto* init = std::get_if<CommInit>(&event.what);
    return init != nullptr && init->complete && init->nranks > 1;
  });
}

/// Something was done, beyond waiting for one another.
bool AnyWork(const Evidence& evidence) {
  return std::any_of(evidence.phases.begin(), evidence.phases.end(),
                     [](const PhaseSeen& phase) { return phase.at != Activity::kJoining; });
}

/// Several hosts spoke of their bootstrap and no communicator of theirs was ever complete, nor anything trained.
bool StuckInBootstrap(const Evidence& evidence, const Finding& hint) {
  std::set<std::string> hosts;
  for (const Citation& citation : hint.citations)
    if (const auto host = evidence.timeline.HostOf(evidence.timeline.events[citation.event])) hosts.insert(*host);
  return hosts.size() > 1 && !AnyWork(evidence) && !AnyCommunicatorIsComplete(evidence.timeline);
}

/// Everybody in and nothing moving turns a hint about the transport into a reason; so does a bootstrap that never ends
/// for a hint about the interface.
void LiftHints(const Evidence& evidence, std::vector<Finding>& findings) {
  for (Finding& finding : findings)
    if (finding.strength == Strength::kHint && Is(evidence.book, finding, "wrong-path") &&
        StuckInBootstrap(evidence, finding)) {
      finding.strength = Strength::kSupporting;
      finding.confidence = std::max(finding.confidence, thresholds::kStuckInBootstrap);
    }
  const auto stall =
      std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return IsStall(evidence.book, f); });
  if (stall == findings.end()) return;
  for (Finding& finding : findings) {
    if (finding.strength != Strength::kHint || &finding == &*stall) continue;
    if (!Is(evidence.book, finding, "transport")) continue;
    finding.confidence = std::min(thresholds::kMostOfAStall, finding.confidence + thresholds::kStallAdds);
    if (!finding.collective) finding.collective = stall->collective;
  }
}

/// Slow starters make everybody wait a little; where a log holds nothing behind it, they never came.
void LiftStoreBarrier(const Evidence& evidence, bool failed, std::vector<Finding>& findings) {
  if (failed || AnyWork(evidence)) return;
  for (Finding& finding : findings) {
    const Rule* rule = evidence.book.FindRule(finding.rule);
    if (rule != nullptr && rule->alone && finding.times > 1)
      finding.confidence = std::max(finding.confidence, thresholds::kNeverCame);
  }
}

/// In the same input, within what several processes print as they fall apart together.
bool IsSoonBehind(const Timeline& timeline, EventIndex first, EventIndex second) {
  constexpr std::uint64_t kLinesOfAFall = 400;
  const SourcePos a = timeline.events[first].where, b = timeline.events[second].where;
  return a.input == b.input && a.line <= b.line && b.line <= a.line + kLinesOfAFall;
}

/// A job at work that was stopped, and that nothing was wrong with before, ended because of it; so did all that fell
/// apart behind: peers that waited in vain, connections that were gone. One that had given up waiting before it was
/// stopped had ended already.
void WeighStops(const Evidence& evidence, std::vector<Finding>& findings) {
  const Timeline& timeline = evidence.timeline;
  const auto before = [&](std::optional<EventIndex> a, EventIndex b) {
    return a && timeline.Order(*a, b) == std::partial_ordering::less;
  };
  for (Finding& stop : findings) {
    const auto event = FirstEventOf(stop);
    // Who ends the rest of a job because one has failed stops it too.
    const bool follows = std::ranges::any_of(
        findings, [&](const Finding& other) { return other.cause.empty() && NamesOther(other, stop); });
    if (!Is(evidence.book, stop, "stop") || !stop.explained_by.empty() || !event || follows) continue;
    if (before(evidence.course.first_time_out(), *event)) {
      stop.strength = Strength::kHint;
      stop.confidence = std::min(stop.confidence, thresholds::kStoppedLate);
      continue;
    }
    const bool at_work = evidence.course.WorkedBefore(*event) || evidence.course.WorkedApart(*event);
    if (!at_work || before(evidence.course.since(), *event)) continue;
    const auto earlier = [&](const Finding& other) {
      return !other.cause.empty() && other.strength != Strength::kHint && !Is(evidence.book, other, "stop") &&
             before(FirstEventOf(other), *event);
    };
    if (std::ranges::any_of(findings, earlier)) continue;
    if (stop.strength == Strength::kHint) stop.strength = Strength::kSupporting;
    stop.confidence = std::max(stop.confidence, thresholds::kStoppedAtWork);
    for (Finding& other : findings) {
      const auto shown = FirstEventOf(other);
      if (!shown || !other.explained_by.empty() || Is(evidence.book, other, "stop") ||
          other.strength == Strength::kDecisive || !before(event, *shown))
        continue;
      if (Is(evidence.book, other, "aftermath") ||
          (Is(evidence.book, other, "raised") && IsSoonBehind(timeline, *event, *shown)))
        other.explained_by = stop.rule;
    }
  }
}

int Weight(Strength strength) { return static_cast<int>(strength); }

void Rank(const Timeline& timeline, std::vector<const Finding*>& causes) {
  // Insertion keeps it a total decision although Order is partial: a pair that cannot be ordered is compared by
  // confidence and then by rule, which is the same on every machine.
  const auto before = [&](const Finding* a, const Finding* b) {
    if (a->strength != b->strength) return Weight(a->strength) > Weight(b->strength);
    // Of two for one cause, that which names the other says more of it.
    if (a->cause == b->cause && NamesOther(*a, *b) != NamesOther(*b, *a)) return NamesOther(*a, *b);
    if (a->strength != Strength::kHint) {
      const auto order = OrderOf(timeline, *a, *b);
      if (order == std::partial_ordering::less) return true;
      if (order == std::partial_ordering::greater) return false;
    }
    if (a->confidence != b->confidence) return a->confidence > b->confidence;
    return a->rule < b->rule;
  };
  for (std::size_t i = 1; i < causes.size(); ++i)
    for (std::size_t j = i; j > 0 && before(causes[j], causes[j - 1]); --j) std::swap(causes[j], causes[j - 1]);
}

/// Something went wrong for certain: a process ended badly, an operation timed out, an exception was not caught.
bool Failed(const Evidence& evidence, const std::vector<Finding>& findings) {
  return evidence.course.failed() || std::any_of(findings.begin(), findings.end(), [](const Finding& f) {
           return f.cause.empty() || f.strength != Strength::kHint;
         });
}

/// Somebody said that the job ended well, and nothing that anybody complained of, be it a hint, is left that the work
/// that went on did not undo. What survivors print when all is torn down comes behind the ending.
bool EndedWell(const Evidence& evidence, const std::vector<Finding>& findings) {
  const Course& course = evidence.course;
  if (!course.ended_well()) return false;
  const Timeline& timeline = evidence.timeline;
  return std::all_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    if (finding.citations.empty()) return finding.strength == Strength::kHint && course.worked();
    const EventIndex event = FirstEventOf(finding).value_or(finding.citations.front().event);
    if (IsAlone(evidence.book, finding) || IsStall(evidence.book, finding)) return course.WentOn(event);
    // A hint in a file that is not the job's did it no harm.
    const auto same_input = [&](EventIndex ending) {
      return timeline.events[ending].where.input == timeline.events[event].where.input;
    };
    if (finding.strength == Strength::kHint && course.worked() && std::ranges::none_of(course.endings(), same_input))
      return true;
    // What weighs no more than a warning is one, where a good end stands behind it.
    if (!finding.cause.empty() && finding.strength == Strength::kHint &&
        finding.confidence <= thresholds::kOfAWarning &&
        timeline.Order(event, course.endings().front()) == std::partial_ordering::less)
      return true;
    // Trouble of a host that no line of a job at work complains of did the job no harm; where somebody says that it
    // ended.
    if (IsOfKernel(timeline.events[event].what) || IsOfHost(timeline.events[event].what))
      return course.worked() && !(course.only_weighed() && finding.strength == Strength::kDecisive);
    if (course.WentOn(event, finding.strength == Strength::kHint ? 1 : Course::kStepsThatUndo)) return true;
    if (finding.strength != Strength::kDecisive && course.IsBehindEnd(event)) return true;
    return finding.cause.empty() && timeline.Order(course.endings().front(), event) == std::partial_ordering::less;
  });
}

/// Somebody stopped a job that was at work: its last sign of life is training, and nothing else is wrong. A stop of a
/// job that stood still is the end of another story.
const Finding* OnlyStopped(const Evidence& evidence, const std::vector<const Finding*>& causes) {
  const bool only = !causes.empty() && std::all_of(causes.begin(), causes.end(),
                                                   [&](const Finding* f) { return Is(evidence.book, *f, "stop"); });
  if (!only || !evidence.timeline.collectives.empty()) return nullptr;
  const PhaseSeen* last = nullptr;
  for (const PhaseSeen& phase : evidence.phases)
    if (const auto stop = FirstEventOf(*causes.front()); stop && phase.event <= *stop) last = &phase;
  return last != nullptr && last->at == Activity::kTraining ? causes.front() : nullptr;
}

/// What was missing when a communicator was set up was not needed, where one was complete.
bool SetUpRefutes(const Timeline& timeline, const RuleBook& book, const Finding& hint) {
  return Is(book, hint, "set-up") && AnyCommunicatorIsComplete(timeline);
}

/// Who hands over a few lines, one of which complains, has cut out what went wrong. States of hosts beside them count
/// for nothing.
bool IsExcerpt(const Evidence& evidence, const Finding& hint) {
  const Timeline& timeline = evidence.timeline;
  std::vector<bool> state(timeline.inputs.size()), other(timeline.inputs.size());
  for (const Event& event : timeline.events)
    if (IsOfHost(event.what))
      state[event.where.input] = true;
    else if (!std::holds_alternative<LogMessage>(event.what))
      other[event.where.input] = true;
  for (const Citation& citation : hint.citations) other[citation.where.input] = true;
  std::uint64_t lines = 0;
  for (std::size_t i = 0; i < timeline.inputs.size(); ++i)
    if (other[i] || !state[i]) lines += timeline.inputs[i].lines;
  return lines <= thresholds::kExcerptLines && hint.confidence >= thresholds::kLeastOfAnExcerpt &&
         evidence.book.FindRule(hint.rule) != nullptr && !SetUpRefutes(timeline, evidence.book, hint);
}

/// A state of a host or a set-up proves nothing against a job that ended well, nor what another finding shows not to be
/// so.
void DropRefuted(const Evidence& evidence, std::vector<Finding>& findings) {
  const auto is_refuted = [&](const Finding& finding) {
    const FindingRule* relation = evidence.book.FindFinding(finding.rule);
    if (relation == nullptr) return false;
    return std::ranges::any_of(relation->refuted_by, [&](const std::string& by) {
      if (by == kGoodEnd) return evidence.course.ended_well();
      if (by == kOnlyBetweenHosts) return OnlyBetweenHosts(evidence.timeline);
      return std::ranges::any_of(findings, [&](const Finding& other) {
        return other.rule == by || (other.cause == by && other.strength != Strength::kHint);
      });
    });
  };
  std::vector<Finding> left;  // each is held against all, whatever their order
  std::ranges::copy_if(findings, std::back_inserter(left), std::not_fn(is_refuted));
  findings = std::move(left);
}

/// Candidates for another cause that are nearly as sure as the first: what they ask for would decide between them.
std::vector<const Finding*> Rivals(const std::vector<const Finding*>& causes) {
  std::vector<const Finding*> out;
  for (const Finding* finding : causes)
    if (finding->cause != causes.front()->cause &&
        finding->confidence >= causes.front()->confidence - thresholds::kRival)
      out.push_back(finding);
  return out;
}

/// Two ranks broke, each of something else, and nothing says which was first: whichever is told may be the second, even
/// where what befell the one could explain the other.
bool MayBeSecond(const Evidence& evidence, const Finding& top, const std::vector<Finding>& findings) {
  return IsOfProgram(evidence, top) && std::ranges::any_of(findings, [&](const Finding& other) {
           return other.cause != top.cause && other.strength != Strength::kHint &&
                  (other.explained_by.empty() || other.explained_by == top.rule) && IsOfProgram(evidence, other) &&
                  top.culprits.front().rank != other.culprits.front().rank &&
                  OrderOf(evidence.timeline, top, other) == std::partial_ordering::unordered;
         });
}

}  // namespace

Verdict Judge(const Evidence& evidence, std::vector<Finding> findings) {
  const Timeline& timeline = evidence.timeline;
  DropRefuted(evidence, findings);
  NoteWhatWorkOutlived(evidence, findings);
  LiftHints(evidence, findings);
  LiftStoreBarrier(evidence, Failed(evidence, findings), findings);
  WeighStops(evidence, findings);
  NoteWhatFollows(evidence, findings);
  LiftLoneCandidate(evidence, findings);
  Verdict verdict;
  std::vector<const Finding*> causes, aside;
  for (const Finding& finding : findings)
    if (!finding.cause.empty()) (finding.explained_by.empty() ? causes : aside).push_back(&finding);
  Rank(timeline, causes);
  Rank(timeline, aside);
  std::vector<const Finding*> order = causes;
  order.insert(order.end(), aside.begin(), aside.end());
  std::vector<const Finding*> symptoms;
  for (const Finding& finding : findings)
    if (finding.cause.empty()) symptoms.push_back(&finding);
  // A relation says more than the line that it stands on.
  std::stable_sort(symptoms.begin(), symptoms.end(), [&](const Finding* a, const Finding* b) {
    const SourcePos x = timeline.events[a->citations.front().event].where,
                    y = timeline.events[b->citations.front().event].where;
    const bool first = evidence.book.FindRule(a->rule) == nullptr, second = evidence.book.FindRule(b->rule) == nullptr;
    return x != y ? x < y : first && !second;
  });
  order.insert(order.end(), symptoms.begin(), symptoms.end());
  for (const Finding* finding : order) verdict.findings.push_back(*finding);
  const bool failed = Failed(evidence, findings);
  if (EndedWell(evidence, findings)) {
    TellHealthy(evidence, verdict);
    return verdict;
  }
  if (const Finding* stopped = OnlyStopped(evidence, causes); stopped != nullptr) {
    Finding sure = *stopped;
    sure.confidence = std::max(sure.confidence, thresholds::kOnlyStopped);
    verdict.findings.insert(verdict.findings.begin(), sure);
    std::erase_if(verdict.findings,
                  [&](const Finding& f) { return &f != &verdict.findings.front() && f.rule == sure.rule; });
    TellFailed(timeline, evidence.book, verdict.findings.front(), {}, verdict);
    return verdict;
  }
  const bool hint_without_failure =
      !causes.empty() && !IsExcerpt(evidence, *causes.front()) && causes.front()->strength == Strength::kHint &&
      !failed &&
      std::none_of(causes.begin(), causes.end(), [&](const Finding* f) { return IsAlone(evidence.book, *f); });
  if (!causes.empty() && causes.front()->confidence >= thresholds::kLeastConfidence && !hint_without_failure) {
    TellFailed(timeline, evidence.book, verdict.findings.front(), Rivals(causes), verdict);
    if (MayBeSecond(evidence, verdict.findings.front(), verdict.findings))
      verdict.confidence = std::min(verdict.confidence, thresholds::kMayBeSecond);
  } else {
    TellUnknown(timeline, evidence.book, failed, verdict);
  }
  // What a consequence explains is none of the candidates that are left.
  const auto is_consequence = [&](const Finding* finding) {
    return std::ranges::any_of(findings,
                               [&](const Finding& by) { return by.cause.empty() && by.rule == finding->explained_by; });
  };
  std::vector<const Finding*> others = causes;
  std::ranges::copy_if(aside, std::back_inserter(others), std::not_fn(is_consequence));
  verdict.alternatives =
      AlternativesOf(others, verdict.cause, verdict.outcome == Outcome::kFailed ? verdict.confidence : 1);
  return verdict;
}

}  // namespace inquest
