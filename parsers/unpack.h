// Compressed files, tars and zips, as members and their bytes. The only door to libarchive's reading half.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace inquest {

/// Whether a file that begins so is to be opened: gzip, zstd, xz, bzip2, lz4, tar or zip. Its name plays no part.
bool IsArchive(std::string_view head);
/// Bytes of a file's head that IsArchive looks at; a shorter file may be given whole.
inline constexpr std::size_t kArchiveHead = 512;

/// Bytes, block after block, each valid until the next is asked for.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Never an empty block. nullopt: the end, or what TakeProblem tells.
  virtual std::optional<std::string_view> Next() = 0;
  /// Why it ended early; empty: it did not. Told once.
  virtual std::string TakeProblem() { return {}; }
};

/// What a stream of bytes holds: one compressed file, or the members of a tar or zip, itself compressed or not.
class Unpacker : public ByteStream {
 public:
  enum class Kind : std::uint8_t { kFile, kFolder, kLink, kHidden, kDevice };
  struct Member {
    std::string name;
    Kind kind = Kind::kFile;
  };
  /// `spend` is told of bytes as they are decompressed, whether anybody asked for their member or not; once it says
  /// false, there are no more.
  static std::unique_ptr<Unpacker> Open(std::unique_ptr<ByteStream> bytes, std::function<bool(std::size_t)> spend);
  virtual std::optional<Member> NextMember() = 0;
  /// Bytes of the member; fewer than `room`: it ended. Instead of Next().
  virtual std::size_t Read(char* to, std::size_t room) = 0;
  /// One file, of which only the archive's own name is known.
  virtual bool is_single() const = 0;
};

}  // namespace inquest
