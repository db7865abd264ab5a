// Fuzz target: any bytes as a notebook. What it becomes does not depend on how it is read, and no byte is lost.
#include "parsers/notebook.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "tests/support/read_through.h"

namespace inquest {
namespace {

std::string TextOf(std::string_view bytes, std::size_t head, std::size_t room) {
  Removed removed;
  const auto take = [&](NotebookReader& reader) {
    const Removed more = reader.TakeRemoved();
    removed.claimed += more.claimed;
    removed.lines.insert(removed.lines.end(), more.lines.begin(), more.lines.end());
  };
  const std::string text = ReadThrough<NotebookReader>(bytes, head, room, take);
  std::uint64_t lines = 0;
  for (const Removed::Lines& one : removed.lines) lines += one.count;
  const auto ends = [](std::string_view in) {
    return static_cast<std::uint64_t>(std::count(in.begin(), in.end(), '\n'));
  };
  INQUEST_CHECK(text.size() + removed.claimed == bytes.size());
  INQUEST_CHECK(ends(text) + lines == ends(bytes));
  return text;
}

}  // namespace
}  // namespace inquest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inquest;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  IsNotebook(bytes);
  INQUEST_CHECK(TextOf(bytes, bytes.size(), 4096) == TextOf(bytes, std::min<std::size_t>(bytes.size(), 3), 7));
  return 0;
}
