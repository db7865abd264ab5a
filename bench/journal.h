// A node's journal as `journalctl -o json` prints it: an object a line, nearly all of it of no interest.
#pragma once

#include "bench/job.h"

namespace inquest::bench {

class Journal {
 public:
  explicit Journal(const Job& job) : random_(job.seed ^ 0x10), host_(job.HostOf(job.culprit)) {}
  /// One entry of a daemon or of the kernel.
  void Write(LogWriter& log);
  /// A GPU falls off the bus, and the job's unit fails.
  void WriteEnd(const Job& job, LogWriter& log);

 private:
  void Entry(std::string_view unit, std::string_view tag, std::uint64_t pid, LogWriter& log);

  Random random_;
  int host_;
  std::uint64_t micros_ = 1928736000000000, boot_micros_ = 3600000000, cursor_ = 1;
};

}  // namespace inquest::bench
