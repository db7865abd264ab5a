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

namespace inquest {
namespace {

constexpr FindingRow kFindings[] = {
    {"ended-by-sigsegv", "reported", "who signal"},       {"ended-by-sigill", "reported", "who signal"},
    {"ended-by-sigfpe", "reported", "who signal"},        {"ended-by-sigbus", "reported", "who signal"},
    {"ended-by-sigkill", "reported", "who signal"},       {"ended-by-sigabrt", "first reported", "who signal"},
    {"sigbus-of-program", "reported", "who signal"},      {"ended-by-itself", "first", "who how", {}, true},
    {"ended-by-sigint", "reported", "who signal"},        {"ended-by-sighup", "reported", "who signal"},
    {"ended-by-sigterm", "first reported", "who signal"}, {"all-ranks-killed", "reported", "who signal"},
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
           (exit != nullptr && exit->reporter == "mpirun" && !exit->signal);
  });
  if (!ended && timeline.job_hosts < 2) return false;
  constexpr std::size_t kLeast = 4;
  return ranks.size() >= kLeast && ranks.size() * 4 >= timeline.KnownRanks() * 3;
}

/// Whether a launcher that reports the ends in their order, srun or PALS, was ending the job before it killed the first
/// of these: another process had failed, or the job was cancelled.
bool AreOfTeardown(const Timeline& timeline, const std::vector<EventIndex>& killed) {
  if (!std::ranges::all_of(killed, [&](EventIndex i) { return EndsATask(timeline.events[i].what); })) return false;
  const std::uint32_t input = timeline.events[killed.front()].where.input;
  return std::any_of(timeline.events.begin(), timeline.events.begin() + static_cast<std::ptrdiff_t>(killed.front()),
                     [&](const Event& event) {
                       return event.where.input == input && (IsSchedulersStop(event.what) || IsBadExit(event.what));
                     });
}

/// What an agent of torchelastic's does to a worker that outlives the SIGTERM which followed the first failure: it
/// waits for 30 s, sends SIGKILL, and lists that worker with the others. A worker that the kernel kills is seen at the
/// agent's next look, seconds behind what died of it.
bool IsOfAgent(const Event& killed, const std::vector<Timestamp>& failed) {
  constexpr std::chrono::seconds kPatience(25);
  const auto& exit = std::get<ProcessExit>(killed.what);
  if (exit.reporter != "torchelastic" || exit.signal != 9 || exit.first_observed || !killed.at) return false;
  return std::ranges::any_of(failed, [&](const Timestamp& first) {
    return first.date == killed.at->date && killed.at->at - first.at >= kPatience;
  });
}

/// When torchelastic saw its first worker fail, by each kind of date.
std::vector<Timestamp> FirstFailures(const Timeline& timeline) {
  std::vector<Timestamp> out;
  for (const Event& event : timeline.events) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    if (exit == nullptr || exit->reporter != "torchelastic" || !IsBadExit(event.what) || exit->signal == 15 ||
        !event.at)
      continue;
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
  constexpr std::string_view kLaunchers[] = {"mpd", "mvapich", "aprun", "platform-mpi", "poe", "mpt"};
  const auto reporter = [&](EventIndex i) -> std::string_view {
    return std::get<ProcessExit>(timeline.events[i].what).reporter;
  };
  const std::string_view launcher = reporter(killed.front());
  if (std::ranges::find(kLaunchers, launcher) == std::end(kLaunchers)) return false;
  if (!std::ranges::all_of(killed, [&](EventIndex i) { return reporter(i) == launcher; })) return false;
  return std::ranges::any_of(timeline.events, [&](const Event& event) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    return exit != nullptr && exit->reporter == launcher && exit->signal && *exit->signal != 9 && *exit->signal != 15;
  });
}

/// Whether a launcher's record is of a process that nobody had told to end.
bool EndedByItself(const ProcessExit& exit) {
  constexpr int kShell = 128;
  const auto is_told = [](int signal) { return signal == 1 || signal == 2 || signal == 9 || signal == 15; };
  const int of_shell = exit.exit_code.value_or(0) - kShell;
  return exit.first_observed && IsBadExit(exit) && !is_told(exit.signal.value_or(0)) && !is_told(of_shell);
}

/// The first to end by itself. Where the whole job was cancelled, or somebody stopped it before by the clocks, its
/// processes may have ended in any way because of that.
void AddOwnEnd(const Timeline& timeline, std::vector<Relation>& out) {
  std::optional<EventIndex> own;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* exit = std::get_if<ProcessExit>(&timeline.events[i].what);
    if (exit != nullptr && EndedByItself(*exit) && (!own || timeline.Order(i, *own) == std::partial_ordering::less))
      own = i;
  }
  if (!own) return;
  const Event& end = timeline.events[*own];
  const bool stopped = std::ranges::any_of(timeline.events, [&](const Event& event) {
    const auto* stop = std::get_if<JobStopped>(&event.what);
    if (stop == nullptr) return false;
    const bool before = event.at && end.at && event.at->date == end.at->date && event.at->at < end.at->at;
    const bool for_a_reason = stop->by == "slurm" && !stop->reason.empty() && stop->reason != "TASK FAILURE";
    return before || stop->by == "keyboard" || for_a_reason || event.text.find("*** JOB ") != std::string::npos;
  });
  if (stopped) return;
  const auto& exit = std::get<ProcessExit>(end.what);
  const auto rank = RankOfExit(timeline, end);
  Found found({"ended-by-itself", "first"});
  found.citations.push_back(Cite(timeline, *own, "symptom"));
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
    if (exit != nullptr && exit->signal) by_signal[*exit->signal].push_back(i);
  }
  // Where srun says because of whom it ends the rest, the rest is no news.
  const auto first = [&](EventIndex i) { return std::get<ProcessExit>(timeline.events[i].what).first_observed; };
  for (auto& [signal, events] : by_signal)
    if (std::ranges::any_of(events, first))
      std::erase_if(events, [&](EventIndex i) { return EndsATask(timeline.events[i].what) && !first(i); });
  const std::vector<Timestamp> failures = FirstFailures(timeline);
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
    if (signal == 7 && IsPlainProgram(timeline)) found.Grade({"sigbus-of-program", "reported"});
    found.times = events.size();
    std::vector<int> ranks;
    for (const EventIndex i : events) {
      const auto rank = RankOfExit(timeline, timeline.events[i]);
      if (rank && std::find(ranks.begin(), ranks.end(), rank->value) == ranks.end()) ranks.push_back(rank->value);
      if (found.citations.size() < 4) found.citations.push_back(Cite(timeline, i, "cause"));
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
    const bool teardown =
        AreOfTeardown(timeline, events) || (signal == 9 && AreOfLauncher(timeline, events)) ||
        std::ranges::all_of(events, [&](EventIndex i) { return IsOfAgent(timeline.events[i], failures); });
    if (signal == 9 && teardown) by_launcher({"killed-in-teardown", "reported"});
    if (signal == 15 && teardown) found.culprits.clear();
    out.push_back(std::move(found));
  }
  AddOwnEnd(timeline, out);
  return out;
}

}  // namespace

const Detector kExits{"process-ended-by-signal", "A process ended by a signal, as its parent saw it.", kFindings, &Run};

}  // namespace inquest
