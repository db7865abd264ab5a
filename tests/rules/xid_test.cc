// Numbered errors of GPUs and switches in the kernel log: whose they are, when they count, and what follows what.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/kernel_job.h"

namespace inquest {
namespace xid_test {

TEST_CASE("Xid: the absent rank's GPU, by the host in the file's name", "[detectors]") {
  const Verdict verdict = VerdictWith("[100.000001] " + Xid(79, Address(1), "GPU has fallen off the bus."));
  CHECK(verdict.cause == "gpu-fault");
  CHECK(verdict.rule == "xid-of-hardware");
  CHECK(CulpritRanks(verdict) == std::set<int>{5});
  REQUIRE(verdict.culprits.size() == 1);
  CHECK(verdict.culprits[0].bus_id == Address(1) + ".0");
  CHECK(verdict.culprits[0].host.has_value());
}

TEST_CASE("Xid: a GPU that no rank has is context", "[detectors]") {
  const Verdict verdict = VerdictWith("[100.000001] " + Xid(79, "0000:f1:00", "GPU has fallen off the bus.") +
                                      "[100.000002] NVRM: GPU 0000:f1:00.0: GPU has fallen off the bus.\n");
  CHECK(verdict.cause == "rank-absent");
  REQUIRE(FindFinding(verdict, "xid-outside") != nullptr);
  CHECK(FindFinding(verdict, "xid-of-hardware") == nullptr);
}

TEST_CASE("Xid: a GPU that several ranks share is the job's, though no one rank's", "[detectors]") {
  std::string job;
  for (int rank = 0; rank < 2; ++rank)
    job += fmt::format(
        "node1:{0}:{0} [0] NCCL INFO ncclCommInitRank comm 0x55d046a8a48{1} rank {1} nranks 2 cudaDev 0 nvmlDev 0 "
        "busId 1b000 commId 0x8f3d2ab4c1e90d77 - Init COMPLETE\n",
        100 + rank, rank);
  for (int rank = 0; rank < 2; ++rank)
    job += fmt::format(
        "[rank{0}]:[E1206 18:44:12.715298746 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=100, "
        "NumelOut=100, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.\n",
        rank);
  const auto with = [&](const std::string& address) {
    const JobFolder folder(
        {{"job.log", job},
         {"dmesg.txt", "Dec  6 18:34:00 node1 kernel: " + Xid(79, address, "GPU has fallen off the bus.")}});
    return AnalyzePaths({folder.path()}).verdict;
  };
  const Verdict shared = with("0000:1b:00");
  CHECK(shared.cause == "gpu-fault");
  CHECK(CulpritRanks(shared).empty());
  CHECK(CulpritHosts(shared) == std::set<std::string>{"node1"});
  CHECK(with("0000:2b:00").cause == "unknown");
}

TEST_CASE("Xid: the class of the number decides", "[detectors]") {
  struct Row {
    int xid;
    const char* rest;
    const char* cause;
    const char* rule;
  };
  static const Row kRows[] = {
      {31, "pid='<unknown>', name=<unknown>, Ch 00000008, intr 00000000. MMU Fault", "cuda-kernel-fault",
       "xid-of-application"},
      {48, "An uncorrectable double bit error (DBE) has been detected", "gpu-fault", "xid-of-hardware"},
      {119, "Timeout after 6s of waiting for RPC response from GPU4 GSP!", "gpu-fault", "xid-of-firmware"},
      {74, "NVLink: fatal error detected on link 4(0x10000, 0x0)", "nvlink-fault", "xid-of-nvlink"},
      {45, "Ch 0000000c caused by previous Xid 95", "gpu-fault", "xid-of-hardware"},
      {45, "Ch 0000000c caused by previous Xid 149", "nvlink-fault", "xid-of-nvlink"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.xid, row.rest);
    const Verdict verdict = VerdictWith("[100.000001] " + Xid(row.xid, Address(1), row.rest));
    CHECK(verdict.cause == row.cause);
    CHECK(verdict.rule == row.rule);
    CHECK(CulpritRanks(verdict) == std::set<int>{5});
  }
}

TEST_CASE("Xid: 43, 45 and 154 are never first", "[detectors]") {
  for (const int xid : {43, 45, 154, 63}) {
    CAPTURE(xid);
    CHECK(VerdictWith("[100.000001] " + Xid(xid, Address(1), "Ch 00000008")).cause == "rank-absent");
  }
  const Verdict verdict = VerdictWith("[100.000001] " + Xid(43, Address(1), "Ch 00000008") + "[100.000002] " +
                                      Xid(31, Address(1), "Ch 00000008, intr 00000000. MMU Fault"));
  CHECK(verdict.cause == "cuda-kernel-fault");
  REQUIRE_FALSE(verdict.evidence.empty());
  CHECK(verdict.evidence[0].text.find(": 31,") != std::string::npos);
}

TEST_CASE("Xid: what the driver itself asks for is followed", "[detectors]") {
  struct Row {
    const char* asked;
    bool reset, reboot, drain;
  };
  static const Row kRows[] = {
      {"0x1 (GPU Reset Required)", true, false, true},
      {"0x2 (Node Reboot Required)", false, true, true},
      {"0x3 (Drain P2P)", true, false, true},  // and the row of Xid 48 asks for a reset
  };
  for (const Row& row : kRows) {
    CAPTURE(row.asked);
    const Verdict verdict =
        VerdictWith("[100.000001] " + Xid(48, Address(1), "An uncorrectable double bit error (DBE)") + "[100.000002] " +
                    Xid(154, Address(1), fmt::format("GPU recovery action changed from 0x0 (None) to {}", row.asked)));
    CHECK(verdict.cause == "gpu-fault");
    const auto place = [&](std::string_view command) {
      for (std::size_t i = 0; i < verdict.remedies.size(); ++i)
        if (verdict.remedies[i].command.find(command) != std::string::npos) return i + 1;
      return std::size_t{0};
    };
    CHECK((place("gpu-reset") > 0) == row.reset);
    CHECK((place("systemctl reboot") > 0) == row.reboot);
    CHECK((place("state=drain") > 0) == row.drain);
    CHECK(place("nvidia-bug-report") < place("state=drain"));
    CHECK(place("nvidia-bug-report") > 0);
  }
}

TEST_CASE("Xid: a number is told only where a line has it, outside of the job as well", "[detectors]") {
  const auto claim = [](const std::string& kernel) {
    const Verdict verdict = VerdictWith(kernel);
    const Finding* const outside = FindFinding(verdict, "xid-outside");
    return outside == nullptr ? std::string() : outside->claim;
  };
  CHECK(claim("[100.000001] " + Xid(79, "0000:f1:00", "GPU has fallen off the bus.")).starts_with("Xid 79 on "));
  CHECK(claim("[100.000002] NVRM: GPU 0000:f1:00.0: GPU has fallen off the bus.\n").find("79") == std::string::npos);
}

TEST_CASE("Xid: 43 alone in a kernel's log is a program's fault, 45 is nobody's", "[detectors]") {
  const auto alone = [](const std::string& text) {
    const JobFolder folder({{"dmesg.txt", text}});
    return AnalyzePaths({folder.path()}).verdict;
  };
  const Verdict reset = alone("[100.000001] " + Xid(43, "0000:1b:00", "pid=4711, name=trigger, channel 0x0b00000a"));
  CHECK(reset.cause == "cuda-kernel-fault");
  CHECK(reset.confidence < 0.6);
  CHECK(alone("[100.000001] " + Xid(45, "0000:1b:00", "pid=4711, name=trigger, Ch 00000010")).cause == "unknown");
}

TEST_CASE("Xid: what survivors print of their network follows the death of a peer", "[detectors]") {
  for (const int xid : {79, 31}) {
    CAPTURE(xid);
    SynthJob job({.ranks = 8, .hosts = 2});
    job.Init(job.NewComm(job.AllRanks()));
    job.Wait(std::chrono::seconds(100));
    for (const int rank : {1, 2})
      job.Warn(rank, "transport/net_ib.cc:95",
               "NET/IB: Got completion from peer 10.0.0.2<410> with status=12 opcode=0 len=0 vendor err 129 (Recv)");
    job.Warn(3, "misc/socket.cc:58", "socketProgress: Connection closed by remote peer alder05<41000>");
    std::vector<SynthFile> files = job.PerRank();
    files.push_back(
        {job.Host(5) + "-dmesg.txt",
         fmt::format("[100.5] NVRM: Xid (PCI:{}): {}, pid={}, name=python3, text\n", Address(1), xid, job.Pid(5))});
    const JobFolder folder(files);
    const Verdict verdict = AnalyzePaths({folder.path()}).verdict;
    CHECK(verdict.cause == (xid == 79 ? "gpu-fault" : "cuda-kernel-fault"));
    CHECK(CulpritRanks(verdict) == std::set<int>{5});
  }
}

TEST_CASE("Xid: switch and link errors follow a GPU that is gone", "[detectors]") {
  const std::string gone = "[100.000001] " + Xid(79, Address(1), "GPU has fallen off the bus.");
  const std::string link =
      "[112.000001] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up\n";
  CHECK(VerdictWith(gone + link + "[112.1] " + Xid(74, Address(2), "NVLink: fatal error detected on link 4(0x10000)"))
            .cause == "gpu-fault");
  const Verdict alone = VerdictWith(link);
  CHECK(alone.cause == "nvlink-fault");
  CHECK(VerdictWith("[112.000001] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 22013, Non-fatal, Link 48 Minion Link "
                    "DLREQ interrupt\n")
            .cause == "rank-absent");
}

TEST_CASE(
    "Xid: a faulty kernel that nothing dates counts less, unless the missing rank or a rank's pid stands behind it",
    "[detectors]") {
  const SynthJob job({.ranks = 8, .hosts = 2});
  const std::string fault = "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS";
  CHECK(FindFinding(VerdictWith("[100.5] " + Xid(31, Address(1), fault)), "xid-of-application")->strength ==
        Strength::kDecisive);
  CHECK(FindFinding(
            VerdictWith("[100.5] " + Xid(31, Address(2), fmt::format("pid={}, name=python3, {}", job.Pid(6), fault))),
            "xid-of-application")
            ->strength == Strength::kDecisive);
  const Verdict other = VerdictWith("[100.5] " + Xid(31, Address(2), "pid=990311, name=python3, " + fault));
  CHECK(FindFinding(other, "xid-of-application")->strength == Strength::kSupporting);
  CHECK(FindFinding(other, "xid-of-application")->claim.find("not known") != std::string::npos);
}

TEST_CASE("Xid: only the GPUs that report together are blamed", "[detectors]") {
  const std::string first = "[100.000001] " + Xid(48, Address(1), "DBE"),
                    late = "[300.000001] " + Xid(48, Address(2), "DBE"),
                    beside = "[101.000001] " + Xid(48, Address(3), "DBE");
  CHECK(CulpritRanks(VerdictWith(first + late)) == std::set<int>{5});
  CHECK(CulpritRanks(VerdictWith(first + beside)) == std::set<int>{5, 7});
}

TEST_CASE("Xid: clocks that may be zones apart leave the order open, and the verdict less sure", "[detectors]") {
  const auto at = [](const char* clock) {
    return VerdictWith(fmt::format("Apr 05 {} alder05 kernel: ", clock) + Xid(79, Address(1), "text"), "kern.log");
  };
  const Verdict same = at("06:01:30"), zone = at("04:01:30");
  CHECK(zone.cause == "gpu-fault");
  CHECK(zone.confidence < 0.9);
  CHECK(same.confidence > 0.9);
  CHECK(zone.summary.find("different zones") != std::string::npos);
}

TEST_CASE("Xid: a context switch that times out after a kernel's fault follows it, and alone is the GPU's",
          "[detectors]") {
  const std::string fault =
      "[100.5] " +
      Xid(13, Address(1), "Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): Illegal Instruction Parameter");
  const auto late = [](const char* stamp, int rank) {
    return stamp +
           Xid(109, Address(rank), "pid=4242, name=python3, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005");
  };
  CHECK(VerdictWith(fault + late("[105.5] ", 1)).cause == "cuda-kernel-fault");
  CHECK(VerdictWith(late("[95.5] ", 1) + fault).cause == "gpu-fault");
  CHECK(VerdictWith(late("[105.5] ", 1)).cause == "gpu-fault");
}

TEST_CASE("Xid: hours before and after the abort are context, with dates", "[detectors]") {
  const auto at = [](const char* clock, int xid) {
    return fmt::format("Apr 05 {} alder05 kernel: ", clock) + Xid(xid, Address(1), "text");
  };
  const Verdict in_time = VerdictWith(at("06:01:30", 79), "kern.log"),
                before = VerdictWith(at("01:11:13", 79), "kern.log"),
                after = VerdictWith(at("06:11:52", 31), "kern.log");
  CHECK(in_time.cause == "gpu-fault");
  CHECK(before.cause == "rank-absent");
  CHECK(FindFinding(before, "xid-of-hardware") == nullptr);
  CHECK(after.cause == "rank-absent");
}

}  // namespace xid_test
}  // namespace inquest
