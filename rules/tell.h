// What a verdict says once it is reached: in two sentences, of whom, with which lines, what to do, what to collect.
#pragma once

#include <string>
#include <vector>

#include "rules/evidence.h"
#include "rules/rule_book.h"
#include "rules/verdict.h"

namespace inquest {

// All of them fill a verdict whose `findings` stand in it already, in order of weight.

/// `top` decided, one of its findings. `rivals` are nearly as sure: what they ask for would tell them apart.
void TellFailed(const Timeline& timeline, const RuleBook& book, const Finding& top,
                const std::vector<const Finding*>& rivals, Verdict& verdict);
/// Nothing decided. `failed`: something went wrong for certain.
void TellUnknown(const Timeline& timeline, const RuleBook& book, bool failed, Verdict& verdict);
void TellHealthy(const Evidence& evidence, Verdict& verdict);

/// Other causes than `chosen`, one finding each. None is surer than `most`, whatever its rule says of it alone.
std::vector<Alternative> AlternativesOf(const std::vector<const Finding*>& causes, const std::string& chosen,
                                        double most);

}  // namespace inquest
