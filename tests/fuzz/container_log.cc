// Fuzz target: any bytes as lines of a container runtime. What they become does not depend on how they are read.
#include "parsers/container_log.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "tests/support/read_through.h"

namespace inquest {
namespace {

struct Unwrapped {
  std::string text;
  std::uint64_t claimed = 0, damaged = 0, lines = 0;
  bool operator==(const Unwrapped&) const = default;
};

Unwrapped Unwrap(std::string_view bytes, std::size_t head, std::size_t room) {
  Unwrapped out;
  out.text = ReadThrough<ContainerReader>(bytes, head, room, [&](ContainerReader& reader) {
    const Removed removed = reader.TakeRemoved();
    out.claimed += removed.claimed;
    out.damaged += removed.damaged;
    for (const Removed::Lines& lines : removed.lines) out.lines += lines.count;
  });
  return out;
}

}  // namespace
}  // namespace inquest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inquest;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  INQUEST_CHECK(Unwrap(bytes, bytes.size(), 4096) == Unwrap(bytes, std::min<std::size_t>(bytes.size(), 3), 7));
  return 0;
}
