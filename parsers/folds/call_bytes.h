// How the bytes of a call's line are read and compared, with few branches: names, numbers and their lengths differ from
// line to line, and a mispredicted branch costs as much as a quarter of a line.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/ascii.h"

namespace inquest {

// A message has a head, which ends in front of ` comm ` and is the same on all ranks but for the buffers, and a tail,
// which is the same for all calls of a thread on a communicator.
inline constexpr std::size_t kWide = 32;  ///< bytes compared at once: the fewest of a head or a tail
inline constexpr std::size_t kMostHead = 128, kMostTail = 96;
inline constexpr std::size_t kFewestPrefix = 16, kMostPrefix = 80;  ///< of `host:pid:tid [dev`
inline constexpr std::size_t kGuessedPrefix = 64, kFirstEnd = 96,
                             kGuessedMessage = 224;  ///< in which bracket and end are guessed
inline constexpr std::size_t kPointerBytes = 18;     ///< `0x` and sixteen digits

template <class Word>
Word Load(const char* p) {
  Word value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <std::size_t N>
inline bool Skip(const char*& p, const char (&literal)[N]) {
  if (std::memcmp(p, literal, N - 1) != 0) return false;
  p += N - 1;
  return true;
}

inline std::uint64_t Load64(const char* p) { return Load<std::uint64_t>(p); }

/// Buffers say nothing: any word will do.
inline bool SkipWord(const char*& p, std::uint64_t&) {
  const void* blank = std::memchr(p, ' ', kPointerBytes + 1);
  if (blank == nullptr || blank == p) return false;
  p = static_cast<const char*>(blank);
  return true;
}

inline constexpr auto kHexDigits = [] {
  std::array<std::int8_t, 256> table{};
  table.fill(-1);
  for (int i = 0; i < 10; ++i) table[static_cast<std::size_t>('0' + i)] = static_cast<std::int8_t>(i);
  for (int i = 0; i < 6; ++i) table[static_cast<std::size_t>('a' + i)] = static_cast<std::int8_t>(10 + i);
  return table;
}();

inline int HexDigit(char c) { return kHexDigits[static_cast<unsigned char>(c)]; }

inline bool ReadHex(const char*& p, std::uint64_t& value) {
  value = 0;
  const char* begin = p;
  for (int digit; (digit = HexDigit(*p)) >= 0 && p - begin < 17; ++p)
    value = value << 4 | static_cast<std::uint64_t>(digit);
  return p != begin && p - begin <= 16;
}

inline bool ReadDecimal(const char*& p, std::uint64_t& value) {
  value = 0;
  const char* begin = p;
  while (*p >= '0' && *p <= '9' && p - begin < 19) value = value * 10 + static_cast<std::uint64_t>(*p++ - '0');
  return p != begin;
}

inline bool ReadInt(const char*& p, std::int32_t& value) {
  const bool negative = *p == '-';
  if (negative) ++p;
  std::uint64_t digits = 0;
  if (!ReadDecimal(p, digits) || digits > 0x7fffffff) return false;
  value = negative ? -static_cast<std::int32_t>(digits) : static_cast<std::int32_t>(digits);
  return true;
}

inline bool IsHostByte(char c) { return IsWordChar(c) || c == '-' || c == '.'; }

inline bool IsName(const char* text, std::size_t size) { return std::all_of(text, text + size, IsLetter); }

#if defined(__x86_64__)
inline __m128i Load128(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline std::uint32_t Bits(__m128i bytes) { return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes)); }
#endif

/// A byte for each of one to eight hexadecimal digits, the last one the highest.
inline std::uint64_t HexNibbles(const char* text, std::size_t digits) {
  const std::uint64_t bytes = Load64(text) << (64 - 8 * digits);
  return (bytes & 0x0f0f0f0f0f0f0f0f) + 9 * (bytes >> 6 & 0x0101010101010101);
}

/// What any machine can run. Code is chosen once a line, so that all that it calls can be part of it.
struct Portable {
  /// Whether the head of a call is the known one: where that is 0 any byte but blanks and control bytes will do, all
  /// others are the same. (What a byte above 0x7f is there is not decided: it makes them differ.) kWide to kMostHead
  /// bytes.
  static bool SameHead(const char* known, const char* text, std::size_t size) {
    bool same = true;
    for (std::size_t at = 0; at < size; ++at)
      same &= (known[at] == text[at]) | ((known[at] == 0) & (static_cast<signed char>(text[at]) > ' '));
    return same;
  }
  /// kWide to kMostTail bytes.
  static bool SameTail(const char* known, const char* text, std::size_t size) {
    return std::memcmp(known, text, size) == 0;
  }
  /// kFewestPrefix to kMostPrefix bytes.
  static bool SamePrefix(const char* known, const char* text, std::size_t size) {
    return std::memcmp(known, text, size) == 0;
  }
  /// Whether there are so many hexadecimal digits as NCCL prints them, one to eight; sixteen bytes are readable.
  static bool AreHex(const char* text, std::size_t digits) {
    return std::all_of(text, text + digits, [](char c) { return HexDigit(c) >= 0; });
  }
  /// The value of one to eight of them.
  static std::uint32_t HexOf(const char* text, std::size_t digits) {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t bytes = HexNibbles(text, digits);
    bytes = (bytes << 4 | bytes >> 8) & 0x00ff00ff00ff00ff;
    bytes = (bytes << 8 | bytes >> 16) & 0x0000ffff0000ffff;
    return static_cast<std::uint32_t>(bytes << 16 | bytes >> 32);
  }
};

#if defined(__x86_64__)
struct Avx2 {
  __attribute__((target("avx2"))) static __m256i Load256(const char* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  __attribute__((target("avx2"))) static bool SameHead(const char* known, const char* text, std::size_t size) {
    __m256i same = _mm256_set1_epi8(-1);
    for (std::size_t from = 0; from < kMostHead; from += kWide) {
      const std::size_t at = std::min(from, size - kWide);
      const __m256i a = Load256(known + at), b = Load256(text + at);
      const __m256i any =
          _mm256_and_si256(_mm256_cmpeq_epi8(a, _mm256_setzero_si256()), _mm256_cmpgt_epi8(b, _mm256_set1_epi8(' ')));
      same = _mm256_and_si256(same, _mm256_or_si256(_mm256_cmpeq_epi8(a, b), any));
    }
    return _mm256_movemask_epi8(same) == -1;
  }
  __attribute__((target("avx2"))) static bool SameTail(const char* known, const char* text, std::size_t size) {
    __m256i same = _mm256_set1_epi8(-1);
    for (std::size_t from = 0; from < kMostTail; from += kWide) {
      const std::size_t at = std::min(from, size - kWide);
      same = _mm256_and_si256(same, _mm256_cmpeq_epi8(Load256(known + at), Load256(text + at)));
    }
    return _mm256_movemask_epi8(same) == -1;
  }
  /// Most are short.
  __attribute__((target("avx2"))) static bool SamePrefix(const char* known, const char* text, std::size_t size) {
    const auto same = [&](std::size_t at) __attribute__((target("avx2"))) {
      return _mm_cmpeq_epi8(Load128(known + at), Load128(text + at));
    };
    if (size <= 2 * kFewestPrefix) return Bits(_mm_and_si128(same(0), same(size - kFewestPrefix))) == 0xffff;
    return std::memcmp(known, text, size) == 0;
  }
  /// Where the first `]` of NCCL's prefix may stand; kGuessedPrefix or more: nowhere near, or a control byte stands
  /// before.
  __attribute__((target("avx2"))) static std::size_t BracketIn(const char* text) {
    std::uint64_t found = 0;
    for (std::size_t at = 0; at < kGuessedPrefix; at += 32) {
      const __m256i bytes = Load256(text + at);
      const __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes);
      const __m256i bracket = _mm256_and_si256(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(']')),
                                               _mm256_cmpeq_epi8(Load256(text + at + 2), _mm256_set1_epi8('N')));
      found |= static_cast<std::uint64_t>(
                   static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_or_si256(control, bracket))))
               << at;
    }
    const auto first = static_cast<std::size_t>(std::countr_zero(found));
    return first < kGuessedPrefix && text[first] == ']' ? first : kGuessedPrefix;
  }
  __attribute__((target("avx2"))) static bool AreHex(const char* text, std::size_t digits) {
    const __m128i bytes = Load128(text);
    const __m128i digit = _mm_sub_epi8(bytes, _mm_set1_epi8('0')), letter = _mm_sub_epi8(bytes, _mm_set1_epi8('a'));
    const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
    const __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);
    return ((Bits(_mm_or_si128(is_digit, is_letter)) + 1) & ((1u << digits) - 1)) == 0;
  }
  static std::uint32_t HexOf(const char* text, std::size_t digits) { return Portable::HexOf(text, digits); }
  /// Where a message ends, if it is so long as a call is; kGuessedMessage: it is not.
  __attribute__((target("avx2,bmi"))) static std::size_t EndIn(const char* message) {
    const auto ends = [&](std::size_t at) __attribute__((target("avx2"))) {
      return std::uint64_t{static_cast<std::uint32_t>(
          _mm256_movemask_epi8(_mm256_cmpeq_epi8(Load256(message + at), _mm256_set1_epi8('\n'))))};
    };
    return FirstOf(ends(kFirstEnd) | ends(kFirstEnd + 32) << 32, ends(kFirstEnd + 64) | ends(kFirstEnd + 96) << 32);
  }
  /// Of 128 bytes' bits. Which half holds the first cannot be predicted.
  __attribute__((target("bmi"))) static std::size_t FirstOf(std::uint64_t near, std::uint64_t far) {
    const std::uint64_t first = _tzcnt_u64(near);
    return kFirstEnd + first + (_tzcnt_u64(far) & (0 - (first >> 6)));
  }
};

/// As Avx2, in half as many steps. (Where AVX-512 is, _pext_u64 is quick.)
struct Avx512 : Avx2 {
#define INQUEST_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,bmi,bmi2")))
  INQUEST_AVX512 static std::uint64_t Mask(std::size_t size) {
    return _bzhi_u64(~std::uint64_t{0}, static_cast<std::uint32_t>(size));
  }
  INQUEST_AVX512 static bool SameHead(const char* known, const char* text, std::size_t size) {
    const auto differ = [&](std::size_t at, std::uint64_t mask) INQUEST_AVX512 {
      const __m512i a = _mm512_loadu_si512(known + at), b = _mm512_maskz_loadu_epi8(mask, text + at);
      const std::uint64_t other = _mm512_mask_cmpneq_epi8_mask(mask, a, b);
      return _mm512_mask_test_epi8_mask(other, a, a) | _mm512_mask_cmple_epi8_mask(other, b, _mm512_set1_epi8(' '));
    };
    return (differ(0, Mask(size)) | differ(64, Mask(std::max<std::size_t>(size, 64) - 64))) == 0;
  }
  INQUEST_AVX512 static bool SameTail(const char* known, const char* text, std::size_t size) {
    return Same<kMostTail>(known, text, size);
  }
  INQUEST_AVX512 static bool SamePrefix(const char* known, const char* text, std::size_t size) {
    return Same<kMostPrefix>(known, text, size);
  }
  INQUEST_AVX512 static bool AreHex(const char* text, std::size_t digits) {
    const __m128i bytes = Load128(text);
    const std::uint32_t is_digit = _mm_cmplt_epu8_mask(_mm_sub_epi8(bytes, _mm_set1_epi8('0')), _mm_set1_epi8(10));
    const std::uint32_t is_letter = _mm_cmplt_epu8_mask(_mm_sub_epi8(bytes, _mm_set1_epi8('a')), _mm_set1_epi8(6));
    return (((is_digit | is_letter) + 1) & ((1u << digits) - 1)) == 0;
  }
  INQUEST_AVX512 static std::uint32_t HexOf(const char* text, std::size_t digits) {
    return static_cast<std::uint32_t>(_pext_u64(__builtin_bswap64(HexNibbles(text, digits)), 0x0f0f0f0f0f0f0f0f));
  }
  INQUEST_AVX512 static std::size_t EndIn(const char* message) {
    const auto ends = [&](std::size_t at) INQUEST_AVX512 {
      return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(message + at), _mm512_set1_epi8('\n'));
    };
    return FirstOf(ends(kFirstEnd), ends(kFirstEnd + 64));
  }

 private:
  template <std::size_t kMost>
  INQUEST_AVX512 static bool Same(const char* known, const char* text, std::size_t size) {
    const auto differ = [&](std::size_t at, std::uint64_t mask) INQUEST_AVX512 {
      return _mm512_mask_cmpneq_epi8_mask(mask, _mm512_maskz_loadu_epi8(mask, known + at),
                                          _mm512_maskz_loadu_epi8(mask, text + at));
    };
    static_assert(kMost > 64 && kMost <= 128);
    return differ(0, Mask(size)) == 0 && (size <= 64 || differ(64, Mask(size - 64)) == 0);
  }
};

#endif

}  // namespace inquest
