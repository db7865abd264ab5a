// What the fake libcuda and the fake libnccl share: a stream whose work goes on whenever an event is asked, and memory
// that is the host's, but whose addresses the host cannot follow.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

struct FakeStream {
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

/// Device addresses are the host's with this bit.
constexpr std::uint64_t kDeviceBit = 1ULL << 62U;
inline std::uint64_t DeviceAddress(const void* host) { return reinterpret_cast<std::uint64_t>(host) | kDeviceBit; }
inline bool IsDeviceAddress(std::uint64_t device) { return (device & kDeviceBit) != 0; }
inline char* HostAddress(std::uint64_t device) { return reinterpret_cast<char*>(device & ~kDeviceBit); }

/// What the fake libnccl does wrong; FakeNcclScript sets it for all communicators of the process.
enum class FakeNccl : int { kRight, kOld, kInitHangs, kInitFails, kNeverCompletes, kAsyncError };
