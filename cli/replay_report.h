// What `inquest replay` prints: one screen for a person, or one document.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/isolate.h"
#include "replay/outcome.h"
#include "replay/soak.h"
#include "replay/speeds.h"
#include "report/report.h"

namespace inquest {

/// One of several nodes.
struct ReportNode {
  std::string name;  ///< `node 1 (hostb)`, as sentences have it
  std::string host, address;
  std::string engine;  ///< what its worker said of it; empty: not asked
  std::vector<int> ranks;
};

struct SpeedReport {
  SpeedsCompared compared;
  std::string baseline;  ///< the file that it was compared with; empty: none
  std::string saved;     ///< the file that was written; empty: none
};

struct ReplayReport {
  Plan plan;                         ///< as inferred and given, with its sweeps
  std::string engine;                ///< the worker's own words: `Gloo 0.5.0 over 127.0.0.1`
  std::string engine_tests;          ///< what a pass of it shows
  std::vector<TrialOutcome> trials;  ///< empty: a dry run, or an isolation
  std::optional<IsolationOutcome> isolation = {};
  std::optional<SpeedReport> speeds = {};
  std::optional<SoakOutcome> soak = {};  ///< of many runs; `trials` has the one that tells most
  std::string state = {};                ///< where its counts are
  std::optional<int> status = {};        ///< its exit status
  std::vector<ReportNode> nodes = {};    ///< empty: this host alone, or a dry run
};

/// Of several combinations: the picture of the first that broke, or of all.
enum class ReplayDetail : std::uint8_t { kTelling, kAll };
/// Ends in a newline. What a library printed is sanitised.
std::string ReplayText(const ReplayReport& report, const TextStyle& style, ReplayDetail detail);
/// Whether what the logs show came back, and with which of the values that are assumed; empty: the verdict says it all.
std::string Conclusion(const ReplayReport& report);
/// The document of docs/replay.md; ASCII, ends in a newline.
std::string ReplayJson(const ReplayReport& report, std::string_view tool_version);

/// `timeout 60 ./build/broadcast_perf -g 3 ...`; empty: nccl-tests has no such operation.
std::string NcclTestsCommand(const Plan& plan);

}  // namespace inquest
