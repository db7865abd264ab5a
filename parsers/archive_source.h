// Compressed files and archives: their members, one after the other, expanded while they are read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "parsers/scan.h"

namespace inquest {

/// Whether a file that begins so is to be opened: gzip, zstd, xz, bzip2, lz4, tar or zip. Its name plays no part.
bool IsArchive(std::string_view head);
/// Bytes of a file's head that IsArchive looks at; a shorter file may be given whole.
inline constexpr std::size_t kArchiveHead = 512;

/// Nothing is written anywhere: names of members are labels. Memory does not grow with the archive.
class ArchiveSource {
 public:
  /// `head` was already read of `file`, which must stay open. `progress` counts the bytes read of it from here on.
  ArchiveSource(std::string path, std::string head, int file, const ExpansionLimits& limits, std::atomic<std::uint64_t>* progress);
  ~ArchiveSource();
  /// The next member's path: `job.log.gz` for the file in it, `bundle.tar.zst:node07/dmesg.txt`, and
  /// `bundle.tar:logs.tar.gz:rank3.log` for an archive in an archive. Folders, links, devices and hidden files are
  /// passed over. At least one; what is wrong with the archive itself is told of an empty member with its own path.
  std::optional<std::string> Next();
  /// Bytes of the member; fewer than `room`: it ended.
  std::size_t Read(char* to, std::size_t room);
  /// Why the member that ended is not whole; empty: it is.
  const std::string& problem() const { return problem_; }

 private:
  class Layer;
  std::optional<std::string> NextInside();
  void OpenInside(std::string label);
  std::string Broken(std::string label, std::string problem);
  std::string Stop(std::string problem);
  std::size_t ReadOuter(char* to, std::size_t room);
  void Spend(std::size_t bytes);

  std::string path_, inside_label_, head_, problem_;
  ExpansionLimits limits_;
  std::uint64_t packed_bytes_ = 0, expanded_bytes_ = 0, members_ = 0;
  bool met_any_ = false, met_inside_ = false;
  bool over_ = false;     ///< the archive expands to too much
  bool stopped_ = false;  ///< no more members
  bool broken_ = false;   ///< nothing more of this member
  std::unique_ptr<Layer> outer_, inside_;  ///< `inside_` reads from `outer_`
};

}  // namespace inquest
