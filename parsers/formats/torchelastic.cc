// torchelastic.cc: what torchrun's agent says of its workers: exits, signals, and the report at the end.
// Format:  lines of Python's logging in four spellings of the prefix, and the block of a ChildFailedError
//            failed (exitcode: -9) local_rank: 1 (pid: 41300) of binary: /usr/bin/python3
//            Sending process 41299 closing signal SIGTERM
//              rank      : 9 (local_rank: 1)
//              exitcode  : -15 (pid: 41300)
// Clock:   the prefix's, local; in the block `time      : 2031-04-05_06:07:08`, the agent's own at polling.
// Not read: the map of local to global ranks in a rendezvous result; there is no event for it.
#include <algorithm>
#include <string>

#include "parsers/formats.h"
#include "parsers/formats/exit_status.h"
#include "parsers/formats/messages.h"

namespace inquest {
namespace {

constexpr Reporter kElastic = Reporter::kTorchelastic;

std::optional<What> ReadExit(std::string_view text) {
  static const Pattern kExit(R"(failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\))");
  const auto match = kExit.Search(text);
  if (!match || !match->number(1)) return std::nullopt;
  ProcessExit exit = ExitWithCode(*match->number(1), kElastic);
  exit.first_observed = true;  // of all that it saw failed, the agent names the one of the earliest time
  exit.local_rank = RankOf<LocalRank>(*match, 2);
  exit.pid = match->number(3);
  return exit;
}

std::optional<What> ReadSignal(std::string_view text) {
  static const Pattern kClosing(R"((?:Sending|Closing|Terminating) process (\d+) (?:closing|via) signal (\w+))");
  static const Pattern kForced(R"(Unable to shutdown process (\d+) via \S+, forcefully exiting via ([\w.]+))");
  auto match = kClosing.Search(text);
  if (!match) match = kForced.Search(text);
  if (!match) return std::nullopt;
  const auto signal = SignalNumber(match->text(2));
  if (!signal) return std::nullopt;
  return SignalSent{match->number(1), *signal};
}

std::optional<What> ReadDeathSignal(std::string_view text) {
  static const Pattern kReceived(R"(Received ([\w.]+) death signal)");
  static const Pattern kRaised(R"(SignalException: Process \d+ got signal: ([\w.]+))");
  auto match = kReceived.Search(text);
  if (!match) match = kRaised.Search(text);
  if (!match) return std::nullopt;
  const auto signal = SignalNumber(match->text(1));
  return JobStopped{JobStopped::By::kAgentSignal, signal ? SignalName(*signal) : std::string(match->text(1))};
}

// torch.multiprocessing.spawn: the number is the process's place among those spawned, one host's local rank.
std::optional<What> ReadSpawnExit(std::string_view text) {
  static const Pattern kRaised(R"(^-- Process (\d+) terminated with the following error)");
  if (const auto raised = kRaised.Search(text)) {
    ProcessExit exit = ExitWithCode(1, Reporter::kSpawn);
    exit.local_rank = RankOf<LocalRank>(*raised, 1);
    return exit;
  }
  static const Pattern kEnded(
      R"(ProcessExitedException: process (\d+) terminated with (?:exit code (\d+)|signal (\w+)))");
  const auto match = kEnded.Search(text);
  if (!match) return std::nullopt;
  ProcessExit exit = match->number(2) ? ExitWithCode(*match->number(2), Reporter::kSpawn)
                                      : ExitBySignal(SignalNumber(match->text(3)), Reporter::kSpawn);
  exit.local_rank = RankOf<LocalRank>(*match, 1);
  return exit;
}

std::optional<What> ReadElasticWorldSize(std::string_view text) {
  static const Pattern kSizes(R"(global_world_sizes=\[([1-9]\d{0,6})[,\]])");
  const auto match = kSizes.Search(text);
  if (!match) return std::nullopt;
  return WorldSize{static_cast<int>(*match->number(1))};
}

bool IsOwnLine(std::string_view text) {
  static const Pattern kLogger(
      R"(^(?:\w+:|\[[\d :,.-]+\] |[IWEF]\d{4} [\d:.]+ \d+ \S*)torch[./]distributed[./](?:elastic|launcher|run)\b)");
  static const Pattern kGroup(
      R"(\[\w+\] Worker group |Worker group (?:FAILED|successfully finished)|Rendezvous complete for workers)");
  return kLogger.Matches(text) || kGroup.Matches(text);
}

class TorchelasticParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    if (ReadExceptionLine(record.text)) return false;
    for (const auto read : {&ReadExit, &ReadSignal, &ReadDeathSignal, &ReadSpawnExit, &ReadElasticWorldSize}) {
      if (auto what = read(record.text)) {
        out.Add(EventFrom(record, *std::move(what)));
        return true;
      }
    }
    return ConsumeJoined(record, out) || ConsumeReport(record, out) || IsOwnLine(record.text);
  }

  /// Of an entry that was cut behind its rank it is known at least that this one failed first.
  void Finish(EventSink& out) override {
    if (!entry_.of_rank) return;
    ProcessExit exit = std::move(entry_.exit);
    exit.reporter = kElastic;
    exit.first_observed = true;
    entry_.of_rank->what = std::move(exit);
    if (!entry_.of_rank->at) entry_.of_rank->at = entry_.at;
    out.Add(*std::move(entry_.of_rank));
    entry_ = {};
  }

 private:
  /// A report whose lines somebody has joined: its first failure stands last.
  bool ConsumeJoined(const Record& record, EventSink& out) {
    static const Pattern kEntry(
        R"((?:\bhost ?: ?(\S+) +)?\brank ?: ?(\d+) \(local_rank: (\d+)\) +exitcode ?: ?(-?\d+) \(pid: (\d+)\))");
    const std::size_t root = record.text.find("Root Cause");
    const auto match = kEntry.Search(root == std::string_view::npos ? record.text : record.text.substr(root));
    if (!match || !match->number(4)) return false;
    ProcessExit exit = ExitWithCode(*match->number(4), kElastic);
    exit.host = std::string(match->text(1));
    exit.rank = RankOf<GlobalRank>(*match, 2);
    exit.local_rank = RankOf<LocalRank>(*match, 3);
    exit.pid = match->number(5);
    exit.first_observed = root != std::string_view::npos;
    out.Add(EventFrom(record, std::move(exit)));
    entry_ = {};
    root_cause_ = false;
    return true;
  }

  // The block's fields come in the order time, host, rank, exitcode; older versions write no blanks before the colon.
  bool ConsumeReport(const Record& record, EventSink& out) {
    static const Pattern kField(R"(^\s*(time|host|rank|exitcode|error_file|msg|traceback)\s*: ?(.*)$)");
    static const Pattern kRoot(R"(^Root Cause(?: \(first observed failure\))?:)");
    if (kRoot.Matches(record.text)) {
      entry_ = {};
      root_cause_ = true;
      return true;
    }
    const auto field = kField.Search(record.text);
    if (!field) return false;
    const std::string_view name = field->text(1), value = field->text(2);
    if (name == "time") TakeTime(value);
    if (name == "host") entry_.exit.host = std::string(value.substr(0, value.find(' ')));
    if (name == "rank" && TakeRank(value) && root_cause_) entry_.of_rank = EventFrom(record, ProcessExit{});
    if (name == "exitcode") AddExit(record, value, out);
    return true;
  }

  void TakeTime(std::string_view value) {
    entry_ = {};
    std::string spelled(value);
    std::replace(spelled.begin(), spelled.end(), '_', ' ');
    if (const auto parsed = ParseTime(spelled)) entry_.at = parsed->time;
  }

  bool TakeRank(std::string_view value) {
    static const Pattern kRank(R"(^(\d+) \(local_rank: (\d+)\))");
    const auto match = kRank.Search(value);
    if (!match) return false;
    entry_.exit.rank = RankOf<GlobalRank>(*match, 1);
    entry_.exit.local_rank = RankOf<LocalRank>(*match, 2);
    return true;
  }

  void AddExit(const Record& record, std::string_view value, EventSink& out) {
    static const Pattern kCode(R"(^(-?\d+)\s+\(pid: (\d+)\))");
    const auto match = kCode.Search(value);
    if (!match || !match->number(1)) return;
    entry_.of_rank.reset();
    ProcessExit exit = ExitWithCode(*match->number(1), kElastic);
    exit.pid = match->number(2);
    exit.rank = entry_.exit.rank;
    exit.local_rank = entry_.exit.local_rank;
    exit.host = entry_.exit.host;
    exit.first_observed = root_cause_;
    Event event = EventFrom(record, std::move(exit));
    if (!event.at) event.at = entry_.at;
    out.Add(std::move(event));
    entry_ = {};
    root_cause_ = false;
  }

  struct Entry {
    ProcessExit exit;
    std::optional<Timestamp> at;
    std::optional<Event> of_rank;  ///< of a root cause, the line that says which, until its end is told
  };
  Entry entry_;
  bool root_cause_ = false;
};

constexpr std::string_view kTorchelasticMarks[] = {
    "failed (exitcode: ",
    "terminated with the following error",
    " closing signal ",
    " via signal SIG",
    "forcefully exiting via ",
    " death signal",
    "Worker group ",
    "Rendezvous complete for workers",
    "global_world_sizes=[",
    "torch.distributed.elastic.",
    "torch.distributed.launcher.",
    "torch/distributed/elastic/",
    "torch/distributed/run.py:",
    "Root Cause",
    "  time      : ",
    "  host      : ",
    "  rank      : ",
    "  exitcode  : ",
    "  error_file: ",
    "  traceback : ",
    "(local_rank: ",
    "  exitcode: ",
};

}  // namespace

std::vector<What> ReadElasticMessage(std::string_view text) {
  std::vector<What> found;
  for (const auto read : {&ReadDeathSignal, &ReadSpawnExit}) {
    if (auto what = read(text)) found.push_back(*std::move(what));
  }
  return found;
}

extern const Format kTorchelastic{.name = "torchelastic",
                                  .framing = Framing::kLines,
                                  .component = Component::kElastic,
                                  .marks = kTorchelasticMarks,
                                  .make = &Make<TorchelasticParser>};

}  // namespace inquest
