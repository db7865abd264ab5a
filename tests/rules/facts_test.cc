// What a case tells of the commands of its remedies: names on the lines that prove it, and who runs the machines.
#include <algorithm>
#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace facts_test {

/// The first command of the verdict that holds `word`; empty: none does.
std::string CommandWith(const std::string& text, std::string_view word) {
  const Verdict verdict = JudgeText(text).verdict;
  for (const Remedy& remedy : verdict.remedies)
    if (remedy.command.find(word) != std::string::npos) return remedy.command;
  return {};
}

TEST_CASE("facts: names on the lines of the cause stand in the commands", "[facts]") {
  struct Row {
    std::string text, word, command;
  };
  const std::string refused =
      "node02:640:702 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.77.1.20<44781> failed : "
      "Connection refused\n";
  const std::string taken =
      "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: "
      "29507, useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use\n";
  const Row rows[] = {
      {"OSError: [Errno 28] No space left on device: '/scratch/ckpt.pt'\n", "df -h",
       "df -h -- /scratch/ckpt.pt || df -h; df -i -- /scratch/ckpt.pt || df -i"},
      {"OSError: [Errno 28] No space left on device: '/scratch/a b/ckpt.pt'\n", "df -h",
       "df -h -- '/scratch/a b/ckpt.pt' || df -h; df -i -- '/scratch/a b/ckpt.pt' || df -i"},
      {"RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n", "ls -l",
       "ls -l -- \"${FILE:?}\"; head -c 200 -- \"${FILE:?}\" | od -c | head"},
      {refused, "nc -vz", "nc -vz -w 5 -- 10.77.1.20 44781"},
      {taken, "ss -ltnp", "ss -ltnp sport = :29507"},
      {taken, "getent", "getent hosts \"${MASTER:?}\"; nc -vz -w 5 -- \"${MASTER:?}\" 29507"},
      // Where the ranks meet may be said at the start.
      {"MASTER_ADDR=node01\nMASTER_PORT=29507\n" + taken, "getent", "getent hosts node01; nc -vz -w 5 -- node01 29507"},
      // The port of the line that proves it goes before what others say; two hosts are one too many.
      {"MASTER_ADDR=node01\nMASTER_PORT=29500\nMASTER_ADDR=node03\n" + taken, "getent",
       "getent hosts \"${MASTER:?}\"; nc -vz -w 5 -- \"${MASTER:?}\" 29507"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(CommandWith(row.text, row.word) == row.command);
  }
}

TEST_CASE("facts: the process that died, the other end of a queue pair and the store's port are on the line",
          "[facts]") {
  struct Row {
    std::string text, word, command;
  };
  const std::string queue_pair =
      "node02:211:239 [3] misc/ibvwrap.cc:315 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on "
      "dev mlx5_1:1, curr state INIT, next state RTR, local GID index 3, local GID ";
  const Row rows[] = {
      {"==41234==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60e000000280 at pc 0x55d8e01c1a37\n",
       "coredumpctl", "coredumpctl info 41234"},
      {"run.sh: line 7:  9113 Segmentation fault      (core dumped) ./solver\n", "coredumpctl",
       "coredumpctl info 9113"},
      {queue_pair + "::ffff:10.141.0.4, remote GID ::ffff:10.141.0.9\n", "--report_gbits 1",
       "ib_write_bw -d mlx5_1 --report_gbits 10.141.0.9"},
      // A GID of InfiniBand is no address that a host could be asked at.
      {queue_pair + "fe80::1, remote GID fe80::5a2d:3ff:fe01:9\n", "PEER",
       "ib_write_bw -d mlx5_1 --report_gbits \"${PEER:?}\""},
      {"[W socket.cpp:401] [c10d] The server socket has failed to bind to 0.0.0.0:29411 (errno: 98 - Address already "
       "in "
       "use).\n[E socket.cpp:435] [c10d] The server socket has failed to listen on any local network address.\n",
       "ss -ltnp", "ss -ltnp sport = :29411"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(CommandWith(row.text, row.word) == row.command);
  }
}

TEST_CASE("facts: adapter and interface of a port that went down are filled in", "[facts]") {
  const std::string job =
      "2031-04-05T12:00:09Z [rank0]: node07:211:239 [3] transport/net_ib.cc:95 NCCL WARN NET/IB: Got completion from "
      "peer 10.3.0.22<47012> with status=12 opcode=0 len=0 vendor err 129 (Recv)\n";
  const std::string kernel =
      "2031-04-05T12:00:01Z node07 kernel: [ 9001.5] mlx5_core 0000:3b:00.0 ens2f0np0: Link down\n";
  const JobFolder folder({{"job.log", job}, {"node07-kern.log", kernel}});
  const Verdict verdict = AnalyzePaths(folder.Files()).verdict;
  CAPTURE(verdict.rule);
  REQUIRE(verdict.cause == "ib-fault");
  bool any = false;
  for (const Remedy& remedy : verdict.remedies) {
    CAPTURE(remedy.command);
    for (const Remedy::Want& want : remedy.needs)  // the kernel does not say what RDMA calls the adapter
      CHECK((want.name == "HCA" && remedy.command.find("ib_write_bw") == 0));
    any = any || remedy.command.find("ens2f0np0") != std::string::npos ||
          remedy.command.find("-d 0000:3b:00.0") != std::string::npos;
  }
  CHECK(any);
}

TEST_CASE("facts: advice keeps evidence before it takes any away, and speaks of the vendor's tools", "[facts]") {
  const Verdict amd =
      JudgeText("HW Exception by GPU node-9 (Agent handle: 0x631351bb5a20) reason :GPU Hang\nAborted (core dumped)\n")
          .verdict;
  REQUIRE(amd.rule == "amd-gpu-hang");
  for (const Remedy& remedy : amd.remedies) CHECK(remedy.command.find("nvidia") == std::string::npos);
  const Verdict nvidia =
      JudgeText(
          "node07:41:41 [0] NCCL INFO comm 0x1 rank 3 nranks 8 cudaDev 0 busId 4e000 - Init COMPLETE\n"
          "RuntimeError: CUDA error: uncorrectable ECC error encountered\n")
          .verdict;
  REQUIRE(nvidia.cause == "gpu-fault");
  const auto place = [&](const char* command) {
    const auto found = std::find_if(nvidia.remedies.begin(), nvidia.remedies.end(), [&](const Remedy& remedy) {
      return remedy.command.find(command) != std::string::npos;
    });
    REQUIRE(found != nvidia.remedies.end());
    return found - nvidia.remedies.begin();
  };
  CHECK(place("nvidia-bug-report.sh") < place("gpu-reset"));
  const auto first =
      std::find_if(nvidia.remedies.begin(), nvidia.remedies.end(), [](const Remedy& r) { return r.destructive; });
  CHECK(std::none_of(first, nvidia.remedies.end(), [](const Remedy& remedy) {
    return remedy.command.find("dmesg") != std::string::npos || remedy.command.find("ipmitool") != std::string::npos;
  }));
}

TEST_CASE("facts: the memory of a job is asked of whoever ran it", "[facts]") {
  struct Row {
    std::string text, command;
  };
  const Row rows[] = {
      {"SLURM_JOB_ID=88123\nsrun: error: node17: task 3: Out Of Memory\n",
       "sacct -j 88123 -o JobID,NodeList,ReqMem,MaxRSS,MaxRSSNode,State"},
      {"LSB_JOBID=4412\nTERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\n", "bacct -l 4412"},
      {"PBS_JOBID=123.pbs01\n=>> PBS: job killed: mem 412345678kb exceeded limit 402653184kb\n", "qstat -xf 123.pbs01"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Verdict verdict = JudgeText(row.text).verdict;
    REQUIRE(verdict.cause == "host-oom");
    REQUIRE_FALSE(verdict.remedies.empty());
    CHECK(verdict.remedies.front().command == row.command);
  }
}

TEST_CASE("facts: a step is told as it is done where the job ran", "[facts]") {
  struct Row {
    std::string text, environment, command;
  };
  const std::string stopped =
      "W0127 08:14:30.220000 37 torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGTERM death "
      "signal, shutting down workers\ntorch.distributed.elastic.multiprocessing.api.SignalException: Process 37 got "
      "signal: 15\n";
  const Row rows[] = {
      {stopped, "", "sacct -j \"${JOB:?}\" --format=JobID,State,ExitCode,Start,End,Timelimit,NodeList"},
      {"SLURM_JOB_ID=88123\n" + stopped, "slurm",
       "sacct -j 88123 --format=JobID,State,ExitCode,Start,End,Timelimit,NodeList"},
      {"PBS_JOBID=123.pbs01\n" + stopped, "pbs", "qstat -xf 123.pbs01; tracejob -n 7 123.pbs01"},
      {"LSB_JOBID=123\n" + stopped, "lsf", "bhist -l 123"},
      {"KUBERNETES_SERVICE_HOST=10.96.0.1\n" + stopped, "kubernetes",
       "kubectl describe pod \"${JOB:?}\"; kubectl get events --sort-by=.lastTimestamp"},
      // A job of Slurm may run in containers of a cluster's images.
      {"KUBERNETES_SERVICE_HOST=10.96.0.1\nSLURM_JOB_ID=88123\n" + stopped, "slurm",
       "sacct -j 88123 --format=JobID,State,ExitCode,Start,End,Timelimit,NodeList"},
      {"see the pages on kubectl and kubelets\n" + stopped, "",
       "sacct -j \"${JOB:?}\" --format=JobID,State,ExitCode,Start,End,Timelimit,NodeList"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Verdict verdict = JudgeText(row.text).verdict;
    CHECK(verdict.job.environment == row.environment);
    REQUIRE(verdict.cause == "interrupted");
    CHECK(std::count_if(verdict.remedies.begin(), verdict.remedies.end(),
                        [&](const Remedy& remedy) { return remedy.command == row.command; }) == 1);
    for (const Remedy& remedy : verdict.remedies) CHECK(remedy.otherwise.empty());
  }
}

}  // namespace facts_test
}  // namespace inquest
