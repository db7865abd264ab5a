// Fuzz target: any bytes as lines of a container runtime. What they become does not depend on how they are read.
#include "parsers/container_log.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace inquest {
namespace {

struct Unwrapped {
  std::string text;
  std::uint64_t claimed = 0, damaged = 0, lines = 0;
  bool operator==(const Unwrapped&) const = default;
};

Unwrapped Unwrap(std::string_view bytes, std::size_t head, std::size_t room) {
  std::string_view rest = bytes.substr(std::min(head, bytes.size()));
  ContainerReader reader(std::string(bytes.substr(0, head)), rest.empty(), [&](char* to, std::size_t most) {
    const std::size_t got = rest.copy(to, most);
    rest.remove_prefix(got);
    return got;
  });
  Unwrapped out;
  std::string part(room, '\0');
  for (std::size_t got = room; got == room;) {
    got = reader.Fill(part.data(), room);
    INQUEST_CHECK(got <= room);
    out.text.append(part, 0, got);
  }
  const Removed removed = reader.TakeRemoved();
  out.claimed = removed.claimed;
  out.damaged = removed.damaged;
  for (const Removed::Lines& lines : removed.lines) out.lines += lines.count;
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
