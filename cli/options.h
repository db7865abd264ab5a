// The command line: one table of commands, one of options. Parsing, --help and completions all read them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace inquest {

enum class When : std::uint8_t { kAuto, kAlways, kNever };

struct Command;

/// What the user asked for.
struct Options {
  const Command* command = nullptr;    ///< a row of Commands(), never null
  std::vector<std::string> arguments;  ///< paths, or the words of a command
  std::string format = "text";
  std::string rules_dir;  ///< empty: the embedded rules alone
  std::string cause;      ///< `rules list --cause`; empty: all
  std::string output;     ///< `collect -o`; empty: a name by host and time
  std::vector<std::string> hosts;  ///< `--host [PATH=]NAME`, each
  std::optional<std::size_t> attempt;  ///< which start of the job is judged, from 1; nullopt: the last
  unsigned threads = 0;   ///< 0: every core
  // `replay`; what is not given is inferred or assumed
  std::string operation, datatype, redop, engine = "nccl", timeout, interface, faults, nccl_library, logs;
  std::optional<std::uint64_t> count, ranks, root, peer, iterations;  ///< `count`: elements as NCCL counts them
  bool dry_run = false, share_gpu = false, isolate = false, verbose = false;
  // `replay` over several nodes
  std::string master, replay_hosts, ssh_command = "ssh -o BatchMode=yes -o ConnectTimeout=10", token_file, join_timeout;
  std::optional<std::uint64_t> nodes, node;
  bool is_agent = false;  ///< started by another inquest: ends with its standard input
  When color = When::kAuto;
  std::uint64_t time_limit = 0;  ///< `collect --time-limit`, seconds; 0: each program's own
  bool stacks = false;    ///< `collect --stacks`
  bool man = false;       ///< `help --man`
  bool quiet = false, help = false, version = false;
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
  CommandResult (*run)(const Options&);
};
/// The analysis first.
std::span<const Command> Commands();

struct Option {
  std::string_view name;   ///< without the dashes
  char letter = 0;         ///< 0: none
  std::string_view value;  ///< `DIR`; empty: a flag
  std::span<const std::string_view> choices;
  std::string_view help;
  std::string_view command;  ///< of this command only; "*": of all
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
