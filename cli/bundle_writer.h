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
  /// `path` ends in `.tar.zst`, `.tzst`, `.tar.gz`, `.tgz` or `.tar`; `-` is standard output. Readable by its owner alone.
  static Result<std::unique_ptr<BundleWriter>> Open(const std::string& path);
  virtual ~BundleWriter() = default;
  virtual std::optional<Error> Add(const std::string& name, std::string_view content) = 0;
  /// A plain file as long as it is now. Its bytes, or what is wrong with it; what is wrong with the bundle, Finish tells.
  virtual Result<std::uint64_t> AddFile(const std::string& name, const std::string& path) = 0;
  /// Bytes of the bundle.
  virtual Result<std::uint64_t> Finish() = 0;
};

}  // namespace inquest
