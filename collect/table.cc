// What `inquest collect` gathers on a node: the table. Nothing here changes anything or needs more than it says.
#include "collect/table.h"

#include <array>

namespace inquest {
namespace {

using std::string_view;
using std::chrono::seconds;

// The kernel's log. Where only root may read the ring, the journal may still tell members of its group.
constexpr std::array<string_view, 3> kDmesg = {"dmesg", "--time-format", "iso"};
constexpr std::array<string_view, 1> kPlainDmesg = {"dmesg"};
constexpr std::array<string_view, 9> kJournal = {"journalctl", "--dmesg", "--boot",  "--output", "short-iso",
                                                 "--no-pager", "--quiet", "--lines", "200000"};

constexpr std::array<string_view, 1> kSmi = {"nvidia-smi"};
constexpr std::array<string_view, 2> kSmiQuery = {"nvidia-smi", "-q"};
constexpr std::array<string_view, 3> kSmiXml = {"nvidia-smi", "-q", "-x"};
constexpr std::array<string_view, 3> kSmiTopology = {"nvidia-smi", "topo", "-m"};
constexpr std::array<string_view, 4> kSmiPeerReads = {"nvidia-smi", "topo", "-p2p", "r"};
constexpr std::array<string_view, 4> kSmiPeerWrites = {"nvidia-smi", "topo", "-p2p", "w"};
constexpr std::array<string_view, 3> kSmiLinks = {"nvidia-smi", "nvlink", "-s"};
constexpr std::array<string_view, 3> kSmiLinkErrors = {"nvidia-smi", "nvlink", "-e"};
constexpr std::array<string_view, 3> kSmiApps = {
    "nvidia-smi", "--query-compute-apps=gpu_uuid,gpu_bus_id,pid,process_name,used_memory", "--format=csv"};
constexpr std::array<string_view, 2> kRas = {"ncclras", "-v"};

constexpr std::array<string_view, 1> kIbstat = {"ibstat"};
constexpr std::array<string_view, 1> kIbDevices = {"ibv_devinfo"};
constexpr std::array<string_view, 2> kRdma = {"rdma", "link"};
constexpr std::array<string_view, 1> kGids = {"show_gids"};
constexpr std::array<string_view, 4> kIpLink = {"ip", "-s", "-d", "link"};
constexpr std::array<string_view, 2> kIpAddress = {"ip", "address"};
constexpr std::array<string_view, 2> kPci = {"lspci", "-vvv"};

constexpr std::array<string_view, 3> kShm = {"df", "-h", "/dev/shm"};
constexpr std::array<string_view, 3> kBashLimits = {"bash", "-c", "ulimit -a"};
constexpr std::array<string_view, 3> kShLimits = {"sh", "-c", "ulimit -a"};
constexpr std::array<string_view, 2> kUname = {"uname", "-a"};

constexpr std::array<string_view, 3> kTorch = {
    "python3", "-c",
    "try: import torch\nexcept Exception: raise SystemExit(1)\nprint('torch', torch.__version__, 'cuda', "
    "torch.version.cuda, 'nccl', '.'.join(map(str, torch.cuda.nccl.version())))"};
constexpr std::array<string_view, 3> kPackages = {
    "python3", "-c",
    "import importlib.metadata as m; print('\\n'.join(sorted({f'{d.name}=={d.version}' for d in m.distributions() "
    "if (d.name or '').lower().startswith(('torch', 'nvidia-', 'deepspeed', 'accelerate', 'lightning', 'transformers', "
    "'megatron'))})))"};
constexpr std::array<string_view, 3> kNccl = {"sh", "-c", "ldconfig -p | grep -i libnccl"};
constexpr std::array<string_view, 2> kNvcc = {"nvcc", "--version"};

constexpr seconds kShort{10}, kLong{30}, kImport{60};
constexpr CollectRow kRows[] = {
    {"dmesg.txt", kDmesg, "", kLong, OnFailure::kDrop},
    {"dmesg.txt", kPlainDmesg, "", kLong, OnFailure::kDrop},
    {"dmesg.txt", kJournal, "", kLong, OnFailure::kDrop},
    {"nvidia-smi.txt", kSmi, "", kLong},
    {"nvidia-smi-q.txt", kSmiQuery, "", kLong},
    {"nvidia-smi-q.xml", kSmiXml, "", kLong},
    {"nvidia-smi-topo.txt", kSmiTopology, "", kLong},
    {"nvidia-smi-p2p-read.txt", kSmiPeerReads, "", kLong},
    {"nvidia-smi-p2p-write.txt", kSmiPeerWrites, "", kLong},
    {"nvidia-smi-nvlink-s.txt", kSmiLinks, "", kLong},
    {"nvidia-smi-nvlink-e.txt", kSmiLinkErrors, "", kLong},
    {"nvidia-smi-compute-apps.csv", kSmiApps, "", kLong},
    {"fabricmanager.log", {}, "/var/log/fabricmanager.log", kShort, OnFailure::kDrop},
    {"ncclras.txt", kRas, "", kLong, OnFailure::kDrop},
    {"ibstat.txt", kIbstat, "", kShort},
    {"ibv_devinfo.txt", kIbDevices, "", kShort},
    {"rdma-link.txt", kRdma, "", kShort, OnFailure::kDrop},
    {"show_gids.txt", kGids, "", kShort},
    {"ip-link.txt", kIpLink, "", kShort, OnFailure::kDrop},
    {"ip-address.txt", kIpAddress, "", kShort, OnFailure::kDrop},
    {"lspci.txt", kPci, "", kLong, OnFailure::kDrop},
    {"df-shm.txt", kShm, "", kShort},
    {"ulimit.txt", kBashLimits, "", kShort, OnFailure::kDrop},
    {"ulimit.txt", kShLimits, "", kShort, OnFailure::kDrop},
    {"uname.txt", kUname, "", kShort},
    {"cmdline.txt", {}, "/proc/cmdline", kShort, OnFailure::kDrop, Secrets::kMask},
    {"nccl.conf", {}, "/etc/nccl.conf", kShort, OnFailure::kDrop, Secrets::kMask},
    {"version-driver.txt", {}, "/proc/driver/nvidia/version", kShort, OnFailure::kDrop},
    {"version-torch.txt", kTorch, "", kImport, OnFailure::kDrop},
    {"version-python-packages.txt", kPackages, "", kLong, OnFailure::kDrop},
    {"version-nccl.txt", kNccl, "", kShort, OnFailure::kDrop},
    {"version-cuda.txt", kNvcc, "", kShort, OnFailure::kDrop},
    {"version-cuda.txt", {}, "/usr/local/cuda/version.json", kShort, OnFailure::kDrop},
};

}  // namespace

std::span<const CollectRow> CollectTable() { return kRows; }

}  // namespace inquest
