// Whose end ended whom: of the processes that launchers, agents and shells saw end, who went first.
#include "timeline/ends.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "timeline/course.h"

namespace inquest {

bool WasToldToEnd(const ProcessExit& exit) {
  constexpr int kTerm = 15;
  return exit.signal == kTerm;
}

bool Crashed(const ProcessExit& exit) { return exit.signal && *exit.signal != 9 && !WasToldToEnd(exit); }

namespace {

/// torchelastic's agent looks at all of its workers now and then.
bool IsByAgent(const ProcessExit& exit) { return exit.reporter == Reporter::kTorchelastic; }

/// An agent's word that a worker ended badly whom it had not told to end.
bool IsLostByAgent(const Event& event) {
  const auto* exit = std::get_if<ProcessExit>(&event.what);
  return exit != nullptr && IsByAgent(*exit) && IsBadExit(*exit) && !WasToldToEnd(*exit);
}

/// How a process ended, as far as it tells one end from another.
std::pair<std::optional<int>, std::optional<int>> HowItEnded(const ProcessExit& exit) {
  return {exit.exit_code, exit.signal};
}

/// Which of two ends was first: by clock, or by a launcher that tells of each as it comes. `stops`: where a scheduler
/// said that it ends the job or a step.
std::partial_ordering EndOrder(const Timeline& timeline, const std::set<SourcePos>& stops, EventIndex a, EventIndex b) {
  const Event &x = timeline.events[a], &y = timeline.events[b];
  // An agent lists whom it finds gone at one look, the first of them last, and dates them by the second.
  const auto& of_x = std::get<ProcessExit>(x.what);
  const auto& of_y = std::get<ProcessExit>(y.what);
  const auto second = [](const Event& end) { return std::chrono::floor<std::chrono::seconds>(end.at->at); };
  if (x.at && y.at && IsByAgent(of_x) && IsByAgent(of_y) && second(x) == second(y))
    return std::partial_ordering::unordered;
  if (x.at && y.at) return timeline.Order(a, b);
  if (!EndsATask(x.what) || !EndsATask(y.what) || x.where.input != y.where.input)
    return std::partial_ordering::unordered;
  const auto stop = stops.upper_bound(std::min(x.where, y.where));
  const bool stopped_between = stop != stops.end() && *stop < std::max(x.where, y.where);
  // Of many that end alike the order in which srun hears of them says nothing, unless the step was ended because of
  // some.
  if (!stopped_between && HowItEnded(of_x) == HowItEnded(of_y)) return std::partial_ordering::unordered;
  return x.where.line <=> y.where.line;
}

std::set<SourcePos> StopsOf(const Timeline& timeline) {
  std::set<SourcePos> stops;
  for (const Event& event : timeline.events)
    if (IsSchedulersStop(event.what)) stops.insert(event.where);
  return stops;
}

/// The one of many tasks that the end of its step did not have to stop: it was gone by then.
std::optional<int> LeftBeforeTheStop(const Timeline& timeline) {
  constexpr std::size_t kLeast = 8;
  std::set<int> stopped;
  for (const Event& event : timeline.events) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    if (exit == nullptr || !exit->rank || !EndsATask(event.what)) continue;
    if (!WasToldToEnd(*exit)) return std::nullopt;  // it is told who left how
    stopped.insert(exit->rank->value);
  }
  if (stopped.size() < kLeast || static_cast<std::size_t>(*stopped.rbegin()) != stopped.size()) return std::nullopt;
  int left = 0;
  while (stopped.contains(left)) ++left;
  return left;
}

/// What an agent of torchelastic's does to a worker that outlives the SIGTERM which followed the first failure: it
/// waits for 30 s, sends SIGKILL, and lists that worker with the others. A worker that the kernel kills is seen at the
/// agent's next look, seconds behind what died of it.
bool IsOfAgent(const Event& killed, const std::vector<Timestamp>& failed) {
  constexpr std::chrono::seconds kPatience(25);
  const auto& exit = std::get<ProcessExit>(killed.what);
  if (!IsByAgent(exit) || exit.signal != 9 || exit.first_observed || !killed.at) return false;
  return std::ranges::any_of(failed, [&](const Timestamp& first) {
    return first.date == killed.at->date && killed.at->at - first.at >= kPatience;
  });
}

/// When torchelastic saw its first worker fail, by each kind of date.
std::vector<Timestamp> FirstFailures(const Timeline& timeline) {
  std::vector<Timestamp> out;
  for (const Event& event : timeline.events) {
    if (!IsLostByAgent(event) || !event.at) continue;
    const auto known = std::ranges::find(out, event.at->date, &Timestamp::date);
    if (known == out.end())
      out.push_back(*event.at);
    else if (event.at->at < known->at)
      *known = *event.at;
  }
  return out;
}

/// Whether an MPI library's launcher killed these because another rank of its had crashed: in what order it tells of
/// them says nothing.
bool AreOfLauncher(const Timeline& timeline, const std::vector<EventIndex>& killed) {
  constexpr Reporter kHydra = Reporter::kMpirun;
  constexpr Reporter kLaunchers[] = {
      Reporter::kMpd, Reporter::kMvapich, Reporter::kAprun, Reporter::kPlatformMpi, Reporter::kPoe, Reporter::kMpt,
      kHydra};
  constexpr std::uint64_t kFrame = 8, kMostNoise = 128;  ///< lines
  const auto exit_of = [&](EventIndex i) { return std::get_if<ProcessExit>(&timeline.events[i].what); };
  const Reporter launcher = exit_of(killed.front())->reporter;
  if (std::ranges::find(kLaunchers, launcher) == std::end(kLaunchers)) return false;
  if (!std::ranges::all_of(killed, [&](EventIndex i) { return exit_of(i)->reporter == launcher; })) return false;
  std::vector<EventIndex> told;
  for (EventIndex i = 0; i < timeline.events.size(); ++i)
    if (const auto* exit = exit_of(i); exit != nullptr && exit->reporter == launcher) told.push_back(i);
  // Hydra frames each end, one behind the other, perhaps with what others print in between; what it says farther away,
  // or of a rank again, is of another launch.
  std::set<int> ranks;
  const auto is_of_launch = [&](EventIndex earlier, EventIndex later, EventIndex asked) {
    if (launcher != kHydra) return true;
    const SourcePos a = timeline.events[earlier].where, b = timeline.events[later].where;
    const auto& rank = exit_of(asked)->rank;
    const bool is_new = !rank || ranks.insert(rank->value).second;
    return a.input == b.input && b.line <= a.line + (is_new ? kMostNoise : kFrame);
  };
  auto begin = std::ranges::lower_bound(told, killed.back()), end = std::next(begin);
  if (const auto& rank = exit_of(*begin)->rank) ranks.insert(rank->value);
  while (begin != told.begin() && is_of_launch(*std::prev(begin), *begin, *std::prev(begin))) --begin;
  while (end != told.end() && is_of_launch(*std::prev(end), *end, *end)) ++end;
  return std::any_of(begin, end, [&](EventIndex i) { return Crashed(*exit_of(i)); });
}

/// Whether a launcher's record is of a process that nobody had told to end.
bool EndedByItself(const ProcessExit& exit) {
  constexpr int kShell = 128;
  const auto is_told = [](int signal) { return signal == 1 || signal == 2 || signal == 9 || signal == 15; };
  const int of_shell = exit.exit_code.value_or(0) - kShell;
  return exit.first_observed && IsBadExit(exit) && !is_told(exit.signal.value_or(0)) && !is_told(of_shell);
}

constexpr std::size_t kMostHeld = 512;  ///< against one another; of more nobody was first

/// The first end of each rank for which that holds.
template <class Holds>
std::map<GlobalRank, EventIndex> FirstEnds(const Timeline& timeline, Holds holds) {
  std::map<GlobalRank, EventIndex> out;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* exit = std::get_if<ProcessExit>(&timeline.events[i].what);
    const auto rank = exit != nullptr && holds(*exit) ? RankOfExit(timeline, timeline.events[i]) : std::nullopt;
    if (rank) out.try_emplace(*rank, i);
  }
  return out;
}

bool EndedWithAnError(const ProcessExit& exit) { return !exit.signal && exit.exit_code != 0; }

}  // namespace

std::optional<GlobalRank> RankOfExit(const Timeline& timeline, const Event& event) {
  const auto* exit = std::get_if<ProcessExit>(&event.what);
  if (exit == nullptr) return std::nullopt;
  if (exit->rank) return exit->rank;
  if (exit->reporter != Reporter::kShell && !exit->local_rank) return std::nullopt;
  Event child = event;
  if (exit->local_rank) {
    child.origin = {};  // the parent printed it
    child.origin.host = event.origin.host;
    child.origin.local_rank = exit->local_rank;
  }
  const auto known = timeline.RankOf(child);
  return known ? std::optional(known->value) : std::nullopt;
}

std::set<GlobalRank> Aborted(const Timeline& timeline) {
  const auto by_mpi = [](const ProcessExit& exit) {
    return exit.first_observed && IsBadExit(exit) &&
           (exit.reporter == Reporter::kMpich || exit.reporter == Reporter::kMpirun);
  };
  std::set<GlobalRank> out;
  for (const auto& [rank, end] : FirstEnds(timeline, by_mpi)) out.insert(rank);
  return out;
}

std::optional<FirstEnd> OneThatEnded(const Timeline& timeline) {
  const auto told_first = [](const ProcessExit& exit) { return exit.first_observed && IsBadExit(exit); };
  // Where srun ends the rest it names them in the same words as who ended before.
  const auto of_itself = [&](const ProcessExit& exit) { return told_first(exit) && !WasToldToEnd(exit); };
  if (const auto told = FirstEnds(timeline, of_itself); told.size() == 1)
    return FirstEnd{told.begin()->first, FirstEnd::How::kTold};
  if (const auto told = FirstEnds(timeline, told_first); told.size() == 1)
    return FirstEnd{told.begin()->first, FirstEnd::How::kTold};
  if (const auto only = FirstEnds(timeline, EndedWithAnError); only.size() == 1)
    return FirstEnd{only.begin()->first, FirstEnd::How::kOnlyError};
  return std::nullopt;
}

Ends::Ends(const Timeline& timeline)
    : timeline_(&timeline),
      stops_(StopsOf(timeline)),
      ends_(FirstEnds(timeline, [](const ProcessExit& exit) { return IsBadExit(exit); })) {
  for (const Event& event : timeline.events) {
    const auto* raised = std::get_if<ExceptionRaised>(&event.what);
    const auto rank = raised != nullptr && !raised->ignored ? timeline.RankOf(event) : std::nullopt;
    const RankRow* row = rank ? timeline.FindRank(rank->value) : nullptr;
    if (row != nullptr && row->last_event && timeline.events[*row->last_event].where == event.where)
      raised_.insert(rank->value);
  }
}

bool Ends::EndedUntold(GlobalRank rank) const {
  const auto end = ends_.find(rank);
  return end != ends_.end() ? !WasToldToEnd(std::get<ProcessExit>(timeline_->events[end->second].what))
                            : raised_.contains(rank);
}

std::partial_ordering Ends::Order(GlobalRank a, GlobalRank b) const {
  const auto x = ends_.find(a), y = ends_.find(b);
  if (x == ends_.end() || y == ends_.end()) return std::partial_ordering::unordered;
  const bool x_was_told = WasToldToEnd(std::get<ProcessExit>(timeline_->events[x->second].what)),
             y_was_told = WasToldToEnd(std::get<ProcessExit>(timeline_->events[y->second].what));
  if (x_was_told != y_was_told) return y_was_told ? std::partial_ordering::less : std::partial_ordering::greater;
  return EndOrder(*timeline_, stops_, x->second, y->second);
}

std::vector<FirstEnd> FirstToEnd(const Timeline& timeline) {
  if (const auto left = LeftBeforeTheStop(timeline)) return {{GlobalRank{*left}, FirstEnd::How::kUnstopped}};
  // Whom a launcher killed that was ending the job was not first.
  const auto killed = [](const ProcessExit& exit) { return exit.signal == 9; };
  std::vector<EventIndex> kills;
  for (const auto& [rank, end] : FirstEnds(timeline, killed)) kills.push_back(end);
  std::ranges::sort(kills);
  const bool in_teardown = !kills.empty() && WasEnding(timeline, kills);
  const auto untold = [&](const ProcessExit& exit) {
    return IsBadExit(exit) && !WasToldToEnd(exit) && !(in_teardown && killed(exit));
  };
  const auto observed = [&](const ProcessExit& exit) { return exit.first_observed && untold(exit); };
  std::map<GlobalRank, EventIndex> ended = FirstEnds(timeline, untold);
  // Of each agent the first, where they say so.
  if (const auto told = FirstEnds(timeline, observed); !told.empty())
    std::erase_if(ended, [&](const auto& end) { return !told.contains(end.first); });
  if (ended.size() > kMostHeld) return {};
  const std::set<SourcePos> stops = StopsOf(timeline);
  std::vector<FirstEnd> out;
  for (const auto& [rank, end] : ended) {
    const EventIndex own = end;  // Clang 14 takes no structured binding into a lambda
    const auto earlier = [&](const auto& other) {
      return EndOrder(timeline, stops, other.second, own) == std::partial_ordering::less;
    };
    if (std::ranges::none_of(ended, earlier)) out.push_back({rank, FirstEnd::How::kEarliest});
  }
  // All of them: nobody was first. Ranks count from 0: who is numbered 7 is one of eight at least.
  const std::size_t least = out.empty() ? 0 : static_cast<std::size_t>(out.back().rank.value) + 1;
  return out.size() > 1 && out.size() >= std::max(timeline.KnownRanks(), least) ? std::vector<FirstEnd>() : out;
}

std::vector<GlobalRank> EndedWithErrors(const Timeline& timeline) {
  std::vector<GlobalRank> out;
  for (const auto& [rank, end] : FirstEnds(timeline, EndedWithAnError)) out.push_back(rank);
  if (out.size() > kMostHeld) out.clear();
  return out;
}

std::optional<EventIndex> FirstWorkerLost(const Timeline& timeline) {
  const auto lost = std::ranges::find_if(timeline.events, IsLostByAgent);
  if (lost == timeline.events.end()) return std::nullopt;
  return static_cast<EventIndex>(lost - timeline.events.begin());
}

std::optional<EventIndex> FirstOwnEnd(const Timeline& timeline) {
  std::optional<EventIndex> own;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* exit = std::get_if<ProcessExit>(&timeline.events[i].what);
    if (exit != nullptr && EndedByItself(*exit) && (!own || timeline.Order(i, *own) == std::partial_ordering::less))
      own = i;
  }
  if (!own) return std::nullopt;
  const Event& end = timeline.events[*own];
  const bool stopped = std::ranges::any_of(timeline.events, [&](const Event& event) {
    const auto* stop = std::get_if<JobStopped>(&event.what);
    if (stop == nullptr) return false;
    const bool before = event.at && end.at && event.at->date == end.at->date && event.at->at < end.at->at;
    const bool for_a_reason =
        stop->by == JobStopped::By::kSlurm && !stop->reason.empty() && stop->reason != "TASK FAILURE";
    return before || stop->by == JobStopped::By::kKeyboard || for_a_reason ||
           event.text.find("*** JOB ") != std::string::npos;
  });
  return stopped ? std::nullopt : own;
}

bool WasEnding(const Timeline& timeline, const std::vector<EventIndex>& killed) {
  if (!std::ranges::all_of(killed, [&](EventIndex i) { return EndsATask(timeline.events[i].what); })) return false;
  const std::uint32_t input = timeline.events[killed.front()].where.input;
  return std::any_of(timeline.events.begin(), timeline.events.begin() + static_cast<std::ptrdiff_t>(killed.front()),
                     [&](const Event& event) {
                       return event.where.input == input && (IsSchedulersStop(event.what) || IsBadExit(event.what));
                     });
}

bool AreOfTeardown(const Timeline& timeline, const std::vector<EventIndex>& killed) {
  if (WasEnding(timeline, killed) || AreOfLauncher(timeline, killed)) return true;
  const std::vector<Timestamp> failures = FirstFailures(timeline);
  return std::ranges::all_of(killed, [&](EventIndex i) { return IsOfAgent(timeline.events[i], failures); });
}

}  // namespace inquest
