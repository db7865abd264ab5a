// A signal ended a process, and its native stack says in which library it was.
//
// What holds: a process died of a fault of its own (SIGSEGV, SIGILL, SIGFPE), and of the stack that its handler printed
// the first frame beside the handler and the C library is known. Why that implies the cause: the fault is in that frame
// or in what it was given. What looks like it: the stack of an abort behind a time-out or a failed check, which says
// where somebody noticed; the stacks of the other threads, which stand outside of it.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/rank_set.h"
#include "rules/detectors.h"
#include "timeline/ends.h"

namespace inquest {
namespace crash_place {

constexpr FindingRow kFindings[] = {
    {"crashed-in-library", "fault unknown", "who place"},
};
using Found = FoundIn<kFindings>;

constexpr bool IsFault(int signal) { return signal == 11 || signal == 4 || signal == 8; }

/// The signals of which processes of the job died.
class Signals {
 public:
  explicit Signals(const Timeline& timeline) : timeline_(timeline) {
    for (const Event& event : timeline.events) {
      const auto* exit = std::get_if<ProcessExit>(&event.what);
      if (exit == nullptr || !exit->signal) continue;
      all_.insert(*exit->signal);
      if (const auto rank = RankOfExit(timeline, event)) by_rank_.emplace(rank->value, *exit->signal);
      if (exit->pid) by_pid_.emplace(*exit->pid, *exit->signal);
    }
  }
  /// Of the process whose stack it is, or of all where they died of one; nullopt: not known.
  std::optional<int> Of(const Event& stack) const {
    const auto rank = timeline_.RankOf(stack);
    if (const auto it = rank ? by_rank_.find(rank->value.value) : by_rank_.end(); it != by_rank_.end())
      return it->second;
    const auto it = stack.origin.pid ? by_pid_.find(*stack.origin.pid) : by_pid_.end();
    if (it != by_pid_.end()) return it->second;
    return all_.size() == 1 ? std::optional(*all_.begin()) : std::nullopt;
  }

 private:
  const Timeline& timeline_;
  std::set<int> all_;
  std::map<int, int> by_rank_;
  std::map<std::int64_t, int> by_pid_;
};

std::string InWords(const CrashFrame& frame) {
  const std::string& where = frame.library.empty() ? frame.file : frame.library;
  if (where.empty()) return frame.function;
  return frame.function.empty() ? where : fmt::format("{} ({})", where, frame.function);
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  const Signals signals(timeline);
  std::map<std::pair<bool, std::string>, std::vector<EventIndex>> by_place;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* frame = std::get_if<CrashFrame>(&timeline.events[i].what);
    if (frame == nullptr) continue;
    const auto signal = signals.Of(timeline.events[i]);
    // An abort's stack says who noticed; one of a stop from outside, where it came to be.
    if (!signal || IsFault(*signal)) by_place[{signal.has_value(), InWords(*frame)}].push_back(i);
  }
  std::vector<Relation> out;
  for (const auto& [key, events] : by_place) {
    const auto& [fault, place] = key;
    Found found(fault ? Found::Held{"crashed-in-library", "fault"} : Found::Held{"crashed-in-library", "unknown"});
    found.times = events.size();
    RankSet ranks;
    for (const EventIndex i : events) {
      if (const auto rank = timeline.RankOf(timeline.events[i])) ranks.Add(rank->value.value);
      if (found.citations.size() < 4) found.citations.push_back(Cite(timeline, i, LineRole::kCause));
    }
    for (const int rank : ranks) found.culprits.push_back(BlameRank(timeline, GlobalRank{rank}, ""));
    std::set<std::pair<std::optional<std::string>, std::int64_t>> processes;
    for (const EventIndex i : events) {
      const Event& event = timeline.events[i];
      if (!ranks.empty() || !event.origin.pid || !processes.emplace(timeline.HostOf(event), *event.origin.pid).second)
        continue;
      Culprit culprit;
      culprit.host = timeline.HostOf(event);
      culprit.pid = event.origin.pid;
      found.culprits.push_back(std::move(culprit));
    }
    found.Say("who", ranks.empty() ? "A process" : RanksInWords(ranks));
    found.Say("place", place);
    out.push_back(std::move(found));
  }
  return out;
}

}  // namespace crash_place

extern const Detector kCrashPlace{"crash-place", "The native stack of a process that crashed names the library.",
                                  crash_place::kFindings, &crash_place::Run};

}  // namespace inquest
