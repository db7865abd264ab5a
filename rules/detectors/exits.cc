// A process ended by a signal or with an error code, as its parent saw it.
//
// What holds: a launcher or a shell reports how a child ended. Why that implies the cause: SIGSEGV is the process' own
// crash, SIGKILL comes from the kernel's OOM killer far more often than from a person, SIGBUS from a full /dev/shm. What
// looks like it: SIGABRT after a watchdog time-out and SIGTERM from the launcher are consequences; an exit code of 1
// says that somebody else printed the reason.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace {

struct Meaning {
  int signal;
  std::string_view name, cause, claim;
  Strength strength;
  double confidence;
};

constexpr Meaning kMeanings[] = {
    {11, "sigsegv", "native-crash", "crashed with a segmentation fault (SIGSEGV)", Strength::kSupporting, 0.65},
    {4, "sigill", "native-crash", "ran an illegal instruction (SIGILL)", Strength::kSupporting, 0.65},
    {8, "sigfpe", "native-crash", "died of an arithmetic fault (SIGFPE)", Strength::kSupporting, 0.65},
    {7, "sigbus", "shm-exhausted", "died of a bus error (SIGBUS), which is what a full /dev/shm gives", Strength::kSupporting, 0.55},
    {9, "sigkill", "host-oom", "was killed by SIGKILL, most often the kernel's OOM killer", Strength::kSupporting, 0.5},
    {6, "sigabrt", "native-crash", "aborted (SIGABRT)", Strength::kHint, 0.35},
    {2, "sigint", "interrupted", "was interrupted (SIGINT)", Strength::kHint, 0.45},
    {1, "sighup", "interrupted", "was hung up on (SIGHUP): its terminal or session went away", Strength::kSupporting, 0.6},
    {15, "sigterm", "interrupted", "was told to stop (SIGTERM)", Strength::kHint, 0.3},
};

const Meaning* MeaningOf(int signal) {
  const auto it = std::find_if(std::begin(kMeanings), std::end(kMeanings), [&](const Meaning& m) { return m.signal == signal; });
  return it == std::end(kMeanings) ? nullptr : it;
}

std::vector<Finding> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  std::map<int, std::vector<EventIndex>> by_signal;
  bool timed_out = false, killed_by_agent = false;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    timed_out = timed_out || std::holds_alternative<WorkTimedOut>(timeline.events[i].what);
    killed_by_agent = killed_by_agent || std::holds_alternative<SignalSent>(timeline.events[i].what);
    const auto* exit = std::get_if<ProcessExit>(&timeline.events[i].what);
    if (exit != nullptr && exit->signal) by_signal[*exit->signal].push_back(i);
  }
  std::vector<Finding> out;
  for (const auto& [signal, events] : by_signal) {
    const Meaning* meaning = MeaningOf(signal);
    if (meaning == nullptr || (signal == 15 && killed_by_agent) || (signal == 6 && timed_out)) continue;
    Finding finding;
    finding.rule = fmt::format("ended-by-{}", meaning->name);
    finding.cause = meaning->cause;
    finding.strength = meaning->strength;
    finding.confidence = meaning->confidence;
    finding.times = events.size();
    std::vector<int> ranks;
    for (const EventIndex i : events) {
      const auto rank = RankOfExit(timeline, timeline.events[i]);
      if (rank && std::find(ranks.begin(), ranks.end(), rank->value) == ranks.end()) ranks.push_back(rank->value);
      if (finding.citations.size() < 4) finding.citations.push_back(Cite(timeline, i, "cause"));
    }
    std::sort(ranks.begin(), ranks.end());
    for (const int rank : ranks) finding.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, fmt::format("ended by signal {}", signal)));
    if (ranks.empty()) {
      const auto& exit = std::get<ProcessExit>(timeline.events[events.front()].what);
      Culprit culprit;
      culprit.host = exit.host;
      culprit.pid = exit.pid;
      culprit.why = fmt::format("ended by signal {}", signal);
      if (culprit.host || culprit.pid) finding.culprits.push_back(std::move(culprit));
    }
    finding.claim = ranks.empty() ? fmt::format("A process {}.", meaning->claim)
                                  : fmt::format("Rank{} {} {}.", ranks.size() > 1 ? "s" : "", FoldRanks(ranks), meaning->claim);
    out.push_back(std::move(finding));
  }
  return out;
}

constexpr std::string_view kFindings[] = {"ended-by-sigsegv", "ended-by-sigill", "ended-by-sigfpe", "ended-by-sigbus", "ended-by-sigkill", "ended-by-sigabrt", "ended-by-sigint", "ended-by-sighup", "ended-by-sigterm"};

}  // namespace

const Detector kExits{"process-ended-by-signal", "A process ended by a signal, as its parent saw it.", kFindings, &Run};

}  // namespace inquest
