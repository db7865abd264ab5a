// Fuzz target: any bytes as a pickle: a tree that can be walked, in no more memory than it was given.
#include "parsers/pickle.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/result.h"

namespace inquest {
namespace {

/// Each value that is reached; one that holds itself is no endless way.
void Walk(const DataValue& value, int depth, std::size_t& left) {
  constexpr int kDeepest = 64;
  if (left == 0 || depth > kDeepest) return;
  --left;
  std::size_t sum = 0;
  for (const char c : value.str()) sum += static_cast<unsigned char>(c);
  if (sum == ~std::size_t{0}) return;  // every byte of a text can be read
  if (!value.is(DataValue::Kind::kList) && !value.is(DataValue::Kind::kDict)) return;
  INQUEST_CHECK(value.node != nullptr);
  INQUEST_CHECK(!value.is(DataValue::Kind::kDict) || value.node->size % 2 == 0);
  for (std::uint32_t i = 0; i < value.node->size; ++i) Walk(value.node->items[i], depth + 1, left);
}

void Run(std::string_view bytes) {
  for (const std::size_t pool_bytes : {std::size_t{1} << 18, std::size_t{1} << 22}) {
    DataPool pool(pool_bytes);
    const PickleRead read = ReadPickle(bytes, pool);
    std::size_t left = 100'000;
    Walk(read.root, 0, left);
  }
}

}  // namespace
}  // namespace inquest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  inquest::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
