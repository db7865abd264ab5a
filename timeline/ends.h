// Whose end ended whom: of the processes that launchers, agents and shells saw end, who went first.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "timeline/timeline.h"

namespace inquest {

/// The rank whose end a parent reports: by its number, or by its place on the only host.
std::optional<GlobalRank> RankOfExit(const Timeline& timeline, const Event& event);

/// A rank that was gone before the others, and how that is known.
struct FirstEnd {
  enum class How : std::uint8_t {
    kTold,       ///< its launcher saw it first
    kOnlyError,  ///< it alone ended with an error
    kUnstopped,  ///< it alone did not have to be stopped when the step was ended
    kEarliest    ///< by the clocks, or in the order in which one launcher tells of ends
  };
  GlobalRank rank;
  How how = How::kTold;
};

/// Those that ended their job by MPI's own means: who does so is the first to end, and several may do so at once.
std::set<GlobalRank> Aborted(const Timeline& timeline);
/// The one of whom a launcher says that it was the first, else the only one that ended with an error; nullopt: nobody,
/// or several.
std::optional<FirstEnd> OneThatEnded(const Timeline& timeline);

/// Those who ended badly before all others, and not because they were told to. Empty: nobody did, or all at once.
std::vector<FirstEnd> FirstToEnd(const Timeline& timeline);

/// It ended of what who is told to end ends of.
bool WasToldToEnd(const ProcessExit& exit);
/// A signal ended it that nobody sends to end a process.
bool Crashed(const ProcessExit& exit);

/// When each rank ended, for the question which of two went first.
class Ends {
 public:
  explicit Ends(const Timeline& timeline);
  /// By the clocks, in the order in which one launcher tells of ends, or since one had to be told to end. `unordered`
  /// where nothing tells, or where one is not known to have ended badly.
  std::partial_ordering Order(GlobalRank a, GlobalRank b) const;
  /// It ended badly, and not because it was told to: by the word of whoever saw it end, or since an exception was the
  /// last that was heard of it.
  bool EndedUntold(GlobalRank rank) const;

 private:
  const Timeline* timeline_;
  std::set<SourcePos> stops_;              ///< where a scheduler said that it ends the job or a step
  std::map<GlobalRank, EventIndex> ends_;  ///< the first bad end of each
  std::set<GlobalRank> raised_;            ///< whose last word is an exception
};

/// The ranks that ended with an error, by number; empty: too many to hold against one another.
std::vector<GlobalRank> EndedWithErrors(const Timeline& timeline);

/// The first bad end that an agent saw of a worker whom it had not told to end: behind it the agent ends the others,
/// and with them what they keep open.
std::optional<EventIndex> FirstWorkerLost(const Timeline& timeline);

/// The first end of a process that nobody had told to end. nullopt also where the whole job was cancelled, or somebody
/// had stopped it before by the clocks: its processes may have ended in any way because of that.
std::optional<EventIndex> FirstOwnEnd(const Timeline& timeline);

// Of ends of one signal, in order and not empty, by whose hand they were.

/// A launcher that reports ends in their order, srun or PALS, was ending the job before the first of these: another
/// process had failed, or the job was cancelled.
bool WasEnding(const Timeline& timeline, const std::vector<EventIndex>& ended);
/// The launcher or the agent killed these itself, because another process had failed.
bool AreOfTeardown(const Timeline& timeline, const std::vector<EventIndex>& killed);

}  // namespace inquest
