// The names of the kernel's parts and of what it says of them.
#include "core/kernel_part.h"

#include <array>
#include <cstddef>

namespace inquest {

std::string_view Name(KernelPart part) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(KernelPart::kXfs) + 1> kNames = {
      "",         "beegfs",         "block",   "bond",    "ceph",       "cifs",  "edac",   "efa",
      "ext4",     "fabric-manager", "fuse",    "gpfs",    "infiniband", "iommu", "irdma",  "kernel",
      "lustre",   "machine-check",  "memory",  "mlx5",    "network",    "nfs",   "nvidia", "nvme",
      "nvswitch", "pcie",           "peermem", "thermal", "xfs"};
  static_assert(kNames.back() == "xfs");
  return kNames[static_cast<std::size_t>(part)];
}

std::string_view Name(KernelNews news) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(KernelNews::kUncorrected) + 1> kNames = {
      "boot",    "cable-error", "cable-unplugged",   "controller-down", "corrected",  "driver-loaded", "error",
      "failed",  "fault",       "file-system-error", "health",          "i/o-error",  "link-degraded", "link-down",
      "link-up", "logged",      "memory-error",      "panic",           "recovered",  "said",          "shutdown",
      "stall",   "temperature", "throttled",         "time-out",        "uncorrected"};
  static_assert(kNames.back() == "uncorrected");
  return kNames[static_cast<std::size_t>(news)];
}

}  // namespace inquest
