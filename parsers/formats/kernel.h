// What the readers of kernel lines share: a line's head, PCI addresses, and the readers that have files of their own.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/event_sink.h"

namespace inquest {

/// What stands in front of a kernel message, after the envelope was peeled. Views into the text.
struct KernelHead {
  std::string_view message;  ///< the text behind the head; all of it where there is none
  std::optional<std::chrono::microseconds> uptime;
  std::optional<Timestamp> at;
  std::string_view host;  ///< empty: not printed
  bool exported = false;  ///< `MESSAGE=`, a field of journalctl -o export; host and time stand on other lines
};
KernelHead ReadKernelHead(std::string_view text);

/// `0000:3b:00`, `00000000:3B:00.0` -> `0000:3b:00.0`. Empty if it is no address.
std::string KernelBusId(std::string_view text);

/// An event of a kernel line: the head's time and host count where the envelope had none.
Event KernelEvent(const Record& record, const KernelHead& head, What what);

// The kernel names an OOM kill's victim on two or three lines: a summary with the cgroup (from 5.0), "Kill process" (to
// 5.2), "Killed process", and the reaper's. They are one event, told by the first that names the pid.
class OomReader {
 public:
  bool Consume(const Record& record, const KernelHead& head, EventSink& out);

 private:
  bool Add(const Record& record, const KernelHead& head, KernelKill kill, EventSink& out);

  std::optional<std::int64_t> last_;  ///< pid of the event before
  std::string cgroup_path_;           ///< of the next kill
};

/// A crash, or a page that the memory lost.
std::optional<KernelFault> ReadKernelFault(const KernelHead& head);

// A stuck task's report goes on with its stack, of which frames that name a device or a file system come here. It is
// held until another report begins.
class StuckReader {
 public:
  bool Consume(const Record& record, const KernelHead& head, EventSink& out);
  void Finish(EventSink& out);

 private:
  std::optional<Event> held_;
};

// PCI Express errors: what the port received, which device it was, and which bits were set are several lines of one
// error. It is held until a line of another one comes.
class PcieReader {
 public:
  /// Whether the line was one of these. Finished errors go to `out`.
  bool Consume(const Record& record, const KernelHead& head, EventSink& out);
  void Finish(EventSink& out);

 private:
  bool Begin(const Record& record, const KernelHead& head, PcieError error, EventSink& out);

  std::optional<Event> held_;
  bool has_device_ = false;  ///< of held_: the device's own report was read, not only the port's
};

// A block of lines that begin with the error's number; the device is held until its vendor and class were read.
class CperReader {
 public:
  bool Consume(const Record& record, const KernelHead& head, EventSink& out);
  void Finish(EventSink& out);

 private:
  std::optional<Event> held_;
  std::optional<std::int64_t> number_;
  std::optional<PcieError::Severity> severity_;
  bool of_pcie_ = false;  ///< the section that is read
};

/// Network cards, file systems, memory, IOMMU, heat, fabric manager: one line each, told apart by a table.
std::optional<KernelNotice> ReadKernelNotice(std::string_view message);

}  // namespace inquest
