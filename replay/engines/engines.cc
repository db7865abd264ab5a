// The table of engines.
#include "replay/engines/engines.h"

#include <array>

namespace inquest {

#ifdef INQUEST_WITH_GLOO
extern const Engine kGloo;
#else
static const Engine kGloo{
    .name = "gloo",
    .library = "Gloo",
    .tests = "",
    .missing = "this build has no Gloo; install libgloo-dev (or Gloo's CMake package) and build again",
    .make = nullptr,
    .probe = nullptr};
#endif

extern const Engine kNccl;

std::span<const Engine* const> Engines() {
  static constexpr std::array<const Engine*, kEngineNames.size()> kEngines = {&kGloo, &kNccl};
  return kEngines;
}

const Engine* FindEngine(std::string_view name) {
  for (const Engine* engine : Engines()) {
    if (engine->name == name) return engine;
  }
  return nullptr;
}

}  // namespace inquest
