// Whom a verdict blames.
#include "rules/blame.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "rules/raised.h"
#include "timeline/breaks.h"
#include "timeline/ends.h"

namespace inquest {
namespace {

bool NamesARank(const std::vector<Culprit>& culprits) {
  return std::ranges::any_of(culprits, [](const Culprit& culprit) { return culprit.rank.has_value(); });
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
  const Rule* rule = book.FindRule(top.rule);
  // Who was told to end because somebody stopped the job did nothing to it.
  const bool of_nobody = rule != nullptr && rule->blames == Rule::Blames::kNobody && book.CauseIs(top.cause, "stop");
  for (const Finding& finding : findings) {
    if (&finding == &top || finding.cause != top.cause || of_nobody) continue;
    std::vector<Culprit> culprits = finding.culprits;
    std::erase_if(culprits, elsewhere);
    if (NamesARank(culprits)) return culprits;
    if (hosts.empty() && top.culprits.empty()) hosts = std::move(culprits);
  }
  // Who was stopped is who did not come any more.
  for (const Finding& finding : findings)
    if (book.CauseIs(top.cause, "stop") && top.culprits.empty() && book.CauseIs(finding.cause, "absence") &&
        finding.explained_by == top.rule && !finding.culprits.empty())
      return finding.culprits;
  // What befell a host befell the ranks there that the others waited for.
  for (const Finding& finding : findings) {
    const bool waited_for = book.CauseIs(finding.cause, "absence") && !finding.culprits.empty() &&
                            std::all_of(finding.culprits.begin(), finding.culprits.end(),
                                        [&](const Culprit& c) { return c.rank && there(c); });
    if (!waited_for || finding.explained_by != top.rule) continue;
    std::vector<Culprit> culprits = finding.culprits;
    for (Culprit& culprit : culprits) culprit.why += "; " + top.culprits.front().why;
    return culprits;
  }
  return hosts;
}

/// An exception that a process did not catch is its own end, and so is the signal that its own handler or its shell
/// saw, where it was the only one.
bool IsOfProcess(const Timeline& timeline, const Finding& finding) {
  if (finding.citations.empty()) return false;
  const What& what = timeline.events[finding.citations.front().event].what;
  const auto* exit = std::get_if<ProcessExit>(&what);
  return std::holds_alternative<ExceptionRaised>(what) ||
         (exit != nullptr && finding.times == 1 && exit->reporter == Reporter::kShell && Crashed(*exit));
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

std::string_view InWords(FirstEnd::How how) {
  switch (how) {
    case FirstEnd::How::kTold:
      return "the first that ended, as its launcher saw it";
    case FirstEnd::How::kOnlyError:
      return "the only one that ended with an error";
    case FirstEnd::How::kUnstopped:
      return "the only one that the end of the step did not have to stop";
    case FirstEnd::How::kEarliest:
      return "ended badly first, and nothing given says why";
  }
  return "";
}

Culprit Blamed(const Timeline& timeline, const FirstEnd& end) {
  return BlameRank(timeline, end.rank, std::string(InWords(end.how)));
}

/// Who printed what as many print as ended with an error: all of them, since who is told to end does not say why.
/// Nobody where anything else was raised that not each of them raised.
std::vector<Culprit> AllThatRaised(const Timeline& timeline, const Finding& top) {
  const std::vector<GlobalRank> ended = EndedWithErrors(timeline);
  if (top.citations.empty() || ended.size() < 2) return {};
  std::map<std::string_view, std::size_t> times;  // by what was raised
  for (const Event& event : timeline.events)
    if (const auto* raised = std::get_if<ExceptionRaised>(&event.what);
        raised != nullptr && !raised->ignored && !IsOfLauncher(*raised))
      ++times[raised->type];
  const SourcePos said = timeline.events[top.citations.front().event].where;
  const bool raised = std::ranges::any_of(timeline.events, [&](const Event& event) {
    return event.where == said && std::holds_alternative<ExceptionRaised>(event.what);
  });
  const bool by_several = times.empty() && top.times > 1;
  if (!raised && top.times != ended.size() && !by_several) return {};
  // Of many that print at once some tracebacks garble others.
  constexpr std::size_t kMany = 8, kShare = 4;
  const bool alone = times.size() == 1;  // a collector or a cut may have left some of them
  const auto is_of_all = [&](const auto& kind) {
    return kind.second == ended.size() || (alone && kind.second > 1 && kind.second < ended.size()) ||
           (ended.size() >= kMany && kind.second < ended.size() && kind.second * kShare >= ended.size());
  };
  if (!std::ranges::all_of(times, is_of_all)) return {};
  std::vector<Culprit> out;
  for (const GlobalRank rank : ended)
    out.push_back(BlameRank(timeline, rank, "ended with an error, and nothing else was raised"));
  return out;
}

/// As many complained as there are ranks, and nobody says who: all of them.
std::vector<Culprit> AllComplained(const Timeline& timeline, const Finding& top) {
  constexpr int kMost = 64;
  const int size = timeline.world_size ? timeline.world_size->value : 0;
  std::vector<Culprit> out;
  if (size < 2 || size > kMost || top.times != static_cast<std::size_t>(size)) return out;
  for (int rank = 0; rank < size; ++rank)
    out.push_back(BlameRank(timeline, GlobalRank{rank}, "as many complained as there are ranks"));
  return out;
}

/// A process raised; nullopt: the event says nothing of the kind. Where its traceback begins, as far as that is known.
std::optional<SourcePos> RaisesAt(const Event& event) {
  const auto* raised = std::get_if<ExceptionRaised>(&event.what);
  if (raised != nullptr) return raised->ignored || IsOfLauncher(*raised) ? std::nullopt : std::optional(raised->begin);
  const auto* stack = std::get_if<StackSeen>(&event.what);
  return stack != nullptr && stack->raised ? std::optional(event.where) : std::nullopt;
}

/// The one rank of which a traceback is told, which begins right behind what the finding rests on; nullopt: of several,
/// of nobody, or of somebody without a number.
std::optional<GlobalRank> OnlyRaised(const Timeline& timeline, const Finding& behind) {
  constexpr std::uint64_t kRightBehind = 16;  ///< lines: a kernel's threads complain each
  std::optional<GlobalRank> only;
  bool found = false;
  const auto is_cited = [&](const SourcePos& where) {
    return std::ranges::any_of(behind.citations, [&](const Citation& line) { return line.where == where; });
  };
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto begin = RaisesAt(timeline.events[i]);
    if (!begin || is_cited(timeline.events[i].where)) continue;  // its message may be printed in front of it
    const bool whole = std::holds_alternative<ExceptionRaised>(timeline.events[i].what);
    const auto rank = whole ? RankOfRaised(timeline, i) : timeline.RankOf(timeline.events[i]);
    if (!rank || (only && *only != rank->value)) return std::nullopt;
    only = rank->value;
    found = found || std::ranges::any_of(behind.citations, [&](const Citation& line) {
              return line.where.input == begin->input && line.where.line < begin->line &&
                     begin->line <= line.where.line + kRightBehind;
            });
  }
  return found ? only : std::nullopt;
}

/// The one rank whose traceback the log ends in, where no other is told.
std::optional<GlobalRank> OnlyTorn(const Timeline& timeline) {
  std::optional<GlobalRank> only;
  for (const Event& event : timeline.events) {
    if (!RaisesAt(event)) continue;
    const auto* stack = std::get_if<StackSeen>(&event.what);
    const auto rank = timeline.RankOf(event);
    if (stack == nullptr || stack->at != Activity::kNone || !rank || only) return std::nullopt;
    only = rank->value;
  }
  return only;
}

/// A few that called MPI_Abort each: whatever it was befell each of them.
std::vector<Culprit> ThoseThatAborted(const Timeline& timeline) {
  constexpr std::size_t kMost = 8;
  std::vector<Culprit> out;
  const std::set<GlobalRank> ranks = Aborted(timeline);
  for (const GlobalRank rank : ranks.size() <= kMost ? ranks : std::set<GlobalRank>())
    out.push_back(BlameRank(timeline, rank, "ended the job, as others did at once"));
  return out;
}

/// Those that were gone before the rest, where as many complained as went: who is told to end complains of nothing.
std::vector<Culprit> AsManyAsWent(const Timeline& timeline, const Finding& top) {
  const std::vector<FirstEnd> first = FirstToEnd(timeline);
  std::vector<Culprit> out;
  if (first.size() < 2 || first.size() != top.times) return out;
  for (const FirstEnd& end : first)
    out.push_back(BlameRank(timeline, end.rank, "gone before the rest; as many complained as went"));
  return out;
}

/// What a process does to itself was done by the one that ended first, as its launcher says, by the only one that ended
/// with an error, as its parent saw it, or by the only one that never came to the operation in which the others waited.
std::vector<Culprit> OnlyFailed(const Timeline& timeline, const std::optional<CollectiveRef>& collective) {
  if (const auto one = OneThatEnded(timeline)) return {Blamed(timeline, *one)};
  if (std::vector<Culprit> aborted = ThoseThatAborted(timeline); !aborted.empty()) return aborted;
  if (collective && collective->ranks_absent.size() == 1 && !collective->ranks_waiting.empty())
    return {BlameRank(timeline, GlobalRank{collective->ranks_absent.front()},
                      "the only one that did not come to the operation in which the others waited")};
  return {};
}

/// The finding rests on a line of that rank's own, or of the process whose end is reported under its number.
bool SaidItself(const Timeline& timeline, const Finding& finding, GlobalRank rank) {
  const auto is_its_process = [&](std::int64_t pid) {
    return std::ranges::any_of(timeline.events, [&](const Event& event) {
      const auto* exit = std::get_if<ProcessExit>(&event.what);
      return exit != nullptr && exit->rank == rank && exit->pid == pid;
    });
  };
  return std::ranges::any_of(finding.citations, [&](const Citation& citation) {
    const Event& event = timeline.events[citation.event];
    const auto known = timeline.RankOf(event);
    return citation.role == LineRole::kCause &&
           (known ? known->value == rank : event.origin.pid && is_its_process(*event.origin.pid));
  });
}

/// Whom a parent process names, where it tells of a worker's death and nobody tells of what.
std::vector<Culprit> ToldByParent(const RuleBook& book, const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    const Rule* rule = book.FindRule(finding.rule);
    if (finding.cause.empty() && rule != nullptr && rule->tells_death && NamesARank(finding.culprits))
      return finding.culprits;
  }
  return {};
}

/// What a line blames its host for, which nobody names, is where the one rank is that printed it.
std::vector<Culprit> OnlyThere(const Timeline& timeline, const RuleBook& book, const Finding& top) {
  const Rule* rule = book.FindRule(top.rule);
  if (rule == nullptr || rule->blames != Rule::Blames::kHost) return {};
  std::optional<GlobalRank> only;
  for (const Citation& citation : top.citations) {
    const auto rank = timeline.RankOf(timeline.events[citation.event]);
    if (!rank || (only && *only != rank->value)) return {};
    only = rank->value;
  }
  return only ? std::vector{BlameRank(timeline, *only, top.claim)} : std::vector<Culprit>();
}

/// They name the host alone of the one that its launcher saw end first; of one whose host nobody names, the only host.
bool IsOnlyWhere(const Timeline& timeline, const std::vector<Culprit>& culprits, const FirstEnd& one) {
  const std::optional<std::string> host = BlameRank(timeline, one.rank, "").host;
  if (!host && (culprits.size() > 1 || timeline.hosts.size() > 1)) return false;
  return std::ranges::all_of(culprits, [&](const Culprit& culprit) {
    return (!host || culprit.host == host) && !culprit.bus_id && !culprit.gpu_index;
  });
}

/// For whom all who waited did so in the end; nobody where that is many.
std::vector<Culprit> Awaited(const Timeline& timeline) {
  constexpr std::uint64_t kMost = 4;
  const RankSet first = BreakGraph(timeline).FirstBreaks();
  std::vector<Culprit> out;
  for (const int rank : first.size() > kMost ? RankSet() : first)
    out.push_back(BlameRank(timeline, GlobalRank{rank}, "the others waited for it, and nothing given says why"));
  return out;
}

}  // namespace

std::vector<Culprit> CulpritsOf(const Timeline& timeline, const RuleBook& book, const Finding& top,
                                const std::vector<Finding>& findings, const std::optional<CollectiveRef>& collective) {
  if (NamesARank(top.culprits)) return top.culprits;
  std::vector<Culprit> culprits = Borrowed(book, top, findings);
  if (culprits.empty()) culprits = top.culprits;
  if (NamesARank(culprits)) return culprits;
  if (culprits.empty())
    if (std::vector<Culprit> told = ToldByParent(book, findings); !told.empty()) return told;
  // Who failed first of what the network did says at least between whom.
  const bool of_network = book.LayerOf(top.cause) == CauseLayer::kNetwork && top.culprits.empty();
  if (!of_network && !IsOwnDoing(timeline, book, findings, top.cause)) {
    auto one = OneThatEnded(timeline);
    if (one && !culprits.empty() && !IsOnlyWhere(timeline, culprits, *one)) one.reset();
    // What befalls a process befell the one that its launcher saw end first; of those that waited in vain any may be.
    const auto befell = [&] {
      return one->how == FirstEnd::How::kTold && !book.CauseIs(top.cause, "aftermath") &&
             std::ranges::none_of(timeline.events,
                                  [](const Event& event) { return std::holds_alternative<WorkTimedOut>(event.what); });
    };
    if (one && (befell() || SaidItself(timeline, top, one->rank))) return {Blamed(timeline, *one)};
    return culprits.empty() ? OnlyThere(timeline, book, top) : culprits;
  }
  if (std::vector<Culprit> all = AllThatRaised(timeline, top); !all.empty()) return all;
  if (std::vector<Culprit> only = OnlyFailed(timeline, collective); !only.empty()) return only;
  if (!culprits.empty()) return culprits;
  if (std::vector<Culprit> all = AllComplained(timeline, top); !all.empty()) return all;
  if (std::vector<Culprit> went = AsManyAsWent(timeline, top); !went.empty()) return went;
  if (const auto raised = !of_network ? OnlyRaised(timeline, top) : std::nullopt)
    return {BlameRank(timeline, *raised, "raised an exception right behind it")};
  return {};
}

std::vector<Culprit> FirstGone(const Timeline& timeline, const std::vector<Finding>& findings) {
  std::vector<Culprit> out;
  for (const FirstEnd& end : FirstToEnd(timeline)) out.push_back(Blamed(timeline, end));
  if (out.empty()) out = ThoseThatAborted(timeline);
  if (out.empty()) out = Awaited(timeline);
  // Whom a consequence names by its number is who was missed.
  for (const Finding& finding : findings)
    if (out.empty() && finding.cause.empty() && NamesARank(finding.culprits)) out = finding.culprits;
  if (const auto torn = out.empty() ? OnlyTorn(timeline) : std::nullopt)
    out.push_back(BlameRank(timeline, *torn, "the only one of which a traceback is told, and it is cut off"));
  return out;
}

}  // namespace inquest
