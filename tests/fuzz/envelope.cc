// Fuzz target: any bytes as lines with launcher prefixes. What is left of a line is a part of it, or of its scratch.
#include "parsers/envelope.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace inquest {
namespace {

bool IsPartOf(std::string_view part, std::string_view whole) {
  const std::less_equal<const char*> before;
  return before(whole.data(), part.data()) && before(part.data() + part.size(), whole.data() + whole.size());
}

void Run(std::string_view text) {
  std::string scratch;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of("\n\r");
    const std::string_view line = text.substr(0, end);
    const Peeled peeled = Peel(line, scratch);
    INQUEST_CHECK(peeled.text.empty() || IsPartOf(peeled.text, line) || IsPartOf(peeled.text, scratch));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace
}  // namespace inquest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  inquest::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
