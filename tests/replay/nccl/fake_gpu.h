// What the fake CUDA runtime and the fake libnccl share: a stream whose work goes on whenever an event is asked.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

struct FakeStream {
  int device = 0;
  std::uint64_t enqueued = 0;
  std::atomic<std::uint64_t> done = 0;
  std::mutex mutex;
  std::deque<std::function<bool()>> pending;  ///< in order; each returns whether it is through

  void Add(std::function<bool()> work) {
    const std::lock_guard lock(mutex);
    ++enqueued;
    pending.push_back(std::move(work));
  }
  void GoOn() {
    const std::lock_guard lock(mutex);
    for (; !pending.empty() && pending.front()(); ++done) pending.pop_front();
  }
};

/// What the fake libnccl does wrong; FakeNcclScript sets it for all communicators of the process.
enum class FakeNccl : int { kRight, kOld, kInitHangs, kInitFails, kNeverCompletes, kAsyncError };
