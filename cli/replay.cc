// `inquest replay`: makes the plan, runs it in worker processes, prints what they showed.
#include <sys/resource.h>
#include <unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <variant>

#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/nccl_logs.h"
#include "cli/read_again.h"
#include "cli/replay_export.h"
#include "cli/replay_nodes.h"
#include "cli/replay_report.h"
#include "cli/replay_runs.h"
#include "cli/replay_speeds.h"
#include "cli/report_file.h"
#include "collect/child.h"
#include "replay/faults.h"
#include "replay/infer.h"
#include "replay/ops.h"
#include "replay/recipes.h"
#include "replay/soak.h"
#include "replay/supervisor.h"
#include "report/terminal.h"

extern char** environ;

namespace inquest {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::size_t kMostTrials = 16;

/// Up to what a verdict's JSON may be; empty: larger, or not to be read.
std::string ReadSmallFile(const std::string& path) {
  constexpr std::uintmax_t kMost = 64U << 20U;
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kMost) return "";
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A verdict's JSON is read; anything else is analysed.
std::variant<Plan, CommandResult> PlanFromFiles(const Options& options) {
  if (options.arguments.size() == 1) {
    if (const std::string text = ReadSmallFile(options.arguments[0]); LooksLikeVerdict(text)) {
      const Result<Plan> plan = PlanFromVerdict(text, options.arguments[0], options.replay.given.ranks);
      if (!plan) return CouldNotRun(plan.error());
      return *plan;
    }
  }
  std::variant<Analysis, CommandResult> analyzed = AnalyzeWith(options.analysis, options.arguments);
  if (CommandResult* failed = std::get_if<CommandResult>(&analyzed)) return std::move(*failed);
  const Analysis& analysis = std::get<Analysis>(analyzed);
  std::optional<ToReplay> what = WhatToReplay(analysis.verdict);
  if (!what)
    return CouldNotRun({"the logs speak of no collective that failed", "name one with --op, --count and --ranks", ""});
  what->ranks = options.replay.given.ranks;
  return PlanFrom(analysis.timeline, *what);
}

/// Of bandwidths alone: no operation need be named.
Plan PlanOfSpeeds(const ReplayOptions& options) {
  Plan plan;
  plan.datatype.rule = "the commonest";
  plan.operation = {.value = Operation::kSendRecv, .basis = Basis::kGiven, .rule = "--baseline"};
  const Datatype datatype = options.given.datatype.value_or(plan.datatype.value);
  plan.root.rule = plan.peer.rule = "each in turn";
  plan.count = {.value = options.sizes.last / BytesOf(datatype), .basis = Basis::kGiven, .rule = "--sizes"};
  return plan;
}

/// The last calls of every communicator, which no timeline keeps: the inputs are read again.
std::variant<Plan, CommandResult> PlanOfLast(const Options& options) {
  const GivenArguments& given = options.replay.given;
  if (given.operation || given.count || given.datatype || given.redop || given.root || given.peer || given.ranks)
    return CouldNotRun({"--last replays the calls that the logs show, and they say what each is",
                        "leave --op, --count, --dtype, --redop, --root, --peer and --ranks out", ""});
  std::variant<Analysis, CommandResult> analyzed = AnalyzeWith(options.analysis, options.arguments);
  if (CommandResult* failed = std::get_if<CommandResult>(&analyzed)) return std::move(*failed);
  const Analysis& analysis = std::get<Analysis>(analyzed);
  SequenceReader reader(analysis.timeline, {.last = *options.replay.last, .streams = options.replay.streams});
  if (const std::string why = ReadInputsAgain(options.analysis, analysis, CallTimes::kLeft, reader); !why.empty())
    return CouldNotRun({why, "--last reads the inputs twice: give files that do not change", ""});
  Result<Plan> plan = reader.Finish();
  if (!plan) return CouldNotRun(plan.error());
  return *std::move(plan);
}

/// What is assumed where neither a log nor an option says otherwise.
std::variant<Plan, CommandResult> BasePlan(const Options& options) {
  if (options.replay.last && !options.arguments.empty()) return PlanOfLast(options);
  if (options.replay.last) return CouldNotRun({"--last needs logs or dumps", "inquest replay nccl.*.log --last 5", ""});
  if (!options.arguments.empty()) return PlanFromFiles(options);
  if (!options.replay.given.operation && AsksForSpeeds(options.replay)) return PlanOfSpeeds(options.replay);
  if (!options.replay.given.operation)
    return CouldNotRun({"replay needs logs, a verdict's JSON, or --op, --count and --ranks",
                        "inquest replay --help shows all three", ""});
  Plan plan;
  plan.datatype.rule = "the commonest";
  plan.redop.rule = "the commonest";
  plan.root.rule = "the first rank";
  plan.peer.rule = "the second rank";
  return plan;
}

/// The libnccl of the Python environment that is active: jobs that pip installed bring their own. A path that a log
/// prints is not loaded: logs come from anywhere.
std::string LibraryOfPython(const Environment& inherited) {
  std::error_code error;
  for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const auto root = inherited.find(variable);
    if (root == inherited.end()) continue;
    for (fs::directory_iterator it(fs::path(root->second) / "lib", error), end; !error && it != end;
         it.increment(error)) {
      const fs::path library = it->path() / "site-packages" / "nvidia" / "nccl" / "lib" / "libnccl.so.2";
      std::error_code missing;
      if (it->path().filename().string().starts_with("python3") && fs::exists(library, missing))
        return library.string();
    }
  }
  return "";
}

/// What the options change of it.
Result<Plan> PlanOf(Plan base, const Launch& launch, const ReplayOptions& options, const Environment& inherited) {
  Result<Plan> placed = OverNodes(WithGiven(std::move(base), options.given), launch, options);
  if (!placed) return placed.error();
  Plan plan = std::move(*placed);
  plan.engine = options.engine;
  if (!options.interface.empty()) plan.options["interface"] = options.interface;
  const std::string library =
      options.nccl_library.empty() && plan.engine == "nccl" ? LibraryOfPython(inherited) : options.nccl_library;
  if (!library.empty()) plan.options["library"] = library;
  plan.iterations = options.iterations.value_or(1);
  if (plan.iterations < 1) return Error{"--iterations must be 1 or more", "", ""};
  if (options.timeout) plan.deadlines.each = *options.timeout;
  if (const auto error = WhyNotRunnable(plan)) {
    if (options.dry_run) return plan;  // what is known of it
    return *error;
  }
  auto faults = ParseFaults(options.faults, plan);
  if (!faults) return faults.error();
  const auto is_of_one_call = [](const Fault& fault) { return fault.call || fault.kind == Fault::Kind::kCorrupt; };
  if (plan.sequence && std::ranges::any_of(*faults, is_of_one_call))
    return Error{"a fault that changes the call or its data needs one call, and --last has many",
                 "leave one of them out", ""};
  plan.faults = std::move(*faults);
  plan.compare_descriptors =
      std::erase_if(plan.faults, [](const Fault& fault) { return fault.kind == Fault::Kind::kUnchecked; }) == 0;
  if (options.share_gpu && plan.engine == "nccl")
    return SharingGpu(std::move(plan), fmt::format("{}", ::getpid()), inherited);
  // Who comes is known once they have.
  const bool only_prints = options.dry_run || !options.exported.empty();
  return launch.count == 1 || only_prints ? WhereTheyWere(std::move(plan), launch, options) : plan;
}

/// Beside this program, or where an installation has it.
Result<std::string> WorkerPath() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = self.parent_path();
  const std::string name = "inquest-replay-worker";
  for (const fs::path& path : {folder / name, folder.parent_path() / "libexec" / "inquest" / name}) {
    if (::access(path.c_str(), X_OK) == 0) return path.string();
  }
  return Error{name + " is missing",
               fmt::format("it belongs beside {}, or in {}", self.string(),
                           (folder.parent_path() / "libexec" / "inquest").string()),
               ""};
}

/// Asks the worker, which alone knows what its libraries are.
Result<EngineProbe> Probe(const std::string& worker, const std::string& engine,
                          const std::map<std::string, std::string>& options) {
  std::vector<std::string> command = {worker, "probe", engine};
  for (const auto& [name, value] : options) command.push_back(fmt::format("{}={}", name, value));
  const ChildEnd end = RunChild(command, {.time = std::chrono::seconds(10), .output_bytes = 4096});
  std::string_view output = end.output;
  while (output.ends_with('\n')) output.remove_suffix(1);
  // Libraries may have printed something before.
  const auto answer = DecodeProbe(output.substr(output.rfind('\n') + 1));
  if (answer && answer->missing.empty()) return answer->found;
  std::string why = answer ? answer->missing : end.timed_out ? "the worker did not answer" : "the worker failed";
  std::string hint = answer ? answer->hint : std::string();
  if (hint.empty() && engine != "gloo")
    hint = "--engine gloo needs no GPU; it tests the hosts and their IP network alone";
  return Error{std::move(why), std::move(hint), fmt::format("engine {}", engine)};
}

/// `4.2 s  0-2: completed #1`.
std::string ProgressLine(const RunOutcome& run) {
  std::string line = fmt::format("{:.1f} s ", std::chrono::duration<double>(run.took).count());
  std::vector<std::pair<Step, std::vector<int>>> steps;
  for (const RankOutcome& rank : run.ranks) {
    const auto found = std::ranges::find(steps, rank.doing, &std::pair<Step, std::vector<int>>::first);
    if (found == steps.end())
      steps.push_back({rank.doing, {rank.rank}});
    else
      found->second.push_back(rank.rank);
  }
  for (const auto& [step, ranks] : steps) line += fmt::format(" rank {}: {} ", FoldRanks(ranks), Text(step));
  return line;
}

Environment Inherited() {
  Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && text.substr(0, equals) != kTokenVariable)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

Interruption HowInterrupted(const Caller& caller) {
  if (Interrupted()) return Interruption::kSignal;
  if (caller.IsGone()) return Interruption::kCallerGone;
  return caller.ReadsNoMore() ? Interruption::kReaderGone : Interruption::kNone;
}

RunSetup SetupOf(const std::string& worker, const Environment& inherited, HostWitness& witness, const Caller& caller) {
  RunSetup setup{.local = {.worker = worker, .env = {}}};
  for (const auto& [name, value] : inherited) setup.local.env.push_back(name + "=" + value);
  setup.local.look = [&witness](const std::vector<LiveRank>& ranks) { return witness.Look(ranks); };
  setup.interrupted = [caller] { return HowInterrupted(caller); };
  setup.local.run_program = [](const std::vector<std::string>& command, milliseconds limit) {
    const ChildEnd end = RunChild(command, {.time = limit, .output_bytes = 64 * 1024});
    return end.missing.empty() ? end.output : "";
  };
  if (ErrorIsTerminal()) {
    setup.progress = [](const RunOutcome& run) { WriteErr("\r\x1b[K" + Cut(ProgressLine(run), 100)); };
    setup.decided = [](const RunOutcome& run) {
      WriteErr(run.verdict == RunVerdict::kPassed ? "\r\x1b[K" : "\r\x1b[K" + Sanitize(run.sentence) + "\n");
    };
  }
  return setup;
}

IsolationSetup IsolationOf(ReplayRuns& runs, NcclLogs& logs, const Environment& inherited, std::optional<int> nccl,
                           const AnalysisOptions& options) {
  IsolationSetup isolation;
  isolation.inherited = inherited;
  isolation.nccl = nccl;
  isolation.run = [&](const std::vector<Plan>& plans, Pace* pace) { return runs.Bare(plans, pace); };
  isolation.used = [&] { return logs.Read(options).used; };
  isolation.cards = [&] { return logs.Read(options).cards; };
  if (ErrorIsTerminal())
    isolation.progress = [](std::string_view what) { WriteErr(fmt::format("\r\x1b[K{}\n", what)); };
  return isolation;
}

TrialOutcome TrialOf(Plan plan, RunOutcome run, const NcclLogs& logs, const AnalysisOptions& options) {
  NcclLogs::Reading reading = plan.engine == "nccl" ? logs.Read(options) : NcclLogs::Reading();
  // The end of a log of a run that passed looks like that of one that hangs.
  if (run.verdict == RunVerdict::kPassed) reading.says.clear();
  return {std::move(plan), std::move(run), std::move(reading.used), std::move(reading.says)};
}

std::vector<TrialOutcome> RunTrials(const Plan& plan, ReplayRuns& runs, const NcclLogs& logs,
                                    const AnalysisOptions& options) {
  std::vector<TrialOutcome> trials;
  for (Plan& one : Combinations(plan, kMostTrials)) {
    RunOutcome run = runs.Whole(one);
    const bool over = run.verdict == RunVerdict::kInterrupted || run.verdict == RunVerdict::kCouldNotRun ||
                      run.verdict == RunVerdict::kNodeLost;
    trials.push_back(TrialOf(std::move(one), std::move(run), logs, options));
    if (over) break;
  }
  return trials;
}

ReportFile StateOf(const ReplayOptions& options) {
  return {.path = options.state, .option = "--state", .mark = SoakState().schema};
}

/// Again and again; what is kept is kept after every run.
Result<SoakOutcome> RunSoak(const Plan& plan, ReplayRuns& runs, const ReplayOptions& options) {
  std::optional<SoakState> before;
  std::error_code error;
  if (fs::exists(options.state, error)) {
    const std::string text = ReadSmallFile(options.state);
    before = DecodeSoak(text);
    if (!text.empty() && !before)
      return Error{"it is no state of a replay", "give --state a name of its own", options.state};
    if (before && !before->over && before->plan != PlanKey(plan))
      return Error{"it is the state of another replay that is not over", "remove it, or give --state another name",
                   options.state};
  }
  std::optional<Error> unkept;
  const auto keep = [&](const SoakState& state) {
    if (auto failed = WriteReportFile(StateOf(options), [&](const Sink& sink) { sink(Encode(state)); }))
      unkept = failed;
    if (ErrorIsTerminal()) WriteErr("\r\x1b[K" + Cut(InWords(state), 100));
  };
  SoakOutcome outcome = Soak(
      plan, {.until_fails = options.until_fails, .for_time = options.for_time}, std::move(before),
      [&](const Plan& one) { return runs.Whole(one); }, keep);
  if (unkept) return *unkept;
  return outcome;
}

/// 0 nothing failed, 1 something did, 2 interrupted before, 3 nothing could be run.
int ExitStatus(const SoakOutcome& soak) {
  enum : int { kPassed, kFailed, kUndecided, kCouldNotRun };
  if (soak.state.failed > 0) return kFailed;
  if (!soak.cannot.empty()) return soak.state.iterations() > 0 ? kUndecided : kCouldNotRun;
  return soak.interrupted ? kUndecided : kPassed;
}

ReportFile ScriptOf(const ReplayOptions& options) {
  return {.path = options.exported, .option = "--export", .mark = kReproMark};
}

/// A program of the user's own has the same ending.
std::optional<Error> CheckScript(const ReplayOptions& options) {
  if (options.exported.empty() || options.exported == kNcclTests) return std::nullopt;
  std::error_code error;
  if (!fs::is_regular_file(options.exported, error)) return CheckReportFile(ScriptOf(options), {});
  const std::string head = ReadSmallFile(options.exported).substr(0, 1024);
  if (head.empty() || head.find(kReproMark) != std::string::npos) return std::nullopt;
  return Error{"it is there, and no script of ours", "give --export a name of its own", options.exported};
}

/// Writes the plan down for others, instead of running it.
CommandResult Export(const Plan& plan, const ReplayOptions& options) {
  if (const auto missing = WhyNotRunnable(plan)) return CouldNotRun(*missing);
  CommandResult result;
  if (options.exported == kNcclTests) {
    Result<std::string> lines = NcclTestsLines(plan);
    if (!lines) return CouldNotRun(lines.error());
    result.out = *std::move(lines);
    return result;
  }
  const std::string script = ReproScript(plan, Version(), fs::path(options.exported).filename().string());
  const auto failed = WriteReportFile(ScriptOf(options), [&](const Sink& sink) { sink(script); });
  return failed ? CouldNotRun(*failed) : result;
}

/// What node 0 does: plans, runs, reports. A number of the report is its status.
CommandResult RunAsCoordinator(const Options& options, const Launch& launch, const Caller& caller) {
  const bool only_prints = options.replay.dry_run || !options.replay.exported.empty();
  const auto cannot_begin = [&](CommandResult result, const std::string& complaint) {
    if (!only_prints) DismissOthers(options.replay, launch, fmt::format("node 0: {}", complaint));
    return result;
  };
  if (const auto refused = CheckScript(options.replay)) return CouldNotRun(*refused);
  std::variant<Plan, CommandResult> base = BasePlan(options);
  if (CommandResult* failed = std::get_if<CommandResult>(&base))
    return cannot_begin(std::move(*failed), "the logs could not be read, or name no collective");
  if (options.replay.isolate && (options.replay.until_fails || options.replay.for_time))
    return cannot_begin(CouldNotRun({"--isolate repeats by itself", "leave --until-fails and --for out", ""}),
                        "--isolate repeats by itself");
  const Environment inherited = Inherited();
  Result<Plan> plan = PlanOf(std::get<Plan>(std::move(base)), launch, options.replay, inherited);
  if (!plan) return cannot_begin(CouldNotRun(plan.error()), plan.error().message);
  if (!options.replay.exported.empty()) return Export(*plan, options.replay);
  const auto print = [&](const ReplayReport& report, int status) {
    return CommandResult{.status = status,
                         .out = options.replay.as_json
                                    ? ReplayJson(report, Version())
                                    : ReplayText(report, StyleOfOutput(options),
                                                 options.replay.verbose ? ReplayDetail::kAll : ReplayDetail::kTelling),
                         .err = ""};
  };
  ReplayReport report{.plan = *plan, .engine = "", .engine_tests = "", .trials = {}};
  if (options.replay.dry_run) {
    CommandResult result = print(report, 0);
    if (const auto missing = WhyNotRunnable(*plan)) {
      result.err = CouldNotRun(*missing).err;
      result.status = kExitCouldNotRun;
    }
    return result;
  }
  const Result<std::optional<Speeds>> before = BaselineFor(options.replay, *plan);
  if (!before) return cannot_begin(CouldNotRun(before.error()), before.error().message);
  const Result<std::string> worker = WorkerPath();
  if (!worker) return CouldNotRun(worker.error());
  HostWitness witness;
  const RunSetup setup = SetupOf(*worker, inherited, witness, caller);
  CatchInterrupts();
  Result<ReplayNodes> gathered = ReplayNodes::Gather(options.replay, launch, setup);
  if (!gathered) return CouldNotRun(gathered.error());
  // The other processes end when it does, which must be after the report is printed: launchers kill all once one has
  // failed.
  const auto nodes = std::make_shared<ReplayNodes>(std::move(*gathered));
  const auto could_not_run = [&](const Error& error) {
    nodes->Farewell(kExitCouldNotRun, error.message);
    CommandResult result = CouldNotRun(error);
    result.held = nodes;
    return result;
  };
  *plan = nodes->WhereTheyWere(*plan, options.replay);
  report.plan = *plan;
  const bool has_ranks =
      plan->shares.empty() || std::ranges::any_of(plan->shares, [](const NodeShare& share) { return share.node == 0; });
  std::optional<EngineProbe> own;
  if (has_ranks) {
    Result<EngineProbe> found = Probe(*worker, plan->engine, plan->options);
    if (!found) return could_not_run(found.error());
    own = std::move(*found);
  }
  const Result<std::vector<EngineProbe>> engines = nodes->Probe(*plan, own);
  if (!engines) return could_not_run(engines.error());
  Result<Plan> on_gpus = nodes->OnGpus(*plan, *engines);
  if (!on_gpus) return could_not_run(on_gpus.error());
  *plan = report.plan = *std::move(on_gpus);
  const EngineProbe& shown = engines->at(has_ranks || engines->size() == 1 ? 0 : 1);
  report.engine = shown.version;
  report.engine_tests = shown.tests;
  report.nodes = nodes->Report(*plan, *engines);
  const bool writes = plan->engine == "nccl" || !options.replay.logs.empty();
  Result<NcclLogs> logs = writes ? NcclLogs::In(options.replay.logs) : NcclLogs::None();
  if (!logs) return could_not_run(logs.error());
  const auto at_once = [&](const std::vector<Plan>& plans, Pace* pace) {
    RunSetup paced = setup;
    paced.pace = pace;
    return nodes->RunAtOnce(plans, std::move(paced));
  };
  ReplayRuns runs([&](const Plan& one) { return nodes->Run(one, setup); }, at_once, inherited, *logs, witness);
  int status = 0;
  if (options.replay.until_fails || options.replay.for_time) {
    const Plan one = Combinations(*plan, 1).front();
    Result<SoakOutcome> soak = RunSoak(one, runs, options.replay);
    if (!soak) return could_not_run(soak.error());
    status = ExitStatus(*soak);
    if (soak->telling)
      report.trials.push_back(TrialOf(one, *std::exchange(soak->telling, std::nullopt), *logs, options.analysis));
    report.soak = *std::move(soak);
    report.state = options.replay.state;
    report.status = status;
  } else if (options.replay.isolate) {
    report.isolation =
        Isolate(Combinations(*plan, 1).front(), IsolationOf(runs, *logs, inherited, shown.nccl, options.analysis));
    if (!nodes->lost().empty())
      report.isolation->finding =
          fmt::format("{} Nothing could be run after that. {}", nodes->lost(), report.isolation->finding);
    status = ExitStatus(*report.isolation);
  }
  // What breaks has no speed.
  if (AsksForSpeeds(options.replay) && status == 0) {
    const IsolationSetup shared = IsolationOf(runs, *logs, inherited, shown.nccl, options.analysis);
    report.speeds = RunSpeeds(Combinations(*plan, 1).front(), options.replay, *before,
                              {.run = shared.run, .cards = shared.cards, .progress = shared.progress});
    status = ExitStatus(report.speeds->compared);
  } else if (!options.replay.isolate) {
    report.trials = RunTrials(*plan, runs, *logs, options.analysis);
    status = ExitStatus(report.trials);
  }
  nodes->Farewell(status);
  CommandResult result = print(report, status);
  result.held = nodes;
  return result;
}

/// Sockets and pipes of every rank: what the user may have, and shells give less of.
void RaiseLimits() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

CommandResult RunReplay(const Options& options) {
  const Caller caller;
  RaiseLimits();
  const Result<Launch> launch = LaunchOf(options.replay);
  if (!launch) return CouldNotRun(launch.error());
  if (launch->index == 0) return RunAsCoordinator(options, *launch, caller);
  if (options.replay.dry_run || !options.replay.exported.empty()) return {};
  const Result<std::string> worker = WorkerPath();
  if (!worker) return CouldNotRun(worker.error());
  HostWitness witness;
  witness.Begin();
  CatchInterrupts();
  const ProbeEngine probe = [&](const std::string& engine, const std::map<std::string, std::string>& of_engine) {
    return Probe(*worker, engine, of_engine);
  };
  // Launchers close what their processes print as they like; an agent prints nothing but errors.
  return RunAsAgent(options.replay, *launch, SetupOf(*worker, Inherited(), witness, caller).local, probe,
                    [&caller] { return Interrupted() || caller.IsGone(); });
}

}  // namespace inquest
