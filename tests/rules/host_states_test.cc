// States of hosts against failures: each pair has the state alike, and the failure that it explains in one only.
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace host_states_test {

Verdict Judge(const std::vector<SynthFile>& files) {
  const JobFolder folder(files);
  return AnalyzePaths({folder.path()}).verdict;
}

const std::string kUses =
    "node01:100:100 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n"
    "node02:200:200 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.2<0>\n"
    "node01:100:140 [0] NCCL INFO ncclCommInitRank comm 0x5a0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 19000 commId "
    "0x11 - Init COMPLETE\n"
    "node02:200:240 [0] NCCL INFO ncclCommInitRank comm 0x5b0 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 19000 commId "
    "0x11 - Init COMPLETE\n";
const std::string kRetries =
    "\nnode01:100:150 [0] transport/net_ib.cc:2211 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4000> with "
    "status=12 opcode=0 len=0 vendor err 129 (Send) hca mlx5_1\n";
const std::string kDone =
    "{'train_runtime': 812.4, 'train_samples_per_second': 3.2, 'train_steps_per_second': 0.1, 'train_loss': 0.4, "
    "'epoch': 1.0}\n";

std::string Link(const std::string& device, const std::string& state) {
  return "link " + device + "/1 state " + state + " physical_state " + (state == "ACTIVE" ? "LINK_UP" : "DISABLED") +
         " netdev ens1\n";
}

TEST_CASE("A port that is down counts where the job uses it and its traffic failed") {
  struct Row {
    std::string log, links;
    bool blamed;
  };
  const Row rows[] = {
      {kUses + kRetries, Link("mlx5_0", "ACTIVE") + Link("mlx5_1", "DOWN"), true},
      {kUses + kRetries, Link("mlx5_0", "ACTIVE") + Link("mlx5_1", "ACTIVE") + Link("mlx5_9", "DOWN"),
       false},                                                                       // not used
      {kUses + kRetries, Link("mlx5_1", "DOWN") + Link("mlx5_1", "ACTIVE"), false},  // seen both ways
      {kUses + "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 1, in <module>\n[rank1]: "
               "ValueError: x\n",
       Link("mlx5_1", "DOWN"), false},
      {kUses + kDone, Link("mlx5_1", "DOWN"), false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.log, row.links);
    const Verdict verdict = Judge({{"job.log", row.log}, {"rdma-link-node02.txt", row.links}});
    CHECK((FindFinding(verdict, "port-down") != nullptr) == row.blamed);
    if (!row.blamed) continue;
    CHECK(verdict.rule == "port-down");
    REQUIRE(verdict.culprits.size() == 1);
    CHECK(verdict.culprits[0].host == "node02");
  }
}

TEST_CASE("A pdsh of ibstat, its hosts mixed") {
  const Verdict verdict = Judge({{"job.log", kUses + kRetries},
                                 {"ibstat.txt",
                                  "node01: CA 'mlx5_1'\nnode02: CA 'mlx5_1'\nnode02: \tPort 1:\nnode01: \tPort "
                                  "1:\nnode01: \t\tState: Active\nnode02: \t\tState: Down\n"
                                  "node02: \t\tPhysical state: Disabled\nnode01: \t\tPhysical state: LinkUp\n"}});
  CHECK(verdict.rule == "port-down");
  REQUIRE(verdict.culprits.size() == 1);
  CHECK(verdict.culprits[0].host == "node02");
}

TEST_CASE("A slow port and MTUs that differ are hints") {
  const std::string ports =
      "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n\t\tLink layer: Ethernet\nCA 'mlx5_1'\n\tPort "
      "1:\n\t\tState: Active\n\t\tRate: 100\n\t\tLink layer: Ethernet\n";
  const Verdict slow = Judge({{"job.log", kUses + kRetries}, {"ibstat-node01.txt", ports}});
  CHECK(slow.rule == "retry-exceeded");
  REQUIRE(FindFinding(slow, "port-slow") != nullptr);
  CHECK(FindFinding(slow, "port-slow")->strength == Strength::kHint);
  CHECK(FindFinding(Judge({{"job.log", kUses + kDone}, {"ibstat-node01.txt", ports}}), "port-slow") == nullptr);
}

TEST_CASE("A GID index is judged by the table of the port, if the table is there") {
  const std::string asked = "node02:200:200 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 5\n";
  const std::string table =
      "mlx5_1\t1\t0\tfe80:0000:0000:0000:a088:c2ff:fed1:1000\t\t\tv1\tens1\nmlx5_1\t1\t3\t0000:0000:0000:0000:0000:"
      "ffff:0a00:0002\t10.0.0.2  \tv2\tens1\n";
  CHECK(Judge({{"job.log", kUses + asked + kRetries}, {"show_gids-node02.txt", table}}).rule == "gid-index");
  std::string has = asked;
  has.replace(has.rfind('5'), 1, "3");
  CHECK(FindFinding(Judge({{"job.log", kUses + has + kRetries}, {"show_gids-node02.txt", table}}), "gid-index") ==
        nullptr);
  CHECK(FindFinding(Judge({{"job.log", kUses + asked + kDone}, {"show_gids-node02.txt", table}}), "gid-index") ==
        nullptr);
}

TEST_CASE("Locked memory: only where queues or registrations failed") {
  const std::string failed = "\nnode02:200:240 [0] misc/ibvwrap.cc:140 NCCL WARN Call to ibv_create_qp failed\n";
  const std::string low = "max locked memory           (kbytes, -l) 64\n",
                    high = "max locked memory           (kbytes, -l) unlimited\n";
  const Verdict verdict = Judge({{"job.log", kUses + failed}, {"ulimit-node02.txt", low}});
  CHECK(verdict.cause == "resource-limit");
  CHECK(Judge({{"job.log", kUses + failed}, {"ulimit-node02.txt", high}}).cause == "ib-fault");
  CHECK(Judge({{"job.log", kUses + failed}, {"ulimit-node01.txt", low}}).cause == "ib-fault");  // of the other host
  CHECK(FindFinding(Judge({{"job.log", kUses + kRetries}, {"ulimit-node02.txt", low}}), "memlock-too-low") == nullptr);
}

TEST_CASE("Hosts that bootstrap in networks that do not meet") {
  const auto log = [](const std::string& second) {
    return "node01:100:100 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\nnode02:200:200 [0] NCCL INFO Bootstrap : "
           "Using " +
           second +
           "<0>\n\nnode01:100:150 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 192.168.9.2<46123> "
           "failed : No route to host\n";
  };
  CHECK(FindFinding(Judge({{"job.log", log("eno2:192.168.9.2")}}), "hosts-on-different-networks") != nullptr);
  CHECK(FindFinding(Judge({{"job.log", log("eno2:10.9.0.2")}}), "hosts-on-different-networks") == nullptr);
}

TEST_CASE("Up to 2.3 the first interface of a host is the one that bootstraps") {
  const auto log = [](const std::string& interface) {
    return "node01:100:100 [0] NCCL INFO NET : Using interface " + interface +
           "\nnode02:200:200 [0] NCCL INFO NET : Using interface " + interface +
           "\n\nnode02:200:250 [0] include/socket.h:360 NCCL WARN Call to connect failed : Connection refused\n";
  };
  CHECK(Judge({{"job.log", log("lo:127.0.0.1<0>")}}).cause == "interface-selection");
  CHECK(Judge({{"job.log", log("eth0:10.0.0.1<0>")}}).cause == "peer-unreachable");
}

TEST_CASE("Ports without a log: a hint where none is up, and no verdict") {
  const auto alone = Judge({{"ibstat-node01.txt", Link("mlx5_1", "DOWN")}});
  CHECK(FindFinding(alone, "no-port-up") != nullptr);
  CHECK(alone.outcome == Outcome::kUndecided);
  CHECK(FindFinding(Judge({{"ibstat-node01.txt", Link("mlx5_1", "DOWN") + Link("mlx5_0", "ACTIVE")}}), "no-port-up") ==
        nullptr);
  CHECK(FindFinding(Judge({{"job.log", kUses + kDone}, {"ibstat-node01.txt", Link("mlx5_1", "DOWN")}}), "no-port-up") ==
        nullptr);
}

TEST_CASE("States of a healthy job are no findings") {
  const Verdict verdict =
      Judge({{"job.log", kUses + kDone},
             {"states-node01.txt",
              Link("mlx5_1", "DOWN") +
                  "max locked memory           (kbytes, -l) 64\nshm              64M     0   64M   0% /dev/shm\n"
                  "3: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN group default\n"
                  "18:00.0 PCI bridge: Broadcom / LSI PEX89144\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ "
                  "UpstreamFwd+\n"
                  "BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro intel_iommu=on\nNCCL_PROTO=LL\n"},
             {"env-node02.txt", "NCCL_PROTO=Simple\n"}});
  CHECK(verdict.cause == "healthy");
  for (const Finding& finding : verdict.findings) {
    CAPTURE(finding.rule);
    CHECK(finding.cause.empty());
  }
}

}  // namespace host_states_test
}  // namespace inquest
