// What nvidia-smi's outputs prove: states, loads and links of GPUs, joined to ranks; each beside its nearest
// look-alike.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace gpu_test {

using namespace std::chrono_literals;

/// SynthJob's GPUs: 0000:1b:00.0 for local rank 0, then 1f, 23, ...
std::string Bus(int local_rank) { return fmt::format("00000000:{:02X}:00.0", 0x1b + 4 * local_rank); }

/// All but `absent` wait in an all-reduce; beside their logs lies what nvidia-smi said.
Verdict Of(const std::string& smi, int absent = 5, int hosts = 1, const std::string& name = "nvidia-smi.txt") {
  SynthJob job({.ranks = 8, .hosts = hosts});
  job.Init(job.NewComm(job.AllRanks()));
  job.Wait(700s);
  for (int rank = 0; rank < 8; ++rank) {
    if (rank == absent) continue;
    job.TimeOut(rank, {});
    job.Status(rank, {});
  }
  std::vector<SynthFile> files = job.PerRank();
  files.push_back({name, smi});
  const JobFolder folder(files);
  return AnalyzePaths({folder.path()}).verdict;
}

/// A CSV over eight GPUs: `usual` behind index and bus id, but `other` for GPU `which`.
std::string Csv(const std::string& columns, const std::string& usual, const std::string& other, int which) {
  std::string out = "index, pci.bus_id, " + columns + "\n";
  for (int i = 0; i < 8; ++i) out += fmt::format("{}, {}, {}\n", i, Bus(i), i == which ? other : usual);
  return out;
}

TEST_CASE("GPU: a state that a job dies of, by its value", "[detectors]") {
  struct Row {
    const char* columns;
    const char* usual;
    const char* other;
    const char* cause;
    const char* rule;
  };
  static const Row kRows[] = {
      {"remapped_rows.failure, remapped_rows.pending", "No, No", "Yes, No", "gpu-fault", "gpu-memory-worn"},
      {"remapped_rows.failure, remapped_rows.pending", "No, No", "No, Yes", "gpu-fault", "gpu-memory-errors"},
      {"ecc.errors.uncorrected.volatile.total, memory.used [MiB]", "0, 4 MiB", "2, 4 MiB", "gpu-fault",
       "gpu-memory-errors"},
      {"retired_pages.pending, memory.used [MiB]", "No, 4 MiB", "Yes, 4 MiB", "gpu-fault", "gpu-memory-errors"},
      {"gpu_recovery_action, memory.used [MiB]", "None, 4 MiB", "Reset, 4 MiB", "gpu-fault", "gpu-needs-reset"},
      {"gpu_recovery_action, memory.used [MiB]", "None, 4 MiB", "Drain P2P, 4 MiB", "nvlink-fault", "fabric-unhealthy"},
      {"temperature.gpu, memory.used [MiB]", "40, 4 MiB", "[Unknown Error], [Unknown Error]", "gpu-fault",
       "gpu-unreadable"},
      {"clocks_event_reasons.active, temperature.gpu", "0x0000000000000004, 60", "0x0000000000000048, 95",
       "thermal-power", "gpu-slowed-by-hardware"},
      {"clocks_throttle_reasons.hw_power_brake_slowdown, temperature.gpu", "Not Active, 60", "Active, 60",
       "thermal-power", "gpu-slowed-by-hardware"},
      {"fabric.state, fabric.status", "Completed, Success", "In Progress, N/A", "fabric-manager", "fabric-incomplete"},
      {"pcie.link.width.current, pcie.link.width.max, utilization.gpu [%]", "16, 16, 100 %", "4, 16, 90 %",
       "pcie-fault", "pcie-width-reduced"},
      {"pcie.link.gen.current, pcie.link.gen.max, utilization.gpu [%]", "5, 5, 100 %", "1, 5, 90 %", "pcie-fault",
       "pcie-speed-reduced"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.columns, row.other);
    const Verdict verdict = Of(Csv(row.columns, row.usual, row.other, 5));
    CHECK(verdict.cause == row.cause);
    CHECK(verdict.rule == row.rule);
    CHECK(CulpritRanks(verdict) == std::set<int>{5});
    REQUIRE(!verdict.evidence.empty());
    CHECK(verdict.evidence[0].where.line == 7);
    // The same values on no GPU: nothing said.
    CHECK(Of(Csv(row.columns, row.usual, row.usual, 5)).cause == "rank-absent");
  }
}

TEST_CASE("GPU: what looks like a bad state and is none", "[detectors]") {
  const std::string cases[] = {
      // A link's generation falls when the GPU idles, everywhere or on the one that waits.
      Csv("pcie.link.gen.current, pcie.link.gen.max, utilization.gpu [%]", "5, 5, 100 %", "1, 5, 0 %", 5),
      Csv("pcie.link.gen.current, pcie.link.gen.max, utilization.gpu [%]", "1, 5, 0 %", "1, 5, 0 %", 5),
      // A board with eight lanes for each card.
      Csv("pcie.link.width.current, pcie.link.width.max, utilization.gpu [%]", "8, 16, 99 %", "8, 16, 99 %", 5),
      Csv("clocks_event_reasons.active, temperature.gpu", "0x0000000000000004, 60", "0x0000000000000001, 60", 5),
      Csv("power.draw, temperature.gpu", "120.00 W, 60", "[Unknown Error], 60", 5),
      Csv("fabric.state, fabric.status", "N/A, N/A", "N/A, N/A", 5),
  };
  for (const std::string& smi : cases) {
    CAPTURE(smi);
    const Verdict verdict = Of(smi);
    CHECK(verdict.cause == "rank-absent");
    for (const Finding& finding : verdict.findings) CHECK((finding.cause.empty() || finding.cause == "rank-absent"));
  }
}

TEST_CASE("GPU: one that no rank has is another job's", "[detectors]") {
  const std::string smi = Csv("remapped_rows.failure, memory.used [MiB]", "No, 4 MiB", "No, 4 MiB", 0) +
                          "8, 00000000:F1:00.0, Yes, 4 MiB\n";
  CHECK(Of(smi).cause == "rank-absent");
}

TEST_CASE("GPU: beside a job that ended well a bad state is nobody's cause", "[detectors]") {
  const std::string smi =
      Csv("remapped_rows.pending, ecc.errors.uncorrected.volatile.total, clocks_event_reasons.active, "
          "pcie.link.width.current, pcie.link.width.max",
          "No, 0, 0x0000000000000000, 16, 16", "Yes, 3, 0x0000000000000008, 8, 16", 5);
  const Verdict verdict = JudgeText(
                              "rank 0: step 100 loss 2.1\n{'train_runtime': 812.4, 'train_samples_per_second': 31.2, "
                              "'train_loss': 2.1, 'epoch': 1.0}\n" +
                              smi)
                              .verdict;
  CHECK(verdict.outcome == Outcome::kHealthy);
  for (const Finding& finding : verdict.findings) CHECK(finding.cause.empty());
}

TEST_CASE("GPU: a state without a failure seen is not called one, unless no job runs on it", "[detectors]") {
  const std::string pending = Csv("remapped_rows.pending, memory.used [MiB]", "No, 4 MiB", "Yes, 4 MiB", 5);
  CHECK(JudgeText("node1:100:200 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n" + pending).verdict.cause == "unknown");
  // Where states are all that was given, they are what is asked about.
  const Verdict alone = JudgeText(pending).verdict;
  CHECK(alone.cause == "gpu-fault");
  CHECK(alone.confidence <= 0.5);
  CHECK(JudgeText(Csv("remapped_rows.failure, memory.used [MiB]", "No, 4 MiB", "Yes, 4 MiB", 5)).verdict.cause ==
        "gpu-fault");
}

TEST_CASE("GPU: the one of a rank is not listed any more", "[detectors]") {
  std::string smi = "index, pci.bus_id, memory.used [MiB]\n", whole = smi;
  for (int i = 0; i < 8; ++i) {
    whole += fmt::format("{}, {}, 4 MiB\n", i, Bus(i));
    if (i != 5) smi += fmt::format("{}, {}, 4 MiB\n", i < 5 ? i : i - 1, Bus(i));
  }
  const Verdict verdict = Of(smi);
  CHECK(verdict.cause == "gpu-fault");
  CHECK(verdict.rule == "gpu-vanished");
  CHECK(CulpritRanks(verdict) == std::set<int>{5});
  CHECK(Of(whole).cause == "rank-absent");
  // One that was asked for alone is no list.
  CHECK(Of("index, pci.bus_id, memory.used [MiB]\n5, " + Bus(5) + ", 4 MiB\n").cause == "rank-absent");
}

TEST_CASE("GPU: links of one that the others have", "[detectors]") {
  const auto nvlink = [](int bad) {
    std::string out;
    for (int gpu = 0; gpu < 8; ++gpu) {
      out += fmt::format("GPU {}: NVIDIA H100 80GB HBM3 (UUID: GPU-0{})\n", gpu, gpu);
      for (int link = 0; link < 4; ++link)
        out +=
            fmt::format("\t Link {}: {}\n", link, bad < 0 || (gpu == bad && link > 1) ? "<inactive>" : "26.562 GB/s");
    }
    return out;
  };
  const auto topology = [](const char* usual, const char* other, int a, int b) {
    std::string out;
    for (int i = 0; i < 4; ++i) out += fmt::format("\tGPU{}", i);
    for (int i = 0; i < 4; ++i) {
      out += fmt::format("\nGPU{}", i);
      for (int j = 0; j < 4; ++j)
        out += fmt::format("\t{}", i == j                                                           ? " X "
                                   : (i == a && (b < 0 || j == b)) || (j == a && (b < 0 || i == b)) ? other
                                                                                                    : usual);
    }
    return out + "\n";
  };
  const Verdict inactive = Of(nvlink(5));
  CHECK(inactive.cause == "nvlink-fault");
  CHECK(CulpritRanks(inactive) == std::set<int>{5});
  CHECK(Of(nvlink(8)).cause == "rank-absent");  // all active
  const auto in_part = [](const char* name) {
    std::string out;
    for (int gpu = 0; gpu < 2; ++gpu)
      out += fmt::format("GPU {}: {} (UUID: GPU-0{})\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n", gpu, name, gpu);
    return out;
  };
  CHECK(Of(in_part("NVIDIA H100 80GB HBM3")).rule == "nvlink-inactive");  // a board that uses all
  CHECK(Of(in_part("NVIDIA H100 NVL")).cause == "rank-absent");           // bridged in pairs
  CHECK(Of(nvlink(-1)).cause == "rank-absent");                           // a GPU that has none
  CHECK(Of(topology("NV18", "SYS", 1, 3)).rule == "nvlink-missing-in-topology");
  CHECK(Of(topology("NV18", "NV17", 2, -1)).rule == "nvlink-missing-in-topology");
  CHECK(FindFinding(Of(topology("NV18", "NV18", 0, 0)), "nvlink-missing-in-topology") == nullptr);
  CHECK(FindFinding(Of(topology("SYS", "NV12", 0, 1)), "nvlink-missing-in-topology") == nullptr);  // one bridged pair
  CHECK(FindFinding(Of(topology("OK", "CNS", 0, 1)), "p2p-missing-in-topology") != nullptr);
  CHECK(FindFinding(Of(topology("CNS", "CNS", 0, 1)), "p2p-missing-in-topology") == nullptr);
}

TEST_CASE("GPU: a rank's process works on another GPU than the one it gave NCCL", "[detectors]") {
  SynthJob job({.ranks = 4});
  job.Init(job.NewComm(job.AllRanks()));
  job.Wait(700s);
  for (int rank = 0; rank < 4; ++rank) job.TimeOut(rank, {});
  const auto with = [&](int gpu_of_2) {
    std::string smi = "gpu_bus_id, pid, process_name, used_gpu_memory [MiB]\n";
    for (int rank = 0; rank < 4; ++rank)
      smi += fmt::format("{}, {}, python, 40{}00 MiB\n", Bus(rank == 2 ? gpu_of_2 : rank), job.Pid(rank), rank);
    return JudgeText(job.Interleaved() + smi).verdict;
  };
  const Verdict verdict = with(7);
  const Finding* stray = FindFinding(verdict, "process-on-other-gpu");
  REQUIRE(stray != nullptr);
  REQUIRE(stray->culprits.size() == 1);
  CHECK(stray->culprits[0].rank == GlobalRank{2});
  CHECK(FindFinding(with(2), "process-on-other-gpu") == nullptr);
}

TEST_CASE("GPU: drivers of two hosts, told as a hint only where something failed", "[detectors]") {
  const auto table = [](const char* driver) {
    return fmt::format(
        "| NVIDIA-SMI {0}              Driver Version: {0}      CUDA Version: 12.4     |\n"
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
        "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |\n",
        driver);
  };
  SynthJob job({.ranks = 8, .hosts = 2});
  job.Init(job.NewComm(job.AllRanks()));
  job.Wait(700s);
  for (int rank = 0; rank < 7; ++rank) job.TimeOut(rank, {});
  std::vector<SynthFile> files = job.PerRank();
  files.push_back({job.Host(0) + "-nvidia-smi.txt", table("550.54.15")});
  files.push_back({job.Host(7) + "-nvidia-smi.txt", table("535.129.03")});
  {
    const JobFolder folder(files);
    const Analysis analysis = AnalyzePaths({folder.path()});
    const Finding* drivers = FindFinding(analysis.verdict, "drivers-differ");
    REQUIRE(drivers != nullptr);
    CHECK(drivers->strength == Strength::kHint);
    CHECK(analysis.verdict.cause == "rank-absent");
  }
  files.back().text = table("550.54.15");
  const JobFolder folder(files);
  CHECK(FindFinding(AnalyzePaths({folder.path()}).verdict, "drivers-differ") == nullptr);
}

}  // namespace gpu_test
}  // namespace inquest
