// How the last lines of a log weigh: whether a program whose end nobody tells came to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rules/rule_book.h"
#include "timeline/course.h"
#include "timeline/timeline.h"

namespace inquest {

// Most programs never say that they are through: they print results, save them, and are gone. A reader tells by what
// the last lines are. Rows of a loop, a share of a whole that is not full, words of what is done next: it was cut off.
// Figures of another kind than all before, what was saved where, how long all took: it was through. None of it is sure
// alone, so each sign has a weight, fitted to logs that were labelled by readers (rules/farewell.yaml); together they
// say how often a log of such an end is of a program that ended well.

/// The end of one input.
struct Farewell {
  EventIndex last = 0;                                ///< its last line that says anything
  std::vector<std::pair<std::string, double>> signs;  ///< that show, by name; 0..1, most of them 1
  double well = 0;                                    ///< 0..1: how often such an end is a good one
};

/// nullopt: few lines of the input say anything, its last ones are not seen or are a library's, or the book weighs no
/// signs.
std::optional<Farewell> FarewellOf(const Timeline& timeline, const RuleBook& book, const Course& course,
                                   std::uint32_t input);

/// Signs that are no words of a line but a relation of it to those before; rules/farewell.yaml weighs them by name.
bool IsFarewellRelation(std::string_view name);

}  // namespace inquest
