// The names of what a process may be at.
#include "core/activity.h"

#include "core/names.h"

namespace inquest {

std::string_view Name(Activity activity) {
  static constexpr std::string_view kNames[] = {
      "",           "joining", "loading",    "data-preparation", "compile",  "training", "evaluation",
      "checkpoint", "serving", "done",       "recovered",        "progress", "bar",      "rows",
      "collective", "turn",    "device-wait"};
  return NameIn<Activity::kDeviceWait>(kNames, activity);
}

}  // namespace inquest
