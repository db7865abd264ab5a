// nvidia-smi's table in its three widths and two vocabularies, whole, broken and cut.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

extern const Format kNvidiaSmi;
namespace nvidia_smi_test {

template <class T>
std::string Maybe(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

std::string Show(const GpuSnapshot& gpu) {
  return fmt::format("{} [{}] {} {}% {}C {}/{}W {}/{}MiB {}{}driver={} cuda={}", Maybe(gpu.id.index), gpu.name,
                     gpu.id.bus_id, Maybe(gpu.utilization_percent), Maybe(gpu.temperature_c), Maybe(gpu.power_w),
                     Maybe(gpu.power_cap_w), Maybe(gpu.memory_used_mib), Maybe(gpu.memory_total_mib),
                     gpu.error ? "error " : "", gpu.mig ? "mig " : "", gpu.driver, gpu.cuda);
}

std::string Show(const GpuProcess& process) {
  return fmt::format("{} {} {} [{}] {}", Maybe(process.id.index), process.pid, process.type, process.name,
                     Maybe(process.memory_mib));
}

constexpr std::string_view kNarrow = R"(Sat Nov  3 21:14:05 2029       
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.60.13    Driver Version: 525.60.13    CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  On   | 00000000:1B:00.0 Off |                    0 |
| N/A   41C    P0    93W / 400W |  30011MiB / 81920MiB |     97%      Default |
|                               |                      |             Disabled |
+-------------------------------+----------------------+----------------------+
|   1  NVIDIA A100-SXM...  Off  | 00000000:1C:00.0  On |                   On |
| 30%   39C    P8    61W / 400W |      3MiB / 81920MiB |     N/A   E. Process |
|                               |                      |              Enabled |
+-------------------------------+----------------------+----------------------+
                                                                               
+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|    0   N/A  N/A      4117      C   ...envs/x y/bin/python          30008MiB |
|    0   N/A  N/A      4118    C+G   python train.py                      N/A |
|    1     2    0      4119    M+C   nvidia-cuda-mps                     3MiB |
+-----------------------------------------------------------------------------+
)";

TEST_CASE("the narrow table, with MIG and a name of two words", "[smi]") {
  const auto events = ParseLines(kNvidiaSmi, kNarrow);
  const auto gpus = Only<GpuSnapshot>(events);
  REQUIRE(gpus.size() == 2);
  CHECK(Show(gpus[0]) ==
        "0 [NVIDIA A100-SXM...] 0000:1b:00.0 97% 41C 93/400W 30011/81920MiB driver=525.60.13 cuda=12.0");
  CHECK(Show(gpus[1]) ==
        "1 [NVIDIA A100-SXM...] 0000:1c:00.0 -% 39C 61/400W 3/81920MiB mig driver=525.60.13 cuda=12.0");
  const auto processes = Only<GpuProcess>(events);
  REQUIRE(processes.size() == 3);
  CHECK(Show(processes[0]) == "0 4117 C [...envs/x y/bin/python] 30008");
  CHECK(Show(processes[1]) == "0 4118 C+G [python train.py] -");
  CHECK(Show(processes[2]) == "1 4119 M+C [nvidia-cuda-mps] 3");
  CHECK(events[0].where.line == 9);
}

TEST_CASE("wider tables, the labels of 610, and no processes", "[smi]") {
  const auto of_545 = ParseLines(kNvidiaSmi, R"(
| NVIDIA-SMI 545.29.06              Driver Version: 545.29.06    CUDA Version: 12.3     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|=========================================+======================+======================|
|   7  NVIDIA GeForce RTX 4090        Off | 00000000:C1:00.0 Off |                  Off |
| 34%   49C    P2             112W / 450W |   1164MiB / 24564MiB |    100%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
)");
  REQUIRE(of_545.size() == 1);
  CHECK(Show(std::get<GpuSnapshot>(of_545[0].what)) ==
        "7 [NVIDIA GeForce RTX 4090] 0000:c1:00.0 100% 49C 112/450W 1164/24564MiB driver=545.29.06 cuda=12.3");

  const auto of_610 = ParseText(kNvidiaSmi, R"(
| NVIDIA-SMI 610.11.01              KMD Version: 610.11.01     CUDA UMD Version: 13.3     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   3  NVIDIA H200                    On  |   00000001:4A:00.0 Off |                    0 |
| N/A   31C    P0             77W /  700W |       4MiB / 143771MiB |      0%      Default |
|                                         |                        |             Disabled |
| Processes:                                                                              |
|  No running processes found                                                             |
)");
  const auto gpus_of_610 = Only<GpuSnapshot>(of_610.events);
  REQUIRE(gpus_of_610.size() == 1);
  CHECK(Show(gpus_of_610[0]) == "3 [NVIDIA H200] 0001:4a:00.0 0% 31C 77/700W 4/143771MiB driver=610.11.01 cuda=13.3");
  CHECK(of_610.claimed.back() == 10);
}

TEST_CASE("before 450: two rows a GPU, no MIG ids", "[smi]") {
  const auto events = ParseLines(kNvidiaSmi, R"(
| NVIDIA-SMI 418.40.04    Driver Version: 418.40.04    CUDA Version: N/A      |
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
|   0  Tesla V100-SXM2...  On   | 00000000:1B:00.0 Off |                    0 |
| N/A   41C    P0    93W / 300W |  30011MiB / 32480MiB |     97%      Default |
|   1  Tesla V100-SXM2...  On   | 00000000:1C:00.0 Off |                    0 |
| N/A   42C    P0    N/A /  N/A |  30011MiB / 32480MiB |     98%      Default |
| Processes:                                                       GPU Memory |
|  GPU       PID   Type   Process name                             Usage      |
|    1      4117      C   python                                    30008MiB |
)");
  const auto gpus = Only<GpuSnapshot>(events);
  REQUIRE(gpus.size() == 2);
  CHECK(Show(gpus[1]) == "1 [Tesla V100-SXM2...] 0000:1c:00.0 98% 42C -/-W 30011/32480MiB driver=418.40.04 cuda=");
  REQUIRE(Only<GpuProcess>(events).size() == 1);
  CHECK(Show(Only<GpuProcess>(events)[0]) == "1 4117 C [python] 30008");
}

TEST_CASE("broken cells", "[smi]") {
  const std::string head = "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n";
  struct Row {
    const char* rows;
    const char* shown;
    std::uint64_t cited_line;
  };
  const Row rows[] = {
      {"|   4  ERR!                On   | 00000000:83:00.0 Off |                 ERR! |\n"
       "|ERR!  ERR! ERR!    ERR! / ERR! |      0MiB / 46068MiB |    ERR!      Default |\n"
       "|                               |                      |                 ERR! |\n",
       "4 [ERR!] 0000:83:00.0 -% -C -/-W 0/46068MiB error driver= cuda=", 2},
      {"|   4  Tesla T4            On   | 00000000:83:00.0 Off |                    0 |\n"
       "| N/A   ERR!   P0              ERR! / ERR!|  10457MiB / 15360MiB |      0%      Default |\n",
       "4 [Tesla T4] 0000:83:00.0 0% -C -/-W 10457/15360MiB error driver= cuda=", 3},
      {"|   4  Tesla T4            On   | 00000000:83:00.0 Off |                    0 |\n"
       "| N/A   40C    P0    20W /  70W |      Unknown Error   |      0%      Default |\n",
       "4 [Tesla T4] 0000:83:00.0 0% 40C 20/70W -/-MiB error driver= cuda=", 3},
      {"|   4  Tesla T4            On   | 00000000:83:00.0 Off |                    0 |\n"
       "| N/A   40C    P0    20W /  70W |      GPU is lost     |     N/A       N/A    |\n",
       "4 [Tesla T4] 0000:83:00.0 -% 40C 20/70W -/-MiB error driver= cuda=", 3},
      // A power draw that could not be read just then.
      {"|   4  NVIDIA A100         On   | 00000000:83:00.0 Off |                    0 |\n"
       "| N/A   40C    P0   ERR! / 250W |    457MiB / 40536MiB |      0%      Default |\n",
       "4 [NVIDIA A100] 0000:83:00.0 0% 40C -/250W 457/40536MiB driver= cuda=", 2},
  };
  for (const Row& row : rows) {
    CAPTURE(row.rows);
    const auto events = ParseLines(kNvidiaSmi, head + row.rows);
    REQUIRE(events.size() == 1);
    CHECK(Show(std::get<GpuSnapshot>(events[0].what)) == row.shown);
    CHECK(events[0].where.line == row.cited_line);
  }
}

TEST_CASE("tables of others, and rows without their table, are not ours", "[smi]") {
  for (const char* text :
       {"| input dataset prefix  | data/x                                             |\n| weights | 512MiB |\n",
        "|   0  NVIDIA A100-SXM...  On   | 00000000:1B:00.0 Off |                    0 |\n",
        "| N/A   41C    P0    93W / 400W |  30011MiB / 81920MiB |     97%      Default |\n",
        "|    0   N/A  N/A      4117      C   python          30008MiB |\n",
        "|  Active memory  |  14848 MiB |  15000 MiB |\n",
        "Unable to determine the device handle for GPU 0000:83:00.0: Unknown Error\n", "RuntimeError: GPU is lost\n"}) {
    CAPTURE(text);
    const auto parsed = ParseText(kNvidiaSmi, text);
    CHECK(parsed.events.empty());
    CHECK(parsed.claimed.empty());
  }
  const std::string after =
      std::string(kNarrow) +
      "| input dataset prefix  | Enabled |\n| weights | 512MiB |\n|  0  1  C  |  9MiB |\n| 0 x C y 9MiB |\n";
  CHECK(ParseLines(kNvidiaSmi, after).size() == 5);
}

TEST_CASE("rows of MIG instances make no GPU", "[smi]") {
  const auto events = ParseLines(kNvidiaSmi, R"(
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA A100-PCIE-40GB          On  |   00000000:1B:00.0 Off |                   On |
| N/A   31C    P0             34W /  250W |      26MiB /  40960MiB |     N/A      Default |
|                                         |                        |              Enabled |
| MIG devices:                                                                            |
|  0    2   0   0  |              26MiB / 20096MiB    | 42      0 |  3   0    2    0    0 |
|                  |                 0MiB / 32767MiB  |           |                       |
)");
  REQUIRE(events.size() == 1);
  CHECK(std::get<GpuSnapshot>(events[0].what).mig);
}

TEST_CASE("a table cut at any byte makes no other GPU", "[smi]") {
  for (std::size_t size = 0; size <= kNarrow.size(); ++size) {
    const std::string exact(kNarrow.substr(0, size));
    for (const Event& event : ParseLines(kNvidiaSmi, exact)) {
      if (const auto* gpu = std::get_if<GpuSnapshot>(&event.what)) CHECK(gpu->id.index <= 1);
    }
    const std::string tail(kNarrow.substr(size));
    CHECK(ParseLines(kNvidiaSmi, tail).size() <= 5);
  }
}

}  // namespace nvidia_smi_test
}  // namespace inquest
