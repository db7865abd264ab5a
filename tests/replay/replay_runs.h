// Runs plans with the worker of this build, for the tests of the supervisor and of the fault matrix.
#pragma once

#include <string>

#include "replay/faults.h"
#include "replay/supervisor.h"

namespace inquest {

/// Whether this build has the engine that the tests run on.
inline constexpr bool kHaveGloo = INQUEST_TEST_GLOO != 0;

inline Plan SmallPlan(Operation operation = Operation::kBroadcast, std::uint64_t count = 1000, int ranks = 3) {
  Plan plan;
  plan.operation = {.value = operation, .basis = Basis::kGiven};
  plan.count = {.value = count, .basis = Basis::kGiven};
  plan.ranks = {.value = ranks, .basis = Basis::kGiven};
  plan.deadlines.each = std::chrono::seconds(30);
  return plan;
}

inline RunSetup TestSetup() {
  return {.local = {.worker = INQUEST_TEST_WORKER, .env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}}};
}

/// With the faults of a text as --fault has it.
inline RunOutcome RunWith(Plan plan, std::string_view faults = "") {
  plan.faults = *ParseFaults(faults, plan);
  return RunPlan(plan, TestSetup());
}

inline bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace inquest
