// Each variant is run in fresh processes until the answer is clear.
//
// The baseline comes first. Where it passes every time, nothing is left to isolate, and that is a finding. Where it breaks,
// a variant that breaks too is out after its first broken run; one that passes has to pass as often as makes chance
// unlikely: three times where the baseline always broke, all repeats where it broke now and then. A variant for which NCCL
// used the very same transports as in the baseline has tested nothing and decides nothing. Of the variants that pass the
// most special one names the path: with shared memory off as well as peer-to-peer says less than peer-to-peer alone.
#include "replay/isolate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "replay/ops.h"

namespace inquest {
namespace {

using Setting = std::pair<std::string_view, std::string_view>;

constexpr Setting kNetOnly[] = {{"NCCL_P2P_DISABLE", "1"}, {"NCCL_SHM_DISABLE", "1"}, {"FI_EFA_ENABLE_SHM_TRANSFER", "0"}};
constexpr Setting kSocket[] = {{"NCCL_NET", "Socket"}, {"NCCL_IB_DISABLE", "1"}};
constexpr Setting kP2pOff[] = {{"NCCL_P2P_DISABLE", "1"}};
constexpr Setting kShmOff[] = {{"NCCL_SHM_DISABLE", "1"}};
constexpr Setting kGdrOff[] = {{"NCCL_NET_GDR_LEVEL", "LOC"}, {"NCCL_DMABUF_ENABLE", "0"}};
constexpr Setting kNvlsOff[] = {{"NCCL_NVLS_ENABLE", "0"}};
constexpr Setting kSimple[] = {{"NCCL_PROTO", "Simple"}};
constexpr Setting kPxnOff[] = {{"NCCL_PXN_DISABLE", "1"}};
constexpr Setting kEager[] = {{"NCCL_RUNTIME_CONNECT", "0"}};

constexpr std::array kVariants = {
    Variant{"baseline", "as the job had it", "", "", {}},
    Variant{"cpu", "on CPUs over TCP", "the GPUs, their driver or their fabric",
            "the hosts and their IP network can do it: look at the kernel log for Xids, at nvidia-smi -q, and at the fabric", {}, "gloo"},
    Variant{"net-only", "with peer-to-peer and shared memory off", "the paths within a host",
            "/dev/shm too small for the container, or peer-to-peer blocked by ACS or an IOMMU", kNetOnly},
    Variant{"socket", "over sockets instead of RDMA", "the RDMA network",
            "a port down or flapping, a wrong GID index, RoCE without flow control, memlock limits", kSocket},
    Variant{"p2p-off", "with peer-to-peer off", "the GPUs' peer-to-peer path",
            "PCIe ACS or an IOMMU in the way (NVIDIA/nccl issues 2079, 606, 667, 257): lspci -vvv | grep ACSCtl, and iommu= on the kernel's command line", kP2pOff},
    Variant{"shm-off", "with shared memory off", "NCCL's shared memory",
            "/dev/shm too small, or containers of one host that do not share it: df -h /dev/shm, --shm-size, --ipc=host", kShmOff},
    Variant{"gdr-off", "with GPUDirect RDMA off", "GPUDirect RDMA between GPU and network card",
            "nvidia-peermem not loaded or not fit for the driver, ACS on the bridge between them", kGdrOff},
    Variant{"nvls-off", "with NVLink SHARP off", "multicast of the NVSwitch (NVLS)", "the fabric manager's version, or memory that other processes hold: nvidia-smi -q | grep -A3 Fabric", kNvlsOff},
    Variant{"proto-simple", "with protocol Simple alone", "the protocols LL and LL128", "a platform on which 128-byte stores are not whole: NCCL_PROTO=^LL128 shows which", kSimple},
    Variant{"pxn-off", "with PXN off", "the way through another GPU's network card (PXN)", "one card of the host; NCCL_IB_HCA=<one> shows which", kPxnOff},
    Variant{"eager-connect", "connecting before the call", "connecting within the call", "only a hint: connections are made at another moment", kEager},
};

/// All pairs up to here are tried one by one.
constexpr int kMostRanksInPairs = 16;
constexpr int kSurePasses = 3;

bool Broke(RunVerdict verdict) { return verdict != RunVerdict::kPassed && verdict != RunVerdict::kInterrupted && verdict != RunVerdict::kCouldNotRun; }

Plan Applied(Plan plan, const Variant& variant) {
  for (const auto& [name, value] : variant.env) plan.env.insert_or_assign(std::string(name), std::string(value));
  if (!variant.engine.empty()) plan.engine = std::string(variant.engine);
  return plan;
}

class Isolation {
 public:
  Isolation(const Plan& plan, const IsolationSetup& setup) : plan_(plan), setup_(setup) {}

  IsolationOutcome Run() {
    for (const Variant& variant : kVariants) {
      if (out_.interrupted) break;
      // Where the baseline passes, or there is no GPU path to switch, the others say nothing.
      if (&variant != kVariants.data() && (Baseline().broken == 0 || (plan_.engine != "nccl" && variant.engine.empty()))) break;
      if (variant.engine == plan_.engine) continue;
      Try(variant);
    }
    if (!out_.interrupted && Baseline().broken > 0 && plan_.ranks.value > 2) TryPairs();
    Conclude();
    return std::move(out_);
  }

 private:
  const VariantOutcome& Baseline() const { return out_.variants.front(); }

  /// How many passes in a row are an answer.
  int Wanted() const {
    if (out_.variants.size() < 2) return setup_.repeats;
    return Baseline().broken == Baseline().runs ? std::min(kSurePasses, setup_.repeats) : setup_.repeats;
  }

  void Try(const Variant& variant) {
    VariantOutcome& tried = out_.variants.emplace_back();
    tried.id = variant.id;
    const bool is_baseline = out_.variants.size() == 1;
    const Plan plan = Applied(plan_, variant);
    while (tried.runs < Wanted()) {
      if (setup_.progress) setup_.progress(fmt::format("{} {}/{}", variant.id, tried.runs + 1, Wanted()));
      const RunOutcome run = setup_.run(plan);
      if (run.verdict == RunVerdict::kInterrupted) {
        out_.interrupted = true;
        return;
      }
      if (run.verdict == RunVerdict::kCouldNotRun) {
        ++tried.could_not_run;
        tried.verdict = run.verdict;
        tried.sentence = run.sentence;
        return;
      }
      ++tried.runs;
      if (setup_.used && variant.engine.empty()) tried.used.merge(setup_.used());
      if (!Broke(run.verdict)) continue;
      ++tried.broken;
      tried.verdict = run.verdict;
      tried.sentence = run.sentence;
      // A second broken baseline says that it breaks; how often matters only for one that also passes.
      if (!is_baseline || (tried.broken == tried.runs && tried.broken == 2)) break;
    }
    tried.changed_nothing = !is_baseline && !tried.used.empty() && tried.used == Baseline().used && MovesTransport(variant);
  }

  /// NLVS, protocols and the moment of connecting do not show in the channels' lines.
  static bool MovesTransport(const Variant& variant) {
    return variant.id == "net-only" || variant.id == "socket" || variant.id == "p2p-off" || variant.id == "shm-off" || variant.id == "gdr-off";
  }

  void TryPairs() {
    if (plan_.ranks.value > kMostRanksInPairs) return;
    for (int from = 0; from < plan_.ranks.value; ++from) {
      for (int to = 0; to < plan_.ranks.value; ++to) {
        if (from == to) continue;
        Plan pair = plan_;
        pair.operation.value = Operation::kSendRecv;
        pair.root = {.value = from};
        pair.peer = {.value = to};
        pair.count.value = std::max<std::uint64_t>(pair.count.value, 1);
        if (setup_.progress) setup_.progress(fmt::format("rank {} to rank {}", from, to));
        const RunOutcome run = setup_.run(pair);
        if (run.verdict == RunVerdict::kInterrupted) {
          out_.interrupted = true;
          return;
        }
        out_.pairs.push_back({from, to, Broke(run.verdict), run.sentence});
      }
    }
  }

  // ---- in words ------------------------------------------------------------------------------------------------

  void Conclude() {
    const VariantOutcome& base = Baseline();
    if (base.could_not_run > 0 && base.runs == 0) {
      out_.finding = "The baseline could not run: " + base.sentence;
      return;
    }
    if (base.broken == 0) {
      out_.finding = fmt::format("Passes {} of {}: the machines can do this collective now. Then it was the program (ranks that did not make the same calls), something passing, or a node that is no longer among these.",
                                 base.runs, base.runs);
      return;
    }
    out_.finding = fmt::format("Breaks {} of {}", base.broken, base.runs);
    const Variant* clear = nullptr;
    for (std::size_t i = 1; i < out_.variants.size(); ++i) {
      const VariantOutcome& tried = out_.variants[i];
      if (tried.broken == 0 && tried.runs >= Wanted() && !tried.changed_nothing) clear = Find(tried.id);
    }
    if (clear == nullptr) {
      out_.finding += NothingHelps();
    } else {
      const VariantOutcome& tried = OutcomeOf(clear->id);
      out_.finding += fmt::format(", 0 of {} {}: {}.", tried.runs, clear->changes, clear->path);
      out_.hint = clear->hint;
    }
    const std::string pairs = Pairs();
    if (!pairs.empty()) out_.finding += " " + pairs;
  }

  std::string NothingHelps() const {
    const auto cpu = std::ranges::find(out_.variants, std::string("cpu"), &VariantOutcome::id);
    if (cpu != out_.variants.end() && cpu->broken > 0) return ", and on CPUs over TCP too: the hosts or their IP network, before anything of the GPUs.";
    if (plan_.engine == "gloo") return ": the hosts or their IP network; the GPUs were not used.";
    return ", whatever part of the transport is switched off: rather a GPU, the driver or NCCL itself than one path.";
  }

  std::string Pairs() const {
    std::vector<std::string> broken;
    for (const PairOutcome& pair : out_.pairs)
      if (pair.broken) broken.push_back(fmt::format("{}->{}", pair.from, pair.to));
    if (out_.pairs.empty()) return "";
    if (broken.empty()) return "Every pair alone passes.";
    if (broken.size() == out_.pairs.size()) return "Every pair alone breaks too.";
    const int rank = broken.size() > 1 ? CommonRank() : -1;
    return fmt::format("Alone, {}: {}{}.", broken.size() == 1 ? "this pair breaks" : "these pairs break", fmt::join(broken, ", "), rank < 0 ? "" : fmt::format("; rank {} is in each", rank));
  }

  /// The one rank that is in every broken pair; -1: none, or more than one.
  int CommonRank() const {
    int common = -1;
    for (int rank = 0; rank < plan_.ranks.value; ++rank) {
      const bool in_all = std::ranges::all_of(out_.pairs, [&](const PairOutcome& pair) { return !pair.broken || pair.from == rank || pair.to == rank; });
      if (in_all && common >= 0) return -1;
      if (in_all) common = rank;
    }
    return common;
  }

  static const Variant* Find(std::string_view id) { return std::ranges::find(kVariants, id, &Variant::id); }
  const VariantOutcome& OutcomeOf(std::string_view id) const { return *std::ranges::find(out_.variants, id, &VariantOutcome::id); }

  const Plan& plan_;
  const IsolationSetup& setup_;
  IsolationOutcome out_;
};

}  // namespace

std::span<const Variant> Variants() { return kVariants; }

IsolationOutcome Isolate(const Plan& plan, const IsolationSetup& setup) { return Isolation(plan, setup).Run(); }

int ExitStatus(const IsolationOutcome& outcome) {
  if (outcome.interrupted || outcome.variants.empty()) return 2;
  const VariantOutcome& base = outcome.variants.front();
  if (base.runs == 0) return 3;
  return base.broken > 0 ? 1 : 0;
}

}  // namespace inquest
