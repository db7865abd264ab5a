// One rank of a replay: goes through the phases with an engine, and tells the supervisor.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "replay/engine.h"
#include "replay/wire.h"

namespace inquest {

/// Two threads: the caller's does the work; one of its own sends heartbeats and hears the supervisor, whatever the
/// first hangs in. The process ends with _exit, never by unwinding: a library may hang in its own end.
class Worker final : private Store {
 public:
  explicit Worker(int socket);
  [[noreturn]] void Run();
  /// From any thread: something threw in a thread of its own, which nobody can catch. Ends that thread's work.
  [[noreturn]] void Threw(const std::string& what);

 private:
  void Set(const std::string& key, const std::string& bytes) override;
  std::optional<std::string> Get(const std::string& key, std::chrono::milliseconds limit) override;

  void Listen();
  void Hear(const ToWorker& message);
  void Beat();
  void AbortSession(std::chrono::milliseconds grace);

  void Send(const ToSupervisor& message);
  void Do(const Step& step);
  void Inject(const Step& step);
  void Agree(int iteration);
  void Describe();
  void Iterate(int iteration);
  [[noreturn]] void Fail(const Step& step, const std::string& error, const std::optional<WrongData>& wrong = {});

  int socket_;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable heard_;
  std::optional<StartWork> start_;
  std::map<std::string, std::string> values_;
  int proceed_ = -1;  ///< last iteration that was agreed on, 0 is the warm-up
  bool leave_ = false;

  std::atomic<Session*> session_ = nullptr;
  /// The last step that was begun. Read by a thread that threw: two numbers that may be of two steps do no harm.
  std::atomic<Phase> phase_ = Phase::kSpawned;
  std::atomic<int> iteration_ = 0;
  std::atomic<std::chrono::milliseconds> heartbeat_ = std::chrono::milliseconds(100);
  StartWork work_;  ///< of the main thread: start_, with the faults' call
  std::chrono::steady_clock::time_point enqueued_;
};

}  // namespace inquest
