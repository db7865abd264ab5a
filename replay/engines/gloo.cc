// The CPU engine: Gloo over TCP, the library that PyTorch's CPU groups run on. The only door to it.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gloo/barrier.h>
#include <gloo/config.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "replay/engine.h"
#include "replay/engines/gloo_call.h"
#include "replay/engines/lane.h"
#include "replay/engines/runner.h"
#include "replay/ops.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;

/// Gloo's rendezvous on our own channel.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  /// `prefix`: of a communicator's own keys.
  GlooStore(inquest::Store& store, milliseconds patience, std::string prefix = "")
      : store_(store), patience_(patience), prefix_(std::move(prefix)) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.Set(prefix_ + key, {data.begin(), data.end()});
  }
  std::vector<char> get(const std::string& key) override {
    const auto bytes = store_.Get(prefix_ + key, patience_);
    if (!bytes) throw gloo::IoException(fmt::format("no rank has set {}", key));
    return {bytes->begin(), bytes->end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, patience_); }
  void wait(const std::vector<std::string>& keys, const milliseconds& limit) override {
    for (const std::string& key : keys) {
      if (!store_.Get(prefix_ + key, limit)) throw gloo::IoException(fmt::format("no rank has set {}", key));
    }
  }

 private:
  inquest::Store& store_;
  milliseconds patience_;
  std::string prefix_;
};

/// Gloo prints an address as `[10.0.0.2]:62862`, the port in network byte order, in all versions so far; one that does
/// not is asked.
bool PrintsNetworkOrder() {
  sockaddr_storage address{};
  reinterpret_cast<sockaddr_in&>(address) = {
      .sin_family = AF_INET, .sin_port = htons(1), .sin_addr = {}, .sin_zero = {}};
  return gloo::transport::tcp::Address(address).str().find("]:256") != std::string::npos;
}

/// What Gloo says, with the ports of its addresses as everybody else writes them.
std::string WithHostPorts(std::string words) {
  static const bool kNetworkOrder = PrintsNetworkOrder();
  std::size_t at = 0;
  while (kNetworkOrder && (at = words.find("]:", at)) != std::string::npos) {
    at += 2;
    unsigned port = 0;
    const auto [end, error] = std::from_chars(words.data() + at, words.data() + words.size(), port);
    if (error != std::errc() || port > 0xffff) continue;
    words.replace(at, static_cast<std::size_t>(end - words.data()) - at,
                  fmt::format("{}", ntohs(static_cast<std::uint16_t>(port))));
  }
  return words;
}

gloo::transport::tcp::attr AttributesOf(const std::map<std::string, std::string>& options) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = OptionValue(options, "interface");
  if (attributes.iface.empty()) {
    attributes.hostname = OptionValue(options, "address");
    if (attributes.hostname.empty()) attributes.hostname = "127.0.0.1";
  }
  return attributes;
}

std::string Version(const std::shared_ptr<gloo::transport::Device>& device) {
  return fmt::format("Gloo {}.{}.{}{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH,
                     device ? " over " + device->str() : "");
}
constexpr const char* kNoReduceScatter =
    "this Gloo has no reduce-scatter: it ran as an all-reduce of which each rank takes its own part, so the bandwidth "
    "is not comparable";
constexpr const char* kOwnBarrier =
    "the barrier is Gloo's own, not an all-reduce of one element as NCCL's users have it";

class GlooSession final : public Session {
 public:
  GlooSession(const SessionSetup& setup, inquest::Store& store) : setup_(setup), store_(store, setup.patience) {}

  StepState Begin(const Step& step) override {
    step_ = step;
    switch (step.phase) {
      case Phase::kDeviceSet:
        return Run([this] { device_ = gloo::transport::tcp::CreateDevice(AttributesOf(setup_.options)); });
      case Phase::kCommInit:
        context_ = std::make_shared<gloo::rendezvous::Context>(setup_.rank, setup_.nranks);
        context_->setTimeout(setup_.patience);
        call_.emplace(setup_.call, context_, setup_.patience);
        return {};
      case Phase::kConnected:
        return Run([this] { context_->connectFullMesh(store_, device_); });
      case Phase::kBuffersReady:
        return Run([this] { call_->Allocate(); });
      case Phase::kWarmedUp:
        return Run([this] {
          gloo::BarrierOptions options(context_);
          gloo::barrier(options);
        });
      case Phase::kDescriptorAgreed:
        return Run([this] { call_->Fill(step_.iteration); });
      case Phase::kEnqueued:
        runner_.Begin([this] {
          const auto begin = std::chrono::steady_clock::now();
          call_->Run(static_cast<std::uint32_t>(step_.iteration));
          time_ = std::chrono::steady_clock::now() - begin;
        });
        return {};
      case Phase::kStarted:
      case Phase::kCompleted:
        return Poll();
      case Phase::kVerified:
        return Run([this] { wrong_data_ = call_->Verify(); });
      default:
        return {};
    }
  }

  StepState Poll() override {
    const StepState state = runner_.state();
    if (step_.phase == Phase::kStarted && state.state == StepState::State::kPending && runner_.running()) return {};
    return state;
  }

  std::optional<WrongData> wrong_data() const override { return wrong_data_; }
  std::optional<std::chrono::nanoseconds> device_time() const override { return time_; }
  std::vector<std::string> Describe() const override {
    std::vector<std::string> lines = {Version(device_)};
    if (setup_.call.operation == Operation::kReduceScatter) lines.emplace_back(kNoReduceScatter);
    if (setup_.call.operation == Operation::kBarrier) lines.emplace_back(kOwnBarrier);
    return lines;
  }
  std::string async_error() const override { return ""; }
  /// Nothing that could be ended cleanly: the process leaves.
  void Abort() override {}
  void Corrupt() override {
    const auto bytes = call_->output();
    if (!bytes.empty()) bytes[bytes.size() / 2] ^= std::byte{0x41};
  }

 private:
  StepState Run(std::function<void()> job) {
    runner_.Begin(std::move(job));
    return {StepState::State::kPending, ""};
  }

  SessionSetup setup_;
  GlooStore store_;
  Step step_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::optional<GlooCall> call_;
  std::optional<WrongData> wrong_data_;
  std::chrono::nanoseconds time_{};
  Runner runner_{"Gloo", WithHostPorts};  ///< last: it ends first
};

/// Many calls of several communicators: a context each, and a thread for each stream, in which calls block as kernels
/// of a stream do. Those of a group call run at once.
class GlooSequence final : public Session {
 public:
  GlooSequence(const SessionSetup& setup, inquest::Store& store)
      : setup_(setup), work_(*setup.sequence), store_(store) {
    for (auto& steps : ByStream(work_.steps)) lanes_.push_back(std::make_unique<OwnLane>(std::move(steps)));
  }

  StepState Begin(const Step& step) override {
    step_ = step;
    switch (step.phase) {
      case Phase::kDeviceSet:
        return Run([this] { device_ = gloo::transport::tcp::CreateDevice(AttributesOf(setup_.options)); });
      case Phase::kConnected:
        return Run([this] { Connect(); });
      case Phase::kWarmedUp:
        return Run([this] {
          for (const auto& context : contexts_) {
            gloo::BarrierOptions options(context);
            gloo::barrier(options);
          }
        });
      case Phase::kEnqueued:
        for (const auto& lane : lanes_) {
          lane->begun = lane->completed = 0;
          lane->runner.Begin([this, &lane = *lane] { RunLane(lane); });
        }
        return {};
      case Phase::kCompleted:
        return Poll();
      default:
        return {};
    }
  }

  StepState Poll() override {
    if (step_.phase != Phase::kCompleted) return runner_.state();
    StepState all;
    for (const auto& lane : lanes_) {
      StepState state = lane->runner.state();
      if (state.state == StepState::State::kFailed) return state;
      if (state.state == StepState::State::kPending) all = state;
    }
    return all;
  }

  std::optional<WrongData> wrong_data() const override {
    const std::lock_guard lock(mutex_);
    return wrong_data_;
  }
  std::vector<std::string> Describe() const override {
    std::vector<std::string> lines = {Version(device_)};
    const auto has = [&](Operation operation) {
      return std::ranges::any_of(work_.calls, [&](const Call& call) { return call.operation == operation; });
    };
    if (has(Operation::kReduceScatter)) lines.emplace_back(kNoReduceScatter);
    if (has(Operation::kBarrier)) lines.emplace_back(kOwnBarrier);
    return lines;
  }
  std::string async_error() const override { return ""; }
  void Abort() override {}
  void Corrupt() override {}
  SequenceProgress progress() const override {
    SequenceProgress progress;
    for (const auto& lane : lanes_) progress.push_back(lane->progress());
    return progress;
  }

 private:
  struct OwnLane : StreamLane {
    using StreamLane::StreamLane;
    Runner runner{"Gloo", WithHostPorts};  ///< last: it ends first
  };

  StepState Run(std::function<void()> job) {
    runner_.Begin(std::move(job));
    return {StepState::State::kPending, ""};
  }

  /// All ranks have the communicators in one order, so that none waits for one that waits for it.
  void Connect() {
    for (const SequenceCommunicator& communicator : work_.communicators) {
      auto context = std::make_shared<gloo::rendezvous::Context>(communicator.PlaceOf(setup_.rank),
                                                                 static_cast<int>(communicator.ranks.size()));
      context->setTimeout(setup_.patience);
      GlooStore store(store_, setup_.patience, fmt::format("{}/", communicator.id));
      context->connectFullMesh(store, device_);
      contexts_.push_back(std::move(context));
    }
  }

  void RunLane(OwnLane& lane) {
    for (std::size_t first = 0, end = 0; first < lane.steps.size(); first = end) {
      const std::uint32_t batch = work_.steps[lane.steps[first]].batch;
      for (end = first + 1; batch != 0 && end < lane.steps.size() && work_.steps[lane.steps[end]].batch == batch;)
        ++end;
      lane.begun = static_cast<std::uint32_t>(end);
      if (end == first + 1)
        RunStep(lane.steps[first]);
      else
        RunAtOnce({lane.steps.begin() + static_cast<std::ptrdiff_t>(first),
                   lane.steps.begin() + static_cast<std::ptrdiff_t>(end)});
      lane.completed = static_cast<std::uint32_t>(end);
    }
  }

  void RunAtOnce(const std::vector<std::uint32_t>& steps) {
    std::vector<std::exception_ptr> errors(steps.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < steps.size(); ++i)
      threads.emplace_back([&, i] {
        try {
          RunStep(steps[i]);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& error : errors)
      if (error) std::rethrow_exception(error);
  }

  void RunStep(std::uint32_t index) {
    const SequenceStep& step = work_.steps[index];
    const SequenceCommunicator& communicator = work_.communicators[step.communicator];
    // The same on all that meet in it, another in every pass.
    const std::uint64_t unique =
        std::uint64_t{static_cast<std::uint32_t>(step_.iteration - 1)} * communicator.span + step.number;
    GlooCall call(work_.calls[step.call], contexts_[step.communicator], setup_.patience);
    call.Allocate();
    constexpr std::uint64_t kPatterns = 1 << 30;
    call.Fill(static_cast<int>(unique % kPatterns) + 1);
    call.Run(static_cast<std::uint32_t>(unique));
    if (!step.checked) return;
    if (auto wrong = call.Verify()) {
      const std::lock_guard lock(mutex_);
      wrong->step = index;
      if (!wrong_data_) wrong_data_ = std::move(wrong);
    }
  }

  SessionSetup setup_;
  const SequenceWork work_;
  inquest::Store& store_;
  Step step_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::vector<std::shared_ptr<gloo::rendezvous::Context>> contexts_;  ///< by communicator
  mutable std::mutex mutex_;
  std::optional<WrongData> wrong_data_;  ///< guarded by it
  std::vector<std::unique_ptr<OwnLane>> lanes_;
  Runner runner_{"Gloo", WithHostPorts};
};

std::unique_ptr<Session> MakeGloo(const SessionSetup& setup, inquest::Store& store) {
  if (setup.sequence) return std::make_unique<GlooSequence>(setup, store);
  return std::make_unique<GlooSession>(setup, store);
}

Result<EngineProbe> ProbeGloo(const std::map<std::string, std::string>& options) {
  try {
    const auto device = gloo::transport::tcp::CreateDevice(AttributesOf(options));
    return EngineProbe{.version = fmt::format("Gloo {}.{}.{} over {}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR,
                                              GLOO_VERSION_PATCH, device->str()),
                       .tests = ""};
  } catch (const std::exception& error) {
    return Error{std::string("Gloo cannot use this interface or address: ") + error.what(),
                 "ip address shows what the host has", ""};
  }
}

}  // namespace

extern const Engine kGloo;
const Engine kGloo{.name = "gloo",
                   .library = "Gloo, on CPUs over TCP",
                   .tests = "Gloo tests the hosts and their IP network, not NVLink, not GPUs, not RDMA.",
                   .missing = "",
                   .make = MakeGloo,
                   .probe = ProbeGloo};

}  // namespace inquest
