// The GPUs of each host as nvidia-smi showed them, and whose they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rules/evidence.h"

namespace inquest {

/// One GPU, whatever forms of nvidia-smi's output showed it.
struct GpuSeen {
  GpuSnapshot state;                ///< of several looks the last word on each value
  std::optional<EventIndex> event;  ///< of the last snapshot; nullopt: only processes or conditions name it
  std::optional<GlobalRank> rank;
  template <class T>
  struct Of {
    const T* what;
    EventIndex event;
  };
  std::vector<Of<GpuCondition>> conditions;
  std::vector<Of<GpuProcess>> processes;
};

struct GpuHost {
  std::optional<std::string> host;
  std::vector<GpuSeen> gpus;  ///< by index, then bus id, then uuid
  std::vector<GpuSeen::Of<GpuTopologyRow>> topology;
  bool whole = false;  ///< all GPUs of the host are listed, not those that someone chose
};

// How a GPU finds its rank: by the PCI address that NCCL's Init lines print too; by a pid on it; by NVML's number of
// it; by its index, where the job is on one host and has a rank for each GPU. What stands in one file is of one host:
// the one that its folder, its lines or its name give, the one whose pids are on the GPUs, or the job's only one.
std::vector<GpuHost> ReadGpus(const Timeline& timeline);

/// The host's other GPUs, or the ranks' lines, show that the GPU is not the job's.
bool IsOfOtherJob(const Timeline& timeline, const GpuHost& host, const GpuSeen& gpu);

/// `GPU 3 (0000:5d:00.0) of rank 3 on node07`, as far as it is known.
std::string NameOf(const GpuHost& host, const GpuSeen& gpu);
Culprit BlameGpu(const Timeline& timeline, const GpuHost& host, const GpuSeen& gpu, std::string why);

}  // namespace inquest
