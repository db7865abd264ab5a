// One GPU as a rank uses it: its primary context, which NCCL shares, a stream, two events, and the data of check.h
// filled in and verified in its memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "replay/engines/host_data.h"
#include "replay/engines/nccl_driver.h"

namespace inquest::cuda {

/// All calls come from one thread: a context is current to the thread that chose it. What the driver refuses is thrown,
/// with its words. Nothing is given back: the process ends with it.
class Gpu {
 public:
  /// `look` is called again and again while the GPU is waited for; what it throws ends the waiting.
  explicit Gpu(std::function<void()> look) : look_(std::move(look)) {}

  void Open();
  int Count() const;
  /// Whether that one has the PCI address `0000:4e:00.0`, in any of its spellings.
  bool IsAt(int ordinal, const std::string& address) const;
  void Choose(int ordinal);
  /// The stream, the events, and what fills and verifies.
  void Prepare();

  /// `GPU 0: NVIDIA H100 80GB HBM3 at 0000:19:00.0`; empty before Choose.
  const std::string& description() const { return description_; }
  /// `0000:19:00.0`: of MIG instances, that of the GPU which they are parts of. Empty before Choose.
  const std::string& bus_id() const { return bus_id_; }
  /// 90 for 9.0; 0 before Choose.
  int capability() const { return capability_; }
  /// Why the host fills and verifies, not the GPU; empty: the GPU does.
  const std::string& why_host() const { return why_host_; }
  Stream stream() const { return stream_; }

  std::uint64_t FreeBytes() const;
  /// Aligned for any datatype; of no bytes too.
  Pointer Allocate(std::uint64_t bytes) const;
  void SetBytes(Pointer to, unsigned char value, std::uint64_t bytes) const { SetBytes(stream_, to, value, bytes); }

  void MarkBegin() const { Check(driver_.record(begun_, stream_), "recording an event"); }
  void MarkEnd() const { Check(driver_.record(ended_, stream_), "recording an event"); }
  Stream NewStream() const;
  Event NewEvent() const;
  void Record(Event event, Stream stream) const { Check(driver_.record(event, stream), "recording an event"); }
  bool IsPast(Event event) const;
  void Await(Event event) const;
  void AwaitBegin() const { Await(begun_); }
  void AwaitEnd() const { Await(ended_); }
  /// Between the marks, once both are passed.
  std::chrono::nanoseconds Elapsed() const;

  /// These three wait until it is done.
  void Fill(const DataShape& shape, int iteration, Pointer input) const;
  DataFaults Verify(const DataShape& shape, int iteration, Pointer output) const;
  void Read(Pointer from, std::uint64_t bytes, void* to) const;

  /// These two only take their turn on a stream; where the host fills and verifies, they must not be called.
  void FillOn(Stream stream, const DataShape& shape, int iteration, Pointer input) const;
  /// Into a DataFaults at `found`.
  void VerifyOn(Stream stream, const DataShape& shape, int iteration, Pointer output, Pointer found) const;
  void SetBytes(Stream stream, Pointer to, unsigned char value, std::uint64_t bytes) const;

 private:
  void Check(Status status, std::string_view what) const;
  void LoadKernels();
  void Launch(Stream stream, Kernel kernel, std::uint64_t elements, void** parameters) const;

  std::function<void()> look_;
  Driver driver_;
  std::string description_, bus_id_, why_host_;
  int capability_ = 0;
  Stream stream_ = nullptr;
  Event begun_ = nullptr, ended_ = nullptr;
  Kernel fill_ = nullptr, verify_ = nullptr;
  Pointer faults_ = 0;
  void* pinned_ = nullptr;  ///< kChunk bytes
};

}  // namespace inquest::cuda
