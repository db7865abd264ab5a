// The rules of this source tree, and the sieve that was compiled for them when the program was built.
#pragma once

#include "rules/rule_book.h"
#include "search/sieve.h"

namespace inquest {

const RuleBook& OurRules();
const Sieve& OurSieve();

}  // namespace inquest
