// Writes a compressed tar. The only door to libarchive's writing half.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace inquest {

/// Grows beside its name as `<path>.part` and takes its place in Finish(); without that nothing is left behind.
class BundleWriter {
 public:
  /// `path` ends in `.tar.zst`, `.tzst`, `.tar.gz`, `.tgz` or `.tar`; `-` is standard output. Readable by its owner
  /// alone. What is there already is not replaced.
  static Result<std::unique_ptr<BundleWriter>> Open(const std::string& path);
  virtual ~BundleWriter() = default;
  virtual std::optional<Error> Add(const std::string& name, std::string_view content) = 0;
  struct Copied {
    std::uint64_t bytes = 0;
    bool cut = false;  ///< there was more
  };
  struct CopyLimits {
    std::uint64_t bytes;
    std::optional<std::uint32_t> owner = {};  ///< only if the file is this user's
  };
  /// A plain file as long as it is now. What is wrong with it is an error; what is wrong with the bundle, Finish tells.
  virtual Result<Copied> AddFile(const std::string& name, const std::string& path, const CopyLimits& limits) = 0;
  /// Bytes of the bundle.
  virtual Result<std::uint64_t> Finish() = 0;
};

}  // namespace inquest
