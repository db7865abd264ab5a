// Where a block's lines end, where a mark may stand and where bytes are damaged, in one pass over the block.
#include "parsers/structure.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace inquest {
namespace {

constexpr std::size_t kBytesAtOnce = 64;
/// Marked at once: what is looked at twice is in the first cache still.
constexpr std::size_t kStretch = 64 * kBytesAtOnce;
constexpr std::uint64_t kEachByte = 0x0101010101010101U;

/// Whether one of eight bytes may be below 0x20, or `first`: no false no.
bool MayTell(const char* at, char first) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  const std::uint64_t mark = bytes ^ kEachByte * static_cast<unsigned char>(first);
  return ((((bytes - kEachByte * 0x20) & ~bytes) | ((mark - kEachByte) & ~mark)) & kEachByte * 0x80) != 0;
}

bool IsOdd(char byte) { return byte != '\t' && byte != '\b' && byte != '\f'; }

}  // namespace

Structure::Structure(std::string_view mark, Code code)
    : code_(Runnable(code)), first_(mark[0]), third_(mark[2]), marks_(kStretch + kBytesAtOnce) {}

template <class T>
void Structure::MakeRoom(std::vector<T>& list, std::size_t size) {
  if (size > list.size()) list.resize(std::max(size, 2 * list.size()));
}

void Structure::Mark(std::size_t begin, std::size_t end) {
  for (const char* data = block_.data(); begin < end;) {
    if (begin + 8 <= end && !MayTell(data + begin, first_)) {
      begin += 8;
      continue;
    }
    for (const std::size_t stop = std::min(begin + 8, end); begin < stop; ++begin) {
      const char* at = data + begin;
      marks_[mark_count_] = static_cast<std::uint32_t>(begin);
      mark_count_ += static_cast<unsigned char>(*at) < 0x20 || (at[0] == first_ && at[2] == third_) ? 1 : 0;
    }
  }
}

#if defined(__x86_64__)
namespace {

__attribute__((target("avx2"))) inline __m256i Load(const char* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

__attribute__((target("avx2"))) inline std::uint32_t Telling(const char* at, __m256i first, __m256i third) {
  const __m256i bytes = Load(at);
  const __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes);
  const __m256i mark = _mm256_and_si256(_mm256_cmpeq_epi8(bytes, first), _mm256_cmpeq_epi8(Load(at + 2), third));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_or_si256(control, mark)));
}

}  // namespace

// Where the next mark stands cannot be predicted, so two are written whether or not there are any, and only the count
// says which are. Chunks with more are rare.
__attribute__((target("avx2,bmi,popcnt"))) void Structure::MarkAvx2(std::size_t begin, std::size_t end) {
  const __m256i first_byte = _mm256_set1_epi8(first_), third_byte = _mm256_set1_epi8(third_);
  std::uint32_t* mark = marks_.data();
  for (; begin + kBytesAtOnce <= end; begin += kBytesAtOnce) {
    const char* at = block_.data() + begin;
    const std::uint64_t first = Telling(at, first_byte, third_byte) |
                                static_cast<std::uint64_t>(Telling(at + 32, first_byte, third_byte)) << 32;
    const std::uint64_t second = first & (first - 1), third = second & (second - 1);
    const auto place = [begin](std::uint64_t bits) {
      return static_cast<std::uint32_t>(begin) + static_cast<std::uint32_t>(std::countr_zero(bits));
    };
    mark[0] = place(first);
    mark[1] = place(second);
    std::uint32_t* more = mark + 2;
    for (std::uint64_t bits = third; bits != 0; bits &= bits - 1) *more++ = place(bits);
    mark += std::popcount(first);
  }
  mark_count_ = static_cast<std::size_t>(mark - marks_.data());
  Mark(begin, end);
}
#else
void Structure::MarkAvx2(std::size_t begin, std::size_t end) { Mark(begin, end); }
#endif

void Structure::TakeMarks() {
  MakeRoom(ends_, count_ + mark_count_ + 1);
  MakeRoom(found_, found_count_ + mark_count_);
  std::uint32_t* end = ends_.data() + count_;
  Found* found = found_.data() + found_count_;
  for (std::size_t i = 0; i < mark_count_; ++i) {
    const std::uint32_t at = marks_[i];
    const char byte = block_[at];
    const auto piece = static_cast<std::uint32_t>(end - ends_.data());
    if (byte == '\n') {
      *end++ = at;
    } else if (byte == first_) {
      *found++ = {at, piece};
    } else if (byte == '\r') {
      if (at + 1 < block_.size() && block_[at + 1] == '\n') continue;
      returns_.push_back(piece);
      *end++ = at;
    } else if (byte == '\x1b') {
      escaped_ = true;
    } else if (IsOdd(byte) && (odd_.empty() || odd_.back() != piece)) {
      odd_.push_back(piece);
    }
  }
  count_ = static_cast<std::size_t>(end - ends_.data());
  found_count_ = static_cast<std::size_t>(found - found_.data());
}

void Structure::Begin(std::string_view block) {
  block_ = block;
  count_ = found_count_ = size_ = 0;
  last_next_ = 0;
  escaped_ = false;
  returns_.clear();
  odd_.clear();
}

void Structure::TakeLines(std::span<const std::uint32_t> ends) {
  if (ends.empty()) return;
  MakeRoom(ends_, count_ + ends.size());
  std::copy(ends.begin(), ends.end(), ends_.begin() + static_cast<std::ptrdiff_t>(count_));
  size_ = count_ += ends.size();
  last_next_ = ends.back() + 1;
}

// A piece that goes on behind the stretch is left to the next one.
void Structure::Find(std::size_t bytes) {
  const std::size_t first = count_, stop = last_next_ + std::min(bytes, block_.size() - last_next_);
  std::size_t begin = last_next_;
  found_count_ = 0;
  while (begin < block_.size() && (begin < stop || count_ == first)) {
    const std::size_t end = std::min(begin + kStretch, begin < stop ? stop : block_.size());
    mark_count_ = 0;
    if (code_ != Code::kPortable)
      MarkAvx2(begin, end);
    else
      Mark(begin, end);
    TakeMarks();
    begin = end;
  }
  size_ = count_;
  last_next_ = this->begin(count_);
  if (begin == block_.size()) {
    if (last_next_ != begin) {
      MakeRoom(ends_, count_ + 1);
      ends_[size_++] = static_cast<std::uint32_t>(begin);
    }
    last_next_ = static_cast<std::uint32_t>(begin);
    return;
  }
  while (found_count_ > 0 && found_[found_count_ - 1].offset >= last_next_) --found_count_;
  if (!odd_.empty() && odd_.back() == count_) odd_.pop_back();
}

std::uint32_t Structure::line(std::size_t piece) const {
  const auto before =
      std::lower_bound(returns_.begin(), returns_.end(), static_cast<std::uint32_t>(piece)) - returns_.begin();
  return static_cast<std::uint32_t>(piece) - static_cast<std::uint32_t>(before);
}

std::size_t Structure::FirstOfLine(std::uint32_t line) const {
  std::size_t first = 0, count = size_;
  while (count > 0) {
    const std::size_t half = count / 2;
    if (this->line(first + half) < line)
      first += half + 1, count -= half + 1;
    else
      count = half;
  }
  return first;
}

std::size_t Structure::PieceAt(std::uint32_t offset) const {
  return static_cast<std::size_t>(
      std::lower_bound(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(size_), offset) - ends_.begin());
}

}  // namespace inquest
