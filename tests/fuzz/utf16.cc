// Fuzz target: any bytes as text in UTF-16. What it becomes does not depend on how it is read.
#include "parsers/utf16.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace inquest {
namespace {

std::string Turned(std::string_view bytes, std::size_t head, std::size_t room) {
  std::string_view rest = bytes.substr(std::min(head, bytes.size()));
  Utf16Reader reader(std::string(bytes.substr(0, head)), rest.empty(), [&](char* to, std::size_t most) {
    const std::size_t got = rest.copy(to, most);
    rest.remove_prefix(got);
    return got;
  });
  std::string out, part(room, '\0');
  while (true) {
    const std::size_t got = reader.Fill(part.data(), room);
    INQUEST_CHECK(got <= room);
    out.append(part, 0, got);
    if (got < room) return out;
  }
}

}  // namespace
}  // namespace inquest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inquest;
  const std::string bytes = "\xff\xfe" + std::string(reinterpret_cast<const char*>(data), size);
  for (const std::string& text : {bytes, "\xfe\xff" + bytes.substr(2)}) {
    INQUEST_CHECK(IsUtf16(text));
    INQUEST_CHECK(Turned(text, text.size(), 4096) == Turned(text, 2, 7));
  }
  return 0;
}
