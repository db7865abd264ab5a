// What the NVIDIA driver itself says that a GPU needs.
#include "rules/recovery.h"

#include "core/pattern.h"

namespace inquest {

std::vector<std::string_view> RecoveryAsked(std::string_view line) {
  // open-gpu-kernel-modules, gpu.c: gpuGetRecoveryAction and its names.
  static const Pattern kChanged(R"(recovery action changed from [^()]*\([^()]*\) to [^()]*\(([^()]*)\))");
  const auto match = kChanged.Search(line);
  if (!match) return {};
  const std::string_view asked = match->text(1);
  const auto says = [&](std::string_view word) { return asked.find(word) != std::string_view::npos; };
  std::vector<std::string_view> needs;
  if (says("Drain")) needs.push_back("drain-node");
  if (says("Reset")) needs.push_back("reset-gpu");
  if (says("Reboot")) needs.push_back("reboot-node");
  return needs;
}

}  // namespace inquest
