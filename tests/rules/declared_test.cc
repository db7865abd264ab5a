// Hosts that declare different things of themselves, and their look-alikes.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace declared_test {

std::string Host(int number, const std::string& network, const std::string& version = "2.21.5") {
  const std::string head = fmt::format("node{:02}:{}:{} [0] NCCL INFO ", number, 41200 + number, 41300 + number);
  return head + "NCCL version " + version + "+cuda12.4\n" + head + network + "\n";
}

const std::string kSocket = "NET/Socket : Using [0]eth0:10.1.0.7<0>",
                  kRdma = "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.8<0>";
const std::string kFailed =
    "node01:41201:41301 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer "
    "node02<41234>\ntorch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1970, remote process "
    "exited or there was a network error\n";

TEST_CASE("declared: one host talks over sockets, the others over RDMA", "[declared]") {
  const std::string all = Host(1, kRdma) + Host(2, kSocket) + Host(3, kRdma);
  const Finding* found = nullptr;
  const Judged judged = JudgeText(all + kFailed);
  found = FindFinding(judged.verdict, "networks-differ");
  REQUIRE(found != nullptr);
  REQUIRE(found->culprits.size() == 1);
  CHECK(found->culprits[0].host == "node02");
  CHECK(judged.verdict.cause == "interface-selection");
  // They worked together for a while; all are alike; nothing failed.
  CHECK(FindFinding(JudgeText(all + "step 1 loss 1.1\nstep 2 loss 1.0\nstep 3 loss 0.9\n" + kFailed).verdict,
                    "networks-differ") == nullptr);
  CHECK(FindFinding(JudgeText(Host(1, kRdma) + Host(2, kRdma) + kFailed).verdict, "networks-differ") == nullptr);
  CHECK(FindFinding(JudgeText(all).verdict, "networks-differ") == nullptr);
}

TEST_CASE("declared: the networks that NCCL chose, by name", "[declared]") {
  const std::string plugin = "Using network AWS Libfabric", internal = "Using network Socket", ib = "Using network IB";
  const Judged judged = JudgeText(Host(1, plugin) + Host(2, plugin) + Host(3, internal) + kFailed);
  const Finding* found = FindFinding(judged.verdict, "networks-differ");
  REQUIRE(found != nullptr);
  CHECK(found->claim ==
        "NCCL talks over Socket on node03 and over AWS Libfabric on node01, node02: they cannot reach each other so.");
  REQUIRE(found->culprits.size() == 1);
  CHECK(found->culprits[0].host == "node03");
  // As many each: nobody is the odd one. What NCCL chose counts, and not what else it saw.
  const Judged even = JudgeText(Host(1, ib) + Host(2, internal) + kFailed);
  found = FindFinding(even.verdict, "networks-differ");
  REQUIRE(found != nullptr);
  CHECK(found->culprits.empty());
  CHECK(FindFinding(JudgeText(Host(1, plugin) + Host(2, kRdma) + Host(2, plugin) + kFailed).verdict,
                    "networks-differ") == nullptr);
}

TEST_CASE("declared: two versions of NCCL meet", "[declared]") {
  const Judged judged = JudgeText(Host(1, kRdma, "2.18.3") + Host(2, kRdma, "2.21.5") + kFailed);
  const Finding* found = FindFinding(judged.verdict, "nccl-versions-differ");
  REQUIRE(found != nullptr);
  CHECK(found->claim == "NCCL 2.18.3 on node01 meets NCCL 2.21.5 on node02.");
  CHECK(FindFinding(JudgeText(Host(1, kRdma) + Host(2, kRdma) + kFailed).verdict, "nccl-versions-differ") == nullptr);
}

}  // namespace declared_test
}  // namespace inquest
