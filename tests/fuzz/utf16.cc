// Fuzz target: any bytes as text in UTF-16. What it becomes does not depend on how it is read.
#include "parsers/utf16.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "tests/support/read_through.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inquest;
  const std::string bytes = "\xff\xfe" + std::string(reinterpret_cast<const char*>(data), size);
  for (const std::string& text : {bytes, "\xfe\xff" + bytes.substr(2)}) {
    INQUEST_CHECK(IsUtf16(text));
    INQUEST_CHECK(ReadThrough<Utf16Reader>(text, text.size(), 4096) == ReadThrough<Utf16Reader>(text, 2, 7));
  }
  return 0;
}
