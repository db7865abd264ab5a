// What a text is that no program printed: a program's source, or a document that quotes messages, by the look of its
// lines.
#pragma once

#include <string_view>

#include "core/input_form.h"

namespace inquest {

// Both quote what did not happen: a message with its blanks unfilled, a failure and the next one under their headings.
// No line tells: a log holds lines of source below its tracebacks, prose where a model speaks, a table that passes for
// a list. So the share of each is held against that of what only running programs print, and how a text begins and ends
// counts: a job that prints its script goes on to run it, and who asks for help pastes what happened last, or says that
// it is an issue.
/// Of a whole text; of a long one some hundred lines are looked at. nullptr: as far as its lines tell, it was printed.
const InputForm* FormOfText(std::string_view text);

}  // namespace inquest
