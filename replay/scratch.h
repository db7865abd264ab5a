// A folder for temporary files that is gone at the end, whatever the end is.
#pragma once

#include <string>

#include "core/result.h"
#include "replay/spawn.h"

namespace inquest {

class ScratchFolder {
 public:
  /// Below `parent`. What others left there of this kind, and nobody holds any more, goes.
  static Result<ScratchFolder> In(const std::string& parent);
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
  OwnedFd lock_;           ///< held as long as we live
  WorkerProcess cleaner_;  ///< outlives us, and then removes it
};

}  // namespace inquest
