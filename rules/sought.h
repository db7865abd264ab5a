// What the sieve is to look for: the expressions of a rule book, and the marks of formats.
#pragma once

#include <span>
#include <string_view>

#include "rules/rule_book.h"
#include "search/hs_sieve.h"

namespace inquest {

/// All rules, by their number in the book; those of kind "training" phase and of the last line are not looked for.
/// Views into the book.
Sought SoughtBy(const RuleBook& book, std::span<const std::string_view> marks);

}  // namespace inquest
