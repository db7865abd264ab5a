// The ways of running a call again, each with one part of the transport switched off.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "replay/plan.h"
#include "replay/recipes.h"

namespace inquest {

/// One way of running the same call.
struct Variant {
  std::string_view id;       ///< `p2p-off`
  std::string_view changes;  ///< in words: `with peer-to-peer off`
  std::string_view path;     ///< what is at fault where this variant alone passes: `the GPUs' peer-to-peer path`
  std::string_view hint;     ///< known causes of that
  std::span<const std::pair<std::string_view, std::string_view>> env;
  std::string_view engine = "";  ///< empty: the plan's
};
/// Those that this NCCL (`22809`; nullopt: not known) can do for this plan's operation and settings: the baseline
/// first, then from the most general to the most special. Asking for an algorithm that an operation has not is an error
/// of NCCL.
std::vector<const Variant*> VariantsFor(const Plan& plan, const Environment& inherited, std::optional<int> nccl);

}  // namespace inquest
