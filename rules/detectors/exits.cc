// A process ended by a signal or with an error code, as its parent saw it.
//
// What holds: a launcher or a shell reports how a child ended. Why that implies the cause: SIGSEGV is the process' own
// crash, SIGKILL comes from the kernel's OOM killer far more often than from a person, SIGBUS from a full /dev/shm.
// What looks like it: SIGABRT after a watchdog time-out and SIGTERM from the launcher are consequences; an exit code of
// 1 says that somebody else printed the reason.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "timeline/ends.h"

namespace inquest {
namespace exits {

constexpr FindingRow kFindings[] = {
    {"ended-by-sigsegv", "reported", "who signal"},
    {"ended-by-sigill", "reported", "who signal"},
    {"ended-by-sigfpe", "reported", "who signal"},
    {"ended-by-sigbus", "reported", "who signal"},
    {"ended-by-sigkill", "reported", "who signal"},
    {"ended-by-sigabrt", "first reported", "who signal"},
    {"sigbus-of-program", "reported", "who signal"},
    {"ended-by-itself", "first", "who how", {}, true},
    {"ended-by-sigint", "reported", "who signal"},
    {"ended-by-sighup", "reported", "who signal"},
    {"ended-by-sigterm", "first last-words reported", "who signal"},
    {"all-ranks-killed", "reported", "who signal"},
    {"killed-in-teardown", "reported", "who signal"},
};
using Found = FoundIn<kFindings>;

struct Meaning {
  int signal;
  Found::Held held;
};

constexpr Meaning kMeanings[] = {
    {11, {"ended-by-sigsegv", "reported"}}, {4, {"ended-by-sigill", "reported"}},
    {8, {"ended-by-sigfpe", "reported"}},   {7, {"ended-by-sigbus", "reported"}},
    {9, {"ended-by-sigkill", "reported"}},  {6, {"ended-by-sigabrt", "reported"}},
    {2, {"ended-by-sigint", "reported"}},   {1, {"ended-by-sighup", "reported"}},
    {15, {"ended-by-sigterm", "reported"}},
};

const Meaning* MeaningOf(int signal) {
  const auto it =
      std::find_if(std::begin(kMeanings), std::end(kMeanings), [&](const Meaning& m) { return m.signal == signal; });
  return it == std::end(kMeanings) ? nullptr : it;
}

/// No Python and no framework of deep learning speaks: nothing here would share memory through /dev/shm.
bool IsPlainProgram(const Timeline& timeline) {
  constexpr std::array<std::string_view, 6> kOfFrameworks = {"python-traceback", "torchelastic", "framework", "nccl",
                                                             "pytorch-watchdog", "pytorch-c10d"};
  return std::ranges::none_of(timeline.inputs, [&](const InputSummary& input) {
    return std::ranges::find_first_of(input.kinds, kOfFrameworks) != input.kinds.end();
  });
}

/// So many of the ranks that the kernel cannot have meant, which kills one, or a container, and looks again: on several
/// hosts, or where the launcher says that it ends the job.
bool AreAll(const Timeline& timeline, const std::vector<int>& ranks) {
  const bool ended = std::ranges::any_of(timeline.events, [](const Event& event) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    return std::holds_alternative<JobStopped>(event.what) || std::holds_alternative<SignalSent>(event.what) ||
           (exit != nullptr && exit->reporter == Reporter::kMpirun && !exit->signal);
  });
  if (!ended && timeline.job_hosts < 2) return false;
  constexpr std::size_t kLeast = 4;
  return ranks.size() >= kLeast && ranks.size() * 4 >= timeline.KnownRanks() * 3;
}

/// mpirun tells of the first that ended, once a launch: what it told before in one log is of earlier launches.
void DropEarlierLaunches(const Timeline& timeline, std::vector<EventIndex>& events) {
  std::map<std::uint32_t, EventIndex> last;  // by input
  const auto is_of_launch = [&](EventIndex i) {
    const auto& exit = std::get<ProcessExit>(timeline.events[i].what);
    return exit.reporter == Reporter::kMpirun && exit.first_observed;
  };
  for (const EventIndex i : events)
    if (is_of_launch(i)) last[timeline.events[i].where.input] = i;
  std::erase_if(events, [&](EventIndex i) { return is_of_launch(i) && last.at(timeline.events[i].where.input) != i; });
}

/// The one log ends in them, and its own shell or the process itself says so: no launcher, which may have had a reason.
bool AreLastWords(const Timeline& timeline, const std::vector<EventIndex>& events) {
  constexpr std::uint64_t kBehind = 2;  ///< lines
  const Event& last = timeline.events[events.back()];
  return timeline.inputs.size() == 1 && last.where.InputLine() + kBehind >= timeline.inputs[last.where.input].lines &&
         std::ranges::all_of(events, [&](EventIndex i) {
           return std::get<ProcessExit>(timeline.events[i].what).reporter == Reporter::kShell;
         });
}

void AddOwnEnd(const Timeline& timeline, std::vector<Relation>& out) {
  const auto own = FirstOwnEnd(timeline);
  if (!own) return;
  const Event& end = timeline.events[*own];
  const auto& exit = std::get<ProcessExit>(end.what);
  const auto rank = RankOfExit(timeline, end);
  Found found({"ended-by-itself", "first"});
  found.citations.push_back(Cite(timeline, *own, LineRole::kSymptom));
  found.Say("who", rank ? RanksInWords({rank->value}) : "A process");
  found.Say("how", exit.signal      ? fmt::format("by signal {}", *exit.signal)
                   : exit.exit_code ? fmt::format("with {}", *exit.exit_code)
                                    : "badly");
  out.push_back(std::move(found));
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  std::map<int, std::vector<EventIndex>> by_signal;
  bool timed_out = false, killed_by_agent = false, other_end = false;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    timed_out = timed_out || std::holds_alternative<WorkTimedOut>(timeline.events[i].what);
    killed_by_agent = killed_by_agent || std::holds_alternative<SignalSent>(timeline.events[i].what);
    const auto* exit = std::get_if<ProcessExit>(&timeline.events[i].what);
    // A launcher that ends its children though none of them had failed was told to stop itself.
    other_end = other_end || std::holds_alternative<ExceptionRaised>(timeline.events[i].what) ||
                std::holds_alternative<HeartbeatLost>(timeline.events[i].what) ||
                (exit != nullptr && exit->signal.value_or(15) != 15) ||
                (exit != nullptr && !exit->signal && exit->exit_code.value_or(0) != 0);
    if (exit != nullptr && exit->signal && !evidence.course.StoppedAHelper(i)) by_signal[*exit->signal].push_back(i);
  }
  // Where srun says because of whom it ends the rest, the rest is no news, but for what nobody sends.
  const auto first = [&](EventIndex i) { return std::get<ProcessExit>(timeline.events[i].what).first_observed; };
  constexpr std::array<int, 4> kFaults = {4, 7, 8, 11};
  for (auto& [signal, events] : by_signal)
    if (std::ranges::find(kFaults, signal) == kFaults.end() && std::ranges::any_of(events, first))
      std::erase_if(events, [&](EventIndex i) { return EndsATask(timeline.events[i].what) && !first(i); });
  for (auto& [signal, events] : by_signal) DropEarlierLaunches(timeline, events);
  std::vector<Relation> out;
  for (const auto& [signal, events] : by_signal) {
    const Meaning* meaning = MeaningOf(signal);
    if (meaning == nullptr || (signal == 15 && killed_by_agent && (other_end || timed_out)) ||
        (signal == 6 && timed_out))
      continue;
    Found found(meaning->held);
    const bool is_first = std::ranges::any_of(events, first);
    if (signal == 6 && is_first && IsPlainProgram(timeline)) found.Grade({"ended-by-sigabrt", "first"});
    if (signal == 15 && is_first) found.Grade({"ended-by-sigterm", "first"});
    if (signal == 15 && !other_end && !timed_out && AreLastWords(timeline, events))
      found.Grade({"ended-by-sigterm", "last-words"});
    if (signal == 7 && IsPlainProgram(timeline)) found.Grade({"sigbus-of-program", "reported"});
    found.times = events.size();
    std::vector<int> ranks;
    for (const EventIndex i : events) {
      const auto rank = RankOfExit(timeline, timeline.events[i]);
      if (rank && std::find(ranks.begin(), ranks.end(), rank->value) == ranks.end()) ranks.push_back(rank->value);
      if (found.citations.size() < 4) found.citations.push_back(Cite(timeline, i, LineRole::kCause));
    }
    std::sort(ranks.begin(), ranks.end());
    for (const int rank : ranks) found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, ""));
    if (ranks.empty()) {
      const auto& exit = std::get<ProcessExit>(timeline.events[events.front()].what);
      Culprit culprit;
      culprit.host = exit.host;
      culprit.pid = exit.pid;
      if (culprit.host || culprit.pid) found.culprits.push_back(std::move(culprit));
    }
    found.Say("who", ranks.empty() ? "A process" : RanksInWords(ranks));
    found.Say("signal", std::to_string(signal));
    const auto by_launcher = [&](Found::Held held) {
      Found killed = found;
      killed.Grade(held);
      killed.culprits.clear();
      out.push_back(std::move(killed));
    };
    if (signal == 9 && AreAll(timeline, ranks)) by_launcher({"all-ranks-killed", "reported"});
    const bool teardown = signal == 9 ? AreOfTeardown(timeline, events) : WasEnding(timeline, events);
    if (signal == 9 && teardown) by_launcher({"killed-in-teardown", "reported"});
    if (signal == 15 && teardown) found.culprits.clear();
    out.push_back(std::move(found));
  }
  AddOwnEnd(timeline, out);
  return out;
}

}  // namespace exits

const Detector kExits{"process-ended-by-signal", "A process ended by a signal, as its parent saw it.", exits::kFindings,
                      &exits::Run};

}  // namespace inquest
