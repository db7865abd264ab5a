// What inputs say of a part for the record: serial numbers, versions and counters, and every line of a device.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/rows.h"

namespace inquest {

extern const Format kNvidiaQuery, kNvidiaCsv, kNvidiaSmi, kNvidiaLinks, kNvidiaProc, kNvidiaBugReport, kKernelLog;
namespace device_described_test {

/// `7: serial=1650 of 0000:5d:00.0`, an event a line.
std::string ShowRecord(const Format& format, std::string_view text) {
  std::string out;
  for (const Event& event : ParseForTheRecord(format, text)) {
    if (!out.empty()) out += "; ";
    if (const auto* detail = std::get_if<KernelDetail>(&event.what)) {
      out += fmt::format("{}: {}", event.where.line, Name(detail->subsystem));
      continue;
    }
    const auto& what = std::get<DeviceDescribed>(event.what);
    out += fmt::format("{}: {}={}", event.where.line, what.property, what.value);
    for (const std::string& part : {what.id.index ? std::to_string(*what.id.index) : "", what.id.bus_id, what.id.uuid})
      if (!part.empty()) out += " " + part;
  }
  return out;
}

struct FormRow {
  const char* name;
  const Format& format;
  const char* text;
  const char* shown;
};

TEST_CASE("what each form says of a part", "[parsers]") {
  const FormRow rows[] = {
      {"-q", kNvidiaQuery,
       "==============NVSMI LOG==============\n"
       "Driver Version                            : 550.54.15\n"
       "CUDA Version                              : 12.4\n"
       "GPU 00000000:5D:00.0\n"
       "    Product Name                          : NVIDIA H100 80GB HBM3\n"
       "    Serial Number                         : 1650522003820\n"
       "    GPU UUID                              : GPU-0f1e\n"
       "    VBIOS Version                         : 96.00.74.00.01\n"
       "    FRU Part Number                       : N/A\n"
       "    Inforom Version\n"
       "        Image Version                     : G520.0200.00.05\n"
       "    ECC Errors\n"
       "        Volatile\n"
       "            DRAM Uncorrectable            : 0\n"
       "        Aggregate\n"
       "            DRAM Uncorrectable            : 2\n"
       "    Remapped Rows\n"
       "        Uncorrectable Error               : 1\n",
       "2: driver_version=550.54.15; 3: cuda_version=12.4; "
       "5: name=NVIDIA H100 80GB HBM3 0000:5d:00.0 GPU-0f1e; 6: serial=1650522003820 0000:5d:00.0 GPU-0f1e; "
       "7: uuid=GPU-0f1e 0000:5d:00.0 GPU-0f1e; 8: vbios_version=96.00.74.00.01 0000:5d:00.0 GPU-0f1e; "
       "11: inforom.image=G520.0200.00.05 0000:5d:00.0 GPU-0f1e; "
       "14: ecc.volatile.dram_uncorrectable=0 0000:5d:00.0 GPU-0f1e; "
       "16: ecc.aggregate.dram_uncorrectable=2 0000:5d:00.0 GPU-0f1e; "
       "18: remapped_rows.uncorrectable=1 0000:5d:00.0 GPU-0f1e"},
      {"-x", kNvidiaQuery,
       "<nvidia_smi_log>\n<driver_version>550.54.15</driver_version>\n<gpu id=\"00000000:5D:00.0\">\n"
       "<serial>1650522003820</serial>\n<vbios_version>96.00.74.00.01</vbios_version>\n"
       "<inforom_version>\n<img_version>G520.0200.00.05</img_version>\n</inforom_version>\n"
       "<remapped_rows>\n<remapped_row_unc>1</remapped_row_unc>\n</remapped_rows>\n</gpu>\n",
       "2: driver_version=550.54.15; 4: serial=1650522003820 0000:5d:00.0; 5: vbios_version=96.00.74.00.01 "
       "0000:5d:00.0; 7: inforom.image=G520.0200.00.05 0000:5d:00.0; 10: remapped_rows.uncorrectable=1 0000:5d:00.0"},
      {"csv", kNvidiaCsv,
       "index, uuid, serial, pci.bus_id, vbios_version\n3, GPU-0f1e, 1650522003820, 00000000:5D:00.0, 96.00.74.00.01\n",
       "2: uuid=GPU-0f1e 3 0000:5d:00.0 GPU-0f1e; 2: serial=1650522003820 3 0000:5d:00.0 GPU-0f1e; "
       "2: pci.bus_id=00000000:5D:00.0 3 0000:5d:00.0 GPU-0f1e; 2: vbios_version=96.00.74.00.01 3 0000:5d:00.0 "
       "GPU-0f1e"},
      {"table", kNvidiaSmi,
       "| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |\n",
       "1: driver_version=590.48.01; 1: cuda_version=13.1"},
      {"-L", kNvidiaLinks, "GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-0f1e2d3c)\n",
       "1: name=NVIDIA H100 80GB HBM3 3 GPU-0f1e2d3c; 1: uuid=GPU-0f1e2d3c 3 GPU-0f1e2d3c"},
      {"/proc", kNvidiaProc,
       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"
       "Model: \t\t NVIDIA A10G\nGPU UUID: \t GPU-82523fd8\nVideo BIOS: \t 94.04.42.00.01\n"
       "Bus Location: \t 0000:00:1e.0\nGPU Firmware: \t N/A\n"
       "Model: \t\t Unknown\nGPU UUID: \t GPU-\?\?\?\?-\?\?\nVideo BIOS: \t \?\?.\?\?\nBus Location: \t 0000:01:00.0\n",
       "1: driver_version=535.129.03; 2: name=NVIDIA A10G 0000:00:1e.0 GPU-82523fd8; "
       "3: uuid=GPU-82523fd8 0000:00:1e.0 GPU-82523fd8; 4: vbios_version=94.04.42.00.01 0000:00:1e.0 GPU-82523fd8; "
       "5: pci.bus_id=0000:00:1e.0 0000:00:1e.0 GPU-82523fd8; 7: name=Unknown 0000:01:00.0; "
       "10: pci.bus_id=0000:01:00.0 0000:01:00.0"},
      {"no such file", kNvidiaProc, "Model: \t\t\n", ""},
      {"bug report", kNvidiaBugReport, "nvidia-bug-report.sh Version: 31831145\n",
       "1: nvidia-bug-report.version=31831145"},
      {"kernel", kKernelLog,
       "[    0.000000] DMI: Supermicro SYS-821GE-TNHR/X13DEG-OAD, BIOS 2.1 12/01/2025\n"
       "[    9.104311] mlx5_core 0000:3a:00.0: firmware version: 28.39.2048\n"
       "[  188.490221] NVRM: GPU at PCI:0000:5d:00: GPU-7c1d02ee\n"
       "[  188.490224] NVRM: GPU Board Serial Number: 1650522003820\n"
       "[  188.490231] NVRM: Xid (PCI:0000:5d:00): 79, GPU has fallen off the bus.\n"
       "[  190.490231] NVRM: GPU Board Serial Number: 9\n",
       "1: machine=Supermicro SYS-821GE-TNHR/X13DEG-OAD, BIOS 2.1 12/01/2025; "
       "2: hca_firmware_version=28.39.2048 0000:3a:00.0; 2: mlx5; 3: uuid=GPU-7c1d02ee 0000:5d:00.0 GPU-7c1d02ee; "
       "3: nvidia; 4: serial=1650522003820 0000:5d:00.0 GPU-7c1d02ee; 4: nvidia; 6: nvidia"},
      {"all lines of a report", kKernelLog,
       "pcieport 0000:5c:01.0: AER: Uncorrectable (Fatal) error message received from 0000:5d:00.0\n"
       "nvidia 0000:5d:00.0:   device [10de:2330] error status/mask=00000020/00000000\n"
       "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up\n"
       "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Data {0x00000030}\n"
       "NVRM: nvAssertFailedNoLog: Assertion failed: 0 @ x.c:1\n",
       "1: pcie; 2: pcie; 4: nvswitch; 5: nvidia"},
      {"what a GPU cannot say is no value", kNvidiaQuery,
       "==============NVSMI LOG==============\nGPU 00000000:5D:00.0\n    Serial Number : Unknown Error\n", ""},
      {"no report", kNvidiaQuery, "GPU UUID\nSerial Number : 12\nVBIOS Version : 3\n", ""},
  };
  for (const FormRow& row : rows) {
    CAPTURE(row.name);
    CHECK(ShowRecord(row.format, row.text) == row.shown);
  }
}

}  // namespace device_described_test
}  // namespace inquest
