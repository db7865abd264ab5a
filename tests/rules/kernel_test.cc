// Kernel logs beside a job: whose they are, when they were written, and what they say of processes, ports and servers.
#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/support/kernel_job.h"

namespace inquest {
namespace kernel_test {

namespace fs = std::filesystem;

TEST_CASE("kernel log: kills and crashes of a rank's pid", "[detectors]") {
  const SynthJob job({.ranks = 8, .hosts = 2});
  const std::int64_t pid = job.Pid(5);
  const Verdict killed =
      VerdictWith(fmt::format("[100.5] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n[100.6] Out of "
                              "memory: Killed process {} (python3) total-vm:1kB, anon-rss:1kB\n",
                              pid));
  CHECK(killed.cause == "host-oom");
  CHECK(killed.rule == "rank-killed-for-memory");
  CHECK(CulpritRanks(killed) == std::set<int>{5});
  const Verdict crashed =
      VerdictWith(fmt::format("[100.5] python3[{}]: segfault at 0 ip 00007f1c3ac69996 sp 00007f1c12fd7c30 error 4 in "
                              "libfoo.so[7f1c3ac00000+1000]\n",
                              pid));
  CHECK(crashed.cause == "native-crash");
  CHECK(CulpritRanks(crashed) == std::set<int>{5});
}

TEST_CASE("kernel log: a node below the job's only pod", "[detectors]") {
  const std::string line = "Apr 05 06:01:30 ip-10-3-0-17 kernel: " + Xid(79, Address(5), "GPU has fallen off the bus.");
  const JobFolder folder(WithKernelLog(line, "kern.log", 5, 8, 1));
  CHECK(CulpritRanks(AnalyzePaths({folder.path()}).verdict) == std::set<int>{5});
}

TEST_CASE("kernel log: the folder's name is the host", "[detectors]") {
  const JobFolder folder(
      WithKernelLog("[100.000001] " + Xid(79, Address(1), "GPU has fallen off the bus."), "dmesg.txt"));
  const fs::path host = fs::path(folder.path()) / "alder05";
  fs::create_directory(host);
  fs::rename(fs::path(folder.path()) / "dmesg.txt", host / "dmesg.txt");
  CHECK(CulpritRanks(AnalyzePaths({folder.path()}).verdict) == std::set<int>{5});
}

TEST_CASE("kernel log: a file without a host finds it by pid and address", "[detectors]") {
  const SynthJob job({.ranks = 8, .hosts = 2});
  const Verdict by_pid = VerdictWith(
      fmt::format("[100.5] NVRM: Xid (PCI:{}): 31, pid={}, name=python3, Ch 00000008, intr 00000000. MMU Fault\n",
                  Address(1), job.Pid(5)),
      "dmesg.txt");
  CHECK(CulpritRanks(by_pid) == std::set<int>{5});
  // Both hosts have the address, and nothing tells which one it is.
  const Verdict open = VerdictWith("[100.5] " + Xid(79, Address(1), "GPU has fallen off the bus."), "dmesg.txt");
  CHECK(open.cause == "gpu-fault");
}

TEST_CASE("kernel log: how a file was packed is no host", "[detectors]") {
  const std::string xid = "[100.5] " + Xid(79, Address(1), "GPU has fallen off the bus.");
  const auto hosts = [&](const std::string& name) {
    std::set<std::string> out;
    const JobFolder folder({{name, xid}});
    const Analysis analysis = AnalyzePaths({folder.path()});
    for (const Culprit& culprit : analysis.verdict.culprits) out.insert(culprit.host.value_or(""));
    for (const std::string& host : analysis.timeline.hosts) out.insert(host);
    out.erase("");
    return out;
  };
  for (const std::string ending : {"", ".bz2", ".lz4", ".gz", ".zst", ".xz", ".tar.bz2", ".sha256", ".lz4.bz2"}) {
    CAPTURE(ending);
    CHECK(hosts("dmesg" + ending).empty());
    CHECK(hosts("kern.log" + ending).empty());
    CHECK(hosts("dmesg-node07.txt" + ending) == std::set<std::string>{"node07"});
  }
}

TEST_CASE("kernel log: a host that the user gives", "[detectors]") {
  const std::string xid = "[100.5] " + Xid(79, Address(1), "GPU has fallen off the bus.");
  const JobFolder folder(WithKernelLog(xid, "dmesg.txt"));
  const SynthJob job({.ranks = 8, .hosts = 2});
  const auto given = [&](const std::string& path, const std::string& host) {
    return AnalyzePaths({folder.path()}, {.threads = 1, .hosts = {{.path = path, .host = host}}}).verdict;
  };
  CHECK(CulpritRanks(given(folder.path() + "/dmesg.txt", job.Host(5) + ".example.org")) == std::set<int>{5});
  CHECK(CulpritRanks(given(folder.path() + "/dmesg.txt", job.Host(1))) == std::set<int>{1});
  CHECK(CulpritRanks(given(folder.path(), job.Host(5))) == std::set<int>{5});
  CHECK(CulpritRanks(given(folder.path() + "/dmes", job.Host(5))).empty());
  // It beats what the kernel calls itself.
  const JobFolder named(WithKernelLog(
      "Apr 05 06:01:30 localhost kernel: " + Xid(79, Address(1), "GPU has fallen off the bus."), "kern.log"));
  CHECK(CulpritRanks(
            AnalyzePaths({named.path()}, {.threads = 1, .hosts = {{.path = "", .host = job.Host(5)}}}).verdict) ==
        std::set<int>{5});
}

TEST_CASE("kernel log: kills and crashes of programs that are not the job's", "[detectors]") {
  const SynthJob job({.ranks = 8, .hosts = 2});
  struct Row {
    const char* kernel;
    const char* cause;
  };
  static const Row kRows[] = {
      {"[100.6] Out of memory: Killed process 7 (java) total-vm:1kB, anon-rss:1kB\n", "rank-absent"},
      {"[100.6] Out of memory: Killed process 7 (pt_data_worker) total-vm:1kB, anon-rss:1kB\n", "host-oom"},
      {"[100.5] "
       "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/"
       "c,task=java,pid=7,uid=0\n",
       "host-oom"},
      {"[100.5] pt_data_worker invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n",
       "host-oom"},  // cut before the victim
      {"[100.5] pt_data_worker invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n[100.6] Out of memory: Killed "
       "process 7 (java) total-vm:1kB\n",
       "rank-absent"},
      {"[100.5] telegraf[7]: segfault at 0 ip 00007f1c3ac69996 sp 00007f1c12fd7c30 error 4 in "
       "libfoo.so[7f1c3ac00000+1000]\n",
       "rank-absent"},
      {"[100.5] Memory failure: 0x1a2b3c: Sending SIGBUS to telegraf:7 due to hardware memory corruption\n",
       "rank-absent"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.kernel);
    CHECK(VerdictWith(row.kernel).cause == row.cause);
  }
  const Verdict lost = VerdictWith(
      fmt::format("[100.5] Memory failure: 0x1a2b3c: Sending SIGBUS to python3:{} due to hardware memory corruption\n",
                  job.Pid(5)));
  CHECK(lost.cause == "native-crash");
  CHECK(lost.rule == "rank-lost-memory-page");
  CHECK(CulpritRanks(lost) == std::set<int>{5});
}

TEST_CASE("kernel log: a stuck task is judged by its stack", "[detectors]") {
  const SynthJob job({.ranks = 8, .hosts = 2});
  const auto stuck = [&](const std::string& frames) {
    return VerdictWith(fmt::format("[100.5] INFO: task python3:{} blocked for more than 122 seconds.\n", job.Pid(5)) +
                       frames);
  };
  const std::string trace = "[100.6] Call Trace:\n";
  const Verdict nfs = stuck(trace + "[100.6]  nfs_wait_bit_killable+0x15/0x80 [nfs]\n");
  CHECK(nfs.cause == "storage-stall");
  CHECK(nfs.rule == "stuck-on-storage");
  CHECK(CulpritRanks(nfs) == std::set<int>{5});
  CHECK(stuck(trace + "[100.6]  ext4_sync_file+0x1a2/0x390\n").cause == "storage-stall");
  CHECK(stuck(trace + "[100.6]  uvm_ioctl+0x13e0/0x16f0 [nvidia_uvm]\n").cause == "gpu-fault");
  CHECK(stuck(trace + "[100.6]  cgroup_attach_lock+0x2e/0x40\n").cause == "rank-absent");
  CHECK(VerdictWith("[100.1] INFO: task cache_mgr_event:620917 blocked for more than 120 seconds.\n").rule ==
        "stuck-in-gpu-driver");
  CHECK(stuck("").rule == "stuck-in-kernel");
  // What the driver's tasks wait for when a GPU is gone is no second cause.
  const Verdict gone = VerdictWith("[99.1] " + Xid(79, Address(1), "GPU has fallen off the bus.") +
                                   "[220.5] INFO: task nvidia-smi:77 blocked for more than 122 seconds.\n" + trace +
                                   "[220.6]  nv_x+0x1/0x2 [nvidia]\n");
  CHECK(gone.rule == "xid-of-hardware");
}

TEST_CASE("kernel log: a port that goes down", "[detectors]") {
  const SynthJob job({.ranks = 8, .hosts = 2});
  const auto at = [&](const char* clock, const char* text) {
    return fmt::format("Apr 05 {} {} kernel: mlx5_core 0000:c1:00.0 eth2: {}\n", clock, job.Host(5), text);
  };
  const auto with = [&](const std::string& kernel, bool complains) {
    SynthJob failed({.ranks = 8, .hosts = 2});
    failed.Init(failed.NewComm(failed.AllRanks()));
    failed.Wait(std::chrono::seconds(100));
    if (complains)
      failed.Warn(1, "transport/net_ib.cc:95",
                  "NET/IB: Got completion from peer 10.0.0.2<410> with status=12 opcode=0 len=0 vendor err 129 (Recv)");
    for (int rank = 0; rank < 8; ++rank) failed.TimeOut(rank, {});
    std::vector<SynthFile> files = failed.PerRank();
    files.push_back({"kern.log", kernel});
    const JobFolder folder(files);
    return AnalyzePaths({folder.path()}).verdict;
  };
  const Verdict flap = with(at("06:01:30", "Link down") + at("06:01:41", "Link up"), true);
  CHECK(flap.cause == "ib-fault");
  CHECK(flap.rule == "port-went-down");
  CHECK(CulpritHosts(flap) == std::set<std::string>{job.Host(5)});
  // The peer that prints the error is blamed where no port went down.
  CHECK(CulpritHosts(with(at("06:01:41", "Link up"), true)) == std::set<std::string>{job.Host(1)});
  const Verdict before = with(at("01:01:30", "Link down") + at("01:01:41", "Link up"), false);
  CHECK(FindFinding(before, "port-went-down") == nullptr);
  const Verdict boot =
      with(fmt::format("[   21.310442] {} kernel: mlx5_core 0000:c1:00.0 eth2: Link down\n", job.Host(5)), false);
  CHECK(FindFinding(boot, "port-went-down") == nullptr);
}

TEST_CASE("kernel log: a broken PCIe link counts by what is behind it", "[detectors]") {
  const auto error = [](const std::string& port, const std::string& driver, const std::string& device) {
    return fmt::format(
        "[100.1] pcieport {0}: AER: Uncorrectable (Fatal) error message received from {2}\n"
        "[100.2] {1} {2}: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer, (Receiver ID)\n[100.3] "
        "{1} {2}:    [ 5] SDES                   (First)\n",
        port, driver, device);
  };
  const Verdict gpu = VerdictWith(error("0000:1a:01.0", "nvidia", Address(1) + ".0"));
  CHECK(gpu.cause == "pcie-fault");
  CHECK(CulpritRanks(gpu) == std::set<int>{5});
  CHECK(VerdictWith(error("0000:60:01.0", "mlx5_core", "0000:61:00.0")).cause == "pcie-fault");
  CHECK(VerdictWith("[99.9] pcieport 0000:e0:01.0: DPC: containment event, status:0x1f01 source:0x0000\n" +
                    error("0000:e0:01.0", "nvme", "0000:e1:00.0"))
            .cause == "rank-absent");
  CHECK(VerdictWith(error("0000:1a:01.0", "nvidia", Address(1) + ".0") +
                    "[101.2] pcieport 0000:1a:01.0: AER: device recovery successful\n")
            .cause == "rank-absent");
  CHECK(VerdictWith("[99.9] pcieport 0000:e0:01.0: AER: Corrected error received: 0000:e1:00.0\n").cause ==
        "rank-absent");
  // The port above the GPU has an address of its own; what the driver says a moment later tells whose it is.
  const Verdict port = VerdictWith("[100.1] pcieport 0000:1a:01.0: pciehp: Slot(7): Link Down\n[101.0] " +
                                   Xid(79, Address(1), "GPU has fallen off the bus."));
  CHECK(port.rule == "pcie-link-broken");
}

TEST_CASE("kernel log: a file server that is silent for long, or for a moment", "[detectors]") {
  const std::string silent = "[100.5] nfs: server fs01 not responding, still trying\n";
  CHECK(VerdictWith(silent).rule == "file-server-silent");
  CHECK(VerdictWith(silent + "[104.5] nfs: server fs01 OK\n").cause == "rank-absent");
  CHECK(VerdictWith(silent + "[304.5] nfs: server fs01 OK\n").cause == "storage-stall");
  CHECK(VerdictWith(silent + "[104.5] nfs: server fs02 OK\n").rule == "file-server-silent");
}

TEST_CASE("kernel log: a boot is dated by copies, by both clocks, by ends, or not", "[detectors]") {
  const SynthJob job({.ranks = 8, .hosts = 2});
  const std::string host = job.Host(5);
  const std::string link = "mlx5_core 0000:c1:00.0 eth2: Link up\n";
  const std::string old = Xid(31, Address(1), "pid=990311, name=python3, Ch 00000008, intr 00000000. MMU Fault");
  const auto analyze = [&](std::vector<SynthFile> more, const std::string& dmesg) {
    std::vector<SynthFile> files = WithKernelLog(dmesg, host + "-dmesg.txt");
    for (SynthFile& file : more) files.push_back(std::move(file));
    const JobFolder folder(files);
    return AnalyzePaths({folder.path()});
  };
  const auto clock_of = [&](const Analysis& analysis) {
    for (const InputSummary& input : analysis.timeline.inputs)
      if (input.path.ends_with("-dmesg.txt")) return input.clock;
    return std::string("no such input");
  };
  const std::string dmesg = "[1000.500000] " + link + "[3000.500000] " + old;
  // Link up at 00:15: the Xid at 00:48, five hours before the job stalled. At 05:28: at 06:01, as it stalled.
  const auto journal = [&](const char* clock) {
    return SynthFile{host + "-journal.txt", fmt::format("Apr 05 {} {} kernel: {}", clock, host, link)};
  };
  const Analysis before = analyze({journal("00:15:00")}, dmesg), then = analyze({journal("05:28:00")}, dmesg);
  CHECK(before.verdict.cause == "rank-absent");
  CHECK(then.verdict.cause == "cuda-kernel-fault");
  CHECK(clock_of(then) == "lines that a log of the host prints with a date");
  // A journal of another host says nothing; the Xid is undated.
  const Analysis elsewhere =
      analyze({{"kern.txt", fmt::format("Apr 05 00:30:00 {} kernel: {}", job.Host(1), link)}}, dmesg);
  CHECK(clock_of(elsewhere).starts_with("unknown"));
  const Analysis both = analyze({{host + "-syslog", fmt::format("Apr  5 00:25:00 {} kernel: [ 1600.500000] {}", host,
                                                                "mlx5_core 0000:c1:00.1 eth3: Link up\n")}},
                                dmesg);
  CHECK(both.verdict.cause == "rank-absent");
  CHECK(clock_of(both) == "lines of the host that print both clocks");
  // A launcher's line dates the end of a rank that the OOM killer's line counts from boot; the Xid was hours before.
  SynthJob killed({.ranks = 8, .hosts = 2});
  killed.Init(killed.NewComm(killed.AllRanks()));
  killed.Wait(std::chrono::seconds(100));
  killed.ElasticReport({{.rank = 5, .code = -9}});
  std::vector<SynthFile> files = killed.PerRank();
  files.push_back({host + "-dmesg.txt",
                   "[3000.5] " + old +
                       fmt::format("[22000.0] Out of memory: Killed process {} (python3) total-vm:1kB, anon-rss:1kB\n",
                                   job.Pid(5))});
  const JobFolder folder(files);
  const Analysis ended = AnalyzePaths({folder.path()});
  CHECK(clock_of(ended) == "a process's end that another log dates");
  CHECK(CulpritRanks(ended.verdict) == std::set<int>{5});
  CHECK(ended.verdict.cause == "host-oom");
  CHECK(FindFinding(ended.verdict, "xid-of-application") == nullptr);
  // Two boots: their clocks do not agree.
  const Analysis boots = analyze(
      {{host + "-syslog", fmt::format("Apr  5 00:40:00 {0} kernel: [ 1600.5] mlx5_core 0000:c1:00.1 eth3: Link up\nApr "
                                      " 4 00:40:00 {0} kernel: [ 1700.5] mlx5_core 0000:c1:00.1 eth4: Link up\n",
                                      host)}},
      dmesg);
  CHECK(clock_of(boots).starts_with("unknown"));
}

TEST_CASE("kernel log: one failure in a file, in files, and in bundles gives one verdict", "[corpus]") {
  const fs::path corpus = fs::path(INQUEST_SOURCE_DIR) / "corpus";
  const std::string packed = (corpus / "xid79-on-one-of-sixteen-in-a-bundle" / "bundle.tar.gz").string();
  const JobFolder room({});
  for (const char* host : {"node07", "node08"}) fs::create_directory(fs::path(room.path()) / host);
  std::ofstream(fs::path(room.path()) / "node07" / "dmesg.txt")
      << "[Sat Mar 14 04:20:02 2026] mlx5_core 0000:3a:00.0 ens3: Link up\n";
  const Verdict one_file =
      AnalyzePaths({(corpus / "xid79-on-one-of-sixteen-in-one-file" / "job.log").string()}).verdict;
  CHECK(one_file.cause == "gpu-fault");
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(corpus / "xid79-on-one-of-sixteen-in-files"))
    if (entry.path().filename() != "case.json") files.push_back(entry.path().string());
  for (const fs::path file : files) {
    const std::string name = file.filename().string();
    const bool second = name.starts_with("node08") || name >= "rank08.log";
    fs::copy_file(file, fs::path(room.path()) / (second ? "node08" : "node07") /
                            (name.starts_with("node08") ? "dmesg.txt" : name));
  }
  for (const std::vector<std::string>& paths : {files, {room.path()}, {packed}}) {
    CAPTURE(paths.front());
    const Verdict verdict = AnalyzePaths(paths).verdict;
    CHECK(verdict.cause == one_file.cause);
    CHECK(verdict.rule == one_file.rule);
    CHECK(CulpritRanks(verdict) == CulpritRanks(one_file));
    CHECK(CulpritHosts(verdict) == CulpritHosts(one_file));
  }
}

}  // namespace kernel_test
}  // namespace inquest
