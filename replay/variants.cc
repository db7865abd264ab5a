// The table of variants, and which of them exist for an operation and a version.
//
// Of NCCL's source, graph/tuning.cc, 2.14 to 2.30: broadcast and reduce are Ring alone; all-gather and reduce-scatter
// have no Tree, and beside Ring had nothing on one node before NVLS (2.17); sends and receives have no algorithm and
// take no notice of NCCL_PROTO. LL is of Ring and Tree alone: where the job names other algorithms, asking for it
// leaves nothing to run.
#include "replay/variants.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace inquest {
namespace {

using Setting = std::pair<std::string_view, std::string_view>;

constexpr Setting kNetOnly[] = {
    {"NCCL_P2P_DISABLE", "1"}, {"NCCL_SHM_DISABLE", "1"}, {"FI_EFA_ENABLE_SHM_TRANSFER", "0"}};
constexpr Setting kSocket[] = {{"NCCL_NET", "Socket"}, {"NCCL_IB_DISABLE", "1"}};
constexpr Setting kP2pOff[] = {{"NCCL_P2P_DISABLE", "1"}};
constexpr Setting kShmOff[] = {{"NCCL_SHM_DISABLE", "1"}};
constexpr Setting kGdrOff[] = {{"NCCL_NET_GDR_LEVEL", "LOC"}, {"NCCL_DMABUF_ENABLE", "0"}};
constexpr Setting kNvlsOff[] = {{"NCCL_NVLS_ENABLE", "0"}};
constexpr Setting kRing[] = {{"NCCL_ALGO", "Ring"}};
constexpr Setting kTree[] = {{"NCCL_ALGO", "Tree"}};
constexpr Setting kLl[] = {{"NCCL_PROTO", "LL"}};
constexpr Setting kSimple[] = {{"NCCL_PROTO", "Simple"}};
constexpr Setting kNoLl128[] = {{"NCCL_PROTO", "^LL128"}};
constexpr Setting kPxnOff[] = {{"NCCL_PXN_DISABLE", "1"}};
constexpr Setting kEager[] = {{"NCCL_RUNTIME_CONNECT", "0"}};

constexpr std::array kVariants = {
    Variant{"baseline", "as the job had it", "", "", {}},
    Variant{"cpu",
            "on CPUs over TCP",
            "the GPUs, their driver or their fabric",
            "the hosts and their IP network can do it: look at the kernel log for Xids, at nvidia-smi -q, and at the "
            "fabric",
            {},
            "gloo"},
    Variant{"net-only", "with peer-to-peer and shared memory off", "the paths within a host",
            "/dev/shm too small for the container, or peer-to-peer blocked by ACS or an IOMMU", kNetOnly},
    Variant{"socket", "over sockets instead of RDMA", "the RDMA network",
            "a port down or flapping, a wrong GID index, RoCE without flow control, memlock limits", kSocket},
    Variant{"algo-ring", "with algorithm Ring alone", "the other algorithms (Tree, NVLS, CollNet, PAT)",
            "a fault of one algorithm's path through the topology: NCCL_DEBUG_SUBSYS=TUNING shows which it chose",
            kRing},
    Variant{"algo-tree", "with algorithm Tree alone", "the other algorithms (Ring, NVLS, CollNet)",
            "a fault of one algorithm's path through the topology: NCCL_DEBUG_SUBSYS=TUNING shows which it chose",
            kTree},
    Variant{"p2p-off", "with peer-to-peer off", "the GPUs' peer-to-peer path",
            "PCIe ACS or an IOMMU in the way (NVIDIA/nccl issues 2079, 606, 667, 257): lspci -vvv | grep ACSCtl, and "
            "iommu= on the kernel's command line",
            kP2pOff},
    Variant{
        "shm-off", "with shared memory off", "NCCL's shared memory",
        "/dev/shm too small, or containers of one host that do not share it: df -h /dev/shm, --shm-size, --ipc=host",
        kShmOff},
    Variant{"gdr-off", "with GPUDirect RDMA off", "GPUDirect RDMA between GPU and network card",
            "nvidia-peermem not loaded or not fit for the driver, ACS on the bridge between them", kGdrOff},
    Variant{"nvls-off", "with NVLink SHARP off", "multicast of the NVSwitch (NVLS)",
            "the fabric manager's version, or memory that other processes hold: nvidia-smi -q | grep -A3 Fabric",
            kNvlsOff},
    Variant{"proto-ll", "with protocol LL alone", "the protocols Simple and LL128",
            "memory that network card or peer writes, and that the GPU reads too early: relaxed ordering, GPUDirect "
            "RDMA without a flush",
            kLl},
    Variant{"proto-simple", "with protocol Simple alone", "the protocols LL and LL128",
            "a platform on which 8-byte or 128-byte stores are not whole", kSimple},
    Variant{"proto-no-ll128", "without protocol LL128", "the protocol LL128",
            "a platform on which 128-byte stores are not whole", kNoLl128},
    Variant{"pxn-off", "with PXN off", "the way through another GPU's network card (PXN)",
            "one card of the host; NCCL_IB_HCA=<one> shows which", kPxnOff},
    Variant{"eager-connect", "connecting before the call", "connecting within the call",
            "only a hint: connections are made at another moment", kEager},
};

bool IsOneOf(std::string_view id, std::initializer_list<std::string_view> ids) {
  return std::ranges::find(ids, id) != ids.end();
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

bool Exists(const Variant& variant, Operation operation, const std::string& algorithms, std::optional<int> nccl) {
  const bool all_reduce = operation == Operation::kAllReduce || operation == Operation::kBarrier;
  const bool by_part = operation == Operation::kAllGather || operation == Operation::kReduceScatter;
  const bool is_collective =
      all_reduce || by_part || operation == Operation::kBroadcast || operation == Operation::kReduce;
  constexpr int kFirstNvls = 21700, kFirstLazy = 22200;
  if (variant.id == "algo-tree") return all_reduce;
  if (variant.id == "algo-ring") return all_reduce || (by_part && nccl.value_or(kFirstNvls) >= kFirstNvls);
  if (variant.id == "proto-ll")
    return is_collective &&
           (algorithms.empty() || (algorithms[0] != '^' && algorithms.find("ring") != std::string::npos));
  if (IsOneOf(variant.id, {"proto-simple", "proto-no-ll128"})) return is_collective;
  if (variant.id == "nvls-off") return nccl.value_or(kFirstNvls) >= kFirstNvls;
  if (variant.id == "eager-connect") return nccl.value_or(kFirstLazy) >= kFirstLazy;
  return true;
}

}  // namespace

std::vector<const Variant*> VariantsFor(const Plan& plan, const Environment& inherited, std::optional<int> nccl) {
  const std::string algorithms = Lower(SettingOf(plan, inherited, "NCCL_ALGO"));
  std::vector<const Variant*> variants;
  std::vector<Operation> operations = {plan.operation.value};
  if (plan.sequence) {
    operations.clear();
    for (const Call& call : plan.sequence->calls) operations.push_back(call.operation);
  }
  // What one of many calls has not, NCCL would refuse of all.
  for (const Variant& variant : kVariants)
    if (std::ranges::all_of(operations, [&](Operation one) { return Exists(variant, one, algorithms, nccl); }))
      variants.push_back(&variant);
  return variants;
}

}  // namespace inquest
