// What launchers say of the processes they started.
#include "tests/catch.h"
#include "tests/support/rows.h"

namespace inquest {

extern const Format kLaunchers;
namespace {

std::string Show(const ProcessExit& what) {
  std::string out = what.reporter + ":";
  if (what.rank) out += " rank=" + std::to_string(what.rank->value);
  if (what.local_rank) out += " local=" + std::to_string(what.local_rank->value);
  if (what.host) out += " host=" + *what.host;
  if (what.task) out += " task=" + std::to_string(*what.task);
  if (what.pid) out += " pid=" + std::to_string(*what.pid);
  if (what.exit_code) out += " code=" + std::to_string(*what.exit_code);
  if (what.signal) out += " signal=" + std::to_string(*what.signal);
  return what.first_observed ? out + " first" : out;
}
std::string Show(const SignalSent& what) {
  return "send " + std::to_string(what.signal) + (what.pid ? " to " + std::to_string(*what.pid) : "");
}
std::string Show(const JobStopped& what) { return "stopped by " + what.by + ": " + what.reason; }
template <class T>
std::string Show(const T&) {
  return std::string(T::kKind);
}

std::string ShowAll(std::string_view text) {
  return ShowEvents(kLaunchers, text, [](const auto& what) { return Show(what); });
}

template <std::size_t N>
void Check(const Row (&rows)[N]) {
  CheckRows(rows, ShowAll);
}

TEST_CASE("launchers: tasks of srun", "[launchers]") {
  Check({
      {"srun: error: n17: task 3: Killed", "srun: host=n17 task=3 signal=9"},
      {"srun: error: n17: task 3: Segmentation fault (core dumped)", "srun: host=n17 task=3 signal=11"},
      {"srun: error: n17: task 3: Out Of Memory", "srun: host=n17 task=3 signal=9"},
      {"srun: error: n17: task 3: Aborted (core dumped)", "srun: host=n17 task=3 signal=6"},
      {"srun: error: n17: task 3: Exited with exit code 137", "srun: host=n17 task=3 code=137 signal=9"},
      {"srun: error: n[17-18]: tasks 0-1: Exited with exit code 1", "srun: code=1; srun: code=1"},
      {"srun: error: n17: task 3: Something else", ""},
      {"srun: error: n17: tasks 4294967295-2147483648: Terminated", ""},  // no job has so many
  });
}

TEST_CASE("launchers: Paddle names ranks, and how they ended only sometimes", "[launchers]") {
  Check({
      {"ABORT!!! Out of all 4 trainers, the trainer process with rank=[3] was aborted. Please check its log.",
       "paddle: rank=3"},
      {"ERROR 2031-04-05 06:07:08,123 launch_utils.py:545] ABORT!!! Out of all 2 trainers, the trainer process with "
       "rank=[0, 1] was aborted. Please check its log.",
       "paddle: rank=0; paddle: rank=1"},
      {"Container rank 0 status failed cmd ['/usr/bin/python3', '-u', 'train.py'] code -6 log log/default.x.0.log ",
       "paddle: rank=0 signal=6"},
      {"Container rank 0 status running cmd ['/usr/bin/python3', '-u', 'train.py'] code None log log/default.x.0.log ",
       ""},
  });
}

TEST_CASE("launchers: tasks are ranks where one host has several", "[launchers]") {
  Check({
      {"srun: error: n17: tasks 0-1,3: Terminated",
       "srun: rank=0 host=n17 signal=15; srun: rank=1 host=n17 signal=15; srun: rank=3 host=n17 signal=15"},
      {"srun: error: n17: task 2: Out Of Memory\nsrun: error: n17: task 0: Terminated",
       "srun: rank=2 host=n17 signal=9; srun: rank=0 host=n17 signal=15"},
      {"srun: error: n[17-18]: tasks 0-2: Terminated",
       "srun: rank=0 signal=15; srun: rank=1 signal=15; srun: rank=2 signal=15"},
      // One agent on each host: task 1 is not rank 1.
      {"srun: error: n17: task 0: Exited with exit code 1\nsrun: error: n18: task 1: Exited with exit code 1",
       "srun: host=n17 code=1; srun: host=n18 code=1"},
  });
}

TEST_CASE("launchers: a step ends", "[launchers]") {
  Check({
      {"slurmstepd: error: *** STEP 88123.0 ON n17 CANCELLED AT 2031-04-05T06:07:08 DUE TO TIME LIMIT ***",
       "stopped by slurm: TIME LIMIT"},
      {"slurmstepd: error: *** JOB 88123 ON n17 CANCELLED AT 2031-04-05T06:07:08 DUE TO PREEMPTION ***",
       "stopped by slurm: PREEMPTION"},
      {"slurmstepd: error: *** JOB 88123 ON n17 CANCELLED AT 2031-04-05T06:07:08 DUE TO NODE FAILURE, SEE SLURMCTLD "
       "LOG FOR DETAILS ***",
       "stopped by slurm: NODE FAILURE"},
      {"slurmstepd: error: *** STEP 88123.0 ON n17 CANCELLED AT 2031-04-05T06:07:08 DUE to SIGNAL Terminated ***",
       "stopped by slurm: SIGNAL Terminated"},
      {"Step:  45%|== | 3/7 [27:15<23:13]slurmstepd: error: *** STEP 88123.0 ON n17 CANCELLED AT 2031-04-05T06:07:08 "
       "***",
       "stopped by slurm: "},
      {"srun: error: Node failure on n18", "stopped by slurm: NODE FAILURE"},
      {"srun: sending Ctrl-C to StepId=88123.0", "stopped by keyboard: SIGINT"},
  });
  const auto events = ParseLines(
      kLaunchers, "slurmstepd: error: *** STEP 1.0 ON n17 CANCELLED AT 2031-04-05T06:07:08 DUE TO TIME LIMIT ***");
  REQUIRE(events.size() == 1);
  REQUIRE(events[0].at);
  CHECK(FormatTime(*events[0].at) == "2031-04-05T06:07:08");
  REQUIRE(events[0].origin.host);
  CHECK(events[0].origin.host->value == "n17");
}

TEST_CASE("launchers: mpirun and Hydra", "[launchers]") {
  Check({
      {"mpirun noticed that process rank 3 with PID 0 on node n17 exited on signal 11 (Segmentation fault).",
       "mpirun: rank=3 host=n17 signal=11 first"},
      {"prterun noticed that process rank 3 with PID 41 on node n17 exited on signal 9 (Killed).",
       "mpirun: rank=3 host=n17 pid=41 signal=9 first"},
      {"prterun noticed that process rank 1 with PID 41 on node n17 exited on\nsignal 6 (Aborted).",
       "mpirun: rank=1 host=n17 pid=41 signal=6 first"},
      {"prterun noticed that process rank 1 with PID 41 on node n17 exited on\nstep 12 signal 6",
       "mpirun: rank=1 host=n17 pid=41 first"},
      {"mpirun has exited due to process rank 2 with PID 41 on node n17 exiting improperly. There are three reasons",
       "mpirun: rank=2 host=n17 pid=41"},
      {"MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\nwith errorcode 1.", "mpirun: rank=3 first"},
      {"MPI_ABORT was invoked on rank 3 in communicator MPI COMMUNICATOR 4 SPLIT FROM 0\nwith errorcode 1.",
       "mpirun: first"},
      {"MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD Proc: [[4,1],3] Errorcode: 77",
       "mpirun: rank=3 code=77 first"},
      {"mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be "
       "terminated. The first process to do so was:\n\n"
       "  Process name: [[51966,1],2]\n  Exit code:    1\n",
       "mpirun: rank=2 code=1 first"},
      {"   Process name: [prterun-n17-4711@1,2] Exit code:    139", "mpirun: rank=2 code=139 signal=11 first"},
      {"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 4711 RUNNING AT n17\n=   EXIT CODE: 9\n",
       "mpirun: host=n17 pid=4711 code=9"},
      {"=   RANK 5 PID 4711 RUNNING AT n17\n=   KILLED BY SIGNAL: 9 (Killed)\n",
       "mpirun: rank=5 host=n17 pid=4711 signal=9"},
      {"Primary job  terminated normally, but 1 process returned", ""},
  });
}

TEST_CASE("launchers: DeepSpeed, Horovod, pdsh", "[launchers]") {
  Check({
      {"[2031-04-05 06:07:08,123] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 41299", "send 15 to 41299"},
      {"[2031-04-05 06:07:08,123] [ERROR] [launch.py:321:sigkill_handler] ['python', '-u', 'train.py', "
       "'--local_rank=7'] exits with return code = -9",
       "deepspeed: signal=9"},
      {"[2031-04-05 06:07:08,123] [INFO] [launch.py:351:main] Process 41299 exits successfully.",
       "deepspeed: pid=41299 code=0"},
      {"[2031-04-05 06:07:08,123] [INFO] [launch.py:319:sigkill_handler] Main process received SIGTERM, exiting",
       "stopped by agent-signal: SIGTERM"},
      {"[2031-04-05 06:07:08,123] [INFO] [launch.py:256:main] process 41299 spawned with command: ['python']", ""},
      {"Process 3 exit with status code 1.", "horovod: rank=3 code=1"},
      {"pdsh@head: n17: ssh exited with exit code 255", "pdsh: host=n17 code=255"},
  });
}

TEST_CASE("launchers: words that only look like a launcher's", "[launchers]") {
  Check({
      {"the job exited on signal strength", ""},
      {"Process name: resnet", ""},
      {"Exit code: 3", ""},
      {"the server RUNNING AT full speed", ""},
      {"rsrun: error: n17", ""},
  });
}

TEST_CASE("launchers: cut at every byte", "[launchers]") {
  const std::string text =
      "srun: error: n[17-18]: tasks 0-15: Exited with exit code 1\nslurmstepd: error: *** STEP 8.0 ON n17 CANCELLED AT "
      "2031-04-05T06:07:08 DUE TO X ***\n"
      "mpirun noticed that process rank 3 with PID 41 on node n17 exited on signal 9 (Killed).\n  Process name: "
      "[[51966,1],2]\n  Exit code:    1\n"
      "=   PID 4711 RUNNING AT n17\n=   EXIT CODE: 9\n";
  for (std::size_t size = 0; size <= text.size(); ++size) ParseLines(kLaunchers, text.substr(0, size));
}

TEST_CASE("launchers: frameworks and servers that watch their children", "[launchers]") {
  Check({
      {"[rank: 1] Child process with PID 4711 terminated with code -9. Forcefully terminating all other processes to "
       "avoid zombies",
       "lightning: local=1 pid=4711 signal=9"},
      {"[rank: 3] Child process with PID 4711 terminated with code 1. Forcefully terminating all other processes",
       "lightning: local=3 pid=4711 code=1"},
      {"ERROR:composer.cli.launcher:Rank 2 crashed with exit code -7.", "composer: rank=2 signal=7"},
      {"Global rank 3 (PID 4711) exited with code 139", "composer: rank=3 pid=4711 code=139 signal=11"},
      {"----------Begin global rank 1 STDERR----------", ""},
      {"[2031-04-05 06:07:08] Child process unexpectedly failed with exitcode=137. pid=4711",
       "sglang: pid=4711 code=137 signal=9"},
      {"[2031-04-05 06:07:08] Child process unexpectedly failed with an exit code -11. pid=4711",
       "sglang: pid=4711 signal=11"},
      {"ERROR 04-05 06:07:08 multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 4711 died, exit code: -15",
       "vllm: pid=4711 signal=15"},
      {"ERROR shard-manager: text_generation_launcher: Shard process was signaled to shutdown with signal 9 rank=1",
       "text-generation-inference: rank=1 signal=9"},
      {"ERROR: One or more process (first noticed rank 1) terminated with signal 11 (core dumped)",
       "jsrun: rank=1 signal=11"},
      {"ERROR:  One or more process terminated with signal 9", "jsrun: signal=9"},
      {"\t(1) Normal termination (return value 1)", "htcondor: code=1"},
      {"\t(0) Abnormal termination (signal 9)", "htcondor: signal=9"},
      {"x4616c3s4b0n0.grove: rank 2358 died from signal 15", "pals: rank=2358 host=x4616c3s4b0n0.grove signal=15"},
  });
}

}  // namespace
}  // namespace inquest
