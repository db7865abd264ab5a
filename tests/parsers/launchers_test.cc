// What launchers say of the processes they started.
#include "tests/catch.h"
#include "tests/support/rows.h"

namespace inquest {

extern const Format kLaunchers;
namespace launchers_test {

std::string Show(const ProcessExit& what) {
  std::string out = std::string(Name(what.reporter)) + ":";
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
std::string Show(const JobStopped& what) { return "stopped by " + std::string(Name(what.by)) + ": " + what.reason; }
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
      {"srun: error: n17: task 3: Out Of Memory", "srun: host=n17 task=3 signal=9 first"},
      {"srun: error: n17: task 3: Aborted (core dumped)", "srun: host=n17 task=3 signal=6"},
      {"srun: error: n17: task 3: Exited with exit code 137", "srun: host=n17 task=3 code=137 signal=9"},
      {"srun: error: n[17-18]: tasks 0-1: Exited with exit code 1", "srun: code=1; srun: code=1"},
      {"srun: error: n17: task 3: Something else", ""},
      {"srun: error: n17: tasks 1,3: Exited with exit code 1\nsrun: Terminating StepId=4.0\n"
       "srun: error: n17: task 0: Exited with exit code 1",
       "srun: rank=1 host=n17 code=1 first; srun: rank=3 host=n17 code=1 first; srun: rank=0 host=n17 code=1"},
      {"srun: error: n17: tasks 4294967295-2147483648: Terminated", ""},  // no job has so many
  });
}

TEST_CASE("launchers: what MPI libraries and their daemons say of a rank", "[launchers]") {
  Check({
      {"MPT ERROR: Rank 57(g:57) received signal SIGSEGV(11).\n\tProcess ID: 4711, Host: r8i1n28, Program: /apps/x",
       "mpt: rank=57 host=r8i1n28 pid=4711 signal=11"},
      {"117:MPT ERROR: Rank 117(g:117) received signal SIGBUS(7).\n117:\tProcess ID: 66993, Host: r2i0n23, Program: x",
       "mpt: rank=117 host=r2i0n23 pid=66993 signal=7"},
      {"MPT ERROR: Rank 1(g:9) is aborting with error code 3.\nMPT Version: HPE MPT 2.22", "mpt: rank=9 code=3"},
      {"MPT ERROR: MPI_COMM_WORLD rank 170 has terminated without calling MPI_Finalize()", "mpt: rank=170 first"},
      {" -1:MPT ERROR: MPI_COMM_WORLD rank 170 has terminated without calling MPI_Finalize()", "mpt: rank=170 first"},
      {"4:MPT:     header=header@entry=0x7ffe2a46a310 \"MPT ERROR: Rank 54(g:54) received signal SIGFPE(8).",
       "mpt: rank=54 signal=8"},
      {"Signal 6 received by node 5, process 4711 (thread 20002d34f8b0) - obtaining backtrace",
       "realm: rank=5 pid=4711 signal=6"},
      {"*** Caught a fatal signal: SIGSEGV(11) on node 2/4", "gasnet: rank=2 signal=11"},
      // Its tasks are daemons, one a node.
      {"srun: error: n17: task 0: Segmentation fault\nMPT ERROR: Rank 5(g:5) received signal SIGSEGV(11).",
       "mpt: rank=5 signal=11; srun: host=n17 signal=11"},
      {"[A-c7-023-14:mpi_rank_24][error_sighandler] Caught error: Segmentation fault (signal 11)",
       "mvapich: rank=24 host=A-c7-023-14 signal=11"},
      {"[n17:mpispawn_1][child_handler] MPI process (rank: 8, pid: 4711) terminated with signal 9 -> abort job",
       "mvapich: rank=8 host=n17 pid=4711 signal=9"},
      {"[n17:mpispawn_1][child_handler] MPI process (rank: 8, pid: 4711) exited with status 1",
       "mvapich: rank=8 host=n17 pid=4711 code=1"},
      {"  exit status of rank 2: killed by signal 11 ", "mpd: rank=2 signal=11 first"},
      {"            Exit status of rank 0: return code 1 ", "mpd: rank=0 code=1 first"},
      {"_pmiu_daemon(SIGCHLD): [NID 00123] [c0-0c0s1n1] [Mon Apr  5 06:07:08 2031] PE RANK 3 exit signal Segmentation "
       "fault",
       "aprun: rank=3 host=nid00123 signal=11"},
      {"Application 4221648 exit signals: Segmentation fault, Killed", "aprun: signal=11"},
      {"Application 4221648 exit codes: 134", "aprun: code=134 signal=6"},
      {"[WARN] PLE 0608 plexec One of MPI processes was aborted.(rank=7)(nid=0xff33000e)(CODE=1903,3028,256)",
       "plexec: rank=7"},
      {"PSIlogger: Child with rank 31 exited on signal 11: Segmentation fault", "psid: rank=31 signal=11"},
      {"mpiexec: Warning: task 3 died with signal 11 (Segmentation fault).", "mpiexec: rank=3 signal=11"},
      {"srun: error: n17: task 3: Aborted\nsrun: Terminating job step 7.0\nsrun: Job step aborted\n"
       "srun: error: n18: task 5: Aborted\nsrun: Terminating job step 8.0",
       "srun: host=n17 task=3 signal=6; srun: host=n18 task=5 signal=6 first"},
      {"Exception: process 3 terminated with signal SIGKILL", "spawn: local=3 signal=9"},
      {"Process 1 terminated with exit code 10, terminating remaining processes.", "spawn: local=1 code=10"},
      {"mpirun has exited due to process rank 2 with PID 0 on\nnode n17 exiting improperly. There are three reasons",
       "mpirun: rank=2"},
      {"Engine core proc EngineCore_DP1 died unexpectedly, shutting down client.", "vllm: rank=1"},
      {"Engine core proc EngineCore_0 died unexpectedly, shutting down client.", "vllm:"},
      {"MPI Application rank 3 killed before MPI_Finalize() with signal 9", "platform-mpi: rank=3 signal=9"},
      {"MPI Application rank 0 exited before MPI_Finalize() with status 1", "platform-mpi: rank=0 code=1"},
      {"ERROR: 0031-250  task 3: Killed", "poe: rank=3 signal=9"},
      {"ERROR: 0031-300  Forcing all remote tasks to exit due to exit code 1 in task 7", "poe: rank=7 code=1"},
      {"application called MPI_Abort(MPI_COMM_WORLD, 1) - process 10", "mpich: rank=10 code=1 first"},
      {"application called MPI_Abort(comm=0x84000002, 1) - process 10", ""},
      {"Abort(1014056975) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Bcast: Other MPI error, error stack:",
       "mpich: rank=3"},
      {"MPICH ERROR [Rank 11122] [job id 41595204.0] [Thu Aug 14 08:27:11 2031] [nid006700] - Abort(2695311) (rank "
       "11122 in "
       "comm 0): Fatal error in PMPI_Allreduce: Other MPI error, error stack:",
       "mpich: rank=11122 host=nid006700"},
      {"[mpi018:51000] *** reported by process [1432223745,28]", "mpirun: rank=28 host=mpi018 pid=51000"},
      {"[mpi018:51000] *** reported by process [139981018365953,21474836480]", ""},
      {"ERROR 04-05 06:07:08 [multiproc_executor.py:140] Worker proc VllmWorker-2 died unexpectedly, shutting down "
       "executor.",
       "vllm: rank=2"},
      {"rank 3 received signal SIGTERM, shutting down", ""},  // a program's own words
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
       "srun: rank=2 host=n17 signal=9 first; srun: rank=0 host=n17 signal=15"},
      {"srun: error: n[17-18]: tasks 0-2: Terminated",
       "srun: rank=0 signal=15; srun: rank=1 signal=15; srun: rank=2 signal=15"},
      // One agent on each host: task 1 is not rank 1.
      {"srun: error: n17: task 0: Exited with exit code 1\nsrun: error: n18: task 1: Exited with exit code 1",
       "srun: host=n17 task=0 code=1; srun: host=n18 task=1 code=1"},
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
       ""},
      {"ERROR shard-manager: text_generation_launcher: Shard process was signaled to shutdown with signal 9 rank=1",
       "text-generation-inference: rank=1 signal=9"},
      {"ERROR: One or more process (first noticed rank 1) terminated with signal 11 (core dumped)",
       "jsrun: rank=1 signal=11"},
      {"ERROR:  One or more process terminated with signal 9", "jsrun: signal=9"},
      {"\t(1) Normal termination (return value 1)", "htcondor: code=1"},
      {"\t(0) Abnormal termination (signal 9)", "htcondor: signal=9"},
      {"x4616c3s4b0n0.grove: rank 2358 died from signal 15", "pals: rank=2358 host=x4616c3s4b0n0.grove signal=15"},
      {"State: FAILED (exit code 2)", "slurm: code=2"},
  });
}

}  // namespace launchers_test
}  // namespace inquest
