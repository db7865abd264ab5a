// The signs that the last lines of each FILE show, a line a file: FILE, how often such an end is a good one,
// NAME=VALUE... Each file is a job of its own; of those that anything else decides nothing is said. What
// bench/fit_farewell.py fits the weights of rules/farewell.yaml from.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "cli/analyze.h"
#include "cli/rule_set.h"
#include "rules/evidence.h"
#include "rules/farewell.h"

int main(int count, char** files) {
  using namespace inquest;
  const RuleBook book = Deserialize(EmbeddedRules());
  RuleBook without = book;
  without.farewell.clear();
  const auto sieve = LoadSieveFor("", book);
  if (!sieve) return 3;
  for (int i = 1; i < count; ++i) {
    const auto analysis = Analyze({files[i]}, without, **sieve, {});
    if (!analysis || analysis->verdict.outcome != Outcome::kUndecided) continue;
    const auto end = FarewellOf(analysis->timeline, book, Gather(analysis->timeline, without).course, 0);
    if (!end) continue;
    fmt::print("{}\t{:.3f}", files[i], end->well);
    for (const auto& [name, value] : end->signs) fmt::print("\t{}={:.3f}", name, value);
    fmt::print("\n");
  }
  return 0;
}
