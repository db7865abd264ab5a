// Inputs of earlier starts of the job: what a restarted pod, agent or batch job wrote into files of their own.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "timeline/course.h"
#include "timeline/timeline.h"

namespace inquest {

// How inputs are told apart. By their names, where these number starts: torchelastic's `attempt_1/`, a pod's `1.log`
// beside `0.log` and `--previous`, a batch job's id. Else by their clocks: where all that one side has ends before the
// other side begins, one side holds an end and the other a start, and both hold the same rank or, where one names none,
// have names that differ in numbers only, they are two starts. Those with a communicator in common are none, nor are
// ranks that merely begin late, or print into one file more than into another.

/// By input: how many starts in files of their own came after it. nullopt: it is of no start in particular, as an
/// agent's own log or a host's are.
std::vector<std::optional<std::size_t>> StartsAfter(const Timeline& timeline, std::span<const Told> told);

}  // namespace inquest
