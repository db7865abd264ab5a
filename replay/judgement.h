// From how far each rank came to one sentence that names whom it hangs on.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "replay/outcome.h"

namespace inquest {

/// Why the supervisor looked.
enum class Ending : std::uint8_t { kAllDone, kEvent, kDeadline, kInterrupted };

struct Judgement {
  RunVerdict verdict = RunVerdict::kPassed;
  std::string sentence;
  std::vector<Blamed> blamed;
  std::vector<int> cycle = {};  ///< of a sequence: each waits for the next, the last for the first
};

/// `run` holds the table of ranks and, after a deadline, the links. `waited`: the deadline that passed.
Judgement Judge(const RunOutcome& run, const Plan& plan, Ending ending, std::chrono::milliseconds waited);

/// A rank that began a step later than the median of all, by more than in the step before.
struct Lateness {
  int rank = 0;
  Step step;
  std::chrono::milliseconds by{};
};
/// What matters of it: in a run that passed, a quarter of its time; in another, of the ranks that it blames. Those of
/// one step together, the worst three. `run` is judged.
std::vector<std::string> LatenessNotes(const std::vector<Lateness>& late, const RunOutcome& run);

/// The step after this one in a run of that many iterations.
Step StepAfter(const Step& step, const Plan& plan);

/// nullopt: no iteration was completed by all.
std::optional<Bandwidth> BandwidthOf(const RunOutcome& run, const Plan& plan);

/// `1.9 GB`.
std::string SizeText(std::uint64_t bytes);

}  // namespace inquest
