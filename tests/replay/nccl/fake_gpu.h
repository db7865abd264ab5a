// What the fake CUDA runtime and the fake libnccl share: a stream that counts, so that an event knows when it is past.
#pragma once

#include <atomic>
#include <cstdint>

struct FakeStream {
  std::atomic<std::uint64_t> enqueued = 0, done = 0;
};

/// What the fake libnccl does wrong; FakeNcclScript sets it for all communicators of the process.
enum class FakeNccl : int { kRight, kOld, kInitHangs, kInitFails, kNeverCompletes, kAsyncError };
