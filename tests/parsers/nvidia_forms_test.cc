// nvidia-smi's -q, XML, CSV, topo, nvlink and dmon: whatever form was collected, the same events.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/collect.h"
#include "tests/support/run_job.h"

namespace inquest {

extern const Format kNvidiaQuery, kNvidiaCsv, kNvidiaLinks, kNvidiaMonitor;
namespace nvidia_forms_test {

std::string ShowId(const GpuId& id) {
  return fmt::format("{}|{}|{}", id.index ? std::to_string(*id.index) : "-", id.bus_id, id.uuid);
}

template <class T>
std::string Field(const char* name, const std::optional<T>& value) {
  return value ? fmt::format(" {}={}", name, *value) : "";
}

std::string ShowWhat(const What& what) {
  if (const auto* c = std::get_if<GpuCondition>(&what))
    return fmt::format("condition {} {}={}", ShowId(c->id), c->property, c->value);
  if (const auto* p = std::get_if<GpuProcess>(&what))
    return fmt::format("process {} {} {} [{}]{}", ShowId(p->id), p->pid, p->type, p->name, Field("mib", p->memory_mib));
  if (const auto* g = std::get_if<GpuSnapshot>(&what))
    return fmt::format("gpu {}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}", ShowId(g->id),
                       g->name.empty() ? "" : " [" + g->name + "]", Field("util", g->utilization_percent),
                       Field("p", g->pstate), Field("w", g->power_w), Field("cap", g->power_cap_w),
                       Field("c", g->temperature_c), Field("used", g->memory_used_mib), Field("gen", g->pcie_gen),
                       Field("width", g->pcie_width), Field("links", g->nvlinks_active),
                       Field("down", g->nvlinks_inactive), g->fabric_state.empty() ? "" : " fabric=" + g->fabric_state,
                       g->error ? " error" : "", g->mig ? " mig" : "", g->driver.empty() ? "" : " driver=" + g->driver,
                       g->taken ? " at " + FormatTime(*g->taken) : "");
  if (const auto* t = std::get_if<GpuTopologyRow>(&what)) {
    std::string out = fmt::format("topology {}:", t->index);
    for (const auto& [peer, cell] : t->peers) out += fmt::format(" {}={}", peer, cell);
    return out;
  }
  return std::string(KindOf(what));
}

/// Each event on a line of its own: its line, and what it says.
std::string Show(const Format& format, std::string_view text) {
  std::string out;
  for (const Event& event : ParseLines(format, text))
    out += fmt::format("{}: {}\n", event.where.line, ShowWhat(event.what));
  return out;
}

constexpr std::string_view kText = R"(
==============NVSMI LOG==============

Timestamp                                 : Sat Apr  5 06:07:08 2031
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 2
GPU 00000000:5D:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Persistence Mode                      : Disabled
    MIG Mode
        Current                           : Disabled
        Pending                           : Enabled
    GPU UUID                              : GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0
    GPU Reset Status
        Reset Required                    : Yes
        Drain and Reset Recommended       : No
    PCI
        Bus Id                            : 00000000:5D:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 5
                Device Current            : 5
            Link Width
                Max                       : 16x
                Current                   : 8x
    Performance State                     : P0
    Clocks Event Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        SW Thermal Slowdown               : N/A
    FB Memory Usage
        Total                             : 81559 MiB
        Used                              : 19818 MiB
    Utilization
        Gpu                               : 100 %
        Memory                            : 10 %
    ECC Mode
        Current                           : Enabled
        Pending                           : Enabled
    ECC Errors
        Volatile
            SRAM Uncorrectable Parity     : 0
            DRAM Uncorrectable            : 2
        Aggregate
            DRAM Uncorrectable            : 9
            SRAM Threshold Exceeded       : Yes
    Retired Pages
        Pending Page Blacklist            : N/A
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 1
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 59 C
    GPU Power Readings
        Average Power Draw                : 629.45 W
        Current Power Limit               : 700.00 W
    GPU Memory Power Readings
        Average Power Draw                : 90.00 W
    Fabric
        State                             : In Progress
        Status                            : N/A
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 41234
            Type                          : C
            Name                          : /usr/bin/python3
            Used GPU Memory               : 19800 MiB
GPU 00000000:9A:00.0
    Fabric
        State                             : Completed
        Status                            : Success
)";

TEST_CASE("nvidia-smi -q: a GPU's state, with its conditions at their lines", "[smi]") {
  CHECK(
      Show(kNvidiaQuery, kText) ==
      "71: process -|0000:5d:00.0|GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 41234 C [/usr/bin/python3] mib=19800\n"
      "17: condition -|0000:5d:00.0|GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 reset_status.reset_required=Yes\n"
      "28: condition -|0000:5d:00.0|GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 pcie.link.width.current=8 of 16\n"
      "32: condition -|0000:5d:00.0|GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 clocks_event_reasons.hw_slowdown=Active\n"
      "33: condition -|0000:5d:00.0|GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 "
      "clocks_event_reasons.hw_thermal_slowdown=Active\n"
      "48: condition -|0000:5d:00.0|GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 ecc.errors.uncorrected.volatile.total=2\n"
      "51: condition -|0000:5d:00.0|GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 "
      "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded=Yes\n"
      "57: condition -|0000:5d:00.0|GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 remapped_rows.pending=Yes\n"
      "67: condition -|0000:5d:00.0|GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 fabric.state=In Progress\n"
      "9: gpu -|0000:5d:00.0|GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 [NVIDIA H100 80GB HBM3] util=100 p=0 w=629.45 "
      "cap=700 c=59 used=19818 gen=5 width=8 fabric=In Progress driver=550.54.15 at 2031-04-05T06:07:08\n"
      "75: gpu -|0000:9a:00.0| fabric=Completed driver=550.54.15 at 2031-04-05T06:07:08\n");
}

TEST_CASE("nvidia-smi -q: older words, values that could not be read, and pieces without a head", "[smi]") {
  struct Row {
    const char* text;
    const char* shown;
  };
  const Row rows[] = {
      {"    Clocks Throttle Reasons\n        SW Power Cap                : Active\n        HW Power Brake Slowdown     "
       ": Active\n",
       "3: condition -|| clocks_event_reasons.hw_power_brake_slowdown=Active\n3: gpu -||\n"},
      {"GPU 0000:3B:00.0\n    ECC Errors\n        Volatile\n            Single Bit\n                Total              "
       " : 4\n            Double Bit\n                Total               : 1\n        Aggregate\n"
       "            Double Bit\n                Total               : 7\n",
       "7: condition -|0000:3b:00.0| ecc.errors.uncorrected.volatile.total=1\n1: gpu -|0000:3b:00.0|\n"},
      {"GPU 0000:3B:00.0\n    FB Memory Usage\n        Used                        : GPU requires reset\n    Remapped "
       "Rows                   : N/A\n",
       "3: gpu -|0000:3b:00.0| error\n"},
      {"GPU 0000:3B:00.0\n    Power Readings\n        Power Draw                  : Unknown Error\n",
       "1: gpu -|0000:3b:00.0|\n"},
      {"GPU 0000:3B:00.0\n    GPU Recovery Action               : Drain and Reset\n",
       "2: condition -|0000:3b:00.0| gpu_recovery_action=Drain and Reset\n1: gpu -|0000:3b:00.0|\n"},
      // A key of another section, and other programs' text.
      {"GPU 0000:3B:00.0\n    ECC Mode\n        Current                     : Enabled\n        Pending                 "
       "    : Yes\n",
       "1: gpu -|0000:3b:00.0|\n"},
      {"Attached GPUs : many\nepoch : 3\nPending : Yes\n", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(Show(kNvidiaQuery, row.text) == row.shown);
  }
}

TEST_CASE("nvidia-smi -x: behind error lines, in two vocabularies, hostile", "[smi]") {
  CHECK(Show(kNvidiaQuery, R"(Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<driver_version>535.54.03</driver_version>
	<gpu id="00000000:5D:00.0">
		<product_name>NVIDIA A100-SXM4-80GB</product_name>
		<mig_mode>
			<current_mig>Enabled</current_mig>
		</mig_mode>
		<uuid>GPU-1</uuid>
		<pci>
			<pci_bus_id>00000000:5D:00.0</pci_bus_id>
			<pci_gpu_link_info>
				<pcie_gen>
					<max_link_gen>4</max_link_gen>
					<current_link_gen>1</current_link_gen>
				</pcie_gen>
				<link_widths>
					<max_link_width>16x</max_link_width>
					<current_link_width>16x</current_link_width>
				</link_widths>
			</pci_gpu_link_info>
		</pci>
		<clocks_throttle_reasons>
			<clocks_throttle_reason_hw_slowdown>Active</clocks_throttle_reason_hw_slowdown>
			<clocks_event_reason_hw_thermal_slowdown>Not Active</clocks_event_reason_hw_thermal_slowdown>
		</clocks_throttle_reasons>
		<ecc_errors>
			<volatile>
				<dram_uncorrectable>3</dram_uncorrectable>
			</volatile>
			<aggregate>
				<dram_uncorrectable>8</dram_uncorrectable>
			</aggregate>
		</ecc_errors>
		<remapped_rows>
			<remapped_row_pending>No</remapped_row_pending>
			<remapped_row_failure>Yes</remapped_row_failure>
		</remapped_rows>
		<processes>
			<process_info>
				<pid>77</pid>
				<type>C</type>
				<process_name>a &amp; b &lt;&unknown;</process_name>
				<used_memory>12 MiB</used_memory>
			</process_info>
		</processes>
	</gpu>
</nvidia_smi_log>
)") == "43: process -|0000:5d:00.0|GPU-1 77 C [a & b <&unknown;] mib=12\n"
       "17: condition -|0000:5d:00.0|GPU-1 pcie.link.gen.current=1 of 4\n"
       "26: condition -|0000:5d:00.0|GPU-1 clocks_event_reasons.hw_slowdown=Active\n"
       "31: condition -|0000:5d:00.0|GPU-1 ecc.errors.uncorrected.volatile.total=3\n"
       "39: condition -|0000:5d:00.0|GPU-1 remapped_rows.failure=Yes\n"
       "6: gpu -|0000:5d:00.0|GPU-1 [NVIDIA A100-SXM4-80GB] gen=1 width=16 mig driver=535.54.03\n");
  for (const char* text : {"<!ENTITY a SYSTEM \"file:///etc/passwd\">\n", "<gpu id=\"\n", "<>\n<<<<\n",
                           "<fabric\n<fabric>\n", "<gpu id=\"x\"></gpu></gpu></gpu>\n", "<!-- nvidia_smi_log -->\n"}) {
    CAPTURE(text);
    for (const Event& event : ParseLines(kNvidiaQuery, text)) CHECK(ShowWhat(event.what) == "gpu -||");
  }
  std::string deep = "<gpu id=\"00000000:5D:00.0\">\n";
  for (int i = 0; i < 10000; ++i) deep += "<fabric>\n";
  CHECK(ParseLines(kNvidiaQuery, deep).size() == 1);
}

TEST_CASE("nvidia-smi --query: any order of columns", "[smi]") {
  struct Row {
    const char* text;
    const char* shown;
  };
  const Row rows[] = {
      {"timestamp, index, uuid, pci.bus_id, temperature.gpu, ecc.errors.uncorrected.volatile.total, "
       "remapped_rows.pending, clocks_event_reasons.active, memory.used [MiB]\n"
       "2031/04/05 06:07:08.123, 3, GPU-0f, 00000000:5D:00.0, 59, 2, Yes, 0x00000000000000C4, 19818 MiB\n",
       "2: condition 3|0000:5d:00.0|GPU-0f ecc.errors.uncorrected.volatile.total=2\n"
       "2: condition 3|0000:5d:00.0|GPU-0f remapped_rows.pending=Yes\n"
       "2: condition 3|0000:5d:00.0|GPU-0f clocks_event_reasons.hw_thermal_slowdown=0x00000000000000C4\n"
       "2: condition 3|0000:5d:00.0|GPU-0f clocks_event_reasons.hw_power_brake_slowdown=0x00000000000000C4\n"
       "2: gpu 3|0000:5d:00.0|GPU-0f c=59 used=19818 at 2031-04-05T06:07:08.123\n"},
      // nounits, Max behind Current, and what could not be read.
      {"pcie.link.width.current, pcie.link.width.max, index, utilization.gpu, power.draw\n8, 16, 0, 97, 301.20\n16, "
       "16, 1, [N/A], [Unknown Error]\n[GPU is lost], 16, 2, [GPU is lost], [GPU is lost]\n",
       "2: condition 0|| pcie.link.width.current=8 of 16\n2: gpu 0|| util=97 w=301.2 width=8\n3: gpu 1|| width=16\n4: "
       "gpu 2|| error\n"},
      {"pid, process_name, used_gpu_memory [MiB], gpu_uuid\n41234, /usr/bin/python3, 2566 MiB, GPU-7\n",
       "2: process -||GPU-7 41234 C [/usr/bin/python3] mib=2566\n"},
      {"gpu_uuid, gpu_bus_id, remapped_rows.correctable, remapped_rows.uncorrectable, remapped_rows.pending, "
       "remapped_rows.failure\nGPU-1, 00000000:1A:00.0, 0, 1, 0, 1\n",
       "2: condition -|0000:1a:00.0|GPU-1 remapped_rows.failure=1\n2: gpu -|0000:1a:00.0|GPU-1\n"},
      {"gpu_uuid, retired_pages.address, retired_pages.cause\nGPU-1, 0x000000000005c05d, Double Bit ECC\nGPU-1, [N/A], "
       "Single Bit ECC\n",
       "2: condition -||GPU-1 retired_pages.cause=Double Bit ECC\n2: gpu -||GPU-1\n3: gpu -||GPU-1\n"},
      // Logs with commas, a row that is too short, a question.
      {"index, name, loss\n1, 2, 3\n", ""},
      {"index, uuid, memory.used [MiB]\n3, GPU-1\nstep 3, lr 2, done\n", ""},
      {"$ nvidia-smi --query-gpu=index,pci.bus_id,memory.used --format=csv\n", ""},
      {"0, GPU-1, 00000000:1A:00.0\n", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(Show(kNvidiaCsv, row.text) == row.shown);
  }
}

TEST_CASE("nvidia-smi topo and nvlink", "[smi]") {
  struct Row {
    const char* text;
    const char* shown;
  };
  const Row rows[] = {
      {"\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X "
       "\tNV18\tPIX\t0-55,112-167\t0\t\tN/A\nGPU1\tNV18\t X \tSYS\t0-55\t0\t\tN/A\nNIC0\tPIX\tSYS\t X\n",
       "2: topology 0: 1=NV18\n3: topology 1: 0=NV18\n"},
      {"        GPU0    GPU1    GPU2\n GPU0   X       OK      CNS\n GPU1   OK      X       DR\n",
       "2: topology 0: 1=OK 2=CNS\n3: topology 1: 0=OK 2=DR\n"},
      {"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0a)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\nGPU 1: NVIDIA H100 "
       "80GB HBM3 (UUID: GPU-0b)\n\t Link 0: 26.562 GB/s\n",
       "3: condition 0||GPU-0a nvlink.state=Link 1 inactive\n1: gpu 0||GPU-0a [NVIDIA H100 80GB HBM3] links=1 "
       "down=1\n4: gpu 1||GPU-0b [NVIDIA H100 80GB HBM3] links=1 down=0\n"},
      {"GPU 2: Tesla V100-SXM2-32GB (UUID: GPU-0c)\n         Link 0: Replay Errors: 0\n         Link 0: Recovery "
       "Errors: 3\n         Links 1-5: CRC Errors: 65535\n         Links 1-5: No errors\n",
       "3: condition 2||GPU-0c nvlink.errors=Link 0: Recovery Errors 3\n4: condition 2||GPU-0c nvlink.errors=Link 1: "
       "CRC Errors 65535\n1: gpu 2||GPU-0c [Tesla V100-SXM2-32GB]\n"},
      {"GPU0 GPU1 are used\nGPU0 done here\nLink 3: <inactive>\n", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(Show(kNvidiaLinks, row.text) == row.shown);
  }
}

TEST_CASE("nvidia-smi dmon and pmon", "[smi]") {
  struct Row {
    const char* text;
    const char* shown;
  };
  const Row rows[] = {
      {"# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk \n# Idx      W      C      "
       "C      %      %      %      %      %      %    MHz    MHz \n"
       "    0    631     63     57    100     10      0      0      0      0   2619   1980 \n    1      -      -      "
       "-      -      -      -      -      -      -      -      - \n",
       "3: gpu 0|| util=100 w=631 c=63\n4: gpu 1||\n"},
      {"#Date        Time         gpu    pwr  gtemp     sm  tviol     fb  sbecc  dbecc\n#YYYYMMDD    HH:MM:SS     Idx  "
       "    W      C      %   bool     MB   errs   errs\n"
       " 20310405    06:07:08       3    120     91     97      1   4198      0      2\n",
       "3: condition 3|| ecc.errors.uncorrected.volatile.total=dbecc\n3: condition 3|| violations.thermal=1\n3: gpu "
       "3|| util=97 w=120 c=91 used=4198\n"},
      {"# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command \n# Idx           #    C/G      "
       "%      %      %      %      %      %    name \n"
       "    0      41234     C     97     10      -      -      -      -    python         \n    1          -     -    "
       "  -      -      -      -      -      -    -              \n",
       "3: process 0|| 41234 C [python]\n"},
      {"# gpu  memory is short\n1 2 3\n", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(Show(kNvidiaMonitor, row.text) == row.shown);
  }
}

TEST_CASE("a section is read whole, wherever blocks end", "[smi]") {
  std::string text;
  for (int i = 0; i < 3600; ++i) text += fmt::format("rank 0: step {} and nothing to see\n", i * 1000000LL + 7);
  text += kText;
  const auto conditions = [&](std::size_t block_bytes) {
    std::size_t count = 0;
    for (const Event& event : JudgeText(text, {.threads = 1, .block_bytes = block_bytes}).timeline.events)
      count += std::holds_alternative<GpuCondition>(event.what) ? 1 : 0;
    return count;
  };
  CHECK(conditions(1 << 20) == 8);
  // Blocks hold kLineCap bytes at least: the edge is moved through the report instead.
  for (std::size_t back = 0; back < kText.size(); back += 97) {
    const std::string in_front(kLineCap + 1 - text.size() % 64 - back, 'x');
    std::string padded;
    for (std::size_t i = 0; i < in_front.size(); i += 64) padded += std::string(63, 'x') + "\n";
    std::size_t count = 0;
    for (const Event& event : JudgeText(padded + std::string(kText), {.threads = 1, .block_bytes = 1}).timeline.events)
      count += std::holds_alternative<GpuCondition>(event.what) ? 1 : 0;
    CAPTURE(back);
    CHECK(count == 8);
  }
}

}  // namespace nvidia_forms_test
}  // namespace inquest
