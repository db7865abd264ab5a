// Finds the lines of a block that contain one of many literals, several times faster than a search for all of them.
#include "search/window_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace inquest {
namespace {

constexpr std::size_t kContextBytes = 8;
constexpr std::size_t kGroupWords = 8;
constexpr std::size_t kGroupBytes = kGroupWords * kWordBytes;
constexpr std::size_t kGroups = 1024;  ///< probed before the first is verified: 32 KiB, in the cache still
constexpr std::uint32_t kFoldWord = 0x01010101U * kCaseBit;
constexpr std::uint64_t kFoldContext = 0x0101010101010101U * kCaseBit;
constexpr std::uint32_t kWordFactor = 0x9E3779B1U;
constexpr std::uint64_t kBeforeFactor = 0x9E3779B97F4A7C15U, kBehindFactor = 0xC2B2AE3D27D4EB4FU;
constexpr std::uint32_t kFewestCellBits = 8, kMostCellBits = 20;
/// At most, on average. Fewer would let less pass, but the bitmap must stay in the first cache.
constexpr std::size_t kWordsPerCell = 2;
constexpr std::uint32_t kSixBitsPerCell = 64;

using WordBitmap = WindowFilter::WordBitmap;

std::uint32_t LoadWord(const char* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, kWordBytes);
  return word | kFoldWord;
}

std::uint64_t LoadSix(const char* at) {
  std::uint16_t last_two = 0;
  std::memcpy(&last_two, at + kWordBytes, sizeof last_two);
  return LoadWord(at) | static_cast<std::uint64_t>(last_two | (kFoldWord & 0xffffU)) << 32;
}

/// The two bits of a word in its cell, by the bits of its hash below those that choose the cell.
std::uint32_t BitsOf(std::uint32_t hash, std::uint32_t cell_shift) {
  return (1U << ((hash >> (cell_shift - 5)) & 31U)) | (1U << ((hash >> (cell_shift - 10)) & 31U));
}

/// Calls `use` with the bytes [begin, begin + bytes.size()) of the literal. One may lie outside: it takes all values.
template <std::size_t kSize, class Use>
void ForEachValue(std::string_view literal, std::int32_t begin, Use use) {
  std::array<char, kSize> bytes{};
  std::optional<std::size_t> outside;
  for (std::size_t i = 0; i < kSize; ++i) {
    const std::int64_t from = std::int64_t{begin} + static_cast<std::int64_t>(i);
    const bool is_inside = from >= 0 && from < static_cast<std::int64_t>(literal.size());
    if (!is_inside) outside = i;
    bytes[i] = is_inside ? literal[static_cast<std::size_t>(from)] : '\0';
  }
  if (!outside) return use(bytes.data());
  for (unsigned value = 0; value < 256; ++value) {
    if ((value & kCaseBit) == 0) continue;
    bytes[*outside] = static_cast<char>(value);
    use(bytes.data());
  }
}

std::size_t ProbePortable(const WordBitmap& bitmap, const char* text, std::size_t groups, std::uint32_t place,
                          std::uint32_t* places) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < groups * kGroupWords; ++i, text += kWordBytes, place += kWordBytes) {
    const std::uint32_t hash = LoadWord(text) * kWordFactor;
    const std::uint32_t bits = BitsOf(hash, bitmap.cell_shift);
    places[count] = place;
    count += (bitmap.cells[hash >> bitmap.cell_shift] & bits) == bits ? 1 : 0;
  }
  return count;
}

#if defined(__x86_64__)
// Eight loads rather than a gather: no slower where gathers are fast, and faster where microcode makes them safe.
__attribute__((target("avx2"))) inline __m256i LoadCells(const std::uint32_t* cells, __m256i index) {
  const auto pair = [](long long lanes) { return static_cast<std::uint64_t>(lanes); };
  const std::uint64_t a = pair(_mm256_extract_epi64(index, 0)), b = pair(_mm256_extract_epi64(index, 1));
  const std::uint64_t c = pair(_mm256_extract_epi64(index, 2)), d = pair(_mm256_extract_epi64(index, 3));
  const auto cell = [cells](std::uint64_t at) { return static_cast<int>(cells[at]); };
  constexpr std::uint64_t kLow = 0xffffffffU;
  return _mm256_setr_epi32(cell(a & kLow), cell(a >> 32), cell(b & kLow), cell(b >> 32), cell(c & kLow), cell(c >> 32),
                           cell(d & kLow), cell(d >> 32));
}

/// By a mask of eight words: the places, from the first word's, of those whose bit is set; one byte each.
constexpr std::array<std::uint64_t, 256> kPlacesOfMask = [] {
  std::array<std::uint64_t, 256> table{};
  for (unsigned mask = 0; mask < table.size(); ++mask)
    for (unsigned word = 0, count = 0; word < kGroupWords; ++word)
      if ((mask >> word & 1U) != 0) table[mask] |= std::uint64_t{word * kWordBytes} << (8 * count++);
  return table;
}();

__attribute__((target("avx2,popcnt"))) std::size_t ProbeAvx2(const WordBitmap& bitmap, const char* text,
                                                             std::size_t groups, std::uint32_t place,
                                                             std::uint32_t* places) {
  const __m256i fold = _mm256_set1_epi32(static_cast<int>(kFoldWord));
  const __m256i factor = _mm256_set1_epi32(static_cast<int>(kWordFactor));
  const __m256i low_five = _mm256_set1_epi32(31), one = _mm256_set1_epi32(1),
                group_bytes = _mm256_set1_epi32(kGroupBytes);
  const __m128i cell_shift = _mm_cvtsi32_si128(static_cast<int>(bitmap.cell_shift));
  const __m128i first_shift = _mm_cvtsi32_si128(static_cast<int>(bitmap.cell_shift - 5));
  const __m128i second_shift = _mm_cvtsi32_si128(static_cast<int>(bitmap.cell_shift - 10));
  __m256i begin = _mm256_set1_epi32(static_cast<int>(place));
  std::size_t count = 0;
  for (std::size_t group = 0; group < groups; ++group, text += kGroupBytes) {
    const __m256i words = _mm256_or_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(text)), fold);
    const __m256i hash = _mm256_mullo_epi32(words, factor);
    const __m256i cell = LoadCells(bitmap.cells, _mm256_srl_epi32(hash, cell_shift));
    const __m256i first = _mm256_sllv_epi32(one, _mm256_and_si256(_mm256_srl_epi32(hash, first_shift), low_five));
    const __m256i second = _mm256_sllv_epi32(one, _mm256_and_si256(_mm256_srl_epi32(hash, second_shift), low_five));
    const __m256i bits = _mm256_or_si256(first, second);
    const __m256i passed = _mm256_cmpeq_epi32(_mm256_and_si256(cell, bits), bits);
    const auto mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(passed)));
    const __m256i inside =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(&kPlacesOfMask[mask])));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(places + count), _mm256_add_epi32(begin, inside));
    count += static_cast<std::size_t>(std::popcount(mask));
    begin = _mm256_add_epi32(begin, group_bytes);
  }
  return count;
}
#endif

/// The word at `at` with the two bytes before and behind it, which may lie outside the block.
std::uint64_t ContextAt(std::string_view block, std::size_t at) {
  std::array<char, kContextBytes> bytes{};
  if (at >= 2 && at + kSixBytes <= block.size()) {
    std::memcpy(bytes.data(), block.data() + at - 2, kContextBytes);
  } else {
    for (std::size_t i = 0; i < kContextBytes; ++i)
      if (at + i >= 2 && at + i - 2 < block.size()) bytes[i] = block[at + i - 2];
  }
  return std::bit_cast<std::uint64_t>(bytes) | kFoldContext;
}

std::uint32_t WordOf(std::uint64_t context) {
  return LoadWord(std::bit_cast<std::array<char, kContextBytes>>(context).data() + 2);
}

/// Sizes are powers of two.
std::uint32_t CellShift(std::size_t cells) { return 32 - static_cast<std::uint32_t>(std::countr_zero(cells)); }
std::uint32_t SixShift(std::size_t sixes) { return 64 - static_cast<std::uint32_t>(std::countr_zero(sixes * 64)); }

bool EndsLine(char byte) { return byte == '\n' || byte == '\r'; }

}  // namespace

WindowFilter::Probe WindowFilter::ProbeFor([[maybe_unused]] Code code) {
#if defined(__x86_64__)
  if (Runnable(code) != Code::kPortable) return &ProbeAvx2;
#endif
  return &ProbePortable;
}

// Made of literals.
struct WindowFilter::Storage {
  struct Word {
    std::uint32_t word = 0, entry = 0;
  };  ///< which values a byte outside the literal takes: several words, one entry
  std::vector<std::uint32_t> cells, first, slots;
  std::vector<std::uint64_t> sixes;
  std::vector<Entry> entries;
  std::string texts;

  explicit Storage(const std::vector<Literal>& literals);
  void AddEntries(std::string_view literal, const Window& window, std::vector<Word>& words);
  void EnterWords(const std::vector<Word>& words);
  void EnterSix(std::string_view literal, const Window& window);
  Tables tables() const { return {cells, sixes, first, slots, entries, texts}; }
};

WindowFilter::Storage::Storage(const std::vector<Literal>& literals) {
  std::vector<Word> words;
  for (const Literal& literal : literals) {
    for (const Window& window : literal.windows) AddEntries(literal.text, window, words);
    texts += literal.text;
  }
  EnterWords(words);
  sixes.assign(cells.size() * kSixBitsPerCell / 64, 0);
  for (const Literal& literal : literals)
    for (const Window& window : literal.windows) EnterSix(literal.text, window);
}

/// The literal's text will stand at the end of texts.
void WindowFilter::Storage::AddEntries(std::string_view literal, const Window& window, std::vector<Word>& words) {
  std::array<char, kContextBytes> bytes{}, known{};
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(kContextBytes); ++i) {
    const std::int32_t from = window.word - 2 + i;
    if (from < 0 || from >= static_cast<std::int32_t>(literal.size())) continue;
    bytes[static_cast<std::size_t>(i)] = literal[static_cast<std::size_t>(from)];
    known[static_cast<std::size_t>(i)] = '\xff';
  }
  ForEachValue<kWordBytes>(literal, window.word, [&](const char* word) {
    words.push_back({LoadWord(word), static_cast<std::uint32_t>(entries.size())});
  });
  entries.push_back({.context = std::bit_cast<std::uint64_t>(bytes),
                     .known = std::bit_cast<std::uint64_t>(known),
                     .text = static_cast<std::uint32_t>(texts.size()),
                     .size = static_cast<std::uint32_t>(literal.size()),
                     .offset = window.word});
}

// Counting sort by cell.
void WindowFilter::Storage::EnterWords(const std::vector<Word>& words) {
  const auto cell_bits = std::clamp(static_cast<std::uint32_t>(std::bit_width(words.size() / kWordsPerCell)),
                                    kFewestCellBits, kMostCellBits);
  cells.assign(std::size_t{1} << cell_bits, 0);
  first.assign(cells.size() + 1, 0);
  const std::uint32_t cell_shift = CellShift(cells.size());
  for (const Word& word : words) {
    const std::uint32_t hash = word.word * kWordFactor;
    cells[hash >> cell_shift] |= BitsOf(hash, cell_shift);
    ++first[(hash >> cell_shift) + 1];
  }
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  slots.resize(words.size());
  for (const Word& word : words) slots[next[(word.word * kWordFactor) >> cell_shift]++] = word.entry;
}

void WindowFilter::Storage::EnterSix(std::string_view literal, const Window& window) {
  const std::uint64_t factor = window.six == window.word ? kBehindFactor : kBeforeFactor;
  ForEachValue<kSixBytes>(literal, window.six, [&](const char* six) {
    const std::uint64_t bit = (LoadSix(six) * factor) >> SixShift(sixes.size());
    sixes[bit / 64] |= std::uint64_t{1} << (bit % 64);
  });
}

WindowFilter::WindowFilter(const Tables& tables, Code code)
    : tables_(tables),
      probe_(ProbeFor(code)),
      words_{tables.cells.data(), CellShift(tables.cells.size())},
      six_shift_(SixShift(tables.sixes.size())) {}

WindowFilter::WindowFilter(std::shared_ptr<const Storage> storage, Code code) : WindowFilter(storage->tables(), code) {
  storage_ = std::move(storage);
}

WindowFilter::WindowFilter(const std::vector<Literal>& literals, Code code)
    : WindowFilter(std::make_shared<const Storage>(literals), code) {}

std::size_t WindowFilter::KeepFitting(std::string_view block, std::uint32_t* places, std::size_t count) const {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = places[i];
    places[kept] = places[i];
    if (at < 2 || at + kSixBytes > block.size()) {
      ++kept;
      continue;
    }
    const std::uint64_t before = (LoadSix(block.data() + at - 2) * kBeforeFactor) >> six_shift_;
    const std::uint64_t behind = (LoadSix(block.data() + at) * kBehindFactor) >> six_shift_;
    kept += ((tables_.sixes[before / 64] >> (before % 64)) | (tables_.sixes[behind / 64] >> (behind % 64))) & 1;
  }
  return kept;
}

const WindowFilter::Entry* WindowFilter::EntryAt(std::string_view block, std::size_t at, std::size_t earliest) const {
  const std::uint64_t context = ContextAt(block, at);
  const std::uint32_t cell = (WordOf(context) * kWordFactor) >> words_.cell_shift;
  for (std::uint32_t i = tables_.first[cell]; i < tables_.first[cell + 1]; ++i) {
    const Entry& entry = tables_.entries[tables_.slots[i]];
    if ((context & entry.known) != entry.context) continue;
    const std::string_view literal(tables_.texts.data() + entry.text, entry.size);
    const std::int64_t begin = static_cast<std::int64_t>(at) - entry.offset;
    if (begin < static_cast<std::int64_t>(earliest) || static_cast<std::size_t>(begin) + literal.size() > block.size())
      continue;
    if (std::equal(literal.begin(), literal.end(), block.data() + begin, [](char wanted, char byte) {
          return static_cast<unsigned char>(wanted) == (static_cast<unsigned char>(byte) | kCaseBit);
        }))
      return &entry;
  }
  return nullptr;
}

std::size_t WindowFilter::Verify(std::string_view block, std::span<const std::uint32_t> places, std::size_t decided,
                                 std::vector<Line>& lines) const {
  for (const std::size_t at : places) {
    if (at + kWordBytes <= decided || at >= block.size()) continue;
    const Entry* entry = EntryAt(block, at, decided);
    if (entry == nullptr) continue;
    std::size_t begin = at - static_cast<std::size_t>(static_cast<std::ptrdiff_t>(entry->offset)), end = begin;
    while (begin > decided && !EndsLine(block[begin - 1])) --begin;
    while (end < block.size() && !EndsLine(block[end])) ++end;
    lines.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    decided = end;
  }
  return decided;
}

void WindowFilter::FindLines(std::string_view block, std::vector<Line>& lines) const {
  std::array<std::uint32_t, (kGroups + 1) * kGroupWords> places;
  std::size_t at = 0, decided = 0;
  const auto look = [&](const char* text, std::size_t groups) {
    const std::size_t passed = probe_(words_, text, groups, static_cast<std::uint32_t>(at), places.data());
    decided = Verify(block, {places.data(), KeepFitting(block, places.data(), passed)}, decided, lines);
    at += groups * kGroupBytes;
  };
  while (at + kGroupBytes <= block.size())
    look(block.data() + at, std::min(kGroups, (block.size() - at) / kGroupBytes));
  std::array<char, kGroupBytes> tail{};
  block.copy(tail.data(), tail.size(), at);
  look(tail.data(), 1);
}

}  // namespace inquest
