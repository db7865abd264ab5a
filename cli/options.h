// The command line: one table of commands, one of options. Parsing, --help and completions all read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/launch.h"
#include "core/result.h"
#include "parsers/scan.h"
#include "replay/plan.h"
#include "replay/sequence_reader.h"
#include "replay/speeds.h"
#include "report/report.h"

namespace inquest {

enum class When : std::uint8_t { kAuto, kAlways, kNever };

struct Command;

/// What logs are read, and with what.
struct AnalysisOptions {
  std::string rules_dir;               ///< empty: the embedded rules alone
  std::vector<GivenHost> hosts;        ///< `--host [PATH=]NAME`, each
  std::optional<std::size_t> attempt;  ///< which start of the job is judged, from 1; nullopt: the last
  std::string html, perfetto;          ///< where a page and a trace go beside what is printed; empty: nowhere
  unsigned threads = 0;                ///< 0: every core
  bool quiet = false;
  bool whole = false;                          ///< all of the report
  bool timeline = false;                       ///< the picture in its place
  std::optional<std::size_t> timeline_events;  ///< of each rank, in JSON; nullopt: as many as the format has by itself
};

struct TriageOptions {
  std::string format = "text";  ///< or `json`, `jsonl`
  std::string output;           ///< empty, `-`: standard output
};

struct EvidenceOptions {
  std::string format;  ///< `text`, `json`, `html`; empty: by the name of the file
  std::string output;  ///< empty, `-`: standard output
};

struct CollectOptions {
  std::string output;                              ///< empty: a name by host and time
  std::optional<std::chrono::seconds> time_limit;  ///< nullopt: each program's own
  bool stacks = false;
};

/// What is not given is inferred or assumed.
/// Of `--export`: nccl-tests' command instead of a script.
inline constexpr std::string_view kNcclTests = "nccl-tests";

struct ReplayOptions {
  GivenArguments given;
  std::string engine = "nccl", interface, faults, nccl_library, logs;
  std::optional<int> last;  ///< `--last`: calls of every communicator, instead of the one that failed
  SequenceAsked::Streams streams = SequenceAsked::Streams::kAsLogged;
  bool until_fails = false;
  std::optional<std::chrono::milliseconds> for_time;
  std::string state = "inquest-replay.state.json";
  std::string exported;  ///< `--export`: a script's path, or `nccl-tests`; empty: run it
  std::optional<int> iterations;
  std::optional<std::chrono::milliseconds> timeout, join_timeout;
  bool as_json = false, dry_run = false, share_gpu = false, isolate = false, verbose = false;
  std::string baseline, save_baseline;  ///< files; empty: not given
  SizeSweep sizes;
  // over several nodes
  std::vector<HostShare> hosts;  ///< `--hosts`; empty: not given
  std::optional<HostAndPort> master;
  std::optional<std::uint64_t> nodes, node;
  std::vector<std::string> ssh_command = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
  std::string token_file;
  bool is_agent = false;  ///< started by another inquest: ends with its standard input
};

/// One report of a run.
struct ReportOutput {
  const ReportFormat* format = nullptr;  ///< never null
  std::optional<std::string> file;       ///< nullopt: standard output
};

/// What the user asked for: of each command its own, and what all share.
struct Options {
  const Command* command = nullptr;    ///< a row of Commands(), never null
  std::vector<std::string> arguments;  ///< paths, or the words of a command
  AnalysisOptions analysis;            ///< its rules are those of every command
  TriageOptions triage;
  EvidenceOptions evidence;
  CollectOptions collect;
  ReplayOptions replay;
  std::string rules_cause;  ///< `rules list --cause`; empty: all
  bool help_as_man = false;
  std::vector<ReportOutput> reports;  ///< how to print a verdict, and where; at least one, at most one of them printed
  When color = When::kAuto;
  bool pager = true;
  bool help = false, version = false;
};

/// What a command printed, and how it ended.
struct CommandResult {
  int status = 0;
  std::string out, err;
  std::shared_ptr<const void> held = {};  ///< lives until it is printed
  /// Prints what is too long for `out`, piece by piece.
  std::function<void(const std::function<void(std::string_view)>&)> print = {};
};
inline constexpr int kExitHealthy = 0, kExitFailed = 1, kExitUndecided = 2, kExitCouldNotRun = 3;
/// The shape of every error: `inquest: where: message`, the hint on a line of its own. Sanitised.
CommandResult CouldNotRun(const Error& error);

struct Command {
  std::string_view name;  ///< empty: the analysis
  std::string_view summary;
  std::string_view usage;                   ///< lines
  std::string_view examples;                ///< lines
  std::span<const std::string_view> words;  ///< what the first argument can be
  std::string_view ids;                     ///< shell command that prints what the next argument can be; empty: files
  std::string_view notes = {};              ///< paragraphs at the end of the help
  bool analyzes = false;                    ///< reads logs as the analysis does, and takes its options
  CommandResult (*run)(const Options&);
};
/// The analysis first.
std::span<const Command> Commands();

struct Option {
  std::string_view name;                       ///< without the dashes
  char letter = 0;                             ///< 0: none
  std::string_view value;                      ///< `DIR`; empty: a flag
  std::vector<std::string_view> (*choices)();  ///< nullptr: any value; the room that knows is asked
  std::string_view help;
  std::string_view command;  ///< of this command only; "*": of all
  /// What it can be; empty: any value.
  std::vector<std::string_view> Choices() const {
    return choices != nullptr ? choices() : std::vector<std::string_view>();
  }
  /// Returns what is wrong with the value.
  std::optional<std::string> (*set)(Options&, const std::string& value);
};
std::span<const Option> OptionTable();
bool Accepts(const Command& command, const Option& option);

Result<Options> ParseOptions(const std::vector<std::string>& arguments);
/// What `--help` prints, and the same as a manual page in roff.
std::string HelpText(const Command& command);
std::string ManualPage(const Command& command);
/// `0.1.0` where that is tagged, else with the commit: `0.1.0+g1a2b3c4`.
std::string_view Version();

}  // namespace inquest
