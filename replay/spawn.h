// Starts one worker process, with a socket to speak over and a pipe for what it prints.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace inquest {

/// A descriptor that is closed at the end.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd() { Close(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

struct WorkerProcess {
  pid_t pid = -1;
  OwnedFd pidfd;   ///< readable once it has ended
  OwnedFd socket;  ///< one message a packet; does not block
  OwnedFd output;  ///< both its standard streams; does not block
};

/// Another program, which reads `socket` as its standard input and has nothing else of ours. In a process group of its
/// own.
Result<WorkerProcess> SpawnReading(const std::vector<std::string>& command, const std::vector<std::string>& env);

/// In a process group of its own; it dies when the calling thread does. `env`: NAME=VALUE, all of it.
Result<WorkerProcess> SpawnWorker(const std::vector<std::string>& command, const std::vector<std::string>& env);

}  // namespace inquest
