// What one rank's own recorder kept of its collective calls.
#include "core/call_trace.h"

namespace inquest {

std::string_view Name(CallTrace::State state) {
  switch (state) {
    case CallTrace::State::kScheduled:
      return "scheduled";
    case CallTrace::State::kStarted:
      return "started";
    case CallTrace::State::kCompleted:
      return "completed";
  }
  return {};
}

std::int64_t Elements(const std::vector<std::vector<std::int64_t>>& shapes) {
  constexpr std::int64_t kMost = std::int64_t{1} << 56;
  std::int64_t all = 0;
  for (const auto& shape : shapes) {
    std::int64_t product = 1;
    for (const std::int64_t size : shape) {
      if (size < 0 || (size > 0 && product > kMost / size)) return kMost;
      product *= size;
    }
    all = all > kMost - product ? kMost : all + product;
  }
  return all;
}

}  // namespace inquest
