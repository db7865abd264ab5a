// Where a block's lines end and where its bytes are damaged, 32 bytes at a time.
#include "parsers/structure.h"

#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace inquest {
namespace {

void Classify(unsigned char byte, std::uint32_t at, Structure& structure) {
  switch (byte) {
    case '\n':
    case '\r': structure.ends.push_back(at); break;
    case '\t':
    case '\b':
    case '\f':
    case 0x1b: break;
    default: structure.odd.push_back(at);
  }
}

void FindFrom(std::string_view block, std::size_t begin, Structure& structure) {
  for (std::size_t i = begin; i < block.size(); ++i) {
    const auto byte = static_cast<unsigned char>(block[i]);
    if (byte < 0x20) Classify(byte, static_cast<std::uint32_t>(i), structure);
  }
}

#if defined(__x86_64__)
// Text is almost free of bytes below 0x20 but for line ends, so one comparison a chunk finds both.
__attribute__((target("avx2,bmi"))) void FindAvx2(std::string_view block, Structure& structure) {
  const __m256i limit = _mm256_set1_epi8(0x1f);
  const char* data = block.data();
  std::size_t i = 0;
  for (; i + 64 <= block.size(); i += 64) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + i));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + i + 32));
    const auto mask_low = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(low, limit), low)));
    const auto mask_high = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(high, limit), high)));
    std::uint64_t mask = (static_cast<std::uint64_t>(mask_high) << 32) | mask_low;
    while (mask != 0) {
      const auto at = i + static_cast<std::size_t>(std::countr_zero(mask));
      mask &= mask - 1;
      if (data[at] == '\n') [[likely]] {
        structure.ends.push_back(static_cast<std::uint32_t>(at));
      } else {
        Classify(static_cast<unsigned char>(data[at]), static_cast<std::uint32_t>(at), structure);
      }
    }
  }
  FindFrom(block, i, structure);
}
#endif

}  // namespace

void FindStructure(std::string_view block, Structure& structure) {
  structure.ends.clear();
  structure.odd.clear();
#if defined(__x86_64__)
  static const bool kAvx2 = __builtin_cpu_supports("avx2") != 0;
  if (kAvx2) return FindAvx2(block, structure);
#endif
  FindFrom(block, 0, structure);
}

}  // namespace inquest
