// Finds the lines of a block that contain one of many literals, several times faster than a search for all of them.
#include "rules/window_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace inquest {
namespace {

constexpr std::size_t kWordBytes = 4;
constexpr std::size_t kGroupWords = 64;  ///< words whose answers fill one mask
constexpr std::size_t kGroupBytes = kGroupWords * kWordBytes;
constexpr std::size_t kGroups = 256;     ///< probed before the first is verified: 64 KiB, still in the cache then
constexpr std::uint32_t kFoldWord = 0x01010101U * kCaseBit;
constexpr std::size_t kWordsPerCell = 1; ///< at most, on average: two bits in 32 pass less than one other word in 100
constexpr std::uint32_t kFewestCellBits = 8, kMostCellBits = 20;

using Bitmap = WindowFilter::Bitmap;

std::uint32_t LoadWord(const char* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Two bits of the hash below those that choose the cell.
std::uint32_t BitsOf(std::uint32_t hash, std::uint32_t cell_shift) {
  return (1U << ((hash >> (cell_shift - 5)) & 31U)) | (1U << ((hash >> (cell_shift - 10)) & 31U));
}

/// One bit for each of the words of `groups` groups: it may be one of ours.
using Probe = void (*)(const Bitmap& bitmap, const char* text, std::size_t groups, std::uint64_t* masks);

void ProbeScalar(const Bitmap& bitmap, const char* text, std::size_t groups, std::uint64_t* masks) {
  for (std::size_t group = 0; group < groups; ++group) {
    std::uint64_t mask = 0;
    for (std::size_t i = 0; i < kGroupWords; ++i) {
      const std::uint32_t hash = (LoadWord(text + group * kGroupBytes + i * kWordBytes) | kFoldWord) * WindowFilter::kHashFactor;
      const std::uint32_t bits = BitsOf(hash, bitmap.cell_shift);
      mask |= static_cast<std::uint64_t>((bitmap.cells[hash >> bitmap.cell_shift] & bits) == bits) << i;
    }
    masks[group] = mask;
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void ProbeAvx2(const Bitmap& bitmap, const char* text, std::size_t groups, std::uint64_t* masks) {
  const __m256i fold = _mm256_set1_epi32(static_cast<int>(kFoldWord));
  const __m256i factor = _mm256_set1_epi32(static_cast<int>(WindowFilter::kHashFactor));
  const __m256i low_five = _mm256_set1_epi32(31), one = _mm256_set1_epi32(1);
  const __m128i cell_shift = _mm_cvtsi32_si128(static_cast<int>(bitmap.cell_shift));
  const __m128i first_shift = _mm_cvtsi32_si128(static_cast<int>(bitmap.cell_shift - 5));
  const __m128i second_shift = _mm_cvtsi32_si128(static_cast<int>(bitmap.cell_shift - 10));
  const int* cells = reinterpret_cast<const int*>(bitmap.cells.data());
  for (std::size_t group = 0; group < groups; ++group) {
    std::uint64_t mask = 0;
    for (std::size_t i = 0; i < kGroupWords; i += 8) {
      const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + group * kGroupBytes + i * kWordBytes));
      const __m256i hash = _mm256_mullo_epi32(_mm256_or_si256(words, fold), factor);
      const __m256i cell = _mm256_i32gather_epi32(cells, _mm256_srl_epi32(hash, cell_shift), 4);
      const __m256i first = _mm256_sllv_epi32(one, _mm256_and_si256(_mm256_srl_epi32(hash, first_shift), low_five));
      const __m256i second = _mm256_sllv_epi32(one, _mm256_and_si256(_mm256_srl_epi32(hash, second_shift), low_five));
      const __m256i bits = _mm256_or_si256(first, second);
      const __m256i passed = _mm256_cmpeq_epi32(_mm256_and_si256(cell, bits), bits);
      mask |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(passed)))) << i;
    }
    masks[group] = mask;
  }
}
#endif

Probe BestProbe() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) return &ProbeAvx2;
#endif
  return &ProbeScalar;
}

bool EndsLine(char byte) { return byte == '\n' || byte == '\r'; }

}  // namespace

WindowFilter::WindowFilter(std::vector<std::string> literals) : literals_(std::move(literals)) {
  std::vector<Entry> entries;
  for (std::uint32_t i = 0; i < literals_.size(); ++i)
    for (const Window& window : RarestWindows(literals_[i])) Insert(i, window, entries);
  Index(entries);
}

void WindowFilter::Insert(std::uint32_t literal, const Window& window, std::vector<Entry>& entries) const {
  const std::string& text = literals_[literal];
  std::array<char, kWordBytes> word{};
  const auto add = [&] { entries.push_back({LoadWord(word.data()), window.offset, literal}); };
  if (window.unknown == Window::Unknown::kNone) {
    std::copy_n(text.data() + window.offset, kWordBytes, word.begin());
    return add();
  }
  const bool at_head = window.unknown == Window::Unknown::kFirst;
  std::copy_n(at_head ? text.data() : text.data() + window.offset, kWordBytes - 1, word.begin() + (at_head ? 1 : 0));
  for (unsigned value = 0; value < 256; ++value) {
    if ((value & kCaseBit) == 0) continue;
    word[at_head ? 0 : kWordBytes - 1] = static_cast<char>(value);
    add();
  }
}

// Counting sort by cell.
void WindowFilter::Index(const std::vector<Entry>& entries) {
  const std::uint32_t cell_bits =
      std::clamp(static_cast<std::uint32_t>(std::bit_width(entries.size() / kWordsPerCell)), kFewestCellBits, kMostCellBits);
  bitmap_.cell_shift = 32 - cell_bits;
  bitmap_.cells.assign(std::size_t{1} << cell_bits, 0);
  first_.assign(bitmap_.cells.size() + 1, 0);
  for (const Entry& entry : entries) {
    const std::uint32_t hash = entry.word * kHashFactor;
    bitmap_.cells[hash >> bitmap_.cell_shift] |= BitsOf(hash, bitmap_.cell_shift);
    ++first_[(hash >> bitmap_.cell_shift) + 1];
  }
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  entries_.resize(entries.size());
  for (const Entry& entry : entries) entries_[next[(entry.word * kHashFactor) >> bitmap_.cell_shift]++] = entry;
}

std::optional<std::size_t> WindowFilter::FindAround(std::string_view block, std::size_t at, std::uint32_t word,
                                                    std::size_t earliest) const {
  const std::uint32_t cell = (word * kHashFactor) >> bitmap_.cell_shift;
  for (std::uint32_t i = first_[cell]; i < first_[cell + 1]; ++i) {
    const Entry& entry = entries_[i];
    if (entry.word != word) continue;
    const std::string& literal = literals_[entry.literal];
    const std::int64_t begin = static_cast<std::int64_t>(at) - entry.offset;
    if (begin < static_cast<std::int64_t>(earliest) || static_cast<std::size_t>(begin) + literal.size() > block.size()) continue;
    if (std::equal(literal.begin(), literal.end(), block.data() + begin, [](char wanted, char byte) {
          return static_cast<unsigned char>(wanted) == (static_cast<unsigned char>(byte) | kCaseBit);
        }))
      return static_cast<std::size_t>(begin);
  }
  return std::nullopt;
}

void WindowFilter::FindLines(std::string_view block, std::vector<Line>& lines) const {
  static const Probe kProbe = BestProbe();
  std::array<std::uint64_t, kGroups> masks;
  std::array<char, kGroupBytes> tail{};
  std::size_t resume = 0;  // what lies before is decided
  const auto verify = [&](const char* text, std::size_t place, std::uint64_t mask) {
    for (; mask != 0; mask &= mask - 1) {
      const std::size_t inside = static_cast<std::size_t>(std::countr_zero(mask)) * kWordBytes;
      const std::size_t at = place + inside;
      if (at + kWordBytes <= resume || at >= block.size()) continue;
      const std::optional<std::size_t> found = FindAround(block, at, LoadWord(text + inside) | kFoldWord, resume);
      if (!found) continue;
      std::size_t begin = *found, end = *found;
      while (begin > resume && !EndsLine(block[begin - 1])) --begin;
      while (end < block.size() && !EndsLine(block[end])) ++end;
      lines.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
      resume = end;
    }
  };
  std::size_t place = 0;
  while (place + kGroupBytes <= block.size()) {
    const std::size_t groups = std::min(kGroups, (block.size() - place) / kGroupBytes);
    kProbe(bitmap_, block.data() + place, groups, masks.data());
    for (std::size_t i = 0; i < groups; ++i) verify(block.data() + place + i * kGroupBytes, place + i * kGroupBytes, masks[i]);
    place += groups * kGroupBytes;
  }
  std::copy(block.begin() + static_cast<std::ptrdiff_t>(place), block.end(), tail.begin());
  kProbe(bitmap_, tail.data(), 1, masks.data());
  verify(tail.data(), place, masks[0]);
}

}  // namespace inquest
