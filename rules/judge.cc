// Weighs findings into one verdict.
#include "rules/judge.h"
#include "rules/facts.h"
#include "rules/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "core/host_name.h"
#include "rules/collect.h"
#include "rules/detectors.h"
#include "rules/evidence.h"
#include "rules/host_states.h"
#include "rules/job_identity.h"
#include "rules/picture.h"
#include "rules/thresholds.h"
#include "timeline/agreement.h"
#include "timeline/attempts.h"
#include "timeline/two_jobs.h"

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

constexpr std::size_t kEvidenceLines = 8;
constexpr std::size_t kMostToCollect = 8;
constexpr std::size_t kSymptomLines = 3;  ///< of one symptom: seven ranks saying the same prove no more than three

bool Is(const RuleBook& book, const Finding& finding, std::string_view trait) {
  const Cause* cause = book.FindCause(finding.cause);
  return cause != nullptr && cause->Is(trait);
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

/// What silences a rank from outside the framework, or inside it.
bool KillsARank(const RuleBook& book, const Finding& finding) {
  return !Is(book, finding, "aftermath") && finding.strength != Strength::kHint;
}

std::optional<EventIndex> FirstEvent(const Finding& finding) {
  for (const Citation& citation : finding.citations)
    if (citation.role == "cause") return citation.event;
  return std::nullopt;
}

std::partial_ordering Order(const Timeline& timeline, const Finding& a, const Finding& b) {
  const auto x = FirstEvent(a), y = FirstEvent(b);
  if (!x || !y) return std::partial_ordering::unordered;
  return timeline.Order(*x, *y);
}

bool Names(const Finding& finding, const Finding& other) {
  return std::any_of(finding.explains.begin(), finding.explains.end(),
                     [&](const std::string& what) { return what == other.rule || what == other.cause; });
}

/// The moment or place at which the others gave up waiting: what comes later explains nothing of it.
std::optional<EventIndex> FirstTimeOut(const Timeline& timeline) {
  std::optional<EventIndex> first;
  for (const CollectiveRow& row : timeline.collectives)
    for (const auto& waiter : row.waiters)
      if (!first || waiter.event < *first) first = waiter.event;
  return first;
}

std::string_view LayerOf(const RuleBook& book, const Finding& finding) {
  const Cause* cause = book.FindCause(finding.cause);
  return cause == nullptr ? std::string_view() : std::string_view(cause->layer);
}

/// Order by clocks alone: where a snapshot or an epilog stands in a file says nothing about when it happened.
std::partial_ordering ClockOrder(const Timeline& timeline, EventIndex a, EventIndex b) {
  const bool timed =
      timeline.events[a].at && timeline.events[b].at && timeline.events[a].at->date == timeline.events[b].at->date;
  return timed ? timeline.Order(a, b) : std::partial_ordering::unordered;
}

bool Explains(const Timeline& timeline, const RuleBook& book, const Finding& by, const Finding& what) {
  if (&by == &what || by.cause == what.cause) return false;
  const auto order = Order(timeline, by, what);
  // What follows from something else is no reason of what was there before it.
  if (Is(book, by, "aftermath") && what.strength != Strength::kHint && !what.cause.empty() &&
      order == std::partial_ordering::greater)
    return false;
  if (Names(by, what)) return order != std::partial_ordering::greater || Names(what, by) == false;
  if (by.cause.empty()) return false;
  if (by.strength == Strength::kHint) return false;
  if (Is(book, what, "stop"))
    return order != std::partial_ordering::greater && !Is(book, by, "lost-peer") && !Names(what, by);
  const std::string_view layer = LayerOf(book, by);
  const bool from_below = layer == "device" || layer == "host";
  if (LayerOf(book, what) == "network" && KillsARank(book, by) && layer != "network") {
    // A dead peer looks like a broken network from afar; a network error that says what it is yields only to an earlier
    // death.
    return what.strength == Strength::kDecisive ? order == std::partial_ordering::less
                                                : order != std::partial_ordering::greater;
  }
  if (Is(book, what, "absence") && what.strength != Strength::kDecisive && KillsARank(book, by)) {
    // The absence begins before the time-out that shows it; a death counts if it is not later than that time-out.
    const auto death = FirstEvent(by), shown = FirstTimeOut(timeline);
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
      if (Names(what, by) && Names(by, what)) {
        const auto order = Order(timeline, by, what);
        if (order == std::partial_ordering::greater) continue;
        if (order != std::partial_ordering::less && by.confidence <= what.confidence && by.rule > what.rule) continue;
      }
      what.explained_by = by.rule;
      break;
    }
  }
}

/// A complaint that the work outlived is a note: its process neither ended nor stood still because of it. Not of the
/// kernel or of a tool, whose lines are not in the job's order; and where the line alone names the first cause, only
/// what went on for long.
void NoteWhatWorkOutlived(const Evidence& evidence, std::vector<Finding>& findings) {
  std::map<std::string_view, EventIndex> last;
  for (const LineMatch& match : evidence.matches) {
    const auto [line, is_new] = last.try_emplace(evidence.book.rules[match.rule].id, match.event);
    // What Python ignored says nothing of what the same words meant elsewhere.
    if (!is_new && !evidence.course.WasIgnored(match.event)) line->second = match.event;
  }
  for (Finding& finding : findings) {
    const auto line = last.find(finding.rule);
    if (finding.cause.empty() || line == last.end()) continue;
    const What& what = evidence.timeline.events[line->second].what;
    if (finding.strength == Strength::kDecisive &&
        (IsOfKernel(what) || IsOfHost(what) || !evidence.course.LongOutlived(line->second)))
      continue;
    const bool came_up = finding.strength == Strength::kHint &&
                         (evidence.course.ServedAfter(line->second) || evidence.course.LoopRanBehind(line->second));
    if (!IsOfKernel(what) && !IsOfHost(what) && (came_up || evidence.course.WentOn(line->second)))
      finding.explained_by = "work-went-on";
    else if (evidence.course.ended_well() && evidence.course.IsBehindEnd(line->second))
      finding.explained_by = "program-had-ended";
    if (!finding.explained_by.empty()) finding.strength = Strength::kHint;
  }
}

/// Behind a time-out the ranks abort, and with them go the connections and the store that the others still ask.
void NoteWhatFollowsATimeOut(const Evidence& evidence, std::vector<Finding>& findings) {
  const auto first = evidence.course.first_time_out();
  if (!first) return;
  for (Finding& finding : findings) {
    const bool consequence = Is(evidence.book, finding, "aftermath") && !Is(evidence.book, finding, "absence") &&
                             !Is(evidence.book, finding, "stop") && finding.strength != Strength::kDecisive;
    const auto shown = FirstEvent(finding);
    if (consequence && finding.explained_by.empty() && shown &&
        evidence.timeline.Order(*first, *shown) == std::partial_ordering::less)
      finding.explained_by = "time-out";
  }
}

/// The agent on whose host the store lives ends with its workers, and the agents of the other hosts lose it: behind a
/// worker's bad end a network that fails says nothing new.
void NoteWhatFollowsAWorker(const Evidence& evidence, std::vector<Finding>& findings) {
  const std::vector<Event>& events = evidence.timeline.events;
  const auto ended = std::ranges::find_if(events, [](const Event& event) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    return exit != nullptr && exit->reporter == "torchelastic" && IsBadExit(event.what) &&
           exit->signal.value_or(0) != 15;
  });
  if (ended == events.end()) return;
  for (Finding& finding : findings) {
    const auto shown = FirstEvent(finding);
    if (Is(evidence.book, finding, "aftermath") && LayerOf(evidence.book, finding) == "network" &&
        finding.strength != Strength::kDecisive && finding.explained_by.empty() && shown &&
        evidence.timeline.Order(static_cast<EventIndex>(ended - events.begin()), *shown) == std::partial_ordering::less)
      finding.explained_by = "worker-ended";
  }
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
  const auto event = FirstEvent(*lone);
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
                     [](const PhaseSeen& phase) { return phase.kind != "joining"; });
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
/// apart behind: peers that waited in vain, connections that were gone.
void LiftStops(const Evidence& evidence, std::vector<Finding>& findings) {
  const Timeline& timeline = evidence.timeline;
  const auto before = [&](std::optional<EventIndex> a, EventIndex b) {
    return a && timeline.Order(*a, b) == std::partial_ordering::less;
  };
  for (Finding& stop : findings) {
    const auto event = FirstEvent(stop);
    // Who ends the rest of a job because one has failed stops it too.
    const bool follows =
        std::ranges::any_of(findings, [&](const Finding& other) { return other.cause.empty() && Names(other, stop); });
    if (!Is(evidence.book, stop, "stop") || !stop.explained_by.empty() || !event || follows) continue;
    const bool at_work = evidence.course.WorkedBefore(*event) || evidence.course.WorkedApart(*event);
    if (!at_work || before(evidence.course.since(), *event)) continue;
    const auto earlier = [&](const Finding& other) {
      return !other.cause.empty() && other.strength != Strength::kHint && !Is(evidence.book, other, "stop") &&
             before(FirstEvent(other), *event);
    };
    if (std::ranges::any_of(findings, earlier)) continue;
    if (stop.strength == Strength::kHint) stop.strength = Strength::kSupporting;
    stop.confidence = std::max(stop.confidence, thresholds::kStoppedAtWork);
    for (Finding& other : findings) {
      const auto shown = FirstEvent(other);
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
    if (a->cause == b->cause && Names(*a, *b) != Names(*b, *a)) return Names(*a, *b);
    if (a->strength != Strength::kHint) {
      const auto order = Order(timeline, *a, *b);
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
    const EventIndex event = FirstEvent(finding).value_or(finding.citations.front().event);
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
    // Trouble of a host that no line of a job at work complains of did the job no harm.
    if (IsOfKernel(timeline.events[event].what) || IsOfHost(timeline.events[event].what)) return course.worked();
    if (course.WentOn(event, finding.strength == Strength::kHint ? 1 : Course::kStepsThatUndo)) return true;
    if (finding.strength != Strength::kDecisive && course.IsBehindEnd(event)) return true;
    return finding.cause.empty() && timeline.Order(course.endings().front(), event) == std::partial_ordering::less;
  });
}

std::string SymptomsInWords(const Timeline& timeline, const Verdict& verdict) {
  if (!timeline.collectives.empty()) {
    const CollectiveRow& row = timeline.collectives.front();
    std::vector<int> ranks;
    for (const auto& waiter : row.waiters) ranks.push_back(waiter.rank.value);
    const bool gave_up = std::ranges::any_of(row.waiters, [&](const CollectiveRow::Waiter& waiter) {
      const auto* timed_out = std::get_if<WorkTimedOut>(&timeline.events[waiter.event].what);
      return timed_out == nullptr || timed_out->how != WorkTimedOut::How::kAsyncError;
    });
    const std::string where = fmt::format("{}{}", row.work.op.empty() ? "an operation" : row.work.op,
                                          row.work.seq ? fmt::format(" #{}", row.work.seq->value) : "");
    if (!gave_up)
      return fmt::format("Rank{} {} in {} when it failed.", ranks.size() > 1 ? "s" : "",
                         FoldRanks(ranks) + (ranks.size() > 1 ? " were" : " was"), where);
    std::string out = fmt::format("Rank{} {} waited in {}", ranks.size() > 1 ? "s" : "", FoldRanks(ranks), where);
    if (row.work.timeout_ms) out += fmt::format(" until the time-out of {} s", *row.work.timeout_ms / 1000);
    return out + ".";
  }
  std::vector<std::string> symptoms;
  for (const Finding& finding : verdict.findings)
    if (finding.cause.empty() && symptoms.size() < 2) symptoms.push_back(finding.claim);
  if (symptoms.empty()) return "";
  return "What followed: " + symptoms.front();
}

/// A rule's claim says what; the culprits say who. Empty where the rule is a detector, whose claim says both.
std::string WhoAndWhat(const Verdict& verdict, const std::string& claim) {
  std::vector<int> ranks;
  for (const Culprit& culprit : verdict.culprits)
    if (culprit.rank) ranks.push_back(culprit.rank->value);
  if (claim.empty() || ranks.empty()) return claim;
  const std::optional<std::string>& host = verdict.culprits.front().host;
  return fmt::format("Rank{} {}{}: {}", ranks.size() > 1 ? "s" : "", FoldRanks(ranks),
                     ranks.size() == 1 && host ? " on " + *host : "", claim);
}

void AddUnique(std::vector<std::string>& list, const std::vector<std::string>& more) {
  for (const std::string& item : more)
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

/// The same command is the same remedy, whatever is said of it; the first, a finding's own, says more.
void AddUnique(std::vector<Remedy>& list, const std::vector<Remedy>& more) {
  const auto same = [](const Remedy& a, const Remedy& b) {
    return a.text == b.text || (!a.command.empty() && a.command == b.command);
  };
  for (const Remedy& item : more)
    if (std::none_of(list.begin(), list.end(), [&](const Remedy& r) { return same(r, item); })) list.push_back(item);
}

/// What the cause advises, behind a finding's own advice; but what keeps evidence stands before what takes it away,
/// whoever says it.
void AddAdvice(std::vector<Remedy>& own, const std::vector<Remedy>& cause) {
  const auto takes_away = std::ranges::find_if(own, &Remedy::destructive);
  const auto of_cause = std::ranges::find_if(cause, &Remedy::destructive);
  std::vector<Remedy> out(own.begin(), takes_away);
  AddUnique(out, {cause.begin(), of_cause});
  AddUnique(out, {takes_away, own.end()});
  AddUnique(out, {of_cause, cause.end()});
  own = std::move(out);
}

void AddEvidence(Verdict& verdict, const std::vector<Citation>& citations, std::size_t most = kEvidenceLines) {
  for (const Citation& citation : citations) {
    if (verdict.evidence.size() >= kEvidenceLines || most-- == 0) return;
    if (std::none_of(verdict.evidence.begin(), verdict.evidence.end(), [&](const Citation& c) {
          return c.where.input == citation.where.input && c.where.line == citation.where.line;
        }))
      verdict.evidence.push_back(citation);
  }
}

/// A finding that names nobody borrows from another one of the same cause: the line that says why and the report that
/// says who are seldom the same. One that names hosts borrows their ranks only.
std::vector<Culprit> Borrowed(const RuleBook& book, const Finding& top, const std::vector<Finding>& findings) {
  std::vector<Culprit> hosts;
  const auto there = [&](const Culprit& culprit) {
    return culprit.host && std::any_of(top.culprits.begin(), top.culprits.end(),
                                       [&](const Culprit& own) { return own.host == culprit.host; });
  };
  const auto elsewhere = [&](const Culprit& culprit) {
    const auto same = [&](const Culprit& own) { return !own.host || !culprit.host || own.host == culprit.host; };
    return !top.culprits.empty() && std::none_of(top.culprits.begin(), top.culprits.end(), same);
  };
  for (const Finding& finding : findings) {
    if (&finding == &top || finding.cause != top.cause) continue;
    std::vector<Culprit> culprits = finding.culprits;
    std::erase_if(culprits, elsewhere);
    if (std::any_of(culprits.begin(), culprits.end(), [](const Culprit& c) { return c.rank.has_value(); }))
      return culprits;
    if (hosts.empty() && top.culprits.empty()) hosts = std::move(culprits);
  }
  // Who was stopped is who did not come any more.
  for (const Finding& finding : findings)
    if (Is(book, top, "stop") && top.culprits.empty() && Is(book, finding, "absence") &&
        finding.explained_by == top.rule && !finding.culprits.empty())
      return finding.culprits;
  // What befell a host befell the ranks there that the others waited for.
  for (const Finding& finding : findings) {
    const bool waited_for = Is(book, finding, "absence") && !finding.culprits.empty() &&
                            std::all_of(finding.culprits.begin(), finding.culprits.end(),
                                        [&](const Culprit& c) { return c.rank && there(c); });
    if (!waited_for || finding.explained_by != top.rule) continue;
    std::vector<Culprit> culprits = finding.culprits;
    for (Culprit& culprit : culprits) culprit.why += "; " + top.culprits.front().why;
    return culprits;
  }
  return hosts;
}

/// An exception that a process did not catch is its own end.
bool IsOfProcess(const Timeline& timeline, const Finding& finding) {
  return !finding.citations.empty() &&
         std::holds_alternative<ExceptionRaised>(timeline.events[finding.citations.front().event].what);
}

/// Whether a process did it to itself.
bool IsOwnDoing(const Timeline& timeline, const RuleBook& book, const std::vector<Finding>& findings,
                const std::string& cause) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    const Rule* rule = book.FindRule(finding.rule);
    return finding.cause == cause &&
           (rule == nullptr ? IsOfProcess(timeline, finding) : rule->blames == Rule::Blames::kPrinter);
  });
}

/// What a process does to itself was done by the one that ended first, as its launcher says, by the only one that ended
/// with an error, as its parent saw it, or by the only one that never came to the operation in which the others waited.
std::vector<Culprit> OnlyFailed(const Timeline& timeline, const std::optional<CollectiveRef>& collective) {
  const auto only_one = [&](auto&& counts) {
    std::optional<GlobalRank> only;
    for (const Event& event : timeline.events) {
      const auto* exit = std::get_if<ProcessExit>(&event.what);
      const auto rank = exit != nullptr && counts(*exit) ? RankOfExit(timeline, event) : std::nullopt;
      if (rank && only && *rank != *only) return std::optional<GlobalRank>();
      if (rank) only = rank;
    }
    return only;
  };
  if (const auto first = only_one([](const ProcessExit& exit) { return exit.first_observed && IsBadExit(exit); }))
    return {BlameRank(timeline, *first, "the first that ended, as its launcher saw it")};
  if (const auto only =
          only_one([](const ProcessExit& exit) { return !exit.signal && exit.exit_code.value_or(0) != 0; }))
    return {BlameRank(timeline, *only, "the only one that ended with an error")};
  if (collective && collective->ranks_absent.size() == 1 && !collective->ranks_waiting.empty())
    return {BlameRank(timeline, GlobalRank{collective->ranks_absent.front()},
                      "the only one that did not come to the operation in which the others waited")};
  return {};
}

void FillFromTop(const Timeline& timeline, const RuleBook& book, const Finding& top,
                 const std::vector<const Finding*>& rivals, Verdict& verdict) {
  verdict.outcome = Outcome::kFailed;
  verdict.cause = top.cause;
  verdict.rule = top.rule;
  verdict.confidence = top.confidence;
  verdict.culprits = top.culprits;
  const bool names_rank =
      std::any_of(top.culprits.begin(), top.culprits.end(), [](const Culprit& c) { return c.rank.has_value(); });
  if (!names_rank)
    if (std::vector<Culprit> borrowed = Borrowed(book, top, verdict.findings); !borrowed.empty())
      verdict.culprits = std::move(borrowed);
  const bool names_any = names_rank || std::any_of(verdict.culprits.begin(), verdict.culprits.end(),
                                                   [](const Culprit& c) { return c.rank.has_value(); });
  verdict.collective = top.collective;
  if (!verdict.collective && !timeline.collectives.empty())
    verdict.collective = RefOf(timeline, timeline.collectives.front());
  if (verdict.collective && verdict.collective->ranks_absent.empty())
    for (const Finding& finding : verdict.findings)
      if (finding.collective && finding.collective->seq == verdict.collective->seq &&
          !finding.collective->ranks_absent.empty()) {
        verdict.collective->ranks_absent = finding.collective->ranks_absent;
        break;
      }
  // Who failed first of what the network did says at least between whom.
  const bool of_network = LayerOf(book, top) == "network" && top.culprits.empty();
  if (!names_any && (of_network || IsOwnDoing(timeline, book, verdict.findings, top.cause)))
    if (std::vector<Culprit> only = OnlyFailed(timeline, verdict.collective); !only.empty())
      verdict.culprits = std::move(only);
  AddEvidence(verdict, top.citations);
  for (const Finding& finding : verdict.findings)
    if (&finding != &top && finding.cause == top.cause && finding.explained_by.empty())
      AddEvidence(verdict, finding.citations);
  for (const Finding& finding : verdict.findings)
    if (finding.cause.empty()) AddEvidence(verdict, finding.citations, kSymptomLines);
  verdict.remedies = top.remedies;
  verdict.collect_next = top.collect;
  for (const Finding* other : rivals) AddUnique(verdict.collect_next, other->collect);
  verdict.retry = top.retry;
  if (const Cause* cause = book.FindCause(top.cause)) {
    verdict.title = cause->title;
    if (const Rule* rule = book.FindRule(top.rule); rule == nullptr || !rule->own_advice)
      AddAdvice(verdict.remedies, cause->remedies);
    AddUnique(verdict.collect_next, cause->collect);
    if (verdict.retry.empty()) verdict.retry = cause->retry;
  }
  const std::string symptoms = SymptomsInWords(timeline, verdict);
  const std::string claim = WhoAndWhat(verdict, book.FindRule(top.rule) != nullptr ? top.claim : "");
  if (!claim.empty()) {
    verdict.summary = symptoms.empty() ? claim : claim + " " + symptoms;
    return;
  }
  verdict.summary = symptoms.empty() || (verdict.collective && top.claim.find("waited") != std::string::npos)
                        ? top.claim
                        : top.claim + " " + symptoms;
}

/// Whether the job wrote it, as far as one can tell: no kernel log, no tool's table, no file of a host's own folder.
bool IsOfJob(const InputSummary& input, const Event& event) {
  static const std::set<std::string_view> kOfJobs = {
      "nccl",     "pytorch-watchdog", "pytorch-c10d", "torchelastic", "torchelastic-error-file", "python-traceback",
      "launcher", "framework",        "crash"};
  if (input.kinds.empty()) return !input.host || event.origin.rank || event.origin.pid;
  return std::any_of(input.kinds.begin(), input.kinds.end(),
                     [](const std::string& kind) { return kOfJobs.contains(kind); });
}

/// Where nothing tells, what was printed last is all there is to show: the end of each input of the job's, and each
/// rank's last call.
std::vector<Citation> LastWords(const Timeline& timeline) {
  std::vector<std::optional<EventIndex>> last(timeline.inputs.size());
  for (EventIndex i = 0; i < timeline.events.size(); ++i) last[timeline.events[i].where.input] = i;
  std::vector<Citation> out;
  for (const auto& index : last)
    if (index && out.size() < 4 &&
        IsOfJob(timeline.inputs[timeline.events[*index].where.input], timeline.events[*index]))
      out.push_back(Cite(timeline, *index, "context"));
  for (const CommunicatorRow& row : timeline.communicators)
    for (const auto& member : row.members)
      if (member.last_op_count && out.size() < 8)
        out.push_back({0, "context", member.last_call_at, member.last_call_time, std::nullopt, member.last_call_text});
  return out;
}

/// How a process ended, as far as it tells one end from another.
std::pair<std::optional<int>, std::optional<int>> HowItEnded(const ProcessExit& exit) {
  return {exit.exit_code, exit.signal};
}

/// Which of two ends was first: by clock, or by a launcher that tells of each as it comes. `stops`: where a scheduler
/// said that it ends the job or a step.
std::partial_ordering EndOrder(const Timeline& timeline, const std::set<SourcePos>& stops, EventIndex a, EventIndex b) {
  const Event &x = timeline.events[a], &y = timeline.events[b];
  if (x.at && y.at) return timeline.Order(a, b);
  if (!EndsATask(x.what) || !EndsATask(y.what) || x.where.input != y.where.input)
    return std::partial_ordering::unordered;
  const auto stop = stops.upper_bound(std::min(x.where, y.where));
  const bool stopped_between = stop != stops.end() && *stop < std::max(x.where, y.where);
  // Of many that end alike the order in which srun hears of them says nothing, unless the step was ended because of
  // some.
  if (!stopped_between && HowItEnded(std::get<ProcessExit>(x.what)) == HowItEnded(std::get<ProcessExit>(y.what)))
    return std::partial_ordering::unordered;
  return x.where.line <=> y.where.line;
}

/// The one of many tasks that the end of its step did not have to stop: it was gone by then.
std::optional<int> LeftBeforeTheStop(const Timeline& timeline) {
  constexpr std::size_t kLeast = 8;
  constexpr int kTerm = 15;
  std::set<int> stopped;
  for (const Event& event : timeline.events) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    if (exit == nullptr || !exit->rank || !EndsATask(event.what)) continue;
    if (exit->signal != kTerm) return std::nullopt;  // it is told who left how
    stopped.insert(exit->rank->value);
  }
  if (stopped.size() < kLeast || static_cast<std::size_t>(*stopped.rbegin()) != stopped.size()) return std::nullopt;
  int left = 0;
  while (stopped.contains(left)) ++left;
  return left;
}

/// Who ended badly first, by a launcher's word: where nothing says why, that is the rank whose own log would.
std::vector<Culprit> FirstToEnd(const Timeline& timeline) {
  constexpr int kTerm = 15;
  constexpr std::size_t kMostHeld = 512;  ///< against one another; of more nobody was first
  if (const auto left = LeftBeforeTheStop(timeline))
    return {BlameRank(timeline, GlobalRank{*left}, "the only one that the end of the step did not have to stop")};
  std::map<int, std::pair<EventIndex, bool>>
      ended;  // by rank: its first bad end, and whether it is known to be the first of all
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* exit = std::get_if<ProcessExit>(&timeline.events[i].what);
    if (!IsBadExit(timeline.events[i].what) || exit->signal == kTerm) continue;
    const auto rank = RankOfExit(timeline, timeline.events[i]);
    if (!rank) continue;
    auto& known = ended.try_emplace(rank->value, i, false).first->second;
    known.second = known.second || exit->first_observed;
  }
  const bool told = std::ranges::any_of(ended, [](const auto& end) { return end.second.second; });
  if (told) std::erase_if(ended, [](const auto& end) { return !end.second.second; });  // of each agent the first
  if (ended.size() > kMostHeld) return {};
  std::set<SourcePos> stops;
  for (const Event& event : timeline.events)
    if (IsSchedulersStop(event.what)) stops.insert(event.where);
  std::vector<Culprit> out;
  for (const auto& [rank, end] : ended) {
    const EventIndex own = end.first;  // Clang 14 takes no structured binding into a lambda
    const auto earlier = [&](const auto& other) {
      return EndOrder(timeline, stops, other.second.first, own) == std::partial_ordering::less;
    };
    if (std::ranges::none_of(ended, earlier))
      out.push_back(BlameRank(timeline, GlobalRank{rank}, "ended badly first, and nothing given says why"));
  }
  // All of them: nobody was first.
  return out.size() > 1 && out.size() >= timeline.KnownRanks() ? std::vector<Culprit>() : out;
}

void FillUnknown(const Timeline& timeline, const RuleBook& book, bool failed, Verdict& verdict) {
  failed = failed || (timeline.recorded->gave_up && timeline.recorded_fits);
  verdict.outcome = Outcome::kUndecided;
  verdict.cause = "unknown";
  verdict.confidence = 0;
  if (!timeline.collectives.empty()) verdict.collective = RefOf(timeline, timeline.collectives.front());
  const std::string symptoms = SymptomsInWords(timeline, verdict);
  verdict.summary = failed ? "The job failed, and nothing given says why."
                           : "Nothing here says that the job failed, and nothing says that it ended well.";
  if (!symptoms.empty()) verdict.summary += " " + symptoms;
  // What nothing explains is what a reader would point at.
  for (const bool explained : {false, true})
    for (const Finding& finding : verdict.findings)
      if (finding.explained_by.empty() != explained) AddEvidence(verdict, finding.citations);
  for (const Finding& finding : verdict.findings) AddUnique(verdict.collect_next, finding.collect);
  if (const Cause* cause = book.FindCause("unknown")) {
    verdict.title = cause->title;
    AddUnique(verdict.remedies, cause->remedies);
    AddUnique(verdict.collect_next, cause->collect);
    verdict.retry = cause->retry;
  }
  if (failed) verdict.culprits = FirstToEnd(timeline);
  // Whom a consequence names by its number is who was missed.
  for (const Finding& finding : verdict.findings)
    if (failed && verdict.culprits.empty() && finding.cause.empty()) verdict.culprits = finding.culprits;
  if (verdict.evidence.empty()) AddEvidence(verdict, LastWords(timeline));
}

void FillHealthy(const Evidence& evidence, Verdict& verdict) {
  verdict.outcome = Outcome::kHealthy;
  verdict.cause = "healthy";
  verdict.confidence = evidence.course.only_scores() ? thresholds::kEndedWithScores : thresholds::kEndedWell;
  verdict.summary = "The job ended well. Warnings that healthy runs print are not failures.";
  std::vector<Citation> endings;
  for (auto ending = evidence.course.endings().rbegin();
       ending != evidence.course.endings().rend() && endings.size() < 3; ++ending)
    endings.push_back(Cite(evidence.timeline, *ending, "cause"));
  AddEvidence(verdict, endings);
  if (const Cause* cause = evidence.book.FindCause("healthy")) {
    verdict.title = cause->title;
    verdict.retry = cause->retry;
  }
}

/// None is surer than the verdict that was preferred to it, whatever its rule says of it alone.
std::vector<Alternative> AlternativesOf(const std::vector<const Finding*>& causes, const std::string& chosen,
                                        double most) {
  std::vector<Alternative> out;
  for (const Finding* finding : causes) {
    const bool known = finding->cause == chosen || std::any_of(out.begin(), out.end(), [&](const Alternative& a) {
                         return a.cause == finding->cause;
                       });
    if (!known) out.push_back({finding->cause, std::min(finding->confidence, most), finding->rule, finding->claim});
  }
  return out;
}

/// Somebody stopped a job that was at work: its last sign of life is training, and nothing else is wrong. A stop of a
/// job that stood still is the end of another story.
const Finding* OnlyStopped(const Evidence& evidence, const std::vector<const Finding*>& causes) {
  const bool only = !causes.empty() && std::all_of(causes.begin(), causes.end(),
                                                   [&](const Finding* f) { return Is(evidence.book, *f, "stop"); });
  if (!only || !evidence.timeline.collectives.empty()) return nullptr;
  const PhaseSeen* last = nullptr;
  for (const PhaseSeen& phase : evidence.phases)
    if (const auto stop = FirstEvent(*causes.front()); stop && phase.event <= *stop) last = &phase;
  return last != nullptr && last->kind == "training" ? causes.front() : nullptr;
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

Verdict Judge(const Evidence& evidence, std::vector<Finding> findings) {
  const Timeline& timeline = evidence.timeline;
  DropRefuted(evidence, findings);
  NoteWhatWorkOutlived(evidence, findings);
  LiftHints(evidence, findings);
  LiftStoreBarrier(evidence, Failed(evidence, findings), findings);
  LiftStops(evidence, findings);
  NoteWhatFollowsAWorker(evidence, findings);
  SetAside(timeline, evidence.book, findings);
  NoteWhatFollowsATimeOut(evidence, findings);
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
    FillHealthy(evidence, verdict);
    return verdict;
  }
  if (const Finding* stopped = OnlyStopped(evidence, causes); stopped != nullptr) {
    Finding sure = *stopped;
    sure.confidence = std::max(sure.confidence, thresholds::kOnlyStopped);
    verdict.findings.insert(verdict.findings.begin(), sure);
    std::erase_if(verdict.findings,
                  [&](const Finding& f) { return &f != &verdict.findings.front() && f.rule == sure.rule; });
    FillFromTop(timeline, evidence.book, verdict.findings.front(), {}, verdict);
    return verdict;
  }
  const bool hint_without_failure =
      !causes.empty() && !IsExcerpt(evidence, *causes.front()) && causes.front()->strength == Strength::kHint &&
      !failed &&
      std::none_of(causes.begin(), causes.end(), [&](const Finding* f) { return IsAlone(evidence.book, *f); });
  if (!causes.empty() && causes.front()->confidence >= thresholds::kLeastConfidence && !hint_without_failure)
    FillFromTop(timeline, evidence.book, verdict.findings.front(), Rivals(causes), verdict);
  else
    FillUnknown(timeline, evidence.book, failed, verdict);
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

}  // namespace

std::string_view Name(Strength strength) {
  switch (strength) {
    case Strength::kDecisive:
      return "decisive";
    case Strength::kSupporting:
      return "supporting";
    case Strength::kHint:
      return "hint";
  }
  return "hint";
}

std::string_view Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFailed:
      return "failed";
    case Outcome::kHealthy:
      return "healthy";
    case Outcome::kUndecided:
      return "undecided";
  }
  return "undecided";
}

/// Findings of one detector. More say no more, and each is held against each.
constexpr std::ptrdiff_t kMostFindings = 256;

namespace {

/// Of two jobs in one input none is blamed for the other: a rank that ran on two hosts is on the one that its own cited
/// line names, or on none.
void HoldJobsApart(const Timeline& timeline, std::span<const NamedJob> jobs, Verdict& verdict) {
  const auto two = FindTwoJobs(timeline, jobs);
  if (!two) return;
  const auto place = [&](EventIndex event) {
    return fmt::format("{}:{}", timeline.inputs[timeline.events[event].where.input].path,
                       timeline.events[event].where.InputLine());
  };
  const std::string who = two->rank ? fmt::format("rank {} ran on {} ({}) and on {} ({})", two->rank->value, two->first,
                                                  place(two->first_event), two->other, place(two->other_event))
                                    : fmt::format("a batch system speaks of job {} ({}) and of job {} ({})", two->first,
                                                  place(two->first_event), two->other, place(two->other_event));
  verdict.warnings.push_back(fmt::format(
      "Two jobs, or two starts of one that nothing tells apart: {}. Give the files of one at a time.", who));
  for (Culprit& culprit : verdict.culprits) {
    if (!culprit.rank || !two->ranks.contains(culprit.rank->value)) continue;
    std::optional<std::string> host;
    for (const Citation& citation : verdict.evidence)
      if (const auto& named = timeline.events[citation.event].origin.host;
          !host && named && citation.rank == culprit.rank && timeline.events[citation.event].where == citation.where)
        host = HostName(named->value).Short();
    if (host && culprit.host == host) continue;
    culprit.host = host;
    culprit.pid.reset();
    culprit.gpu_index.reset();
    culprit.bus_id.reset();
  }
}

/// What of the dumps cannot be used, and where log and dumps say other things of one operation.
void DoubtDumps(const Timeline& timeline, Verdict& verdict) {
  constexpr std::size_t kTold = 2;
  if (timeline.recorded->nameless > 0)
    verdict.warnings.push_back(fmt::format(
        "Of {} dumps neither content nor name says the rank, and they are left out. Let their names end with "
        "it, as PyTorch does: nccl_trace_rank_3.",
        timeline.recorded->nameless));
  const Agreement agreement = HoldTogether(timeline);
  for (std::size_t i = 0; i < std::min(agreement.contradictions.size(), kTold); ++i) {
    const Contradiction& one = agreement.contradictions[i];
    const std::string place = fmt::format("{}:{}", timeline.inputs[timeline.events[one.event].where.input].path,
                                          timeline.events[one.event].where.InputLine());
    std::string how = "its dump was made days before or after";
    if (one.how == Contradiction::How::kEndsBefore)
      how = fmt::format("its dump ends with #{} of group {}", one.last, one.group);
    if (one.how == Contradiction::How::kHadEnded) how = "in its dump that had ended";
    verdict.warnings.push_back(fmt::format("Log and dump disagree: rank {} gave up on #{} ({}), and {}.",
                                           one.rank.value, one.seq, place, how));
  }
  if (agreement.of_another_run())
    verdict.warnings.push_back(
        "The dumps seem to be of another run, whose files were not overwritten: nothing is concluded from them. Give "
        "those that this run wrote.");
}

Verdict DecideOne(const Evidence& evidence) {
  std::vector<Finding> findings = MatchSignatures(evidence);
  for (const Detector* detector : Detectors()) {
    std::vector<Finding> found = FindingsOf(*detector, evidence);
    if (std::ssize(found) > kMostFindings) {
      std::stable_sort(found.begin(), found.end(), [](const Finding& a, const Finding& b) {
        return a.strength != b.strength ? a.strength > b.strength : a.confidence > b.confidence;
      });
      found.erase(found.begin() + kMostFindings, found.end());
    }
    findings.insert(findings.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  return Judge(evidence, std::move(findings));
}

/// The same, with what is reported of the attempt that is judged, and of no other.
/// A collective run alone shows what machines and network do with it. It cannot bring back a rank that never called,
/// nor what the program did wrong.
bool ReplayHelps(const RuleBook& book, const Verdict& verdict) {
  if (verdict.outcome == Outcome::kHealthy || !verdict.collective || !verdict.collective->ranks_absent.empty())
    return false;
  const Cause* cause = book.FindCause(verdict.cause);
  return cause != nullptr && cause->layer != "program" && cause->layer != "host";
}

Verdict DecideWhole(const Evidence& evidence) {
  Verdict verdict = DecideOne(evidence);
  const std::vector<NamedJob> named = JobsNamed(evidence);
  verdict.job = IdentityOf(evidence, named);
  HoldJobsApart(evidence.timeline, named, verdict);
  DoubtDumps(evidence.timeline, verdict);
  verdict.collect_next = StillToCollect(evidence.timeline, verdict.culprits, std::move(verdict.collect_next));
  if (verdict.collect_next.size() > kMostToCollect) verdict.collect_next.resize(kMostToCollect);
  verdict.lifelines = DrawLifelines(evidence.timeline, evidence.told);
  verdict.fingerprint = FingerprintOf(evidence.timeline, verdict);
  verdict.replay_helps = ReplayHelps(evidence.book, verdict);
  const Facts facts = FactsOf(evidence, verdict);
  for (Remedy& remedy : std::exchange(verdict.remedies, {}))
    AddUnique(verdict.remedies, {Filled(Under(verdict.job.environment, std::move(remedy)), facts)});
  for (std::string& item : verdict.collect_next) item = FilledWords(std::move(item), facts);
  if (const auto hosts = facts.find("host"); verdict.retry == "elsewhere" && hosts != facts.end())
    verdict.exclude_hosts = hosts->second;
  return verdict;
}

/// Earlier attempts that are looked at, the latest of them.
constexpr std::size_t kEarlierJudged = 16;

AttemptTold TellOf(const Timeline& timeline, const Attempt& attempt, std::size_t number) {
  AttemptTold told;
  told.number = number;
  told.first = Cite(timeline, attempt.first, "context");
  told.last = Cite(timeline, attempt.last, "context");
  return told;
}

void Fill(AttemptTold& told, const Verdict& verdict) {
  told.outcome = verdict.outcome;
  told.cause = verdict.cause;
  told.summary = verdict.summary;
  told.confidence = verdict.confidence;
}

}  // namespace

Verdict Decide(Timeline& timeline, const RuleBook& book, std::optional<std::size_t> number) {
  const Evidence whole = Gather(timeline, book);
  const std::vector<Attempt> attempts = FindAttempts(timeline, whole.told);
  if (attempts.size() == 1) return DecideWhole(whole);
  const std::size_t judged = number && *number >= 1 && *number <= attempts.size() ? *number : attempts.size();
  std::vector<AttemptTold> told;
  for (std::size_t i = 1; i <= attempts.size(); ++i) {
    told.push_back(TellOf(timeline, attempts[i - 1], i));
    if (i == judged || i + kEarlierJudged < attempts.size()) continue;
    const Timeline other = Only(timeline, attempts[i - 1]);
    const Evidence evidence = Gather(other, book);
    Verdict verdict = DecideOne(evidence);
    verdict.lifelines = DrawLifelines(other, evidence.told);
    Fill(told.back(), verdict);
    told.back().sketch = SketchOf(DrawPicture(other, verdict));
  }
  timeline = Only(timeline, attempts[judged - 1]);
  Verdict verdict = DecideWhole(Gather(timeline, book));
  told[judged - 1].judged = true;
  Fill(told[judged - 1], verdict);
  told[judged - 1].sketch = SketchOf(DrawPicture(timeline, verdict));
  verdict.attempts = std::move(told);
  return verdict;
}

}  // namespace inquest
