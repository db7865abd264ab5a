// Shows how far the reading is, on standard error, while it takes long.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace inquest {

/// One line, redrawn by a thread of its own while the object lives, erased at its end. Shows nothing before the first
/// half second.
class Progress {
 public:
  /// `total` in bytes; 0: unknown. `done` outlives the object.
  Progress(const std::atomic<std::uint64_t>& done, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void Draw();

  const std::atomic<std::uint64_t>& done_;
  std::uint64_t total_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;  ///< guarded by mutex_
  std::thread thread_;
};

/// Bytes of all inputs; 0 where one does not know its size. What cannot be read is the analysis' to report.
std::uint64_t TotalBytes(const std::vector<std::string>& paths);

/// `3.1 GiB of 10.0 GiB  1.2 GiB/s  5 s left`.
std::string ProgressText(std::uint64_t done, std::uint64_t total, double seconds);

}  // namespace inquest
