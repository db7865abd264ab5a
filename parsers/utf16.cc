// Text in UTF-16, as PowerShell's `>` writes it, turned into UTF-8 while it is read.
#include "parsers/utf16.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace inquest {
namespace {

constexpr std::size_t kRawBytes = 64 * 1024;
constexpr char32_t kReplacement = 0xfffd;

void AppendUtf8(std::string& out, char32_t c) {
  const auto more = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    more(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    more(6);
    more(0);
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    more(12);
    more(6);
    more(0);
  }
}

bool IsHigh(char32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool HasMark(std::string_view head) { return head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"); }
bool IsLow(char32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

/// The order that the mark, or the place of NULs, tells; nullopt: it is no UTF-16. Other files that hold NULs hold them
/// in both places, or in runs.
enum class Order : std::uint8_t { kLittle, kBig };
std::optional<Order> OrderOf(std::string_view head) {
  constexpr std::size_t kLookedAt = 4096, kFewest = 16;
  if (HasMark(head)) return head.starts_with('\xfe') ? Order::kBig : Order::kLittle;
  head = head.substr(0, std::min(head.size() / 2 * 2, kLookedAt));
  if (head.size() < kFewest || head.substr(0, kFewest).find('\0') == std::string_view::npos) return std::nullopt;
  std::size_t nul[2] = {0, 0};
  for (std::size_t i = 0; i < head.size(); ++i) nul[i % 2] += head[i] == '\0' ? 1 : 0;
  const std::size_t pairs = head.size() / 2;
  const auto mostly = [pairs](std::size_t count) { return count * 10 > pairs * 7; };
  const auto hardly = [pairs](std::size_t count) { return count * 50 <= pairs; };
  if (mostly(nul[1]) && hardly(nul[0])) return Order::kLittle;
  if (mostly(nul[0]) && hardly(nul[1])) return Order::kBig;
  return std::nullopt;
}

}  // namespace

bool IsUtf16(std::string_view head) { return OrderOf(head).has_value(); }

Utf16Reader::Utf16Reader(std::string head, bool whole, ReadBytes read)
    : read_(std::move(read)),
      raw_(std::move(head)),
      at_(HasMark(raw_) ? 2 : 0),
      big_endian_(OrderOf(raw_) == Order::kBig),
      whole_(whole) {}

bool Utf16Reader::Have(std::size_t bytes) {
  if (raw_.size() - at_ >= bytes) return true;
  if (whole_) return false;
  raw_.erase(0, std::exchange(at_, 0));
  const std::size_t before = raw_.size();
  raw_.resize(before + kRawBytes);
  const std::size_t got = read_(raw_.data() + before, kRawBytes);
  raw_.resize(before + got);
  whole_ = got < kRawBytes;
  return raw_.size() >= bytes;
}

char32_t Utf16Reader::Unit() const {
  const auto first = static_cast<unsigned char>(raw_[at_]), second = static_cast<unsigned char>(raw_[at_ + 1]);
  return static_cast<char32_t>(big_endian_ ? first << 8 | second : second << 8 | first);
}

bool Utf16Reader::Decode() {
  character_.clear();
  if (!Have(2)) {
    if (at_ == raw_.size()) return false;
    at_ = raw_.size();
    AppendUtf8(character_, kReplacement);
    return true;
  }
  char32_t c = Unit();
  at_ += 2;
  if (IsHigh(c) && Have(2) && IsLow(Unit())) {
    c = 0x10000 + ((c - 0xd800) << 10) + (Unit() - 0xdc00);
    at_ += 2;
  } else if (IsHigh(c) || IsLow(c)) {
    c = kReplacement;
  }
  AppendUtf8(character_, c);
  return true;
}

std::size_t Utf16Reader::Fill(char* to, std::size_t room) {
  std::size_t filled = 0;
  while (filled < room && (!character_.empty() || Decode())) {
    const std::size_t fits = std::min(room - filled, character_.size());
    filled += character_.copy(to + filled, fits);
    character_.erase(0, fits);
  }
  return filled;
}

}  // namespace inquest
