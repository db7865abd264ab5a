// Writes a compressed tar. The only door to libarchive's writing half.
#include "collect/bundle_writer.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

namespace inquest {
namespace {

struct Suffix {
  std::string_view end;
  int (*add_filter)(archive*);
};
constexpr std::array kSuffixes = {
    Suffix{".tar.zst", ::archive_write_add_filter_zstd}, Suffix{".tzst", ::archive_write_add_filter_zstd},
    Suffix{".tar.gz", ::archive_write_add_filter_gzip},  Suffix{".tgz", ::archive_write_add_filter_gzip},
    Suffix{".tar", ::archive_write_add_filter_none},
};

Error Exists(const std::string& path) {
  return Error{"exists already, and is not replaced", "give another name with -o, or remove it", path};
}
Error FileError(const std::string& path, int code) { return Error{std::strerror(code), "", path}; }

class TarWriter final : public BundleWriter {
 public:
  /// Owns `file` unless `path` is standard output.
  TarWriter(std::string path, int file, const Suffix& suffix)
      : path_(std::move(path)), file_(file), handle_(::archive_write_new()) {
    ::archive_write_set_format_pax_restricted(handle_);
    Check(suffix.add_filter(handle_));
    ::archive_write_set_bytes_in_last_block(handle_, 1);
    Check(::archive_write_open_fd(handle_, file_));
  }
  ~TarWriter() override {
    ::archive_write_free(handle_);
    if (path_ == "-") return;
    ::close(file_);
    if (!finished_) ::unlink(Part().c_str());
  }
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;

  std::optional<Error> Add(const std::string& name, std::string_view content) override {
    BeginEntry(name, content.size(), std::time(nullptr));
    Write(content);
    return error_;
  }

  // What is no plain file is not even opened: that alone can block, or set something off.
  Result<Copied> AddFile(const std::string& name, const std::string& path, const CopyLimits& limits) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return FileError(path, errno);
    if (!S_ISREG(status.st_mode)) return Error{"not a plain file", "", path};
    const int from = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (from < 0) return FileError(path, errno);
    const bool plain =
        ::fstat(from, &status) == 0 && S_ISREG(status.st_mode) && limits.owner.value_or(status.st_uid) == status.st_uid;
    const auto whole = plain ? static_cast<std::uint64_t>(status.st_size) : 0;
    const std::uint64_t size = std::min(whole, limits.bytes);
    if (plain) {
      BeginEntry(name, size, status.st_mtime);
      Copy(from, size);
    }
    ::close(from);
    if (!plain) return Error{"not a plain file, or another user's", "", path};
    return Copied{size, size < whole};
  }

  Result<std::uint64_t> Finish() override {
    Check(::archive_write_close(handle_));
    if (error_) return *error_;
    const auto bytes = static_cast<std::uint64_t>(::archive_filter_bytes(handle_, -1));
    finished_ = true;
    if (path_ == "-") return bytes;
    if (::fsync(file_) == 0 && Place()) return bytes;
    const int code = errno;
    finished_ = false;
    return code == EEXIST ? Exists(path_) : FileError(path_, code);
  }

  std::string Part() const { return path_ + ".part"; }

 private:
  /// Under its name, unless something is there by now. Without links (FAT, some network file systems) the first look
  /// must do.
  bool Place() const {
    if (::link(Part().c_str(), path_.c_str()) == 0) return ::unlink(Part().c_str()) == 0;
    return errno != EEXIST && ::rename(Part().c_str(), path_.c_str()) == 0;
  }
  void Check(int code) {
    if (code >= ARCHIVE_WARN || error_) return;
    const char* text = ::archive_error_string(handle_);
    error_ = Error{text == nullptr ? "could not be written" : text, "give a path on a disk with space: -o FILE", path_};
  }
  void BeginEntry(const std::string& name, std::uint64_t size, std::time_t time) {
    archive_entry* entry = ::archive_entry_new();
    ::archive_entry_set_pathname(entry, name.c_str());
    ::archive_entry_set_size(entry, static_cast<la_int64_t>(size));
    ::archive_entry_set_filetype(entry, AE_IFREG);
    ::archive_entry_set_perm(entry, 0644);
    ::archive_entry_set_mtime(entry, time, 0);
    if (!error_) Check(::archive_write_header(handle_, entry));
    ::archive_entry_free(entry);
  }
  void Write(std::string_view text) {
    if (error_ || text.empty()) return;
    if (::archive_write_data(handle_, text.data(), text.size()) < 0) Check(ARCHIVE_FATAL);
  }
  /// One that shrinks meanwhile is filled up by libarchive; one that grows is cut.
  void Copy(int from, std::uint64_t size) {
    std::vector<char> piece(256 * 1024);
    while (size > 0 && !error_) {
      const ssize_t got =
          ::read(from, piece.data(), static_cast<std::size_t>(std::min<std::uint64_t>(size, piece.size())));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      Write({piece.data(), static_cast<std::size_t>(got)});
      size -= static_cast<std::uint64_t>(got);
    }
  }

  std::string path_;
  int file_;
  archive* handle_;
  bool finished_ = false;
  std::optional<Error> error_;
};

}  // namespace

Result<std::unique_ptr<BundleWriter>> BundleWriter::Open(const std::string& path) {
  const auto fits = [&](const Suffix& suffix) { return path.ends_with(suffix.end); };
  const auto suffix = path == "-" ? kSuffixes.begin() : std::find_if(kSuffixes.begin(), kSuffixes.end(), fits);
  if (suffix == kSuffixes.end()) return Error{"a bundle is a tar", "end the name in .tar.zst, .tar.gz or .tar", path};
  struct stat status {};
  if (path != "-" && ::lstat(path.c_str(), &status) == 0) return Exists(path);
  constexpr mode_t kOwnerOnly = 0600;
  const int file =
      path == "-" ? STDOUT_FILENO
                  : ::open((path + ".part").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly);
  if (file < 0) return FileError(path, errno);
  return std::unique_ptr<BundleWriter>(std::make_unique<TarWriter>(path, file, *suffix));
}

}  // namespace inquest
