// The CPU engine: Gloo over TCP, the library that PyTorch's CPU groups run on. The only door to it.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <new>
#include <utility>

#include "replay/engine.h"
#include "replay/engines/host_data.h"
#include "replay/engines/runner.h"
#include "replay/ops.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;

/// Gloo's rendezvous on our own channel.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(inquest::Store& store, milliseconds patience) : store_(store), patience_(patience) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.Set(key, {data.begin(), data.end()});
  }
  std::vector<char> get(const std::string& key) override {
    const auto bytes = store_.Get(key, patience_);
    if (!bytes) throw gloo::IoException(fmt::format("no rank has set {}", key));
    return {bytes->begin(), bytes->end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, patience_); }
  void wait(const std::vector<std::string>& keys, const milliseconds& limit) override {
    for (const std::string& key : keys) {
      if (!store_.Get(key, limit)) throw gloo::IoException(fmt::format("no rank has set {}", key));
    }
  }

 private:
  inquest::Store& store_;
  milliseconds patience_;
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

class Buffer {
 public:
  static constexpr std::size_t kAlignment = 4096;
  Buffer() = default;
  explicit Buffer(std::uint64_t bytes) : bytes_(bytes) {
    const std::uint64_t room = (std::max<std::uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, room)));
    if (!data_) throw std::bad_alloc();
  }
  std::byte* data() const { return data_.get(); }
  std::span<std::byte> bytes() const { return {data_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::uint64_t bytes_ = 0;
};

// ---- reductions: Gloo's own are templates over C++ types, which has no bfloat16 nor float8 --------------------------

using Reduce = gloo::AllreduceOptions::Func;

template <class T>
T Combine(RedOp op, T a, T b) {
  switch (op) {
    case RedOp::kProd:
      return static_cast<T>(a * b);
    case RedOp::kMax:
      return std::max(a, b);
    case RedOp::kMin:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);  // the average divides afterwards
  }
}

template <class T>
void ReduceNumbers(RedOp op, void* out, const void* left, const void* right, std::size_t count) {
  const auto* a = static_cast<const T*>(left);
  const auto* b = static_cast<const T*>(right);
  auto* c = static_cast<T*>(out);
  if (op == RedOp::kSum) {
    for (std::size_t i = 0; i < count; ++i) c[i] = static_cast<T>(a[i] + b[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) c[i] = Combine(op, a[i], b[i]);
  }
}

template <class Bits>
void ReduceFloats(Datatype type, RedOp op, void* out, const void* left, const void* right, std::size_t count) {
  const auto* a = static_cast<const Bits*>(left);
  const auto* b = static_cast<const Bits*>(right);
  auto* c = static_cast<Bits*>(out);
  for (std::size_t i = 0; i < count; ++i)
    c[i] = static_cast<Bits>(FloatBits(type, Combine(op, FloatOf(type, a[i]), FloatOf(type, b[i]))));
}

Reduce ReduceOf(Datatype type, RedOp op) {
  const auto numbers = [op](auto zero) -> Reduce {
    return [op](void* out, const void* a, const void* b, std::size_t count) {
      ReduceNumbers<decltype(zero)>(op, out, a, b, count);
    };
  };
  switch (type) {
    case Datatype::kInt8:
      return numbers(std::int8_t{});
    case Datatype::kUint8:
      return numbers(std::uint8_t{});
    case Datatype::kInt32:
      return numbers(std::int32_t{});
    case Datatype::kUint32:
      return numbers(std::uint32_t{});
    case Datatype::kInt64:
      return numbers(std::int64_t{});
    case Datatype::kUint64:
      return numbers(std::uint64_t{});
    case Datatype::kFloat32:
      return numbers(float{});
    case Datatype::kFloat64:
      return numbers(double{});
    case Datatype::kFloat16:
    case Datatype::kBfloat16:
      return [=](void* out, const void* a, const void* b, std::size_t count) {
        ReduceFloats<std::uint16_t>(type, op, out, a, b, count);
      };
    default:
      return [=](void* out, const void* a, const void* b, std::size_t count) {
        ReduceFloats<std::uint8_t>(type, op, out, a, b, count);
      };
  }
}

template <class T>
void DivideNumbers(std::span<std::byte> data, int nranks) {
  auto* values = reinterpret_cast<T*>(data.data());
  for (std::size_t i = 0; i < data.size() / sizeof(T); ++i)
    if constexpr (std::is_floating_point_v<T>)
      values[i] = values[i] / static_cast<T>(nranks);
    else  // a type of 8 bits does not hold every number of ranks
      values[i] = static_cast<T>(static_cast<std::int64_t>(values[i]) / nranks);
}
template <class Bits>
void DivideFloats(Datatype type, std::span<std::byte> data, int nranks) {
  auto* values = reinterpret_cast<Bits*>(data.data());
  for (std::size_t i = 0; i < data.size() / sizeof(Bits); ++i)
    values[i] = static_cast<Bits>(FloatBits(type, FloatOf(type, values[i]) / nranks));
}
void Divide(Datatype type, std::span<std::byte> data, int nranks) {
  switch (type) {
    case Datatype::kInt8:
      return DivideNumbers<std::int8_t>(data, nranks);
    case Datatype::kUint8:
      return DivideNumbers<std::uint8_t>(data, nranks);
    case Datatype::kInt32:
      return DivideNumbers<std::int32_t>(data, nranks);
    case Datatype::kUint32:
      return DivideNumbers<std::uint32_t>(data, nranks);
    case Datatype::kInt64:
      return DivideNumbers<std::int64_t>(data, nranks);
    case Datatype::kUint64:
      return DivideNumbers<std::uint64_t>(data, nranks);
    case Datatype::kFloat32:
      return DivideNumbers<float>(data, nranks);
    case Datatype::kFloat64:
      return DivideNumbers<double>(data, nranks);
    case Datatype::kFloat16:
    case Datatype::kBfloat16:
      return DivideFloats<std::uint16_t>(type, data, nranks);
    default:
      return DivideFloats<std::uint8_t>(type, data, nranks);
  }
}

std::string Value(const std::map<std::string, std::string>& options, const std::string& key) {
  const auto found = options.find(key);
  return found == options.end() ? "" : found->second;
}

gloo::transport::tcp::attr AttributesOf(const std::map<std::string, std::string>& options) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = Value(options, "interface");
  if (attributes.iface.empty()) {
    attributes.hostname = Value(options, "address");
    if (attributes.hostname.empty()) attributes.hostname = "127.0.0.1";
  }
  return attributes;
}

/// nullopt: not Linux's /proc.
std::optional<std::uint64_t> AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

class GlooSession final : public Session {
 public:
  GlooSession(const SessionSetup& setup, inquest::Store& store)
      : setup_(setup), shape_{setup.call, setup.rank, setup.nranks}, store_(store, setup.patience) {}

  StepState Begin(const Step& step) override {
    step_ = step;
    switch (step.phase) {
      case Phase::kDeviceSet:
        return Run([this] { device_ = gloo::transport::tcp::CreateDevice(AttributesOf(setup_.options)); });
      case Phase::kCommInit:
        context_ = std::make_shared<gloo::rendezvous::Context>(setup_.rank, setup_.nranks);
        context_->setTimeout(setup_.patience);
        return {};
      case Phase::kConnected:
        return Run([this] { context_->connectFullMesh(store_, device_); });
      case Phase::kBuffersReady:
        return Run([this] { Allocate(); });
      case Phase::kWarmedUp:
        return Run([this] {
          gloo::BarrierOptions options(context_);
          gloo::barrier(options);
        });
      case Phase::kDescriptorAgreed:
        return Run([this] { Fill(step_.iteration); });
      case Phase::kEnqueued:
        runner_.Begin([this] {
          const auto begin = std::chrono::steady_clock::now();
          Collective();
          time_ = std::chrono::steady_clock::now() - begin;
        });
        return {};
      case Phase::kStarted:
      case Phase::kCompleted:
        return Poll();
      case Phase::kVerified:
        return Run([this] { wrong_data_ = VerifyOutput(shape_, step_.iteration, output()); });
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
    std::vector<std::string> lines = {fmt::format("Gloo {}.{}.{}{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR,
                                                  GLOO_VERSION_PATCH, device_ ? " over " + device_->str() : "")};
    if (setup_.call.operation == Operation::kReduceScatter)
      lines.emplace_back(
          "this Gloo has no reduce-scatter: it ran as an all-reduce of which each rank takes its own part, so the "
          "bandwidth is not comparable");
    if (setup_.call.operation == Operation::kBarrier)
      lines.emplace_back("the barrier is Gloo's own, not an all-reduce of one element as NCCL's users have it");
    return lines;
  }
  std::string async_error() const override { return ""; }
  /// Nothing that could be ended cleanly: the process leaves.
  void Abort() override {}
  void Corrupt() override {
    const auto bytes = output();
    if (!bytes.empty()) bytes[bytes.size() / 2] ^= std::byte{0x41};
  }

 private:
  StepState Run(std::function<void()> job) {
    runner_.Begin(std::move(job));
    return {StepState::State::kPending, ""};
  }

  bool is_reduce_scatter() const { return setup_.call.operation == Operation::kReduceScatter; }
  /// Gloo works in every rank's output; here only the root has one.
  bool needs_scratch() const { return setup_.call.operation == Operation::kReduce && setup_.rank != setup_.call.root; }
  /// Those in place share the larger buffer, as NCCL has it: the own part of what is gathered or scattered.
  std::span<std::byte> input() const {
    if (!shape_.call.in_place) return input_.bytes();
    const std::uint64_t in = BytesIn(shape_), out = BytesOut(shape_);
    return in < out && in > 0 ? output_.bytes().subspan(static_cast<std::size_t>(setup_.rank) * in, in)
                              : output_.bytes().first(in);
  }
  std::span<std::byte> output() const {
    const std::uint64_t out = BytesOut(shape_);
    if (is_reduce_scatter()) return whole_.bytes().subspan(static_cast<std::size_t>(setup_.rank) * out, out);
    return output_.bytes().first(out);
  }

  void Allocate() {
    const std::uint64_t in = BytesIn(shape_), out = BytesOut(shape_);
    if (shape_.call.in_place && (is_reduce_scatter() || setup_.call.operation == Operation::kAllToAll ||
                                 setup_.call.operation == Operation::kScatter))
      shape_.call.in_place = false;  // Gloo cannot; the data is the same
    const bool shared = shape_.call.in_place;
    const std::uint64_t need =
        (shared ? std::max(in, out) : in + (is_reduce_scatter() ? in : out)) + (needs_scratch() ? in : 0);
    const auto available = AvailableMemory();
    if (available && need > *available)
      throw gloo::Exception(fmt::format("the buffers of one rank need {:.1f} GiB, and the host has {:.1f} GiB left",
                                        static_cast<double>(need) / (1ULL << 30U),
                                        static_cast<double>(*available) / (1ULL << 30U)));
    if (!shared) input_ = Buffer(in);
    if (is_reduce_scatter())
      whole_ = Buffer(in);
    else
      output_ = Buffer(shared ? std::max(in, out) : out);
    if (needs_scratch()) scratch_ = Buffer(in);
    Fill(1);  // every page is there before the clock runs
  }

  void Fill(int iteration) {
    if (std::exchange(filled_, iteration) == iteration) return;
    if (!shape_.call.in_place) SpoilOutput(is_reduce_scatter() ? whole_.bytes() : output_.bytes());
    FillInput(shape_, iteration, input());
  }

  void Collective() {
    switch (BytesOf(setup_.call.datatype)) {
      case 1:
        return CollectiveOf<std::uint8_t>();
      case 2:
        return CollectiveOf<std::uint16_t>();
      case 4:
        return CollectiveOf<std::uint32_t>();
      default:
        return CollectiveOf<std::uint64_t>();
    }
  }

  template <class T>
  void CollectiveOf() {
    const Call& call = setup_.call;
    auto* in = reinterpret_cast<T*>(input().data());
    auto* out = reinterpret_cast<T*>(output_.data());
    const std::size_t in_count = BytesIn(shape_) / sizeof(T), out_count = BytesOut(shape_) / sizeof(T);
    const auto tag = static_cast<std::uint32_t>(step_.iteration);
    const bool is_root = setup_.rank == call.root;
    switch (call.operation) {
      case Operation::kBroadcast: {
        gloo::BroadcastOptions options(context_);
        if (is_root && !shape_.call.in_place) options.setInput(in, in_count);
        options.setOutput(out, out_count);
        options.setRoot(call.root);
        options.setTag(tag);
        return gloo::broadcast(options);
      }
      case Operation::kAllReduce:
        return AllReduce(in, out, in_count, tag);
      case Operation::kReduceScatter: {
        auto* whole = reinterpret_cast<T*>(whole_.data());
        return AllReduce(in, whole, in_count, tag);
      }
      case Operation::kReduce: {
        gloo::ReduceOptions options(context_);
        options.setInput(in, in_count);
        options.setOutput(is_root ? out : reinterpret_cast<T*>(scratch_.data()), in_count);
        options.setReduceFunction(ReduceOf(call.datatype, call.redop));
        options.setRoot(call.root);
        options.setTag(tag);
        gloo::reduce(options);
        if (is_root && call.redop == RedOp::kAvg) Divide(call.datatype, output_.bytes(), setup_.nranks);
        return;
      }
      case Operation::kAllGather: {
        gloo::AllgatherOptions options(context_);
        options.setInput(in, in_count);
        options.setOutput(out, out_count);
        options.setTag(tag);
        return gloo::allgather(options);
      }
      case Operation::kAllToAll:
        return AllToAll(in, out, tag);
      case Operation::kGather: {
        gloo::GatherOptions options(context_);
        options.setInput(in, in_count);
        if (is_root) options.setOutput(out, out_count);
        options.setRoot(call.root);
        options.setTag(tag);
        return gloo::gather(options);
      }
      case Operation::kScatter: {
        gloo::ScatterOptions options(context_);
        if (is_root) {
          std::vector<T*> parts;
          for (int rank = 0; rank < setup_.nranks; ++rank)
            parts.push_back(in + static_cast<std::size_t>(rank) * call.count);
          options.setInputs(parts, call.count);
        }
        options.setOutput(out, out_count);
        options.setRoot(call.root);
        options.setTag(tag);
        return gloo::scatter(options);
      }
      case Operation::kSendRecv:
        return SendRecv();
      case Operation::kBarrier: {
        gloo::BarrierOptions options(context_);
        options.setTag(tag);
        gloo::barrier(options);
        FillOwnResult();
        return;
      }
    }
  }

  template <class T>
  void AllReduce(T* in, T* out, std::size_t count, std::uint32_t tag) {
    gloo::AllreduceOptions options(context_);
    if (in != out) options.setInput(in, count);
    options.setOutput(out, count);
    options.setReduceFunction(ReduceOf(setup_.call.datatype, setup_.call.redop));
    options.setTag(tag);
    gloo::allreduce(options);
    if (setup_.call.redop == RedOp::kAvg)
      Divide(setup_.call.datatype, {reinterpret_cast<std::byte*>(out), count * sizeof(T)}, setup_.nranks);
  }

  template <class T>
  void AllToAll(T* in, T* out, std::uint32_t tag) {
    const Call& call = setup_.call;
    const auto ranks = static_cast<std::size_t>(setup_.nranks);
    if (call.splits.empty()) {
      gloo::AlltoallOptions options(context_);
      options.setInput(in, call.count * ranks);
      options.setOutput(out, call.count * ranks);
      options.setTag(tag);
      return gloo::alltoall(options);
    }
    gloo::AlltoallvOptions options(context_);
    options.setInput(in, std::vector<std::int64_t>(call.splits.begin(), call.splits.end()));
    options.setOutput(out, std::vector<std::int64_t>(
                               ranks, static_cast<std::int64_t>(call.splits[static_cast<std::size_t>(setup_.rank)])));
    options.setTag(tag);
    gloo::alltoallv(options);
  }

  void SendRecv() {
    constexpr std::uint64_t kSlot = 1ULL << 62U;  // none of Gloo's own collectives
    const std::uint64_t slot = kSlot + static_cast<std::uint64_t>(step_.iteration);
    if (setup_.rank == setup_.call.root) {
      auto buffer = context_->createUnboundBuffer(input().data(), BytesIn(shape_));
      buffer->send(setup_.call.peer, slot);
      buffer->waitSend(setup_.patience);
    } else if (setup_.rank == setup_.call.peer) {
      auto buffer = context_->createUnboundBuffer(output_.data(), BytesOut(shape_));
      buffer->recv(setup_.call.root, slot);
      buffer->waitRecv(setup_.patience);
    }
  }

  /// A barrier moves no data of ours.
  void FillOwnResult() {
    DataShape alone = shape_;
    alone.rank = 0;
    alone.nranks = 1;
    FillInput(alone, step_.iteration, output_.bytes());
  }

  SessionSetup setup_;
  DataShape shape_;
  GlooStore store_;
  Step step_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  Buffer input_, output_, whole_, scratch_;  ///< `whole_`: of a reduce-scatter, the result for all ranks
  std::optional<WrongData> wrong_data_;
  std::chrono::nanoseconds time_{};
  int filled_ = 0;                        ///< iteration whose data the buffers hold
  Runner runner_{"Gloo", WithHostPorts};  ///< last: it ends first
};

std::unique_ptr<Session> MakeGloo(const SessionSetup& setup, inquest::Store& store) {
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
