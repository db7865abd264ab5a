// The worker's two threads.
#include "replay/worker/worker.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "replay/engines/engines.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kLeft = 0, kOrphaned = 2, kFault = 7;

/// CUDA shows a process one MIG instance alone, the first that is named: this rank's has to be that one.
void ShowOwnMigInstance(SessionSetup& setup) {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr || !std::string_view(visible).starts_with("MIG-")) return;
  const auto asked = setup.options.find("device"), shared = setup.options.find("shared");
  int device = asked == setup.options.end() ? setup.rank : std::atoi(asked->second.c_str());
  std::string_view rest = visible;
  if (shared != setup.options.end())
    device = std::atoi(shared->second.c_str()) % (static_cast<int>(std::ranges::count(rest, ',')) + 1);
  for (int i = 0; i < device; ++i) {
    const std::size_t comma = rest.find(',');
    if (comma == std::string_view::npos) return;  // the engine says that there is no such GPU
    rest.remove_prefix(comma + 1);
  }
  const std::string own(rest.substr(0, rest.find(',')));
  ::setenv("CUDA_VISIBLE_DEVICES", own.c_str(), 1);
  setup.options["device"] = "0";
}

/// No engine reads the environment.
void AddVariables(SessionSetup& setup) {
  for (const char* const name : {"CUDA_VISIBLE_DEVICES", "NCCL_HOSTID", "NCCL_MULTI_RANK_GPU_ENABLE"})
    if (const char* const value = std::getenv(name)) setup.options[name] = value;
}

[[noreturn]] void SleepForever() {
  while (true) ::pause();
}

/// Fine while an operation may be short, coarse once it is long.
void Pause(Clock::time_point since) {
  using std::chrono::microseconds;
  const auto waited = std::chrono::duration_cast<microseconds>(Clock::now() - since);
  std::this_thread::sleep_for(std::clamp(waited / 20, microseconds(20), microseconds(5000)));
}

}  // namespace

Worker::Worker(int socket) : socket_(socket) {}

void Worker::Threw(const std::string& what) {
  Send(WorkFailed{{phase_.load(), iteration_.load()}, what, {}});
  SleepForever();  // as in Fail
}

void Worker::Run() {
  std::thread([this] { Listen(); }).detach();
  Send(Hello{.wire = kWireVersion, .host = OwnHostName()});
  {
    std::unique_lock lock(mutex_);
    heard_.wait(lock, [this] { return start_.has_value(); });
    work_ = *start_;
  }
  for (const Fault& fault : work_.faults) {
    if (fault.kind == Fault::Kind::kAlter && fault.call) work_.setup.call = *fault.call;
  }
  ShowOwnMigInstance(work_.setup);
  AddVariables(work_.setup);
  const Engine* engine = FindEngine(work_.engine);
  const Step load{Phase::kLibsLoaded, 0};
  if (engine == nullptr) Fail(load, "this worker knows no engine of the name " + work_.engine);
  if (!engine->missing.empty()) Fail(load, std::string(engine->missing));
  session_ = engine->make(work_.setup, *this).release();  // never deleted: see above

  for (const Phase phase : {Phase::kLibsLoaded, Phase::kDeviceSet, Phase::kIdReceived, Phase::kCommInit,
                            Phase::kConnected, Phase::kBuffersReady})
    Do({phase, 0});
  if (work_.warm_up) {
    Do({Phase::kWarmedUp, 0});
    Do({Phase::kRehearsed, 0});
  }
  for (int iteration = 1; iteration <= work_.iterations; ++iteration) Iterate(iteration);
  Describe();
  Do({Phase::kFinalized, 0});
  std::unique_lock lock(mutex_);
  heard_.wait(lock, [this] { return leave_; });
  ::_exit(kLeft);
}

void Worker::Iterate(int iteration) {
  for (const Phase phase :
       {Phase::kDescriptorAgreed, Phase::kEnqueued, Phase::kStarted, Phase::kCompleted, Phase::kVerified})
    Do({phase, iteration});
}

/// One step: what a test wants to go wrong, the engine's part, what the supervisor wants to know.
void Worker::Do(const Step& step) {
  Inject(step);
  phase_ = step.phase;
  iteration_ = step.iteration;
  Send(Began{step});
  Session& session = *session_.load();
  const Clock::time_point begin = Clock::now();
  if (step.phase == Phase::kEnqueued) enqueued_ = begin;
  if (step.phase == Phase::kWarmedUp) Agree(step.iteration);  // it is of the call, and must not hang on a mismatch
  StepState state = session.Begin(step);
  for (; state.state == StepState::State::kPending; state = session.Poll())
    Pause(step.phase == Phase::kCompleted ? enqueued_ : begin);
  if (state.state == StepState::State::kFailed) Fail(step, state.error);
  if (step.phase == Phase::kDescriptorAgreed) Agree(step.iteration);
  if (step.phase == Phase::kVerified && session.wrong_data()) Fail(step, "", session.wrong_data());
  Reached reached{.step = step, .took = {}};
  if (step.phase == Phase::kCompleted) reached.took = session.device_time().value_or(Clock::now() - enqueued_);
  Send(reached);
}

void Worker::Describe() {
  const Session& session = *session_.load();
  Send(Described{.lines = session.Describe(), .verifies = session.verifies()});
}

void Worker::Agree(int iteration) {
  Send(Descriptor{.iteration = iteration, .call = work_.setup.call});
  std::unique_lock lock(mutex_);
  heard_.wait(lock, [&] { return proceed_ >= iteration; });
}

void Worker::Inject(const Step& step) {
  for (const Fault& fault : work_.faults) {
    if (fault.kind == Fault::Kind::kCorrupt && step.phase == Phase::kVerified) session_.load()->Corrupt();
    if (!(fault.before == step)) continue;
    switch (fault.kind) {
      case Fault::Kind::kHang:
        SleepForever();
      case Fault::Kind::kDelay:
        std::this_thread::sleep_for(fault.delay);
        break;
      case Fault::Kind::kStop:
        ::raise(SIGSTOP);
        break;
      case Fault::Kind::kKill:
        ::raise(SIGKILL);
        break;
      case Fault::Kind::kExit:
        ::_exit(kFault);
      default:
        break;
    }
  }
}

void Worker::Fail(const Step& step, const std::string& error, const std::optional<WrongData>& wrong) {
  if (session_.load() != nullptr) Describe();
  Send(WorkFailed{step, error, wrong});
  SleepForever();  // the supervisor ends us, once it has its picture
}

// ---- the other thread, and what both use --------------------------------------------------------------------------

void Worker::Send(const ToSupervisor& message) {
  const std::string packet = Encode(message);
  while (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) ::_exit(kOrphaned);
  }
}

void Worker::Beat() {
  Heartbeat beat;
  if (const Session* session = session_.load()) {
    beat.async_error = session->async_error();
    beat.progress = session->progress();
  }
  const std::string packet = Encode(ToSupervisor(beat));
  // A supervisor that is behind needs no second beat.
  if (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN &&
      errno != EINTR)
    ::_exit(kOrphaned);
}

void Worker::Listen() {
  ::prctl(PR_SET_NAME, "heartbeat");  // what a picture of the threads shows
  // A library's handler may hang in what it prints; this thread has to live on.
  sigset_t theirs;
  ::sigemptyset(&theirs);
  ::sigaddset(&theirs, SIGUSR1);
  ::sigaddset(&theirs, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &theirs, nullptr);
  std::string packet(kPacketBytes, '\0');
  Clock::time_point next = Clock::now();
  while (true) {
    const auto wait = std::chrono::ceil<milliseconds>(next - Clock::now()).count();
    pollfd ready{socket_, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(std::max<milliseconds::rep>(wait, 0))) > 0) {
      const ssize_t got = ::recv(socket_, packet.data(), packet.size(), 0);
      if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) ::_exit(kOrphaned);
      if (got > 0) {
        if (const auto message = DecodeToWorker({packet.data(), static_cast<std::size_t>(got)})) Hear(*message);
      }
    }
    if (Clock::now() < next) continue;
    Beat();
    next = Clock::now() + heartbeat_.load();
  }
}

void Worker::Hear(const ToWorker& message) {
  if (const auto* abort = std::get_if<AbortWork>(&message)) return AbortSession(abort->grace);
  const std::lock_guard lock(mutex_);
  if (const auto* start = std::get_if<StartWork>(&message)) {
    heartbeat_ = start->heartbeat;
    start_ = *start;
  } else if (const auto* value = std::get_if<StoreValue>(&message)) {
    values_[value->key] = value->bytes;
  } else if (const auto* proceed = std::get_if<Proceed>(&message)) {
    proceed_ = proceed->iteration;
  } else {
    leave_ = true;
  }
  heard_.notify_all();
}

void Worker::AbortSession(milliseconds grace) {
  std::thread([this] {
    const bool hangs = start_ && std::ranges::any_of(start_->faults,
                                                     [](const Fault& f) { return f.kind == Fault::Kind::kAbortHangs; });
    if (hangs) SleepForever();
    if (Session* session = session_.load()) session->Abort();
    ::_exit(kLeft);
  }).detach();
  std::thread([grace] {
    std::this_thread::sleep_for(grace);
    ::_exit(kExitAbortHung);
  }).detach();
}

void Worker::Set(const std::string& key, const std::string& bytes) { Send(StoreSet{key, bytes}); }

std::optional<std::string> Worker::Get(const std::string& key, milliseconds limit) {
  Send(StoreGet{key});
  std::unique_lock lock(mutex_);
  if (!heard_.wait_for(lock, limit, [&] { return values_.contains(key); })) return std::nullopt;
  return values_[key];
}

}  // namespace inquest
