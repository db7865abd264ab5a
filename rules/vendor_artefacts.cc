// What a vendor asks for, and in which order a host is looked at so that nothing of it is lost: two tables.
#include "rules/vendor_artefacts.h"

#include <array>

namespace inquest {
namespace {

using std::string_view;

constexpr std::array<string_view, 1> kBugReportFormats = {"nvidia-bug-report"};
constexpr std::array<string_view, 1> kBugReportNames = {"nvidia-bug-report"};
constexpr std::array<string_view, 1> kQueryFormats = {"nvidia-smi-q"};
constexpr std::array<string_view, 1> kKernelFormats = {"kernel-log"};
constexpr std::array<string_view, 5> kSelNames = {"ipmitool", "ipmi-sel", "sel.txt", "sel-list", "sel-elist"};
constexpr std::array<string_view, 1> kLinkFormats = {"nvidia-smi-links"};
constexpr std::array<string_view, 2> kDiagFormats = {"dcgm-diag", "dcgm-diag-json"};
constexpr std::array<string_view, 2> kDiagNames = {"dcgmi-diag", "dcgmi_diag"};
constexpr std::array<string_view, 1> kManagerFormats = {"fabric-manager"};
constexpr std::array<string_view, 1> kManagerNames = {"fabricmanager"};
constexpr std::array<string_view, 2> kCableNames = {"mlxlink", "ibdiagnet"};
constexpr std::array<string_view, 1> kPortFormats = {"rdma-ports"};

constexpr ArtefactRow kArtefacts[] = {
    {"nvidia-bug-report.log.gz",
     "the first thing that NVIDIA and the makers of machines ask for; it has to be made before a reset, a reboot or an "
     "unload of the driver",
     "nvidia-bug-report.sh", true, WantedFor::kEvery, kBugReportFormats, kBugReportNames},
    {"nvidia-smi -q",
     "serial number, part numbers, VBIOS and InfoROM of each GPU, and its counters of memory errors",
     "nvidia-smi -q",
     false,
     WantedFor::kEvery,
     kQueryFormats,
     {},
     "nvidia-smi-q.txt"},
    {"kernel log",
     "every Xid, SXid and PCI Express error with its time; the ring forgets, and a reboot ends it",
     "journalctl -k -b -o short-iso-precise --no-pager",
     true,
     WantedFor::kEvery,
     kKernelFormats,
     {},
     "dmesg.txt"},
    {"system event log of the BMC",
     "what the machine's own controller saw of power, heat and PCI Express at that time",
     "ipmitool sel elist",
     true,
     WantedFor::kEvery,
     {},
     kSelNames},
    {"nvidia-smi nvlink",
     "state and error counters of each NVLink; a reset clears the counters",
     "nvidia-smi nvlink -s; nvidia-smi nvlink -e",
     false,
     WantedFor::kEvery,
     kLinkFormats,
     {},
     "nvlink-e.txt"},
    {"dcgmi diag",
     "the diagnostic that vendors know; it loads all GPUs for many minutes, on a drained node, behind all else",
     "dcgmi diag -r 3", true, WantedFor::kEvery, kDiagFormats, kDiagNames},
    {"fabric manager log", "the NVSwitches' side of an NVLink error", "cat /var/log/fabricmanager.log", true,
     WantedFor::kSwitches, kManagerFormats, kManagerNames, "fabricmanager.log"},
    {"ibstat",
     "state of each port of the network adapters",
     "ibstat; rdma link show",
     false,
     WantedFor::kNetwork,
     kPortFormats,
     {},
     "ibstat.txt"},
    {"mlxlink",
     "the cable's and the port's own counters",
     "mlxlink -d {hca} -m -e -c",
     true,
     WantedFor::kNetwork,
     {},
     kCableNames},
};

// The order of causes.yaml's remedies for a GPU, with what a vendor wants in between: nothing that a reset or a reboot
// takes away comes behind it.
constexpr StepRow kSteps[] = {
    {.text = "Reset, reboot, unload and reseat nothing yet: that takes away what the vendor asks for.",
     .command = "",
     .step = "drain-node"},
    {"Save the kernel log off the host: the ring forgets, and a reboot ends it (of the boot before: journalctl -b -1).",
     "journalctl -k -b -o short-iso-precise --no-pager > kernel.log; dmesg -T > dmesg.txt", true},
    {"Write down what the driver knows, before any reset; if the script hangs, with --safe-mode.",
     "nvidia-bug-report.sh", true},
    {"Save identity, counters and links of the GPUs.",
     "nvidia-smi -q > nvidia-smi-q.txt; nvidia-smi nvlink -s > nvlink-s.txt; nvidia-smi nvlink -e > nvlink-e.txt",
     true},
    {"Save the log of the fabric manager.", "cp /var/log/fabricmanager.log .", true, false, false,
     WantedFor::kSwitches},
    {"Save state and counters of the network adapter, before its link is touched.",
     "ibstat > ibstat.txt; mlxlink -d {hca} -m -e -c > mlxlink.txt", true, false, false, WantedFor::kNetwork},
    {"Save the management controller's event log and the machine's part numbers.",
     "ipmitool sel elist > sel-elist.txt; ipmitool fru print > fru.txt", true},
    {"Copy all of it off the host, and note what the files were when they were made.",
     "sha256sum kernel.log dmesg.txt nvidia-bug-report.log.gz nvidia-smi-q.txt sel-elist.txt", false},
    {"Only then do what the driver asks for, or what the vendor says.", "", false, false, true},
    {"Test the drained host before it goes back (the test loads all GPUs for many minutes), and keep its result.",
     "dcgmi diag -r 3", true, false, true},
    {"Give the vendor this file and the saved ones, unchanged: the digests below are of the files as they were read.",
     "", false, false, true},
};

}  // namespace

std::span<const ArtefactRow> ArtefactTable() { return kArtefacts; }
std::span<const StepRow> StepTable() { return kSteps; }

}  // namespace inquest
