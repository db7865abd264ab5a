// Samples of rules, sent through the whole program: whether they match as they should, why not, and which rule is
// covered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rules/rule_book.h"
#include "search/sieve.h"

namespace inquest {

/// Why a sample that must match does not, or what of one that must not does; nullopt: it is as it should be. Not
/// sanitised.
std::optional<std::string> WhySampleFails(const std::string& line, bool must_match, std::uint32_t rule,
                                          const RuleBook& book, const Sieve& sieve);

/// One signature that reads all that another does, for the same cause and no less surely.
struct Covered {
  const Rule* rule = nullptr;
  const Rule* by = nullptr;
};
/// Of the rules whose file is below `folder`; empty: of all.
std::vector<Covered> CoveredRules(const RuleBook& book, const std::string& folder);

}  // namespace inquest
