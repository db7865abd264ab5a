// Starts of a job within what was given: restarts, requeues, runs appended to one file. Each is judged by itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "timeline/course.h"
#include "timeline/timeline.h"

namespace inquest {

/// One start of the job. It holds, of every input that has several, the lines from `from[input]` to before `to[input]`;
/// of inputs that have none, all lines, which belong to the last attempt.
struct Attempt {
  std::vector<SourcePos> from, to;  ///< by input
  EventIndex first = 0, last = 0;   ///< of the whole timeline: its first and last event
  bool Holds(const SourcePos& where) const { return from[where.input] <= where && where < to[where.input]; }
};

// How attempts are found. A launcher that restarts its workers says so: what follows is another attempt. Else a run is
// over where a scheduler ended it, or where a process died of an exception or with an error; and it begins where a
// program prints what it prints once, at its start: a launcher's banner, nvidia-smi's table, NCCL's version. Behind a
// scheduler's end any such line opens the next attempt; behind a death only one that this attempt has printed before,
// since ranks start at different moments; behind a good end only a launcher's, again. A program whose banner nobody
// knows is known by the first lines of its input: two of them behind a death, as far apart as they were and printed
// nowhere between, are its start again; so are three lines that follow several deaths, where work follows them; and a
// program whose source was edited since its last failure (edited.h) was started since. A thread's end, and that of a
// process which another waits for, is no death here. Inputs of one job are counted from their ends: the last attempt of
// each is the job's last, unless whole inputs are of earlier starts (generations.h).

/// In order; one of all where nothing was started again. `told` by event: starts are told as kStart, restarts as
/// kRestart.
std::vector<Attempt> FindAttempts(const Timeline& timeline, std::span<const Told> told);

/// The timeline of one attempt: its events, with groups, collectives and ranks matched anew. Who is who is known from
/// all.
Timeline Only(const Timeline& timeline, const Attempt& attempt);

}  // namespace inquest
