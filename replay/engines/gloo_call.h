// One call on a context of Gloo, with the buffers of one rank: filled, made and verified in the host's memory.
#pragma once

#include <gloo/context.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <span>

#include "replay/engine.h"
#include "replay/engines/host_data.h"

namespace inquest {

/// Memory of the host, by pages; zero bytes have an address too.
class HostBuffer {
 public:
  HostBuffer() = default;
  explicit HostBuffer(std::uint64_t bytes);
  std::byte* data() const { return data_.get(); }
  std::span<std::byte> bytes() const { return {data_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::uint64_t bytes_ = 0;
};

/// What Gloo or the host refuses is thrown, as Gloo throws it.
class GlooCall {
 public:
  /// Rank and number of ranks are those of the context. `patience`: of sends and receives.
  GlooCall(const Call& call, std::shared_ptr<gloo::Context> context, std::chrono::milliseconds patience);

  /// Every page is there afterwards, with the data of the first pattern.
  void Allocate();
  /// The data of that pattern, from 1; does nothing where it is there.
  void Fill(int pattern);
  /// Blocks. Calls of one context that meet have the same tag, and no two others at a time.
  void Run(std::uint32_t tag);
  std::optional<WrongData> Verify() const { return VerifyOutput(shape_, filled_, output()); }
  std::span<std::byte> output() const;
  const Call& call() const { return shape_.call; }

 private:
  bool is_reduce_scatter() const { return shape_.call.operation == Operation::kReduceScatter; }
  /// Gloo works in every rank's output; here only the root has one.
  bool needs_scratch() const { return shape_.call.operation == Operation::kReduce && shape_.rank != shape_.call.root; }
  std::span<std::byte> input() const;
  template <class T>
  void RunOf(std::uint32_t tag);
  template <class T>
  void AllReduce(T* in, T* out, std::size_t count, std::uint32_t tag);
  template <class T>
  void AllToAll(T* in, T* out, std::uint32_t tag);
  void SendRecv(std::uint32_t tag);
  void FillOwnResult();

  DataShape shape_;
  std::shared_ptr<gloo::Context> context_;
  std::chrono::milliseconds patience_;
  HostBuffer input_, output_, whole_, scratch_;  ///< `whole_`: of a reduce-scatter, the result for all ranks
  int filled_ = 0;                               ///< pattern whose data the buffers hold
};

}  // namespace inquest
