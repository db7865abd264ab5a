// Compressed files, tars and zips, as members and their bytes. The only door to libarchive's reading half.
#include "parsers/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace inquest {
namespace {

using std::string_view;

constexpr std::size_t kNameCap = 1024;
constexpr std::size_t kHoleBytes = 64 * 1024;
/// Steps without progress that a damaged archive may take: a tar is searched for its next header block by block.
constexpr int kMaxRetries = 1 << 20;

constexpr std::array kZips = {string_view("PK\x03\x04", 4), string_view("PK\x05\x06", 4)};  // the second has no members
constexpr std::array kCompressed = {
    string_view("\x1f\x8b\x08", 3),              // gzip
    string_view("\x28\xb5\x2f\xfd", 4),          // zstd
    string_view("\xfd\x37\x7a\x58\x5a\x00", 6),  // xz
    string_view("\x04\x22\x4d\x18", 4),
    string_view("\x02\x21\x4c\x18", 4),  // lz4, and its old frame
};

bool BeginsWithOneOf(string_view head, std::span<const string_view> magics) {
  return std::any_of(magics.begin(), magics.end(), [&](string_view magic) { return head.starts_with(magic); });
}

/// "BZh9" could begin a log; the mark of a block or of the end behind it does not.
bool IsBzip2(string_view head) {
  if (head.size() < 10 || !head.starts_with("BZh") || head[3] < '1' || head[3] > '9') return false;
  return head.substr(4, 6) == "\x31\x41\x59\x26\x53\x59" || head.substr(4, 6) == "\x17\x72\x45\x38\x50\x90";
}

bool IsCompressed(string_view head) { return BeginsWithOneOf(head, kCompressed) || IsBzip2(head); }

/// The first header's own sum is right. Holds for tars of every age; the magic of the newer ones is no proof. A tar of
/// no members is zeros, and so is the head of a log that was truncated while it was written: it passes for that.
bool IsTar(string_view head) {
  constexpr std::size_t kSumAt = 148, kSumBytes = 8;
  if (head.size() < kArchiveHead || head[0] == '\0') return false;
  std::uint32_t written = 0, sum = kSumBytes * ' ';
  std::size_t digits = 0;
  for (const char c : head.substr(kSumAt, kSumBytes)) {
    if (c >= '0' && c <= '7') {
      written = written * 8 + static_cast<std::uint32_t>(c - '0');
      ++digits;
    } else if (c != ' ' && c != '\0') {
      return false;
    }
  }
  for (std::size_t i = 0; i < kArchiveHead; ++i)
    if (i < kSumAt || i >= kSumAt + kSumBytes) sum += static_cast<unsigned char>(head[i]);
  return digits > 0 && sum == written;
}

/// What libarchive is told to expect. Left to itself it takes text for an mtree, and zeros for a tar.
enum class Holds : std::uint8_t { kFiltered, kOneFile, kTar, kZip };
Holds ContentOf(string_view head) {
  return IsTar(head) ? Holds::kTar : BeginsWithOneOf(head, kZips) ? Holds::kZip : Holds::kOneFile;
}

/// As in folders, what begins with a dot is left out; macOS puts such files beside every other.
bool IsHidden(string_view name) {
  for (std::size_t at = 0; at < name.size(); at = std::min(name.find('/', at), name.size() - 1) + 1) {
    const string_view part = name.substr(at, name.find('/', at) - at);
    if (part.starts_with('.') && part != "." && part != "..") return true;
  }
  return false;
}

/// A stream whose first bytes were looked at.
class Peeked final : public ByteStream {
 public:
  explicit Peeked(std::unique_ptr<ByteStream> from) : from_(std::move(from)) {
    while (head_.size() < kArchiveHead) {
      const auto block = from_->Next();
      if (!block) break;
      head_.append(*block);
    }
  }
  string_view head() const { return head_; }
  std::optional<string_view> Next() override {
    if (!std::exchange(given_, true) && !head_.empty()) return string_view(head_);
    return from_->Next();
  }
  std::string TakeProblem() override { return from_->TakeProblem(); }

 private:
  std::unique_ptr<ByteStream> from_;
  std::string head_;
  bool given_ = false;
};

class Layer final : public Unpacker {
 public:
  Layer(std::unique_ptr<ByteStream> from, Holds holds) : from_(std::move(from)), handle_(::archive_read_new()) {
    // By name, not "all": that would run external programs for some filters.
    if (holds == Holds::kFiltered)
      for (const auto support :
           {::archive_read_support_filter_gzip, ::archive_read_support_filter_zstd, ::archive_read_support_filter_xz,
            ::archive_read_support_filter_bzip2, ::archive_read_support_filter_lz4})
        support(handle_);
    if (holds == Holds::kTar) ::archive_read_support_format_tar(handle_);
    if (holds == Holds::kZip) ::archive_read_support_format_zip_streamable(handle_);
    if (holds == Holds::kFiltered || holds == Holds::kOneFile) {
      ::archive_read_support_format_raw(handle_);
      ::archive_read_support_format_empty(handle_);
    }
    if (::archive_read_open(handle_, this, nullptr, &Layer::OnRead, nullptr) != ARCHIVE_OK) Fail();
  }
  ~Layer() override { ::archive_read_free(handle_); }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  std::optional<Member> NextMember() override {
    block_ = {};
    hole_ = output_ = 0;
    for (int retries = 0; !fatal_ && retries < kMaxRetries; ++retries) {
      archive_entry* entry = nullptr;
      const int code = ::archive_read_next_header(handle_, &entry);
      if (code == ARCHIVE_EOF) return std::nullopt;
      if (code >= ARCHIVE_WARN) {
        ended_ = false;
        encrypted_ = ::archive_entry_is_encrypted(entry) != 0;
        return Describe(entry);
      }
      Note();
      fatal_ = code != ARCHIVE_RETRY;
    }
    return std::nullopt;
  }

  std::optional<string_view> Next() override {
    if (hole_ == 0 && block_.empty() && !FetchBlock()) return std::nullopt;
    string_view next = std::exchange(block_, {});
    if (hole_ > 0) {
      static constexpr std::array<char, kHoleBytes> kZeros{};
      block_ = next;
      next = string_view(kZeros.data(), static_cast<std::size_t>(std::min<std::uint64_t>(hole_, kZeros.size())));
      hole_ -= next.size();
    }
    output_ += next.size();
    return next;
  }

  std::size_t Read(char* to, std::size_t room) override {
    std::size_t filled = 0;
    while (filled < room) {
      const auto next = Next();
      if (!next) break;
      const std::size_t size = std::min(room - filled, next->size());
      std::memcpy(to + filled, next->data(), size);
      filled += size;
      Return(next->substr(size));
    }
    return filled;
  }

  bool is_single() const override {
    return ::archive_format(handle_) == ARCHIVE_FORMAT_RAW || ::archive_format(handle_) == ARCHIVE_FORMAT_EMPTY;
  }

  /// What is wrong below explains what is wrong here.
  std::string TakeProblem() override {
    std::string own = std::exchange(problem_, {}), below = from_->TakeProblem();
    return below.empty() ? own : below;
  }

 private:
  static la_ssize_t OnRead(archive*, void* self, const void** data) {
    const auto block = static_cast<Layer*>(self)->from_->Next();
    *data = block ? block->data() : nullptr;
    return block ? static_cast<la_ssize_t>(block->size()) : 0;
  }

  static Member Describe(archive_entry* entry) {
    const char* name = ::archive_entry_pathname_utf8(entry);
    if (name == nullptr) name = ::archive_entry_pathname(entry);
    string_view label = name == nullptr ? string_view("?") : string_view(name);
    while (label.starts_with("./")) label.remove_prefix(2);
    return {std::string(label.substr(0, kNameCap)), KindOf(entry, label)};
  }

  static Kind KindOf(archive_entry* entry, string_view label) {
    const auto type = ::archive_entry_filetype(entry);
    if (type == AE_IFDIR) return Kind::kFolder;
    if (type == AE_IFLNK || ::archive_entry_hardlink(entry) != nullptr) return Kind::kLink;
    if (type != AE_IFREG) return Kind::kDevice;
    return IsHidden(label) ? Kind::kHidden : Kind::kFile;
  }

  /// The rest of what Next() gave.
  void Return(string_view rest) {
    output_ -= rest.size();
    if (rest.empty()) return;
    // A rest of zeros belongs to the hole before the block, if the block is still waiting.
    if (!block_.empty() || hole_ > 0)
      hole_ += rest.size();
    else
      block_ = rest;
  }

  // archive_read_data loses what it had copied when it meets the damage behind it; blocks do not.
  bool FetchBlock() {
    for (int retries = 0; !ended_ && !fatal_ && retries < kMaxRetries; ++retries) {
      const void* data = nullptr;
      std::size_t size = 0;
      la_int64_t offset = 0;
      const int code = ::archive_read_data_block(handle_, &data, &size, &offset);
      ended_ = code == ARCHIVE_EOF || (code < ARCHIVE_WARN && code != ARCHIVE_RETRY);
      if (code < ARCHIVE_WARN) Note();
      fatal_ = code == ARCHIVE_FATAL;
      if (code < ARCHIVE_WARN || ended_ || size == 0) continue;
      if (offset < 0 || static_cast<std::uint64_t>(offset) < output_) {
        problem_ = "cut or corrupt: its pieces overlap";
        ended_ = true;
        return false;
      }
      hole_ = static_cast<std::uint64_t>(offset) - output_;
      block_ = {static_cast<const char*>(data), size};
      return true;
    }
    ended_ = true;
    return false;
  }

  void Note() {
    const char* text = ::archive_error_string(handle_);
    problem_ = encrypted_ ? "encrypted: unpack it with its password and give the folder"
                          : fmt::format("cut or corrupt: {}", text == nullptr ? "no reason given" : text);
  }
  void Fail() {
    Note();
    fatal_ = true;
  }

  std::unique_ptr<ByteStream> from_;
  archive* handle_;
  string_view block_;       ///< libarchive's, until the next call
  std::uint64_t hole_ = 0;  ///< zeros of a sparse file that stand before `block_`
  std::uint64_t output_ = 0;
  bool ended_ = true, fatal_ = false, encrypted_ = false;
  std::string problem_;
};

class Decompressed final : public ByteStream {
 public:
  Decompressed(std::unique_ptr<ByteStream> from, std::function<bool(std::size_t)> spend)
      : layer_(std::move(from), Holds::kFiltered), spend_(std::move(spend)) {}
  std::optional<string_view> Next() override {
    if (!std::exchange(begun_, true)) layer_.NextMember();
    const auto block = layer_.Next();
    return block && spend_(block->size()) ? block : std::nullopt;
  }
  std::string TakeProblem() override { return layer_.TakeProblem(); }

 private:
  Layer layer_;
  std::function<bool(std::size_t)> spend_;
  bool begun_ = false;
};

}  // namespace

bool IsArchive(string_view head) { return IsCompressed(head) || ContentOf(head) != Holds::kOneFile; }

std::unique_ptr<Unpacker> Unpacker::Open(std::unique_ptr<ByteStream> bytes, std::function<bool(std::size_t)> spend) {
  auto peeked = std::make_unique<Peeked>(std::move(bytes));
  if (IsCompressed(peeked->head()))
    peeked = std::make_unique<Peeked>(std::make_unique<Decompressed>(std::move(peeked), std::move(spend)));
  const Holds holds = ContentOf(peeked->head());
  return std::make_unique<Layer>(std::move(peeked), holds);
}

}  // namespace inquest
