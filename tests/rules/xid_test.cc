// Numbered errors of GPUs and switches in the kernel log: whose they are, when they count, and what follows what.
#include <fmt/format.h>

#include <filesystem>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace {

using namespace std::chrono_literals;

/// SynthJob's GPUs: 0000:1b:00.0 for local rank 0, then 1f, 23, ...
std::string Address(int local_rank) { return fmt::format("0000:{:02x}:00", 0x1b + 4 * local_rank); }

std::string Xid(int number, const std::string& address, const std::string& rest = "") {
  return fmt::format("NVRM: Xid (PCI:{}): {}, {}\n", address, number, rest);
}

/// All but `absent` wait in an all-reduce; `kernel` is the log of `absent`'s host.
std::vector<SynthFile> Files(const std::string& kernel, const std::string& name = "", int absent = 5, int ranks = 8, int hosts = 2) {
  SynthJob job({.ranks = ranks, .hosts = hosts});
  job.Init(job.NewComm(job.AllRanks()));
  job.Wait(700s);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == absent) continue;
    job.TimeOut(rank, {});
    job.Status(rank, {});
  }
  std::vector<SynthFile> files = job.PerRank();
  files.push_back({name.empty() ? job.Host(absent) + "-dmesg.txt" : name, kernel});
  return files;
}

Verdict Of(const std::string& kernel, const std::string& name = "", int absent = 5) {
  const JobFolder folder(Files(kernel, name, absent));
  return AnalyzePaths({folder.path()}).verdict;
}

TEST_CASE("Xid: the absent rank's GPU, by the host in the file's name", "[detectors]") {
  const Verdict verdict = Of("[100.000001] " + Xid(79, Address(1), "GPU has fallen off the bus."));
  CHECK(verdict.cause == "gpu-fault");
  CHECK(verdict.rule == "xid-of-hardware");
  CHECK(CulpritRanks(verdict) == std::set<int>{5});
  REQUIRE(verdict.culprits.size() == 1);
  CHECK(verdict.culprits[0].bus_id == Address(1) + ".0");
  CHECK(verdict.culprits[0].host.has_value());
}

TEST_CASE("Xid: a GPU that no rank has is context", "[detectors]") {
  const Verdict verdict = Of("[100.000001] " + Xid(79, "0000:f1:00", "GPU has fallen off the bus.") + "[100.000002] NVRM: GPU 0000:f1:00.0: GPU has fallen off the bus.\n");
  CHECK(verdict.cause == "rank-absent");
  REQUIRE(FindFinding(verdict, "xid-outside") != nullptr);
  CHECK(FindFinding(verdict, "gpu-off-bus") == nullptr);
}

TEST_CASE("Xid: the class of the number decides", "[detectors]") {
  struct Row {
    int xid;
    const char* rest;
    const char* cause;
    const char* rule;
  };
  static const Row kRows[] = {
      {31, "pid='<unknown>', name=<unknown>, Ch 00000008, intr 00000000. MMU Fault", "cuda-kernel-fault", "xid-of-application"},
      {48, "An uncorrectable double bit error (DBE) has been detected", "gpu-fault", "xid-of-hardware"},
      {119, "Timeout after 6s of waiting for RPC response from GPU4 GSP!", "gpu-fault", "xid-of-firmware"},
      {74, "NVLink: fatal error detected on link 4(0x10000, 0x0)", "nvlink-fault", "xid-of-nvlink"},
      {45, "Ch 0000000c caused by previous Xid 95", "gpu-fault", "xid-of-hardware"},
      {45, "Ch 0000000c caused by previous Xid 149", "nvlink-fault", "xid-of-nvlink"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.xid, row.rest);
    const Verdict verdict = Of("[100.000001] " + Xid(row.xid, Address(1), row.rest));
    CHECK(verdict.cause == row.cause);
    CHECK(verdict.rule == row.rule);
    CHECK(CulpritRanks(verdict) == std::set<int>{5});
  }
}

TEST_CASE("Xid: 43, 45 and 154 are never first", "[detectors]") {
  for (const int xid : {43, 45, 154, 63}) {
    CAPTURE(xid);
    CHECK(Of("[100.000001] " + Xid(xid, Address(1), "Ch 00000008")).cause == "rank-absent");
  }
  const Verdict verdict = Of("[100.000001] " + Xid(43, Address(1), "Ch 00000008") + "[100.000002] " + Xid(31, Address(1), "Ch 00000008, intr 00000000. MMU Fault"));
  CHECK(verdict.cause == "cuda-kernel-fault");
  REQUIRE_FALSE(verdict.evidence.empty());
  CHECK(verdict.evidence[0].text.find(": 31,") != std::string::npos);
}

TEST_CASE("Xid: switch and link errors follow a GPU that is gone", "[detectors]") {
  const std::string gone = "[100.000001] " + Xid(79, Address(1), "GPU has fallen off the bus.");
  const std::string link = "[112.000001] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up\n";
  CHECK(Of(gone + link + "[112.1] " + Xid(74, Address(2), "NVLink: fatal error detected on link 4(0x10000)")).cause == "gpu-fault");
  const Verdict alone = Of(link);
  CHECK(alone.cause == "nvlink-fault");
  CHECK(Of("[112.000001] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 22013, Non-fatal, Link 48 Minion Link DLREQ interrupt\n").cause == "rank-absent");
}

TEST_CASE("Xid: only the GPUs that report together are blamed", "[detectors]") {
  const std::string first = "[100.000001] " + Xid(48, Address(1), "DBE"), late = "[300.000001] " + Xid(48, Address(2), "DBE"), beside = "[101.000001] " + Xid(48, Address(3), "DBE");
  CHECK(CulpritRanks(Of(first + late)) == std::set<int>{5});
  CHECK(CulpritRanks(Of(first + beside)) == std::set<int>{5, 7});
}

TEST_CASE("Xid: hours before and after the abort are context, with dates", "[detectors]") {
  // SynthJob's clock starts at 06:00:00 on 5 April and prints no year; its time-outs stand at 06:11:40.
  const auto at = [](const char* clock, int xid) { return fmt::format("Apr 05 {} alder05 kernel: ", clock) + Xid(xid, Address(1), "text"); };
  const Verdict in_time = Of(at("06:01:30", 79), "kern.log"), before = Of(at("01:11:13", 79), "kern.log"), after = Of(at("06:11:52", 31), "kern.log");
  CHECK(in_time.cause == "gpu-fault");
  CHECK(before.cause == "rank-absent");
  CHECK(FindFinding(before, "gpu-off-bus") == nullptr);
  CHECK(after.cause == "rank-absent");
}

TEST_CASE("kernel log: kills and crashes of a rank's pid", "[detectors]") {
  const SynthJob job({.ranks = 8, .hosts = 2});
  const std::int64_t pid = job.Pid(5);
  const Verdict killed = Of(fmt::format("[100.5] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n[100.6] Out of memory: Killed process {} (python3) total-vm:1kB, anon-rss:1kB\n", pid));
  CHECK(killed.cause == "host-oom");
  CHECK(killed.rule == "rank-killed-for-memory");
  CHECK(CulpritRanks(killed) == std::set<int>{5});
  const Verdict crashed = Of(fmt::format("[100.5] python3[{}]: segfault at 0 ip 00007f1c3ac69996 sp 00007f1c12fd7c30 error 4 in libfoo.so[7f1c3ac00000+1000]\n", pid));
  CHECK(crashed.cause == "native-crash");
  CHECK(CulpritRanks(crashed) == std::set<int>{5});
}

TEST_CASE("kernel log: a node below the job's only pod", "[detectors]") {
  const std::string line = "Apr 05 06:01:30 ip-10-3-0-17 kernel: " + Xid(79, Address(5), "GPU has fallen off the bus.");
  const JobFolder folder(Files(line, "kern.log", 5, 8, 1));
  CHECK(CulpritRanks(AnalyzePaths({folder.path()}).verdict) == std::set<int>{5});
}

TEST_CASE("kernel log: the folder's name is the host", "[detectors]") {
  namespace fs = std::filesystem;
  const JobFolder folder(Files("[100.000001] " + Xid(79, Address(1), "GPU has fallen off the bus."), "dmesg.txt"));
  const fs::path host = fs::path(folder.path()) / "alder05";
  fs::create_directory(host);
  fs::rename(fs::path(folder.path()) / "dmesg.txt", host / "dmesg.txt");
  CHECK(CulpritRanks(AnalyzePaths({folder.path()}).verdict) == std::set<int>{5});
}

TEST_CASE("kernel log: a file without a host finds it by pid and address", "[detectors]") {
  const SynthJob job({.ranks = 8, .hosts = 2});
  const Verdict by_pid = Of(fmt::format("[100.5] NVRM: Xid (PCI:{}): 31, pid={}, name=python3, Ch 00000008, intr 00000000. MMU Fault\n", Address(1), job.Pid(5)), "dmesg.txt");
  CHECK(CulpritRanks(by_pid) == std::set<int>{5});
  // Both hosts have the address, and nothing tells which one it is.
  const Verdict open = Of("[100.5] " + Xid(79, Address(1), "GPU has fallen off the bus."), "dmesg.txt");
  CHECK(open.cause == "gpu-fault");
}

}  // namespace
}  // namespace inquest
