// Compressed files and archives: their members, one after the other, expanded while they are read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "parsers/scan.h"
#include "parsers/unpack.h"

namespace inquest {

/// Nothing is written anywhere: names of members are labels. Memory does not grow with the archive.
class ArchiveSource {
 public:
  /// `head` was already read of `file`, which must stay open. `progress` counts the bytes read of it from here on.
  ArchiveSource(std::string path, std::string head, int file, const ExpansionLimits& limits,
                std::atomic<std::uint64_t>* progress);
  ~ArchiveSource();
  /// The next member's path: `job.log.gz` for the file in it, `bundle.tar.zst:node07/dmesg.txt`, and
  /// `bundle.tar:logs.tar.gz:rank3.log` for an archive in an archive. Folders, links, devices and hidden files are
  /// passed over. At least one; what is wrong with the archive itself, and how much was passed over, is told last, of
  /// an empty member with its own path.
  std::optional<std::string> Next();
  /// Bytes of the member; fewer than `room`: it ended.
  std::size_t Read(char* to, std::size_t room);
  /// Why the member that ended is not whole; empty: it is.
  const std::string& problem() const { return problem_; }

 private:
  class File;
  class MemberOfOuter;
  std::optional<std::string> NextInside();
  void OpenInside(std::string label);
  std::string Broken(std::string label, std::string problem);
  std::string Stop(std::string problem);
  bool IsWanted(const Unpacker::Member& member);
  std::string PassedOver() const;
  std::size_t ReadOuter(char* to, std::size_t room);
  void Spend(std::uint64_t& counter, std::size_t bytes);

  std::string path_, inside_label_, head_, problem_;
  ExpansionLimits limits_;
  std::uint64_t packed_bytes_ = 0;    ///< read of the file
  std::uint64_t unpacked_bytes_ = 0;  ///< that came out of a decompressor, wanted or not
  std::uint64_t given_bytes_ = 0;     ///< of members
  std::uint64_t members_ = 0;
  std::uint64_t links_ = 0, hidden_ = 0, devices_ = 0;  ///< passed over
  bool met_any_ = false, met_inside_ = false;
  bool over_ = false;                         ///< the archive expands to too much
  bool stopped_ = false;                      ///< no more members
  bool broken_ = false;                       ///< nothing more of this member
  bool fresh_ = false;                        ///< nothing was read of this member
  bool too_deep_ = false;                     ///< this member is packed once more than we open
  std::unique_ptr<Unpacker> outer_, inside_;  ///< `inside_` reads from `outer_`
};

}  // namespace inquest
