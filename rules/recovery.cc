// What the NVIDIA driver itself says that a GPU needs.
#include "rules/recovery.h"

#include "core/pattern.h"

namespace inquest {

std::vector<ErrorCode::Need> RecoveryAsked(std::string_view line) {
  // open-gpu-kernel-modules, gpu.c: gpuGetRecoveryAction and its names.
  static const Pattern kChanged(R"(recovery action changed from [^()]*\([^()]*\) to [^()]*\(([^()]*)\))");
  const auto match = kChanged.Search(line);
  if (!match) return {};
  const std::string_view asked = match->text(1);
  const auto says = [&](std::string_view word) { return asked.find(word) != std::string_view::npos; };
  std::vector<ErrorCode::Need> needs;
  if (says("Drain")) needs.push_back(ErrorCode::Need::kDrainNode);
  if (says("Reset")) needs.push_back(ErrorCode::Need::kResetGpu);
  if (says("Reboot")) needs.push_back(ErrorCode::Need::kRebootNode);
  return needs;
}

}  // namespace inquest
