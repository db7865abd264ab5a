// Wires the rooms together: inputs -> timeline -> findings -> verdict.
#pragma once

#include <string>
#include <vector>

#include "parsers/scan.h"
#include "rules/judge.h"
#include "rules/rule_book.h"

namespace inquest {

struct Analysis {
  Timeline timeline;
  Verdict verdict;
};

/// `rules_dir` empty: the embedded rules alone.
Result<Analysis> Analyze(const std::vector<std::string>& paths, const RuleBook& book, const Sieve& sieve, const ScanOptions& options);

}  // namespace inquest
