// What of the findings follows from what: a finding that another explains, or that the course of the job or the graph
// of breaks shows to have come later, is set aside, with the rule, or the event, that it follows from.
#pragma once

#include <compare>
#include <optional>
#include <vector>

#include "rules/evidence.h"
#include "rules/verdict.h"

namespace inquest {

/// The line that proves it first; nullopt: it stands on none.
std::optional<EventIndex> FirstEventOf(const Finding& finding);
std::partial_ordering OrderOf(const Timeline& timeline, const Finding& a, const Finding& b);
/// It says itself that it explains the other.
bool NamesOther(const Finding& finding, const Finding& other);
/// What a process of the job did to itself: its program's doing, in its own words or its launcher's.
bool IsOfProgram(const Evidence& evidence, const Finding& finding);

/// A complaint that the work outlived is a note: its process neither ended nor stood still because of it. Not of the
/// kernel or of a tool, whose lines are not in the job's order; and where the line alone names the first cause, only
/// what went on for long.
void NoteWhatWorkOutlived(const Evidence& evidence, std::vector<Finding>& findings);
/// What follows from a worker that its agent lost, from what befell a rank before, from another finding, and from a
/// time-out: in this order, since what is set aside explains nothing.
void NoteWhatFollows(const Evidence& evidence, std::vector<Finding>& findings);

}  // namespace inquest
