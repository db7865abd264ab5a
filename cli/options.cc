// The tables of commands and options, read by CLI11. The only door to CLI11.
#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/nearest.h"
#include "replay/engine.h"
#include "replay/ops.h"
#include "report/terminal.h"

namespace inquest {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::string_view kRulesWords[] = {"list", "show", "test", "lint"};
constexpr std::string_view kSchemaWords[] = {"verdict", "events", "triage", "evidence", "replay"};
constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
constexpr std::string_view kHelpWords[] = {"fr",      "triage", "evidence",   "rules",  "explain",
                                           "collect", "replay", "completion", "schema", "version"};

// ---- what values can be: asked of the rooms that know -------------------------------------------------------------

template <class Rows, class Name>
Words NamesOf(const Rows& rows, Name name) {
  Words words;
  for (const auto& row : rows) words.push_back(std::invoke(name, row));
  return words;
}
Words Formats() { return NamesOf(ReportFormats(), &ReportFormat::name); }
Words Colors() { return {"auto", "always", "never"}; }
Words Operations() { return NamesOf(ReplayOps(), &ReplayOp::name); }
Words Datatypes() { return NamesOf(kDatatypes, &DatatypeRow::name); }
Words RedOps() { return {kRedOps.begin(), kRedOps.end()}; }
Words EngineNames() { return {kEngineNames.begin(), kEngineNames.end()}; }
Words ReplayFormats() { return {"text", "json"}; }
Words StreamChoices() { return {"log", "one", "own"}; }
Words TriageFormats() { return {"text", "json", "jsonl"}; }
Words EvidenceFormats() { return {"text", "json", "html"}; }

// ---- how values are taken -----------------------------------------------------------------------------------------

using Wanted = std::optional<std::string>;  ///< what would be right; nullopt: the value is

template <class Number>
std::optional<Number> WholeNumber(const std::string& value, Number most) {
  Number number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc() && end == value.data() + value.size() && number >= 0 && number <= most
             ? std::optional(number)
             : std::nullopt;
}

/// Of one command's options: `Set<&Options::replay, &ReplayOptions::logs, AsText>`.
template <auto part, auto member, auto take>
Wanted Set(Options& options, const std::string& value) {
  return take((options.*part).*member, value);
}

Wanted AsText(std::string& to, const std::string& value) {
  if (value.empty()) return "a value that is not empty";
  to = value;
  return std::nullopt;
}
Wanted AsFlag(bool& to, const std::string&) {
  to = true;
  return std::nullopt;
}
Wanted AsCount(std::optional<std::uint64_t>& to, const std::string& value) {
  to = WholeNumber<std::uint64_t>(value, 1ULL << 48);
  return to ? Wanted() : "a whole number";
}
Wanted AsSmall(std::optional<int>& to, const std::string& value) {
  to = WholeNumber<int>(value, 1 << 30);
  return to ? Wanted() : "a whole number";
}
Wanted AsTime(std::optional<std::chrono::milliseconds>& to, const std::string& value) {
  to = DurationOf(value);
  return to ? Wanted() : "seconds, such as 30 or 0.5, or 500ms";
}
/// One of a room's names, as that room finds it.
template <auto find>
Wanted Named(auto& to, const std::string& value) {
  to = find(value);
  return std::nullopt;
}

Wanted SetOperation(Options& options, const std::string& value) {
  if (const ReplayOp* op = FindOp(value)) options.replay.given.operation = op->operation;
  return std::nullopt;
}
template <auto member, auto take>
Wanted SetGiven(Options& options, const std::string& value) {
  return take(options.replay.given.*member, value);
}

Wanted SetThreads(Options& options, const std::string& value) {
  constexpr unsigned kMost = 4096;
  const auto number = WholeNumber<unsigned>(value, kMost);
  options.analysis.threads = number.value_or(0);
  return number ? Wanted() : fmt::format("a number from 0 (every core) to {}", kMost);
}
Wanted SetAttempt(Options& options, const std::string& value) {
  options.analysis.attempt = WholeNumber<std::size_t>(value, SIZE_MAX);
  return options.analysis.attempt.value_or(0) > 0 ? Wanted() : "a number from 1, of the report's list of attempts";
}
Wanted SetTimelineEvents(Options& options, const std::string& value) {
  constexpr std::size_t kMost = 1'000'000;
  options.analysis.timeline_events = WholeNumber(value, kMost);
  return options.analysis.timeline_events ? Wanted() : fmt::format("a number from 0 (none) to {}", kMost);
}
Wanted SetTimeLimit(Options& options, const std::string& value) {
  constexpr std::uint64_t kDay = 24 * 60 * 60;
  const auto seconds = WholeNumber<std::uint64_t>(value, 1ULL << 48);
  if (!seconds) return "a whole number";
  if (*seconds > 0) options.collect.time_limit = std::chrono::seconds(std::min(*seconds, kDay));
  return std::nullopt;
}
Wanted SetColor(Options& options, const std::string& value) {
  options.color = value == "always" ? When::kAlways : value == "never" ? When::kNever : When::kAuto;
  return std::nullopt;
}
/// The nth --format and the nth --output are of one report.
template <class Has>
ReportOutput& FirstWithout(Options& options, Has has) {
  const auto row = std::ranges::find_if_not(options.reports, has);
  return row != options.reports.end() ? *row : options.reports.emplace_back();
}
Wanted AddFormat(Options& options, const std::string& value) {
  FirstWithout(options, [](const ReportOutput& row) { return row.format != nullptr; }).format = FindReportFormat(value);
  return std::nullopt;
}
Wanted AddOutput(Options& options, const std::string& value) {
  if (value.empty()) return "the name of a file, or - for standard output";
  FirstWithout(options, [](const ReportOutput& row) { return row.file.has_value(); }).file = value;
  return std::nullopt;
}
Wanted AddHost(Options& options, const std::string& value) {
  const std::size_t name = value.rfind('=') + 1;
  if (name == value.size() || name == 1 || value.find_first_of("/ ", name) != std::string::npos)
    return "a host's name, or PATH=NAME: --host dmesg.txt=node07";
  options.analysis.hosts.push_back(
      {.path = name == 0 ? std::string() : value.substr(0, name - 1), .host = value.substr(name)});
  return std::nullopt;
}
Wanted SetShares(Options& options, const std::string& value) {
  Result<std::vector<HostShare>> shares = ParseHostShares(value);
  if (!shares) return shares.error().message + (shares.error().hint.empty() ? "" : "; " + shares.error().hint);
  options.replay.hosts = *std::move(shares);
  return std::nullopt;
}
Wanted SetFor(Options& options, const std::string& value) {
  options.replay.for_time = DurationOf(value);
  for (const auto& [unit, seconds] : {std::pair{'m', 60}, {'h', 3600}, {'d', 86400}}) {
    if (options.replay.for_time || !value.ends_with(unit)) continue;
    if (const auto number = DurationOf(value.substr(0, value.size() - 1));
        number && *number <= std::chrono::hours(24 * 365))
      options.replay.for_time = *number * seconds;
  }
  const bool is_time = options.replay.for_time && options.replay.for_time->count() > 0;
  return is_time ? Wanted() : "a time, such as 90s, 30m or 2h";
}
Wanted SetExport(Options& options, const std::string& value) {
  options.replay.exported = value;
  return value == kNcclTests || value.ends_with(".py")
             ? Wanted()
             : "the name of a script to write, that ends in .py, or nccl-tests";
}
Wanted SetMaster(Options& options, const std::string& value) {
  options.replay.master = ParseHostAndPort(value);
  return options.replay.master ? Wanted() : "HOST or HOST:PORT, the same on every node";
}
/// `128M`: units as nccl-tests has them.
std::optional<std::uint64_t> BytesFrom(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  std::uint64_t unit = 1;
  if (!text.empty()) {
    const std::size_t power = kUnits.find(text.back());
    if (power != std::string_view::npos) {
      unit = 1ULL << (10 * (power + 1));
      text.remove_suffix(1);
    }
  }
  const auto number = WholeNumber<std::uint64_t>(std::string(text), 1ULL << 33U);
  return number ? std::optional(*number * unit) : std::nullopt;
}
Wanted SetSizes(Options& options, const std::string& value) {
  const std::string wanted = "FIRST:LAST or FIRST:LAST:FACTOR in bytes, such as 8:128M:16, at most 4G";
  constexpr std::uint64_t kMostBytes = 4ULL << 30U;
  const std::size_t one = value.find(':'), two = one == std::string::npos ? one : value.find(':', one + 1);
  if (one == std::string::npos) return wanted;
  const auto first = BytesFrom(value.substr(0, one)), last = BytesFrom(value.substr(one + 1, two - one - 1));
  const auto factor = two == std::string::npos ? std::optional(options.replay.sizes.factor)
                                               : WholeNumber<std::uint64_t>(value.substr(two + 1), 1ULL << 30U);
  if (!first || !last || !factor || *first < 8 || *last < *first || *last > kMostBytes || *factor < 2) return wanted;
  options.replay.sizes = {.first = *first, .last = *last, .factor = *factor};
  return std::nullopt;
}
Wanted SetSshCommand(Options& options, const std::string& value) {
  options.replay.ssh_command.clear();
  for (std::size_t begin = 0; begin < value.size();) {
    const std::size_t end = std::min(value.find(' ', begin), value.size());
    if (end > begin) options.replay.ssh_command.push_back(value.substr(begin, end - begin));
    begin = end + 1;
  }
  return options.replay.ssh_command.empty() ? "words of a command" : Wanted();
}

/// The first argument that is no option names the command, if it is one: `inquest --rules DIR rules test`.
std::optional<std::size_t> FindCommandWord(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") return std::nullopt;
    if (argument.size() < 2 || argument[0] != '-') return i;
    for (const Option& option : OptionTable()) {
      const bool named = argument == fmt::format("--{}", option.name) ||
                         (option.letter != 0 && argument == std::string{'-', option.letter});
      if (named && !option.value.empty()) ++i;
    }
  }
  return std::nullopt;
}

Error UnknownOption(const Command& command, const std::string& argument) {
  std::vector<std::string_view> names;
  for (const Option& option : OptionTable()) {
    if (Accepts(command, option)) names.push_back(option.name);
  }
  std::string name = argument.substr(0, argument.find('='));
  name.erase(0, name.find_first_not_of('-'));
  const auto nearest = argument.starts_with("--") ? Nearest(name, names) : std::nullopt;
  const std::string help = fmt::format("inquest{}{} --help", command.name.empty() ? "" : " ", command.name);
  return {fmt::format("unknown option '{}'", argument),
          nearest ? fmt::format("did you mean --{}?", *nearest) : "all options: " + help, ""};
}

std::optional<Error> Apply(Options& options, const Option& option, const std::string& value) {
  const std::string name = fmt::format("--{}", option.name);
  const Words choices = option.Choices();
  if (!choices.empty() && std::ranges::find(choices, value) == choices.end())
    return Error{fmt::format("bad value '{}' of {}", value, name), fmt::format("one of {}", fmt::join(choices, ", ")),
                 ""};
  if (const auto wanted = option.set(options, value))
    return Error{fmt::format("bad value '{}' of {}", value, name), *wanted, ""};
  return std::nullopt;
}

/// Each report has a format and a place, and no two the same place.
std::optional<Error> SettleReports(Options& options) {
  std::vector<ReportOutput>& reports = options.reports;
  if (reports.empty()) reports.emplace_back();
  if (reports.size() == 1 && reports[0].format == nullptr) reports[0].format = FindReportFormat("text");
  const AnalysisOptions& beside = options.analysis;
  std::set<std::string> places;
  for (const std::string& file : {beside.html, beside.perfetto})
    if (!file.empty() && !places.insert(file).second)
      return Error{"two reports would be written to one file", "give each a name of its own", file};
  for (ReportOutput& report : reports) {
    if (report.format == nullptr)
      return Error{"there is no --format for it", "give one --format for each -o, in the same order", *report.file};
    if (report.file == "-") report.file.reset();
    if (!report.file && !places.insert("").second)
      return Error{
          fmt::format("only one report can go to standard output, and --format {} is the second", report.format->name),
          "give each --format but the last its own -o FILE, in the same order", ""};
    if (report.file && !places.insert(*report.file).second)
      return Error{"two reports would be written to one file", "give each a name of its own", *report.file};
  }
  return std::nullopt;
}

}  // namespace

std::span<const Command> Commands() {
  static constexpr Command kCommands[] = {
      {.name = "",
       .summary = "Reads what a failed multi-GPU job left behind and says why it died.",
       .usage = "inquest [OPTIONS] PATH...\n<command> | inquest [OPTIONS]",
       .examples =
           "inquest job.log                           one log\n"
           "inquest run-42/                           a folder: logs of all ranks, kernel logs, nvidia-smi tables\n"
           "kubectl logs job/train --timestamps | inquest\n"
           "inquest --format json run-42/ | jq -r .verdict.cause\n"
           "inquest -f json -o why.json -f text run-42/   a file, and the text beside it\n"
           "inquest -f markdown run-42/ -o why.md     a comment for a pull request\n"
           "inquest run-42/ --timeline                every rank over time, on the terminal\n"
           "inquest run-42/ --html why.html           also a page: every rank over time\n"
           "inquest run-42/ --perfetto why.pftrace    also a trace for ui.perfetto.dev: every call\n"
           "inquest -q run-42/ && echo ended well",
       .words = {},
       .ids = "",
       .notes = "PATH is a file or a folder; '-', or no path and a pipe, reads standard input. Everything is read as "
                "one job.\n\n"
                "Exit status: 0 healthy, 1 a cause was found, 2 undecided, 3 could not run.",
       .run = RunAnalysis},
      {.name = "fr",
       .summary = "Show what the ranks' Flight Recorders hold: a table a process group, and who waits for whom.",
       .usage = "inquest fr [OPTIONS] PATH...",
       .examples = "inquest fr /tmp/nccl_trace_rank_*\n"
                   "inquest fr dumps/ job.log                 the verdict argues from the log, too\n"
                   "inquest fr --format json dumps/ | jq .recorded.waits",
       .words = {},
       .ids = "",
       .notes = "PATH is a dump (as PyTorch pickles it, or in JSON), a folder or an archive of such; a trace of "
                "PyTorch's profiler does as well. TORCH_FR_BUFFER_SIZE (before 2.7: "
                "TORCH_NCCL_TRACE_BUFFER_SIZE) and TORCH_NCCL_DUMP_ON_TIMEOUT=1 make a job write dumps.\n\n"
                "Exit status: 0 healthy, 1 a cause was found, 2 undecided, 3 could not run.",
       .analyzes = true,
       .run = RunFlightRecorder},
      {.name = "triage",
       .summary = "Judge many jobs at once: a table, and which of them failed alike or on the same host.",
       .usage = "inquest triage [OPTIONS] DIR...",
       .examples = "inquest triage runs/                      each folder in runs/ is a job\n"
                   "inquest triage logs/                      slurm-1.out, slurm-2.out: a job each\n"
                   "inquest triage logs/*.log                 a file each\n"
                   "inquest triage -f json runs/ | jq '.hosts[] | select(.jobs | length > 1)'\n"
                   "inquest triage -f jsonl runs/ | jq -r 'select(.outcome == \"failed\") | [.name, .cause] | @tsv'",
       .words = {},
       .ids = "",
       .notes = "Every folder in DIR that holds a file is a job, with all below it. Of the files beside such folders "
                "those of one batch job are one (slurm-1.out and slurm-1.err, train.o1234 and train.e1234), and so are "
                "a.out and a.err; any other is a job of its own. A DIR without such folders is one job, unless its "
                "files are of several batch jobs. A file that is named is a job.\n\n"
                "Exit status: 0 all healthy, 1 some failed, 2 none failed, and some are undecided or could not be "
                "read, 3 could not run, or none could be read.",
       .run = RunTriage},
      {.name = "evidence",
       .summary =
           "Write one host's or GPU's case for a vendor: serial and versions, every line logged of it, and what is "
           "missing.",
       .usage = "inquest evidence [OPTIONS] HOST PATH...",
       .examples = "inquest evidence node08 run-42/ -o case.html\n"
                   "inquest evidence node08:0000:4e:00.0 run-42/ -o case.html    one GPU, by its PCI address\n"
                   "inquest evidence GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 run-42/\n"
                   "inquest evidence 1650522003820 node08.tar.zst -o case.json  by its serial number\n"
                   "inquest evidence node08 --host dmesg.txt=node08 dmesg.txt job.log",
       .words = {},
       .ids = "",
       .notes =
           "HOST is a host as the logs name it, or one of its GPUs: HOST:ADDRESS, HOST:NUMBER (nvidia-smi's), or an "
           "address, UUID or serial number that one GPU alone has. Give all there is of the host: kernel log, "
           "nvidia-smi -q, nvidia-bug-report.log.gz, a bundle of inquest collect, the job's logs.\n\n"
           "Nothing is told that no line says; each quoted line has its file, and each file its SHA-256.\n\n"
           "Exit status: 0 written, 3 could not run.",
       .run = RunEvidence},
      {.name = "rules",
       .summary = "List, show, test or check the rules.",
       .usage = "inquest rules list [--cause CODE]\ninquest rules show ID\ninquest rules test [--rules DIR]\ninquest "
                "rules lint [--rules DIR]",
       .examples = "inquest rules list --cause ib-fault\n"
                   "inquest rules show retry-exceeded\n"
                   "inquest rules lint --rules my-rules/      what is wrong with your own rules, with file and line\n"
                   "inquest rules test --rules my-rules/      do their samples match",
       .words = kRulesWords,
       .ids = "inquest rules list 2>/dev/null | cut -d' ' -f1",
       .run = RunRules},
      {.name = "explain",
       .summary = "Say what a cause, a rule or a numbered error of the driver means, what to do and what to collect.",
       .usage = "inquest explain [CODE | RULE | NUMBER]\ninquest explain xid|sxid [NUMBER]",
       .examples = "inquest explain                           all causes\ninquest explain p2p-transport\n"
                   "inquest explain xid 79                    a GPU error of the kernel log\n"
                   "inquest explain sxid 20034                one of an NVSwitch",
       .words = {},
       .ids = "inquest explain 2>/dev/null | cut -d' ' -f1",
       .run = RunExplain},
      {.name = "collect",
       .summary = "Gather on this node what inquest reads, into one compressed tar. Changes nothing and sends nothing.",
       .usage = "inquest collect [-o FILE.tar.zst] [PATH...]",
       .examples = "inquest collect                           kernel log, nvidia-smi, links, limits, versions, NCCL_* "
                   "and the like\n"
                   "inquest collect -o node07.tar.zst logs/   and the files in a folder, as they are\n"
                   "ssh node07 inquest collect -o - > node07.tar.zst\n"
                   "inquest node*.tar.zst                     reads them back",
       .words = {},
       .ids = "",
       .run = RunCollect},
      {.name = "replay",
       .summary =
           "Run a failed collective again, one supervised process a rank, and name the rank or link that breaks it.",
       .usage = "inquest replay [OPTIONS] PATH...        the collective that these logs, or a verdict's JSON, name\n"
                "inquest replay --op OP --count N --ranks N [OPTIONS]\n"
                "inquest replay --ranks N --save-baseline FILE | --baseline FILE\n"
                "srun|mpirun|torchrun ... inquest replay ...   the same over several nodes; see docs/replay.md",
       .examples =
           "inquest replay job.log --dry-run\n"
           "inquest replay verdict.json --nccl-lib /venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2\n"
           "inquest replay --op broadcast --count 253440000 --ranks 3 --engine gloo\n"
           "inquest replay --op all-reduce --count 1000000 --dtype bfloat16 --ranks 8 --iterations 20\n"
           "inquest replay --op broadcast --count 253440000 --ranks 3 --dry-run\n"
           "inquest replay job.log --hosts node07:8,node08:8\n"
           "inquest replay job.log --isolate\n"
           "inquest replay --ranks 8 --save-baseline good.json      later: --baseline good.json\n"
           "inquest replay job.log --export repro.py\n"
           "inquest replay nccl.*.log --last 5 --until-fails --for 2h\n"
           "inquest replay --op all-gather --count 4096 --ranks 4 --format json | jq -r '.trials[].verdict'",
       .words = {},
       .ids = "",
       .notes = "Exit status: 0 passed, 1 reproduced, 2 could not decide, 3 could not run.",
       .run = RunReplay},
      {.name = "completion",
       .summary = "Print a completion script for a shell.",
       .usage = "inquest completion bash|zsh|fish",
       .examples = "source <(inquest completion bash)\n"
                   "inquest completion zsh > ~/.zfunc/_inquest\n"
                   "inquest completion fish > ~/.config/fish/completions/inquest.fish",
       .words = kShells,
       .ids = "",
       .run = RunCompletion},
      {.name = "help",
       .summary = "Print the help of a command, or its manual page.",
       .usage = "inquest help [COMMAND]\ninquest help [COMMAND] --man",
       .examples = "inquest help replay                       the same as inquest replay --help\n"
                   "inquest help replay --man | man -l -",
       .words = kHelpWords,
       .ids = "",
       .run = RunHelp},
      {.name = "schema",
       .summary = "Print the JSON Schema of what --format json prints, of a line of --format jsonl, or of what triage, "
                  "evidence or replay prints.",
       .usage = "inquest schema [verdict | events | triage | evidence | replay]",
       .examples = "inquest schema > verdict.schema.json      later versions may have more keys, and none less",
       .words = kSchemaWords,
       .ids = "",
       .run = RunSchema},
      {.name = "version",
       .summary = "Print the version.",
       .usage = "inquest version",
       .examples = "inquest version                           the same as inquest --version",
       .words = {},
       .ids = "",
       .run = RunVersion},
  };
  return kCommands;
}

std::span<const Option> OptionTable() {
  constexpr auto kAnalysis = &Options::analysis;
  constexpr auto kReplay = &Options::replay;
  static constexpr Option kOptions[] = {
      {"format", 'f', "FORMAT", Formats, "How to print the verdict [text]; as often as there are files to write", "",
       AddFormat},
      {"output",
       'o',
       "FILE",
       {},
       "Write that to a file, not to standard output; the second -o goes with the second --format, and so on",
       "",
       AddOutput},
      {"format", 'f', "FORMAT", TriageFormats, "How to print the jobs [text]", "triage",
       Set<&Options::triage, &TriageOptions::format, AsText>},
      {"output",
       'o',
       "FILE",
       {},
       "Write that to a file, not to standard output",
       "triage",
       Set<&Options::triage, &TriageOptions::output, AsText>},
      {"format", 'f', "FORMAT", EvidenceFormats,
       "How to print it [of -o FILE by its name: .html, .json, .txt; text without]", "evidence",
       Set<&Options::evidence, &EvidenceOptions::format, AsText>},
      {"output",
       'o',
       "FILE",
       {},
       "Write it to a file, not to standard output",
       "evidence",
       Set<&Options::evidence, &EvidenceOptions::output, AsText>},
      {"host",
       0,
       "[PATH=]NAME",
       {},
       "The host whose logs these are, or those of one file or folder; as often as needed",
       "evidence",
       AddHost},
      {"attempt",
       0,
       "N",
       {},
       "Judge the Nth start of a job that was started several times, not the last",
       "evidence",
       SetAttempt},
      {"threads",
       'j',
       "N",
       {},
       "Threads that read the logs [0: every core]; the output is the same for any number",
       "evidence",
       SetThreads},
      {"threads",
       'j',
       "N",
       {},
       "Jobs judged at a time [0: as many as there are cores]; the output is the same for any number",
       "triage",
       SetThreads},
      {"html",
       0,
       "FILE",
       {},
       "Also write the verdict as a page for a browser: every rank over time, and the lines that prove it",
       "",
       Set<kAnalysis, &AnalysisOptions::html, AsText>},
      {"perfetto",
       0,
       "FILE",
       {},
       "Also write a trace for ui.perfetto.dev: every rank over time, and every collective call",
       "",
       Set<kAnalysis, &AnalysisOptions::perfetto, AsText>},
      {"timeline",
       0,
       "",
       {},
       "Draw every rank over time, instead of the text",
       "",
       Set<kAnalysis, &AnalysisOptions::timeline, AsFlag>},
      {"timeline-events",
       0,
       "N",
       {},
       "In JSON, what the picture shows of each rank, N events at most [json: 0, jsonl: all]",
       "",
       SetTimelineEvents},
      {"rules",
       0,
       "DIR",
       {},
       "Add the rules of a folder; an id that is taken replaces ours",
       "*",
       Set<kAnalysis, &AnalysisOptions::rules_dir, AsText>},
      {"host",
       0,
       "[PATH=]NAME",
       {},
       "The host whose logs these are, or those of one file or folder; as often as needed",
       "",
       AddHost},
      {"cause",
       0,
       "CODE",
       {},
       "Only rules that speak for this cause",
       "rules",
       [](Options& options, const std::string& value) { return AsText(options.rules_cause, value); }},
      {"attempt",
       0,
       "N",
       {},
       "Judge the Nth start of a job that was started several times, not the last",
       "",
       SetAttempt},
      {"threads",
       'j',
       "N",
       {},
       "Threads that read the logs [0: every core]; the verdict is the same for any number",
       "",
       SetThreads},
      {"output",
       'o',
       "FILE",
       {},
       "Where to write the bundle: .tar.zst, .tar.gz or .tar; - for standard output",
       "collect",
       Set<&Options::collect, &CollectOptions::output, AsText>},
      {"time-limit", 0, "SECONDS", {}, "For each program [10 to 60, by what it does]", "collect", SetTimeLimit},
      {"stacks",
       0,
       "",
       {},
       "Also stacks of the processes on GPUs, by py-spy and gdb: stops each for a moment",
       "collect",
       Set<&Options::collect, &CollectOptions::stacks, AsFlag>},
      {"op", 0, "OP", Operations, "The collective", "replay", SetOperation},
      {"count",
       0,
       "N",
       {},
       "Elements, as NCCL counts them for that operation",
       "replay",
       SetGiven<&GivenArguments::count, AsCount>},
      {"dtype", 0, "TYPE", Datatypes, "Its datatype [float32]", "replay",
       [](Options& options, const std::string& value) {
         return Named<FindDatatype>(options.replay.given.datatype, value);
       }},
      {"redop", 0, "OP", RedOps, "Its reduction [sum]", "replay",
       [](Options& options, const std::string& value) { return Named<FindRedOp>(options.replay.given.redop, value); }},
      {"root",
       0,
       "N",
       {},
       "Root rank; of send-recv, the rank that sends [0]",
       "replay",
       SetGiven<&GivenArguments::root, AsSmall>},
      {"peer",
       0,
       "N",
       {},
       "The rank that receives in a send-recv [1]",
       "replay",
       SetGiven<&GivenArguments::peer, AsSmall>},
      {"ranks", 0, "N", {}, "Ranks: one process each", "replay", SetGiven<&GivenArguments::ranks, AsSmall>},
      {"engine", 0, "ENGINE", EngineNames, "The library that runs it [nccl]; gloo needs no GPU", "replay",
       Set<kReplay, &ReplayOptions::engine, AsText>},
      {"nccl-lib",
       0,
       "FILE",
       {},
       "The libnccl to load, best the job's own [of the active Python environment, else the system's]",
       "replay",
       Set<kReplay, &ReplayOptions::nccl_library, AsText>},
      {"share-gpu",
       0,
       "",
       {},
       "All ranks on one GPU, over sockets; says what that does not test",
       "replay",
       Set<kReplay, &ReplayOptions::share_gpu, AsFlag>},
      {"isolate",
       0,
       "",
       {},
       "Find what breaks it: which pairs, ranks and parts of the transport",
       "replay",
       Set<kReplay, &ReplayOptions::isolate, AsFlag>},
      {"save-baseline",
       0,
       "FILE",
       {},
       "Measure how fast each rank sends to each other, and keep that there",
       "replay",
       Set<kReplay, &ReplayOptions::save_baseline, AsText>},
      {"baseline",
       0,
       "FILE",
       {},
       "Measure it, and name the links that are slower than they were there",
       "replay",
       Set<kReplay, &ReplayOptions::baseline, AsText>},
      {"sizes",
       0,
       "FIRST:LAST[:FACTOR]",
       {},
       "Sizes to measure, in bytes, each FACTOR times the one before [8:128M:16]",
       "replay",
       SetSizes},
      {"logs",
       0,
       "DIR",
       {},
       "Keep NCCL's own logs of the runs there",
       "replay",
       Set<kReplay, &ReplayOptions::logs, AsText>},
      {"timeout",
       0,
       "SECONDS",
       {},
       "How long each step of a rank may take [60]",
       "replay",
       Set<kReplay, &ReplayOptions::timeout, AsTime>},
      {"iterations",
       0,
       "N",
       {},
       "How often it is run in one go [1]",
       "replay",
       Set<kReplay, &ReplayOptions::iterations, AsSmall>},
      {"interface",
       0,
       "NAME",
       {},
       "Network interface [loopback; with several nodes the one that reaches the first]",
       "replay",
       Set<kReplay, &ReplayOptions::interface, AsText>},
      {"nnodes",
       0,
       "N",
       {},
       "Nodes [what torchrun, mpirun or srun says]; 1 is this host alone",
       "replay",
       Set<kReplay, &ReplayOptions::nodes, AsCount>},
      {"node-rank",
       0,
       "N",
       {},
       "Which of them this is; 0 reports",
       "replay",
       Set<kReplay, &ReplayOptions::node, AsCount>},
      {"master",
       0,
       "HOST[:PORT]",
       {},
       "Where node 0 listens [MASTER_ADDR:MASTER_PORT; the first host of srun; port 29571]",
       "replay",
       SetMaster},
      {"hosts", 0, "HOST[:N],...", {}, "Start the others by ssh, with so many ranks on each", "replay", SetShares},
      {"ssh-command",
       0,
       "WORDS",
       {},
       "What starts them, in front of HOST and the command [ssh -o BatchMode=yes -o ConnectTimeout=10]",
       "replay",
       SetSshCommand},
      {"token-file",
       0,
       "FILE",
       {},
       "Where the job token is [INQUEST_REPLAY_TOKEN]; - for standard input",
       "replay",
       Set<kReplay, &ReplayOptions::token_file, AsText>},
      {"join-timeout",
       0,
       "SECONDS",
       {},
       "How long to wait for all nodes [60; a node waits 300 for the first]",
       "replay",
       Set<kReplay, &ReplayOptions::join_timeout, AsTime>},
      {"agent",
       0,
       "",
       {},
       "Used by --hosts: end with standard input",
       "replay",
       Set<kReplay, &ReplayOptions::is_agent, AsFlag>},
      {"verbose",
       'v',
       "",
       {},
       "Of several combinations of arguments, show the picture of each",
       "replay",
       Set<kReplay, &ReplayOptions::verbose, AsFlag>},
      {"dry-run",
       0,
       "",
       {},
       "Say what would be run, and how each argument is known; run nothing",
       "replay",
       Set<kReplay, &ReplayOptions::dry_run, AsFlag>},
      {"last",
       0,
       "N",
       {},
       "The last N calls of every communicator, per rank as the logs show them, instead of the one that failed",
       "replay",
       [](Options& options, const std::string& value) -> Wanted {
         options.replay.last = WholeNumber<int>(value, 1 << 20);
         return options.replay.last.value_or(0) > 0 ? Wanted() : "a whole number from 1";
       }},
      {"streams", 0, "WHICH", StreamChoices,
       "Of --last: as the logs say, all calls of a rank on one, or an own one for each communicator [log]", "replay",
       [](Options& options, const std::string& value) {
         using Streams = SequenceAsked::Streams;
         options.replay.streams = value == "one" ? Streams::kOne : value == "own" ? Streams::kOwn : Streams::kAsLogged;
         return Wanted();
       }},
      {"until-fails",
       0,
       "",
       {},
       "Run it again and again until it fails, with the rate of failure",
       "replay",
       Set<kReplay, &ReplayOptions::until_fails, AsFlag>},
      {"for", 0, "TIME", {}, "Run it again and again for so long, such as 90s, 30m or 2h", "replay", SetFor},
      {"state",
       0,
       "FILE",
       {},
       "Where --until-fails and --for keep their counts, so that the same command goes on after an interrupt "
       "[inquest-replay.state.json]",
       "replay",
       Set<kReplay, &ReplayOptions::state, AsText>},
      {"export",
       0,
       "FILE.py|nccl-tests",
       {},
       "Write a torchrun script that does the same without inquest, or print the command of nccl-tests; run nothing",
       "replay",
       SetExport},
      {"fault",
       0,
       "SPEC",
       {},
       "For tests: make a rank fail, see docs/replay.md",
       "replay",
       Set<kReplay, &ReplayOptions::faults, AsText>},
      {"format", 'f', "FORMAT", ReplayFormats, "How to print the result [text]", "replay",
       [](Options& options, const std::string& value) {
         options.replay.as_json = value == "json";
         return Wanted();
       }},
      {"man",
       0,
       "",
       {},
       "As a manual page, in roff",
       "help",
       [](Options& options, const std::string& value) { return AsFlag(options.help_as_man, value); }},
      {"quiet",
       'q',
       "",
       {},
       "Print nothing: the exit status says it",
       "",
       Set<kAnalysis, &AnalysisOptions::quiet, AsFlag>},
      {"verbose",
       'v',
       "",
       {},
       "Show all of the report, not one screen of it",
       "",
       Set<kAnalysis, &AnalysisOptions::whole, AsFlag>},
      {"color", 0, "WHEN", Colors, "When to use colour [auto: on a terminal, unless NO_COLOR is set]", "*", SetColor},
      {"no-color",
       0,
       "",
       {},
       "The same as --color never",
       "*",
       [](Options& options, const std::string&) { return SetColor(options, "never"); }},
      {"no-pager",
       0,
       "",
       {},
       "Print without $INQUEST_PAGER, $PAGER or less",
       "*",
       [](Options& options, const std::string&) {
         options.pager = false;
         return Wanted();
       }},
      {"help",
       'h',
       "",
       {},
       "Print this help",
       "*",
       [](Options& options, const std::string& value) { return AsFlag(options.help, value); }},
      {"version",
       'V',
       "",
       {},
       "Print the version",
       "*",
       [](Options& options, const std::string& value) { return AsFlag(options.version, value); }},
  };
  return kOptions;
}

bool Accepts(const Command& command, const Option& option) {
  return option.command == "*" || option.command == command.name || (option.command.empty() && command.analyzes);
}

Result<Options> ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  options.command = &Commands().front();
  std::vector<std::string> rest = arguments;
  if (const auto word = FindCommandWord(arguments)) {
    const auto found = std::ranges::find(Commands().subspan(1), arguments[*word], &Command::name);
    if (found != Commands().end()) {
      options.command = &*found;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(*word));
    }
  }
  const std::span<const Option> table = OptionTable();
  std::vector<std::string> values(table.size());
  std::vector<CLI::Option*> parsed(table.size(), nullptr);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!Accepts(*options.command, table[i])) continue;
    const std::string names =
        (table[i].letter != 0 ? fmt::format("-{},", table[i].letter) : "") + fmt::format("--{}", table[i].name);
    parsed[i] = table[i].value.empty() ? app.add_flag(names) : app.add_option(names, values[i]);
    parsed[i]->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  app.add_option("arguments", options.arguments);
  try {
    std::ranges::reverse(rest);  // CLI11 takes them from the back
    app.parse(rest);
  } catch (const CLI::ParseError& error) {
    return Error{error.what(), "inquest --help says how to call it", ""};
  }
  for (const std::string& extra : app.remaining()) {
    if (extra != "--") return UnknownOption(*options.command, extra);
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (parsed[i] == nullptr || parsed[i]->count() == 0) continue;
    // All of them, in their order: --host, --format and --output add, of any other the last one stays.
    for (const std::string& value : parsed[i]->results())
      if (const auto error = Apply(options, table[i], value)) return *error;
  }
  if (const auto error = SettleReports(options)) return *error;
  return options;
}

CommandResult CouldNotRun(const Error& error) {
  const std::string where = error.where.empty() ? "" : Sanitize(error.where) + ": ";
  std::string text = fmt::format("inquest: {}{}\n", where, Sanitize(error.message));
  if (!error.hint.empty()) text += fmt::format("  {}\n", Sanitize(error.hint));
  return {.status = kExitCouldNotRun, .out = "", .err = std::move(text)};
}

}  // namespace inquest
