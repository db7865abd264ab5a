// Compressed files and archives: their members, one after the other, expanded while they are read.
#include "parsers/archive_source.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

namespace inquest {
namespace {

using std::string_view;

constexpr std::size_t kPullBytes = 256 * 1024;
constexpr std::size_t kNameCap = 1024;
constexpr const char* kTooMuch = "expands to far more than a log does";
/// Steps without progress that a damaged archive may take: a tar is searched for its next header block by block.
constexpr int kMaxRetries = 1 << 20;

constexpr std::array kMagics = {
    string_view("\x1f\x8b\x08", 3),                                      // gzip
    string_view("\x28\xb5\x2f\xfd", 4),                                  // zstd
    string_view("\xfd\x37\x7a\x58\x5a\x00", 6),                          // xz
    string_view("\x04\x22\x4d\x18", 4), string_view("\x02\x21\x4c\x18", 4),  // lz4, and its old frame
    string_view("PK\x03\x04", 4), string_view("PK\x05\x06", 4),          // zip, and one of no members
};

/// "BZh9" could begin a log; the mark of a block or of the end behind it does not.
bool IsBzip2(string_view head) {
  if (head.size() < 10 || !head.starts_with("BZh") || head[3] < '1' || head[3] > '9') return false;
  return head.substr(4, 6) == "\x31\x41\x59\x26\x53\x59" || head.substr(4, 6) == "\x17\x72\x45\x38\x50\x90";
}

/// The first header's own sum is right. Holds for tars of every age; the magic of the newer ones is no proof.
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

/// As in folders, what begins with a dot is left out; macOS puts such files beside every other.
bool IsHidden(string_view name) {
  for (std::size_t at = 0; at < name.size(); at = std::min(name.find('/', at), name.size() - 1) + 1) {
    const string_view part = name.substr(at, name.find('/', at) - at);
    if (part.starts_with('.') && part != "." && part != "..") return true;
  }
  return false;
}

}  // namespace

bool IsArchive(string_view head) {
  const auto begins = [&](string_view magic) { return head.starts_with(magic); };
  return std::any_of(kMagics.begin(), kMagics.end(), begins) || IsBzip2(head) || IsTar(head);
}

/// One libarchive reader over bytes that it pulls.
class ArchiveSource::Layer {
 public:
  /// Bytes put at `to`; 0 at the end, negative errno where reading failed.
  using Pull = std::function<ssize_t(char* to, std::size_t room)>;
  struct Member {
    std::string name;
    bool readable = false;  ///< a plain file, not hidden
  };

  explicit Layer(Pull pull) : pull_(std::move(pull)), buffer_(kPullBytes), handle_(::archive_read_new()) {
    // By name, not "all": that would run external programs for some filters, and take text for an mtree of files here.
    for (const auto support : {::archive_read_support_filter_gzip, ::archive_read_support_filter_zstd, ::archive_read_support_filter_xz,
                               ::archive_read_support_filter_bzip2, ::archive_read_support_filter_lz4, ::archive_read_support_format_tar,
                               ::archive_read_support_format_zip_streamable, ::archive_read_support_format_raw, ::archive_read_support_format_empty})
      support(handle_);
    if (::archive_read_open(handle_, this, nullptr, &Layer::OnRead, nullptr) != ARCHIVE_OK) Fail();
  }
  ~Layer() { ::archive_read_free(handle_); }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  std::optional<Member> Next() {
    block_ = {};
    hole_ = output_ = 0;
    for (int retries = 0; !fatal_ && retries < kMaxRetries; ++retries) {
      archive_entry* entry = nullptr;
      const int code = ::archive_read_next_header(handle_, &entry);
      if (code == ARCHIVE_EOF) return std::nullopt;
      if (code >= ARCHIVE_WARN) {
        ended_ = false;
        return Describe(entry);
      }
      Note();
      fatal_ = code != ARCHIVE_RETRY;
    }
    return std::nullopt;
  }

  std::size_t Read(char* to, std::size_t room) {
    std::size_t filled = 0;
    while (filled < room && (hole_ > 0 || !block_.empty() || FetchBlock())) {
      const std::size_t size = std::min(room - filled, hole_ > 0 ? static_cast<std::size_t>(std::min<std::uint64_t>(hole_, room)) : block_.size());
      if (hole_ > 0) {
        std::memset(to + filled, 0, size);
        hole_ -= size;
      } else {
        std::memcpy(to + filled, block_.data(), size);
        block_.remove_prefix(size);
      }
      output_ += size;
      filled += size;
    }
    return filled;
  }

  /// One compressed file, not an archive of several.
  bool is_single() const { return ::archive_format(handle_) == ARCHIVE_FORMAT_RAW || ::archive_format(handle_) == ARCHIVE_FORMAT_EMPTY; }
  std::string TakeProblem() { return std::exchange(problem_, {}); }

 private:
  static la_ssize_t OnRead(archive* handle, void* self, const void** data) {
    Layer& layer = *static_cast<Layer*>(self);
    *data = layer.buffer_.data();
    const ssize_t got = layer.pull_(layer.buffer_.data(), layer.buffer_.size());
    if (got < 0) ::archive_set_error(handle, static_cast<int>(-got), "%s", std::strerror(static_cast<int>(-got)));
    return got < 0 ? ARCHIVE_FATAL : got;
  }

  static Member Describe(archive_entry* entry) {
    const char* name = ::archive_entry_pathname_utf8(entry);
    if (name == nullptr) name = ::archive_entry_pathname(entry);
    string_view label = name == nullptr ? string_view("?") : string_view(name);
    while (label.starts_with("./")) label.remove_prefix(2);
    const bool file = ::archive_entry_filetype(entry) == AE_IFREG && ::archive_entry_hardlink(entry) == nullptr;
    return {std::string(label.substr(0, kNameCap)), file && !IsHidden(label)};
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
    problem_ = fmt::format("cut or corrupt: {}", text == nullptr ? "no reason given" : text);
  }
  void Fail() {
    Note();
    fatal_ = true;
  }

  Pull pull_;
  std::vector<char> buffer_;
  archive* handle_;
  string_view block_;       ///< libarchive's, until the next call
  std::uint64_t hole_ = 0;  ///< zeros of a sparse file that stand before `block_`
  std::uint64_t output_ = 0;
  bool ended_ = true, fatal_ = false;
  std::string problem_;
};

ArchiveSource::ArchiveSource(std::string path, std::string head, int file, const ExpansionLimits& limits, std::atomic<std::uint64_t>* progress)
    : path_(std::move(path)), limits_(limits), packed_bytes_(head.size()) {
  const auto pull = [this, head = std::move(head), file, progress](char* to, std::size_t room) mutable -> ssize_t {
    if (!head.empty()) {
      const std::size_t size = std::min(room, head.size());
      std::memcpy(to, head.data(), size);
      head.erase(0, size);
      return static_cast<ssize_t>(size);
    }
    ssize_t got = 0;
    do got = ::read(file, to, room);
    while (got < 0 && errno == EINTR);
    if (got < 0) return -errno;
    packed_bytes_ += static_cast<std::size_t>(got);
    if (progress != nullptr) progress->fetch_add(static_cast<std::size_t>(got), std::memory_order_relaxed);
    return got;
  };
  outer_ = std::make_unique<Layer>(pull);
}

ArchiveSource::~ArchiveSource() = default;

std::string ArchiveSource::Broken(std::string label, std::string problem) {
  broken_ = true;
  problem_ = std::move(problem);
  return label;
}

std::string ArchiveSource::Stop(std::string problem) {
  stopped_ = true;
  return Broken(path_, std::move(problem) + "; the rest was not read");
}

std::optional<std::string> ArchiveSource::Next() {
  problem_.clear();
  head_.clear();
  broken_ = false;
  while (!stopped_) {
    if (over_) return Stop(kTooMuch);
    if (auto label = NextInside()) return label;
    if (stopped_) break;
    const auto member = outer_->Next();
    if (!member) {
      stopped_ = true;
      std::string problem = outer_->TakeProblem();
      if (met_any_ && problem.empty()) break;
      return Broken(path_, std::move(problem));
    }
    if (++members_ > limits_.members) return Stop(fmt::format("more than {} members", limits_.members));
    if (!member->readable) continue;
    met_any_ = true;
    if (outer_->is_single()) return path_;
    std::string label = path_ + ":" + member->name;
    head_.resize(kArchiveHead);
    head_.resize(outer_->Read(head_.data(), kArchiveHead));
    if (!IsArchive(head_)) return label;
    OpenInside(std::move(label));
  }
  return std::nullopt;
}

void ArchiveSource::OpenInside(std::string label) {
  inside_label_ = std::move(label);
  met_inside_ = false;
  inside_ = std::make_unique<Layer>([this](char* to, std::size_t room) -> ssize_t {
    if (over_) return 0;
    const std::size_t got = ReadOuter(to, room);
    Spend(got);
    return static_cast<ssize_t>(got);
  });
}

std::optional<std::string> ArchiveSource::NextInside() {
  while (inside_ != nullptr) {
    const auto member = inside_->Next();
    if (over_) return Stop(kTooMuch);
    if (!member) {
      std::string problem = inside_->TakeProblem();
      if (problem.empty()) problem = outer_->TakeProblem();
      inside_.reset();
      if (met_inside_ && problem.empty()) return std::nullopt;
      return Broken(inside_label_, std::move(problem));
    }
    if (++members_ > limits_.members) return Stop(fmt::format("more than {} members", limits_.members));
    if (!member->readable) continue;
    met_inside_ = true;
    return inside_->is_single() ? inside_label_ : inside_label_ + ":" + member->name;
  }
  return std::nullopt;
}

void ArchiveSource::Spend(std::size_t bytes) {
  expanded_bytes_ += bytes;
  const bool too_dense = expanded_bytes_ > limits_.dense_bytes && expanded_bytes_ / limits_.ratio > packed_bytes_;
  over_ = over_ || expanded_bytes_ > limits_.bytes || too_dense;
}

std::size_t ArchiveSource::ReadOuter(char* to, std::size_t room) {
  const std::size_t size = std::min(room, head_.size());
  std::memcpy(to, head_.data(), size);
  head_.erase(0, size);
  return size + outer_->Read(to + size, room - size);
}

std::size_t ArchiveSource::Read(char* to, std::size_t room) {
  if (broken_) return 0;
  const std::size_t got = inside_ != nullptr ? inside_->Read(to, room) : ReadOuter(to, room);
  Spend(got);
  if (got < room) {
    problem_ = (inside_ != nullptr ? *inside_ : *outer_).TakeProblem();
    broken_ = true;
  }
  if (over_) {
    problem_ = std::string(kTooMuch) + "; the rest was not read";
    broken_ = stopped_ = true;
  }
  return got;
}

}  // namespace inquest
