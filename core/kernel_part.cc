// The names of the kernel's parts and of what it says of them.
#include "core/kernel_part.h"

#include "core/names.h"

namespace inquest {

std::string_view Name(KernelPart part) {
  static constexpr std::string_view kNames[] = {
      "",         "beegfs",         "block",   "bond",    "ceph",       "cifs",  "edac",   "efa",
      "ext4",     "fabric-manager", "fuse",    "gpfs",    "infiniband", "iommu", "irdma",  "kernel",
      "lustre",   "machine-check",  "memory",  "mlx5",    "network",    "nfs",   "nvidia", "nvme",
      "nvswitch", "pcie",           "peermem", "thermal", "xfs"};
  return NameIn<KernelPart::kXfs>(kNames, part);
}

std::string_view Name(KernelNews news) {
  static constexpr std::string_view kNames[] = {
      "boot",    "cable-error", "cable-unplugged",   "controller-down", "corrected",  "driver-loaded", "error",
      "failed",  "fault",       "file-system-error", "health",          "i/o-error",  "link-degraded", "link-down",
      "link-up", "logged",      "memory-error",      "panic",           "recovered",  "said",          "shutdown",
      "stall",   "temperature", "throttled",         "time-out",        "uncorrected"};
  return NameIn<KernelNews::kUncorrected>(kNames, news);
}

}  // namespace inquest
