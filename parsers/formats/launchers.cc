// launchers.cc: what srun, mpirun, pdsh and the launchers of frameworks and servers say of the processes they started.
// Format:  one line a process or job, but for mpirun's and Hydra's blocks
//            srun: error: node017: task 3: Killed
//            slurmstepd: error: *** STEP 88123.0 ON node017 CANCELLED AT 2031-04-05T06:07:08 DUE TO TIME LIMIT ***
//            slurmd[node017]: error: *** STEP 88123.0 KILLED AT 2031-04-05T06:07:08 WITH SIGNAL 15 ***   (before 14.11)
//            mpirun noticed that process rank 3 with PID 41 on node node017 exited on signal 9 (Killed).
//            (Open MPI 5: prterun, and a new line before "signal 9")
//            [2031-04-05 06:07:08,123] [ERROR] [launch.py:325:sigkill_handler] ['python', ...] exits with return code =
//            -9
//            [rank: 1] Child process with PID 4711 terminated with code -9. Forcefully terminating all other ...
//            MPT ERROR: Rank 57(g:57) received signal SIGSEGV(11).
//            \tProcess ID: 4711, Host: r8i1n28, Program: /apps/solver/bin/solver
//            [node017:mpi_rank_24][error_sighandler] Caught error: Segmentation fault (signal 11)
// Clock:   none of their own but DeepSpeed's logging and slurmstepd's CANCELLED AT.
// Not read: the command in DeepSpeed's "exits with": it is that of the process started last, whichever one died.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "core/ascii.h"
#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/exit_status.h"
#include "parsers/formats/messages.h"

namespace inquest {
namespace {

constexpr int kMostTasks = 4096;

/// The numbers of `0-3,8` or `0, 8`; at most kMostTasks of them.
std::vector<int> ReadTasks(std::string_view list) {
  static const Pattern kRange(R"(^,? ?(\d{1,7})(?:-(\d{1,7}))?(?:,|$))");
  std::vector<int> tasks;
  while (const auto range = kRange.Search(list)) {
    const auto first = static_cast<int>(*range->number(1));
    const auto last = static_cast<int>(range->number(2).value_or(first));
    for (int task = first; task <= last && tasks.size() < kMostTasks; ++task) tasks.push_back(task);
    list.remove_prefix(range->text(0).size());
  }
  return tasks;
}

/// How many hosts `node[017-018,020]` names, at least; nullopt for lists of several names.
std::optional<std::size_t> CountHosts(std::string_view hosts) {
  const std::size_t open = hosts.find('[');
  if (open == std::string_view::npos)
    return hosts.find(',') == std::string_view::npos ? std::optional<std::size_t>(1) : std::nullopt;
  if (!hosts.ends_with(']') || hosts.find('[', open + 1) != std::string_view::npos) return std::nullopt;
  return ReadTasks(hosts.substr(open + 1, hosts.size() - open - 2)).size();
}

// The words behind the tasks: `Exited with exit code 1`, or a signal's with or without `(core dumped)`.
std::optional<ProcessExit> ReadTaskEnd(std::string_view words) {
  static const Pattern kCode(R"(^Exited with exit code (\d+))");
  if (const auto code = kCode.Search(words)) {
    if (const auto number = code->number(1)) return ExitWithCode(*number, Reporter::kSrun);
  }
  if (words.starts_with("Out Of Memory")) {
    ProcessExit exit = ExitBySignal(9, Reporter::kSrun);
    exit.first_observed = true;  // the others are killed because of it
    return exit;
  }
  words = words.substr(0, words.find(" (core dumped)"));
  while (words.ends_with(' ') || words.ends_with('.')) words.remove_suffix(1);
  const auto signal = SignalNumber(words);
  if (!signal) return std::nullopt;
  return ExitBySignal(signal, Reporter::kSrun);
}

// srun numbers its tasks. They are ranks where it starts one for each GPU, and nodes where it starts an agent on each:
// the exits are held until the stream ends, and named ranks if some host was seen to have two tasks. Where only one
// host is named, the timeline decides.
class SrunTasks {
 public:
  bool Consume(const Record& record) {
    static const Pattern kTask(R"(srun: error: (\S+): tasks? ([\d,-]+): (.*)$)");
    static const Pattern kEnds(
        R"(^srun: (?:\S+ \S+ )?(?:Terminating (?:job step |StepId=)?(\S*)|forcing job termination))");
    const auto match = kTask.Search(record.text);
    if (!match) {
      const auto ends = kEnds.Search(record.text);
      if (ends && (step_.empty() || step_ != ends->text(1))) {
        const std::size_t begin = step_.empty() ? 0 : tail_;  // an earlier step's end is another story
        for (std::size_t i = 0; i < held_.size(); ++i)
          std::get<ProcessExit>(held_[i].first.what).first_observed = i >= begin;
        step_ = ends->text(1).empty() ? "?" : std::string(ends->text(1));
      }
      tail_ = held_.size();
      return false;
    }
    const auto end = ReadTaskEnd(match->text(3));
    if (!end) return true;
    const std::vector<int> tasks = ReadTasks(match->text(2));
    const auto hosts = CountHosts(match->text(1));
    if (hosts && tasks.size() > *hosts) several_on_a_host_ = true;
    for (const int task : tasks) {
      if (held_.size() == kMostTasks) break;
      ProcessExit exit = *end;
      if (hosts == 1 && match->text(1).find('[') == std::string_view::npos) {
        exit.host = std::string(match->text(1));
        const auto known = task_of_host_.try_emplace(*exit.host, task).first;
        several_on_a_host_ = several_on_a_host_ || known->second != task;
      }
      held_.emplace_back(EventFrom(record, std::move(exit)), task);
    }
    return true;
  }

  /// A launcher was heard that starts one daemon by srun on each host, and the ranks by that.
  void CountsDaemons() { are_daemons_ = true; }

  void Finish(EventSink& out) {
    for (auto& [event, task] : held_) {
      auto& exit = std::get<ProcessExit>(event.what);
      if (several_on_a_host_ && !are_daemons_)
        exit.rank = GlobalRank{task};
      else if (exit.host && !are_daemons_)
        exit.task = task;
      out.Add(std::move(event));
    }
    held_.clear();
  }

 private:
  std::vector<std::pair<Event, int>> held_;
  std::map<std::string, int> task_of_host_;
  bool several_on_a_host_ = false;
  bool are_daemons_ = false;
  std::string step_;      ///< of which srun said last that it ends the rest because of those that it had told
  std::size_t tail_ = 0;  ///< exits before the last line that tells none
};

bool ConsumeSrun(const Record& record, EventSink& out) {
  static const Pattern kNode(R"(srun: error: Node failure on (\S+))");
  if (const auto match = kNode.Search(record.text)) {
    Event event = EventFrom(record, JobStopped{JobStopped::By::kSlurm, "NODE FAILURE"});
    event.origin.host = Known<std::string>{std::string(match->text(1)), Basis::kObserved, {}};
    out.Add(std::move(event));
    return true;
  }
  if (Contains(record.text, "srun: sending Ctrl-C to")) {
    out.Add(EventFrom(record, JobStopped{JobStopped::By::kKeyboard, "SIGINT"}));
    return true;
  }
  return Contains(record.text, "srun: ");
}

bool ConsumeSlurmstepd(const Record& record, EventSink& out) {
  static const Pattern kCancelled(
      R"(\*\*\* (?:JOB|STEP) \S+ (?:ON (\S+) )?(?:CANCELLED|KILLED) AT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?: (?:DUE|due|WITH) (?:(?:TO|to) )?([^,*]+))?)");
  const auto match = kCancelled.Search(record.text);
  if (!match) return Contains(record.text, "slurmstepd: ");
  std::string_view reason = match->text(3);
  while (reason.ends_with(' ')) reason.remove_suffix(1);
  Event event = EventFrom(record, JobStopped{JobStopped::By::kSlurm, std::string(reason)});
  if (!event.origin.host && match->has(1))
    event.origin.host = Known<std::string>{std::string(match->text(1)), Basis::kObserved, {}};
  if (!event.at) {
    if (const auto time = ParseTime(match->text(2))) event.at = time->time;
  }
  out.Add(std::move(event));
  return true;
}

std::optional<std::int64_t> PidOf(const Pattern::Match& match, std::size_t group) {
  const auto pid = match.number(group);
  return pid && *pid > 0 ? pid : std::nullopt;  // Open MPI prints 0 where it does not know
}

bool ConsumeMpirun(const Record& record, EventSink& out) {
  static const Pattern kSignalled(R"(process rank (\d+) with PID (\d+) on node (\S+) exited on signal (\d+))");
  static const Pattern kImproper(R"(process rank (\d+) with PID (\d+) on node (\S+) exiting improperly)");
  static const Pattern kAbort(
      R"(MPI_ABORT was invoked on rank (\d+) in communicator(?: (MPI_COMM_WORLD\b|MPI COMMUNICATOR \d+ DUP FROM 0\b))?(?:.*[Ee]rrorcode:? (\d+))?)");
  if (const auto match = kAbort.Search(record.text)) {
    ProcessExit exit;
    if (const auto code = match->number(3)) exit = ExitWithArgument(*code, Reporter::kMpirun);
    exit.reporter = Reporter::kMpirun;
    if (match->has(2)) exit.rank = RankOf<GlobalRank>(*match, 1);  // else it counts the ranks of some of them
    exit.first_observed = true;                                    // who called it ended all others
    out.Add(EventFrom(record, std::move(exit)));
    return true;
  }
  auto match = kSignalled.Search(record.text);
  const bool signalled = match.has_value();
  if (!match) match = kImproper.Search(record.text);
  if (!match) return false;
  ProcessExit exit = ExitBySignal(signalled ? SignalNumber(match->text(4)) : std::nullopt, Reporter::kMpirun);
  exit.rank = RankOf<GlobalRank>(*match, 1);
  exit.pid = PidOf(*match, 2);
  exit.host = std::string(match->text(3));
  exit.first_observed = signalled;  // it ends the others then, and tells of none of them
  out.Add(EventFrom(record, std::move(exit)));
  return true;
}

bool ConsumeDeepSpeed(const Record& record, EventSink& out) {
  static const Pattern kKilling(R"(sigkill_handler\] Killing subprocess (\d+))");
  static const Pattern kReturned(R"(\bexits with return code = (-?\d+))");
  static const Pattern kDone(R"(Process (\d+) exits successfully)");
  static const Pattern kSignalled(R"(Main process received (SIG\w+), exiting)");
  if (const auto killing = kKilling.Search(record.text)) {
    out.Add(EventFrom(record, SignalSent{killing->number(1), 15}));
  } else if (const auto returned = kReturned.Search(record.text); returned && returned->number(1)) {
    out.Add(EventFrom(record, ExitWithCode(*returned->number(1), Reporter::kDeepSpeed)));
  } else if (const auto done = kDone.Search(record.text)) {
    ProcessExit exit = ExitWithCode(0, Reporter::kDeepSpeed);
    exit.pid = done->number(1);
    out.Add(EventFrom(record, std::move(exit)));
  } else if (const auto signalled = kSignalled.Search(record.text)) {
    out.Add(EventFrom(record, JobStopped{JobStopped::By::kAgentSignal, std::string(signalled->text(1))}));
  } else {
    static const Pattern kOwn(R"(\[launch\.py:\d+:\w+\])");
    return kOwn.Matches(record.text);
  }
  return true;
}

bool ConsumeOthers(const Record& record, EventSink& out) {
  static const Pattern kHorovod(R"(Process (\d+) exit with status code (-?\d+))");
  static const Pattern kPaddle(R"(Out of all \d+ trainers, the trainer process with rank=\[([\d, ]+)\] was aborted)");
  static const Pattern kSsh(R"((?:(\S+): )?ssh exited with exit code (\d+))");
  if (const auto match = kHorovod.Search(record.text); match && match->number(2)) {
    ProcessExit exit = ExitWithCode(*match->number(2), Reporter::kHorovod);
    exit.rank = RankOf<GlobalRank>(*match, 1);
    out.Add(EventFrom(record, std::move(exit)));
    return true;
  }
  if (const auto match = kPaddle.Search(record.text)) {
    for (const int rank : ReadTasks(match->text(1))) {
      ProcessExit exit;  // how it ended is not said
      exit.reporter = Reporter::kPaddle;
      exit.rank = GlobalRank{rank};
      out.Add(EventFrom(record, std::move(exit)));
    }
    return true;
  }
  if (const auto match = kSsh.Search(record.text); match && match->number(2)) {
    ProcessExit exit = ExitWithCode(*match->number(2), Reporter::kPdsh);
    if (match->has(1) && !match->text(1).starts_with("pdsh@")) exit.host = std::string(match->text(1));
    if (!exit.host && record.origin.host) exit.host = record.origin.host->value;
    out.Add(EventFrom(record, std::move(exit)));
    return true;
  }
  return false;
}

// One sentence for each process: which rank, by whatever number it has there, its pid, and how it ended.
struct Sentence {
  Reporter reporter;
  std::string_view mark;
  const char* form;
  std::size_t rank, pid, how;       ///< groups; 0: the sentence does not say
  bool local = false;               ///< the number counts on its host
  bool signal = false;              ///< a signal, by number or by words, not an exit code
  std::size_t host = 0;             ///< group
  bool first = false;               ///< who does so ends all others
  bool own = false;                 ///< who prints it speaks of itself
  std::string_view host_head = {};  ///< of the host's name, where the sentence has its number alone
  bool argument = false;            ///< how it ended is what it handed to MPI_Abort
};

/// MPICH's word for a call of MPI_Abort: what was handed to it, then by whom.
constexpr Sentence Aborting(const char* form) {
  Sentence sentence{Reporter::kMpich, "application called MPI_Abort(", form, 2, 0, 1};
  sentence.first = sentence.argument = true;
  return sentence;
}
/// Its rank, of whom a parent tells as the first, and not how it ended.
constexpr Sentence FirstGone(Reporter reporter, std::string_view mark, const char* form) {
  Sentence sentence{reporter, mark, form, 1, 0, 0};
  sentence.first = true;
  return sentence;
}

constexpr Sentence kSentences[] = {
    {Reporter::kLightning, "Child process with PID ",
     R"((?:\[rank: (\d+)\] )?Child process with PID (\d+) terminated with code (-?\d+))", 1, 2, 3, true},
    {Reporter::kComposer, " crashed with exit code ", R"(\bRank (\d+) crashed with exit code (-?\d+))", 1, 0, 2},
    {Reporter::kComposer, "Global rank ", R"(\bGlobal rank (\d+) \(PID (\d+)\) exited with code (-?\d+))", 1, 2, 3},
    {Reporter::kSglang, "Child process unexpectedly failed with ",
     R"(failed with (?:exitcode=|an exit code )(-?\d+)\. pid=(\d+))", 0, 2, 1},
    {Reporter::kVllm, " died, exit code: ",  // Its own SIGTERM at the end of any run is told alike.
     R"(\bWorker \S+ pid (\d+) died, exit code: (-?(?:\d|1[0-46-9]|[2-9]\d|\d{3,}))$)", 0, 1, 2},
    {Reporter::kTgi, "was signaled to shutdown with signal ",
     R"(was signaled to shutdown with signal (\d+)(?:.* rank=(\d+))?)", 2, 0, 1, false, true},
    FirstGone(Reporter::kTgi, " failed to start", R"(\bShard (\d+) failed to start$)"),
    FirstGone(Reporter::kMindSpore, " is timed out. It may exit", R"(\bThe node: (\d+) is timed out\. It may exit)"),
    {Reporter::kPaddle, "Container rank ", R"(\bContainer rank (\d+) status failed cmd .{0,900}\bcode (-?\d+)\b)", 1, 0,
     2},
    {Reporter::kPals, " died from signal ", R"(^([\w.-]+): rank (\d+) died from signal (\d+))", 2, 0, 3, false, true,
     1},
    {Reporter::kPals, " exited with code ", R"(^([\w.-]+): rank (\d+) exited with code (\d+))", 2, 0, 3, false, false,
     1},
    {Reporter::kHtCondor, "Normal termination (return value ", R"(^\s*\(1\) Normal termination \(return value (\d+)\))",
     0, 0, 1},
    {Reporter::kHtCondor, "Abnormal termination (signal ", R"(^\s*\(0\) Abnormal termination \(signal (\d+)\))", 0, 0,
     1, false, true},
    {Reporter::kCi, "rocess completed with exit code ",
     R"(^(?:##\[error\]|Error: )Process completed with exit code (\d+))", 0, 0, 1},
    {Reporter::kCi,
     "ERROR: Job failed: ", R"(^ERROR: Job failed: (?:exit code|command terminated with exit code) (\d+))", 0, 0, 1},
    {Reporter::kDocker, "returned a non-zero code: ", R"(^The command '.*' returned a non-zero code: (\d+))", 0, 0, 1},
    {Reporter::kDocker, "did not complete successfully: exit code: ",
     R"(failed to solve: .* did not complete successfully: exit code: (\d+))", 0, 0, 1},
    // flux-core src/shell/doom.c, src/cmd/job/attach.c and the shell's event log, which tells of the first task alone.
    {Reporter::kFlux,
     "FATAL: task-exit: ", R"(FATAL: task-exit: (?:\S+: )?task rank (\d+)(?: on host ([\w.-]+))? failed and exit-)", 1,
     0, 0, false, false, 2, true},
    {Reporter::kFlux,
     "FATAL: doom: ", R"(FATAL: doom: (?:\S+: )?rank (\d+)(?: on host ([\w.-]+))? (?:exited|failed) and exit-)", 1, 0,
     0, false, false, 2, true},
    {Reporter::kFlux, "\"shell.task-exit\"",
     R"re("shell\.task-exit","context":\{"localid":\d+,"rank":(\d+),"state":"\w+","pid":(\d+),"wait_status":\d+,"signaled":([1-9]\d*),)re",
     1, 2, 3, false, true, 0, true},
    {Reporter::kFlux, "\"shell.task-exit\"",
     R"re("shell\.task-exit","context":\{"localid":\d+,"rank":(\d+),"state":"\w+","pid":(\d+),"wait_status":\d+,"signaled":0,"exitcode":([1-9]\d*)\})re",
     1, 2, 3, false, false, 0, true},
    {Reporter::kFlux, "flux-job: task(s) ", R"(^flux-job: task\(s\) exited with exit code ([1-9]\d*))", 0, 0, 1},
    {Reporter::kFlux, "flux-job: task(s) ", R"(^flux-job: task\(s\) ([A-Z][a-z]+(?: [a-z]+)*))", 0, 0, 1, false, true},
    {Reporter::kSlurm, "State: FAILED (exit code ", R"(^State: FAILED \(exit code (\d+)\))", 0, 0, 1},  // seff's report
    {Reporter::kLsf, "Exited with exit code ", R"(^Exited with exit code (\d+)\.$)", 0, 0, 1},
    {Reporter::kNsys, "The target application returned non-zero exit code ",
     R"(The target application returned non-zero exit code (\d+))", 0, 0, 1},
    // HPE's and SGI's MPI, whose srun tasks are its daemons; pid and host stand in the next line.
    {Reporter::kMpt, " received signal SIG",
     R"((?:^(?:\s*-?\d+:)?|header@entry=0x[0-9a-f]+ ")MPT(?: ERROR)?: Rank \d+\(g:(\d+)\) received signal (SIG[A-Z]+))",
     1, 0, 2, false, true},
    {Reporter::kMpt, " is aborting with error code ",
     R"(^(?:\s*-?\d+:)?MPT(?: ERROR)?: Rank \d+\(g:(\d+)\) is aborting with error code (-?\d+))", 1, 0, 2},
    {Reporter::kMpt, " received signal SIG",
     R"(^(?:\s*-?\d+:)?MPT: On host ([\w.-]+), Program .{1,300}, Rank (\d+), Process (\d+) received signal (SIG[A-Z]+))",
     2, 3, 4, false, true, 1},
    FirstGone(Reporter::kMpt, " has terminated without calling MPI_Finalize",
              R"(^(?:\s*-?\d+:)?(?:MPT ERROR|MPT|MPI): MPI_COMM_WORLD rank (\d+) has terminated without calling)"),
    {Reporter::kRealm, " received by node ", R"(\bSignal (\d+) received by node (\d+), process (\d+))", 2, 3, 1, false,
     true},
    {Reporter::kGasnet, "*** Caught a ", R"(\*\*\* Caught a (?:fatal )?signal: (SIG[A-Z]+)\(\d+\) on node (\d+)/\d+)",
     2, 0, 1, false, true},
    {Reporter::kMvapich, "][error_sighandler] Caught error: ",
     R"(\[([\w.-]+):mpi_rank_(\d+)\]\[error_sighandler\] Caught error: .{1,80}\(signal (\d+)\))", 2, 0, 3, false, true,
     1},
    {Reporter::kMvapich, "MPI process (rank: ",
     R"((?:^\[([\w.-]+):mpispawn_\d+\]\[\w+\] )?MPI process \(rank: (\d+), pid: (\d+)\) terminated with signal (\d+))",
     2, 3, 4, false, true, 1},
    {Reporter::kMvapich, "MPI process (rank: ",
     R"((?:^\[([\w.-]+):mpispawn_\d+\]\[\w+\] )?MPI process \(rank: (\d+), pid: (\d+)\) exited with status (\d+))", 2,
     3, 4, false, false, 1},
    {Reporter::kMpd, "xit status of rank ", R"(^\s*[Ee]xit status of rank (\d+): killed by signal (\d+))", 1, 0, 2,
     false, true, 0, true},
    {Reporter::kMpd, "xit status of rank ", R"(^\s*[Ee]xit status of rank (\d+): return code (\d+))", 1, 0, 2, false,
     false, 0, true},
    {Reporter::kAprun, " PE RANK ", R"((?:\[NID (\d+)\] .*)?\bPE RANK (\d+) exit signal ([A-Z][a-z]+(?: [a-z]+)*))", 2,
     0, 3, false, true, 1, false, false, "nid"},
    {Reporter::kAprun, " exit signals: ", R"(^Application \d+ exit signals: ([A-Z][a-z]+(?: [a-z]+)*))", 0, 0, 1, false,
     true},
    {Reporter::kAprun, " exit codes: ", R"(^Application \d+ exit codes: (\d+))", 0, 0, 1},
    {Reporter::kPlexec, " of MPI processes was aborted.(rank=", R"(One of MPI processes was aborted\.\(rank=(\d+)\))",
     1, 0, 0},
    {Reporter::kPlexec, "plexec The process terminated with the signal.(rank=",
     R"(plexec The process terminated with the signal\.\(rank=(\d+)\)\(nid=\w+\)\(sig=(\d+)\))", 1, 0, 2, false, true},
    {Reporter::kPlexec, "plexec The process terminated abnormally.(rank=",
     R"(plexec The process terminated abnormally\.\(rank=(\d+)\)\(nid=\w+\)\(exitstatus=(\d+)\))", 1, 0, 2},
    {Reporter::kSpawn, " terminated with signal SIG", R"(^Exception: process (\d+) terminated with signal (SIG[A-Z]+))",
     1, 0, 2, true, true},
    {Reporter::kSpawn, " terminated with exit code ", R"(\b[Pp]rocess (\d{1,4}) terminated with exit code (\d+))", 1, 0,
     2, true},
    {Reporter::kPlatformMpi, " before MPI_Finalize() with ",
     R"(MPI Application rank (\d+) (?:exited|killed) before MPI_Finalize\(\) with signal (\d+))", 1, 0, 2, false, true},
    {Reporter::kPlatformMpi, " before MPI_Finalize() with ",
     R"(MPI Application rank (\d+) exited before MPI_Finalize\(\) with status (\d+))", 1, 0, 2},
    {Reporter::kGasnet, "*** Caught a fatal signal (proc ",
     R"(\*\*\* Caught a fatal signal \(proc (\d+)\): (SIG[A-Z]+))", 1, 0, 2, false, true},
    {Reporter::kGasnet, "*** FATAL ERROR: Assertion failure (proc ",
     R"(\*\*\* FATAL ERROR: Assertion failure \(proc (\d+)\): )", 1, 0, 0},
    {Reporter::kGasnet, "*** FATAL ERROR (proc ", R"(\*\*\* FATAL ERROR \(proc (\d+)\): )", 1, 0, 0},
    FirstGone(Reporter::kProgram, "Error occurred on rank ", R"(^\W*Error occurred on rank (\d+)\b)"),
    {Reporter::kPoe, "ERROR: 0031-250 ", R"(ERROR: 0031-250 +task (\d+): ([A-Z][a-z]+(?: [a-z]+)*))", 1, 0, 2, false,
     true},
    {Reporter::kPoe, "ERROR: 0031-300 ",
     R"(ERROR: 0031-300 +Forcing all remote tasks to exit due to exit code (\d+) in task (\d+))", 2, 0, 1},
    // The node is the process's number in MPI_COMM_WORLD, whichever communicator it aborts.
    Aborting(R"(\bAbort\((-?\d+)\) on node (\d+) \(rank \d+ in comm \d+\): application called MPI_Abort\()"),
    Aborting(R"(application called MPI_Abort\(MPI_COMM_WORLD, (-?\d+)\) - process (\d+))"),
    {Reporter::kMpich, ": Fatal error in ",
     R"(^Abort\(-?\d+\) on node (\d+)(?: \(rank \d+ in comm \d+\))?: Fatal error in )", 1, 0, 0},
    {Reporter::kMpich, "MPICH ERROR [Rank ",
     R"(^MPICH ERROR \[Rank (\d+)\] \[job id [^\]]*\] \[[^\]]*\] \[([\w.-]+)\] - Abort\()", 1, 0, 0, false, false, 2},
    // More than a million stands for a process that is not known.
    {Reporter::kMpirun, "Local abort before MPI_INIT completed",
     R"(^\[([\w.-]+):(\d+)\] Local abort before MPI_INIT completed)", 0, 2, 0, false, false, 1},
    {Reporter::kMpirun, "*** reported by process [",
     R"((?:^\[([\w.-]+):(\d+)\] |^)\*\*\* reported by process \[\d+,(\d{1,6})\])", 3, 2, 0, false, false, 1},
    // Its node, and that it left improperly, stand in the next line.
    {Reporter::kMpirun, "has exited due to process rank ",
     R"(\bhas exited due to process rank (\d+) with PID (\d+) on\s*$)", 1, 2, 0},
    {Reporter::kTorchelastic, "torchelastic.worker.status.FAILED",
     R"re("torchelastic\.worker\.status\.FAILED".*"global_rank": (\d+).*"worker_id": "(\d+)".*"hostname": "([^"]+)")re",
     1, 2, 0, false, false, 3},
    {Reporter::kVllm, " died unexpectedly, shutting down executor",
     R"(\bWorker proc VllmWorker-(?:TP)?(\d+) died unexpectedly, shutting down executor)", 1, 0, 0},
    {Reporter::kVllm, "Engine core proc EngineCore",
     R"(\bEngine core proc EngineCore(?:_DP(\d+))?\S* died unexpectedly)", 1, 0, 0},
    {Reporter::kVllm, "WorkerProc failed to start.", R"(\] WorkerProc failed to start\.$)", 0, 0, 0, false, false, 0,
     false, true},
    {Reporter::kPsid, "Child with rank ", R"(Child with rank (\d+) exited on signal (\d+))", 1, 0, 2, false, true},
    {Reporter::kPsid, "Child with rank ", R"(Child with rank (\d+) exited with status (\d+))", 1, 0, 2},
    {Reporter::kMpiexec, "mpiexec: Warning: task ", R"(^mpiexec: Warning: task (\d+) died with signal (\d+))", 1, 0, 2,
     false, true},
    {Reporter::kMpiexec, "mpiexec: Warning: task ", R"(^mpiexec: Warning: task (\d+) exited with status (\d+))", 1, 0,
     2},
    {Reporter::kJsrun, "One or more process",
     R"(One or more process(?: \(first noticed rank (\d+)\))? terminated with signal (\d+))", 1, 0, 2, false, true},
};

std::optional<Event> ReadSentence(const Record& record) {
  static const std::vector<Pattern> kForms = [] {
    std::vector<Pattern> forms;
    for (const Sentence& sentence : kSentences) forms.emplace_back(sentence.form);
    return forms;
  }();
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    const Sentence& sentence = kSentences[i];
    if (!Contains(record.text, sentence.mark)) continue;
    const auto match = kForms[i].Search(record.text);
    if (!match) continue;
    ProcessExit exit = ExitBySignal({}, sentence.reporter);
    if (sentence.how != 0) {
      const auto code = match->number(sentence.how);
      const auto signal = sentence.signal ? SignalNumber(match->text(sentence.how)) : std::nullopt;
      if (sentence.signal ? !signal : !code) return std::nullopt;
      exit = sentence.signal     ? ExitBySignal(signal, sentence.reporter)
             : sentence.argument ? ExitWithArgument(*code, sentence.reporter)
                                 : ExitWithCode(*code, sentence.reporter);
    }
    exit.first_observed = sentence.first;
    if (sentence.pid != 0) exit.pid = PidOf(*match, sentence.pid);
    if (sentence.host != 0 && match->has(sentence.host))
      exit.host = std::string(sentence.host_head).append(match->text(sentence.host));
    if (!exit.host && sentence.host != 0 && record.origin.host) exit.host = record.origin.host->value;
    if (!exit.pid && sentence.pid != 0) exit.pid = record.origin.pid;
    if (sentence.own && record.origin.rank) exit.rank = record.origin.rank->value;
    if (sentence.rank != 0 && sentence.local)
      exit.local_rank = RankOf<LocalRank>(*match, sentence.rank);
    else if (sentence.rank != 0)
      exit.rank = RankOf<GlobalRank>(*match, sentence.rank);
    return EventFrom(record, std::move(exit));
  }
  return std::nullopt;
}

// Lines of a launcher's that say nothing about one process.
constexpr std::string_view kLaunchersOwn[] = {
    "Primary job  terminated normally",
    "BAD TERMINATION OF ONE OF YOUR APPLICATION",
    "with errorcode ",
    "Terminating remaining workers after failure",
    "processes exited with non-zero status, thus causing",
};

class LaunchersParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    if (tasks_.Consume(record)) return true;
    for (const auto consume : {&ConsumeSlurmstepd, &ConsumeSrun, &ConsumeMpirun, &ConsumeDeepSpeed}) {
      if (consume(record, out)) return true;
    }
    if (ConsumeMptBlock(record, out)) return true;
    if (auto event = ReadSentence(record)) {
      out.Add(std::move(*event));
      return true;
    }
    if (ConsumeOthers(record, out)) return true;
    if (ConsumePrteBlock(record, out) || ConsumeOpenMpiBlock(record, out) || ConsumeHydraBlock(record, out))
      return true;
    return std::any_of(std::begin(kLaunchersOwn), std::end(kLaunchersOwn),
                       [&](std::string_view words) { return Contains(record.text, words); });
  }

  bool Expects(std::string_view text) const override {
    return (signalled_ && Contains(text, "signal ")) || (of_mpt_ && Contains(text, "Process ID: "));
  }

  void Finish(EventSink& out) override {
    Flush(std::nullopt, out);
    FlushMpt(out);
    tasks_.Finish(out);
  }

 private:
  // Open MPI 5 breaks the line of 4 before the signal: "... on node node017 exited on", "signal 9 (Killed).".
  bool ConsumePrteBlock(const Record& record, EventSink& out) {
    static const Pattern kWho(R"(process rank (\d+) with PID (\d+) on node (\S+) exited on\s*$)");
    static const Pattern kHow(R"(^\s*signal (\d+)(?: \(|\.|$))");
    if (const auto who = kWho.Search(record.text)) {
      Event event = EventFrom(record, ProcessExit{});
      auto& exit = std::get<ProcessExit>(event.what);
      exit.reporter = Reporter::kMpirun;
      exit.rank = RankOf<GlobalRank>(*who, 1);
      exit.pid = PidOf(*who, 2);
      exit.host = std::string(who->text(3));
      exit.first_observed = true;
      signalled_ = std::move(event);
      return true;
    }
    if (!signalled_) return false;
    const auto how = kHow.Search(record.text);
    Flush(how ? SignalNumber(how->text(1)) : std::nullopt, out);
    return how.has_value();
  }

  void Flush(std::optional<int> signal, EventSink& out) {
    if (!signalled_) return;
    auto& exit = std::get<ProcessExit>(signalled_->what);
    const ProcessExit how = ExitBySignal(signal, Reporter::kMpirun);
    exit.signal = how.signal;
    out.Add(std::move(*signalled_));
    signalled_.reset();
  }

  // HPE's: which rank and how, then its pid and its host in a line of their own.
  bool ConsumeMptBlock(const Record& record, EventSink& out) {
    static const Pattern kWhere(R"(^(?:\d+:)?\s*Process ID: (\d+), Host: ([\w.-]+), Program: )");
    const auto where = of_mpt_ ? kWhere.Search(record.text) : std::nullopt;
    if (where) {
      auto& exit = std::get<ProcessExit>(of_mpt_->what);
      exit.pid = PidOf(*where, 1);
      exit.host = std::string(where->text(2));
    }
    FlushMpt(out);
    if (where) return true;
    if (!Contains(record.text, "MPT") || !(of_mpt_ = ReadSentence(record))) return false;
    tasks_.CountsDaemons();
    return true;
  }

  void FlushMpt(EventSink& out) {
    if (of_mpt_) out.Add(std::move(*of_mpt_));
    of_mpt_.reset();
  }

  // "The first process to do so was:", then its name and its exit code; Horovod's has the same two lines.
  bool ConsumeOpenMpiBlock(const Record& record, EventSink& out) {
    static const Pattern kName(R"(^\s*Process name: (?:\[(?:\[\d+,\d+\]|\S+@\d+),)?(\d+)\]?)");
    static const Pattern kCode(R"(\bExit code:\s+(\d+)\s*$)");
    bool ours = false;
    if (const auto name = kName.Search(record.text)) {
      block_ = {};
      block_.rank = RankOf<GlobalRank>(*name, 1);
      ours = true;
    }
    const auto code = kCode.Search(record.text);
    if (!code || !block_.rank || !code->number(1)) return ours;
    ProcessExit exit = ExitWithCode(*code->number(1), Reporter::kMpirun);
    exit.rank = std::exchange(block_, {}).rank;
    exit.first_observed = true;
    out.Add(EventFrom(record, std::move(exit)));
    return true;
  }

  // MPICH's and Intel's: who, in one line of the frame, and how in the next.
  bool ConsumeHydraBlock(const Record& record, EventSink& out) {
    static const Pattern kWho(R"(^=\s+(?:RANK (\d+) )?PID (\d+) RUNNING AT (\S+))");
    static const Pattern kHow(R"(^=\s+(?:EXIT CODE: (\d+)|KILLED BY SIGNAL: (\d+)))");
    static const Pattern kKilled(R"(TERMINATED WITH THE EXIT STRING: .{1,60} \(signal (\d+)\))");
    if (const auto who = kWho.Search(record.text)) {
      block_ = {};
      block_.rank = RankOf<GlobalRank>(*who, 1);
      block_.pid = PidOf(*who, 2);
      block_.host = std::string(who->text(3));
      return true;
    }
    // Of a signal without a core the code is its number, and only the last line of the frame says so.
    if (const auto killed = kKilled.Search(record.text)) {
      ProcessExit exit = ExitBySignal(SignalNumber(killed->text(1)), Reporter::kMpirun);
      exit.rank = hydra_.rank;
      exit.pid = hydra_.pid;
      exit.host = hydra_.host;
      if (exit.signal != 15) out.Add(EventFrom(record, std::move(exit)));  // who was told to end
      return true;
    }
    const auto how = kHow.Search(record.text);
    if (!how) return false;
    ProcessExit exit = how->number(1) ? ExitWithCode(*how->number(1), Reporter::kMpirun)
                                      : ExitBySignal(SignalNumber(how->text(2)), Reporter::kMpirun);
    hydra_ = std::exchange(block_, {});
    exit.rank = hydra_.rank;
    exit.pid = hydra_.pid;
    exit.host = hydra_.host;
    out.Add(EventFrom(record, std::move(exit)));
    return true;
  }

  SrunTasks tasks_;
  std::optional<Event> signalled_;  // without its signal, until the next line
  std::optional<Event> of_mpt_;     // without pid and host, until the next line
  ProcessExit block_;               // who, until the line that says how
  ProcessExit hydra_;               // whom the last frame of Hydra's was about
};

constexpr std::string_view kOwnMarks[] = {
    "srun: ",
    "slurmstepd: ",
    " CANCELLED AT ",
    " KILLED AT ",
    "Primary job  terminated normally",
    "MPI_ABORT was invoked on rank",
    "with errorcode ",
    " exited on signal ",
    "noticed that process rank ",
    " exiting improperly",
    "processes exited with non-zero status, thus causing",
    "Process name: ",
    "Exit code: ",
    "BAD TERMINATION OF ONE OF YOUR APPLICATION",
    " RUNNING AT ",
    "EXIT CODE: ",
    "KILLED BY SIGNAL: ",
    "WITH THE EXIT STRING: ",
    "Killing subprocess ",
    "exits with return code = ",
    " exits successfully",
    "Main process received SIG",
    "[launch.py:",
    " exit with status code ",
    "Terminating remaining workers after failure",
    "ssh exited with exit code ",
    " trainers, the trainer process with rank=",
};

/// Sentences of one mark stand together.
constexpr bool IsNewMark(std::size_t sentence) {
  return sentence == 0 || kSentences[sentence].mark != kSentences[sentence - 1].mark;
}
constexpr std::size_t kNewMarks = [] {
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::size(kSentences); ++i) count += IsNewMark(i) ? 1 : 0;
  return count;
}();
constexpr auto kLaunchersMarks = [] {
  std::array<std::string_view, std::size(kOwnMarks) + kNewMarks> marks;
  auto end = std::copy(std::begin(kOwnMarks), std::end(kOwnMarks), marks.begin());
  for (std::size_t i = 0; i < std::size(kSentences); ++i)
    if (IsNewMark(i)) *end++ = kSentences[i].mark;
  return marks;
}();

}  // namespace

extern const Format kLaunchers{.name = "launcher",
                               .framing = Framing::kLines,
                               .component = Component::kAny,
                               .marks = kLaunchersMarks,
                               .follow = 1,
                               .make = &Make<LaunchersParser>};

}  // namespace inquest
