// The thread in which an engine calls its library, so that the worker's main thread never blocks.
#pragma once

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "replay/engine.h"

namespace inquest {

/// Sleeps a little longer each time, from 50 us to 5 ms.
class Backoff {
 public:
  void Wait() {
    std::this_thread::sleep_for(pause_);
    pause_ = std::min<std::chrono::microseconds>(pause_ * 2, std::chrono::milliseconds(5));
  }

 private:
  std::chrono::microseconds pause_{50};
};

/// Does what blocks, one job after the other, so that the worker's main thread never does.
class Runner {
 public:
  /// What a job throws ends it as failed, with the library's name in front, its words as `translate` gives them.
  /// Between jobs `idle` is called ten times a second, and after every Wake.
  explicit Runner(
      std::string_view library, std::string (*translate)(std::string) = [](std::string words) { return words; },
      std::function<void()> idle = {})
      : library_(library), translate_(translate), idle_(std::move(idle)), thread_([this] { Run(); }) {}
  ~Runner() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void Begin(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = std::move(job);
      state_ = {StepState::State::kPending, ""};
      running_ = false;
    }
    wake_.notify_one();
  }
  void Wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    wake_.notify_one();
  }
  StepState state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  bool running() const {
    const std::lock_guard lock(mutex_);
    return running_;
  }

 private:
  void Run() {
    ::prctl(PR_SET_NAME, "engine-call");
    std::unique_lock lock(mutex_);
    while (true) {
      const auto called = [this] { return ended_ || job_ || woken_; };
      if (idle_)
        wake_.wait_for(lock, std::chrono::milliseconds(100), called);
      else
        wake_.wait(lock, called);
      woken_ = false;
      if (ended_) return;
      if (!job_) {
        lock.unlock();
        if (idle_) idle_();
        lock.lock();
        continue;
      }
      const std::function<void()> job = std::exchange(job_, nullptr);
      running_ = true;
      lock.unlock();
      StepState end{StepState::State::kDone, ""};
      try {
        job();
      } catch (const std::exception& error) {
        end = {StepState::State::kFailed, library_ + ": " + translate_(error.what())};
      }
      lock.lock();
      state_ = end;
    }
  }

  std::string library_;
  std::string (*translate_)(std::string);
  std::function<void()> idle_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::function<void()> job_;
  StepState state_;
  bool running_ = false, ended_ = false, woken_ = false;
  std::thread thread_;
};

}  // namespace inquest
