// Wires the rooms together: inputs -> timeline -> findings -> verdict.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsers/scan.h"
#include "replay/infer.h"
#include "rules/decide.h"
#include "rules/rule_book.h"

namespace inquest {

struct Analysis {
  Timeline timeline;
  Verdict verdict;
  std::vector<Input> inputs = {};                ///< as they were listed
  std::shared_ptr<const Sieve> sieve = nullptr;  ///< that they were read with; nullptr: whoever asked has it
};

/// The last attempt is judged, or number `attempt` from 1 where there are so many.
Result<Analysis> Analyze(const std::vector<std::string>& paths, const RuleBook& book, const Sieve& sieve,
                         const ScanOptions& options, std::optional<std::size_t> attempt = std::nullopt);

/// What a replay of the operation that the verdict speaks of has to know; nullopt: it speaks of none.
std::optional<ToReplay> WhatToReplay(const Verdict& verdict);

/// The same analysis, and beside it a timeline of the same inputs that holds every line of the devices.
struct AnalysisWithDevices {
  Analysis analysis;
  Timeline devices;
};
Result<AnalysisWithDevices> AnalyzeWithDevices(const std::vector<std::string>& paths, const RuleBook& book,
                                               const Sieve& sieve, const ScanOptions& options,
                                               std::optional<std::size_t> attempt = std::nullopt);

}  // namespace inquest
