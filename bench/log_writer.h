// Formats log lines by hand into one large buffer, so that a generated log is written as fast as the disk takes it.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

namespace inquest::bench {

/// Appends text and numbers; writes to a file descriptor whenever the buffer is full. Not for several threads.
class LogWriter {
 public:
  explicit LogWriter(int descriptor) : descriptor_(descriptor), buffer_(std::make_unique<char[]>(kCapacity)) {}
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  ~LogWriter() { Flush(); }

  /// Bytes so far, those still in the buffer included.
  std::uint64_t bytes() const { return written_ + size_; }
  /// False once the reader or the disk refused bytes; what is appended then is dropped.
  bool good() const { return good_; }

  LogWriter& Text(std::string_view text) {
    Reserve(text.size());
    std::memcpy(buffer_.get() + size_, text.data(), text.size());
    size_ += text.size();
    return *this;
  }
  LogWriter& Decimal(std::uint64_t value, unsigned width = 1, char fill = '0') {
    char digits[20];
    unsigned count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    Reserve(width + count);
    char* out = buffer_.get() + size_;
    const char* const begin = out;
    for (; width > count; --width) *out++ = fill;
    while (count != 0) *out++ = digits[--count];
    size_ += static_cast<std::size_t>(out - begin);
    return *this;
  }
  /// `scaled` is the value times ten to the power of `decimals`: Fixed(1234, 2) is 12.34.
  LogWriter& Fixed(std::uint64_t scaled, unsigned decimals, unsigned width = 1) {
    std::uint64_t unit = 1;
    for (unsigned i = 0; i < decimals; ++i) unit *= 10;
    Decimal(scaled / unit, width, ' ').Text(".");
    return Decimal(scaled % unit, decimals);
  }
  LogWriter& Hex(std::uint64_t value) {
    char digits[16];
    unsigned count = 0;
    do {
      digits[count++] = "0123456789abcdef"[value & 15];
      value >>= 4;
    } while (value != 0);
    Reserve(count);
    while (count != 0) buffer_[size_++] = digits[--count];
    return *this;
  }

  void Flush() {
    const char* from = buffer_.get();
    while (good_ && size_ != 0) {
      const ssize_t count = ::write(descriptor_, from, size_);
      if (count <= 0) {
        good_ = false;
        break;
      }
      from += count;
      size_ -= static_cast<std::size_t>(count);
      written_ += static_cast<std::uint64_t>(count);
    }
    size_ = 0;
  }

 private:
  static constexpr std::size_t kCapacity = 1 << 20;

  void Reserve(std::size_t count) {
    if (count > kCapacity) std::abort();
    if (size_ + count > kCapacity) Flush();
  }

  int descriptor_;
  std::unique_ptr<char[]> buffer_;
  std::size_t size_ = 0;
  std::uint64_t written_ = 0;
  bool good_ = true;
};

/// A small generator of its own: the same seed gives the same log on every machine (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  /// In 0 .. bound - 1; slightly uneven for huge bounds, which is of no matter here.
  std::uint64_t Below(std::uint64_t bound) { return ((Next() >> 32) * bound) >> 32; }

 private:
  std::uint64_t state_;
};

}  // namespace inquest::bench
