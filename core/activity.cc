// The names of what a process may be at.
#include "core/activity.h"

#include <array>
#include <cstddef>

namespace inquest {

std::string_view Name(Activity activity) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Activity::kDeviceWait) + 1> kNames = {
      "",           "joining", "loading",    "data-preparation", "compile",  "training", "evaluation",
      "checkpoint", "serving", "done",       "recovered",        "progress", "bar",      "rows",
      "collective", "turn",    "device-wait"};
  static_assert(kNames.back() == "device-wait");
  return kNames[static_cast<std::size_t>(activity)];
}

}  // namespace inquest
