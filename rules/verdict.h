// Findings and the verdict: what the rules concluded, with the lines that prove it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rules/remedy.h"
#include "rules/sketch.h"
#include "timeline/collective_ref.h"
#include "timeline/lifelines.h"
#include "timeline/timeline.h"

namespace inquest {

enum class Strength : std::uint8_t { kHint, kSupporting, kDecisive };
std::string_view Name(Strength strength);

/// Whether to start the job again; unsaid by who leaves it to the cause.
enum class Retry : std::uint8_t { kUnsaid, kYes, kAfterFix, kElsewhere, kNo };
/// `after-fix`.
std::string_view Name(Retry retry);

/// What a quoted line is to its finding.
enum class LineRole : std::uint8_t { kCause, kSymptom, kContext };
std::string_view Name(LineRole role);

/// One quoted line.
struct Citation {
  EventIndex event = 0;
  LineRole role = LineRole::kContext;
  SourcePos where;
  std::optional<Timestamp> at;
  std::optional<GlobalRank> rank;
  std::string text;
};

/// Whom a finding blames. Every field optional; a rank without a host is a rank in a log that names no host.
struct Culprit {
  std::optional<GlobalRank> rank;
  std::optional<std::string> host;
  std::optional<std::int64_t> pid;
  std::optional<int> gpu_index;
  std::optional<std::string> bus_id;
  std::string why;
};

/// One rule that held.
struct Finding {
  std::string rule;   ///< signature, symptom or detector id
  std::string cause;  ///< a cause code; empty: a symptom
  Strength strength = Strength::kHint;
  double confidence = 0;  ///< 0..1, of a verdict that rests on this finding alone
  std::string claim;      ///< one sentence
  std::vector<Culprit> culprits;
  std::vector<Citation> citations;    ///< the telling ones first
  std::vector<std::string> explains;  ///< symptom ids, rule ids, cause codes
  std::optional<CollectiveRef> collective;
  std::vector<Remedy> remedies;
  std::vector<std::string> collect;
  Retry retry = Retry::kUnsaid;  ///< unsaid: the cause's
  std::uint64_t times = 1;       ///< how many lines said it
  std::string explained_by;      ///< filled by the judge: the rule that set it aside
};

enum class Outcome : std::uint8_t { kFailed, kHealthy, kUndecided };
std::string_view Name(Outcome outcome);

struct Alternative {
  std::string cause;
  double confidence = 0;
  std::string rule;
  std::string why;
};

/// One start of a job that was started several times.
struct AttemptTold {
  std::size_t number = 1;  ///< from 1
  bool judged = false;     ///< the verdict is of this one
  Citation first, last;    ///< its first and last line that is kept
  Outcome outcome = Outcome::kUndecided;
  std::string cause, summary;  ///< empty: not looked at, there are too many
  double confidence = 0;
  Sketch sketch = {};  ///< empty: the same
};

/// Which job it is, as far as its lines or the names of its files tell, and when the attempt that is judged ran.
struct JobTold {
  std::optional<Known<std::string>> id;  ///< nullopt: nobody says, or they say several
  std::string_view system;               ///< whose id it is: `slurm`, `lsf`, `pbs`, `batch` (one of those that name
                                         ///< files alike), `kubernetes`, `ray`, `torchelastic`; empty: no id is known
  std::string_view environment;          ///< who runs the machines, one of Environments(); empty: nobody says
  std::string name;                      ///< empty: not printed, or several
  std::optional<Timestamp> start, end;   ///< its first and last event that has a date; of one clock
};

struct Verdict {
  Outcome outcome = Outcome::kUndecided;
  std::string cause;    ///< code
  std::string title;    ///< of the cause
  std::string summary;  ///< two sentences: the chain from first cause to last symptom
  double confidence = 0;
  std::string rule;  ///< that decided; empty for unknown and healthy
  std::vector<Culprit> culprits;
  std::optional<CollectiveRef> collective;
  std::vector<Citation> evidence;
  std::vector<Remedy> remedies;
  std::vector<std::string> collect_next;
  std::vector<std::string>
      warnings;  ///< what makes the verdict doubtful whatever the evidence: two jobs in what was given
  Retry retry = Retry::kUnsaid;
  std::string fingerprint;    ///< the same for the same failure elsewhere, see rules/fingerprint.h; empty: healthy
  bool replay_helps = false;  ///< the collective hung with all ranks in it, and not by the program's fault
  std::vector<std::string> exclude_hosts;  ///< where retry is `elsewhere`: where not, as far as it is known
  std::vector<Alternative> alternatives;
  std::vector<Finding> findings;      ///< all, symptoms included, in order of weight
  std::vector<AttemptTold> attempts;  ///< in order; empty: one
  std::vector<Lifeline> lifelines;    ///< of the attempt judged
  JobTold job = {};
};

}  // namespace inquest
