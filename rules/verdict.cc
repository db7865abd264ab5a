// Names of the verdict's words.
#include "rules/verdict.h"

#include "core/names.h"

namespace inquest {

std::string_view Name(Retry retry) {
  static constexpr std::string_view kNames[] = {"", "yes", "after-fix", "elsewhere", "no"};
  return NameIn<Retry::kNo>(kNames, retry);
}

std::string_view Name(LineRole role) {
  static constexpr std::string_view kNames[] = {"cause", "symptom", "context"};
  return NameIn<LineRole::kContext>(kNames, role);
}

std::string_view Name(Strength strength) {
  switch (strength) {
    case Strength::kDecisive:
      return "decisive";
    case Strength::kSupporting:
      return "supporting";
    case Strength::kHint:
      return "hint";
  }
  return "hint";
}

std::string_view Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFailed:
      return "failed";
    case Outcome::kHealthy:
      return "healthy";
    case Outcome::kUndecided:
      return "undecided";
  }
  return "undecided";
}

}  // namespace inquest
