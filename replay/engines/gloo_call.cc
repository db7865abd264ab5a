// One call on a context of Gloo, with the buffers of one rank.
#include "replay/engines/gloo_call.h"

#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <utility>

#include "replay/ops.h"

namespace inquest {
namespace {

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
/// nullopt: not Linux's /proc.
std::optional<std::uint64_t> AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}
}  // namespace

HostBuffer::HostBuffer(std::uint64_t bytes) : bytes_(bytes) {
  constexpr std::size_t kAlignment = 4096;
  const std::uint64_t room = (std::max<std::uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, room)));
  if (!data_) throw std::bad_alloc();
}

GlooCall::GlooCall(const Call& call, std::shared_ptr<gloo::Context> context, std::chrono::milliseconds patience)
    : shape_{call, context->rank, context->size}, context_(std::move(context)), patience_(patience) {}

/// Those in place share the larger buffer, as NCCL has it: the own part of what is gathered or scattered.
std::span<std::byte> GlooCall::input() const {
  if (!shape_.call.in_place) return input_.bytes();
  const std::uint64_t in = BytesIn(shape_), out = BytesOut(shape_);
  return in < out && in > 0 ? output_.bytes().subspan(static_cast<std::size_t>(shape_.rank) * in, in)
                            : output_.bytes().first(in);
}
std::span<std::byte> GlooCall::output() const {
  const std::uint64_t out = BytesOut(shape_);
  if (is_reduce_scatter()) return whole_.bytes().subspan(static_cast<std::size_t>(shape_.rank) * out, out);
  return output_.bytes().first(out);
}

void GlooCall::Allocate() {
  const std::uint64_t in = BytesIn(shape_), out = BytesOut(shape_);
  if (shape_.call.in_place && (is_reduce_scatter() || shape_.call.operation == Operation::kAllToAll ||
                               shape_.call.operation == Operation::kScatter))
    shape_.call.in_place = false;  // Gloo cannot; the data is the same
  const bool shared = shape_.call.in_place;
  const std::uint64_t need =
      (shared ? std::max(in, out) : in + (is_reduce_scatter() ? in : out)) + (needs_scratch() ? in : 0);
  const auto available = AvailableMemory();
  if (available && need > *available)
    throw gloo::Exception(fmt::format("the buffers of one rank need {:.1f} GiB, and the host has {:.1f} GiB left",
                                      static_cast<double>(need) / (1ULL << 30U),
                                      static_cast<double>(*available) / (1ULL << 30U)));
  if (!shared) input_ = HostBuffer(in);
  if (is_reduce_scatter())
    whole_ = HostBuffer(in);
  else
    output_ = HostBuffer(shared ? std::max(in, out) : out);
  if (needs_scratch()) scratch_ = HostBuffer(in);
  Fill(1);  // every page is there before the clock runs
}

void GlooCall::Fill(int pattern) {
  if (std::exchange(filled_, pattern) == pattern) return;
  if (!shape_.call.in_place) SpoilOutput(is_reduce_scatter() ? whole_.bytes() : output_.bytes());
  FillInput(shape_, pattern, input());
}

void GlooCall::Run(std::uint32_t tag) {
  switch (BytesOf(shape_.call.datatype)) {
    case 1:
      return RunOf<std::uint8_t>(tag);
    case 2:
      return RunOf<std::uint16_t>(tag);
    case 4:
      return RunOf<std::uint32_t>(tag);
    default:
      return RunOf<std::uint64_t>(tag);
  }
}

template <class T>
void GlooCall::RunOf(std::uint32_t tag) {
  const Call& call = shape_.call;
  auto* in = reinterpret_cast<T*>(input().data());
  auto* out = reinterpret_cast<T*>(output_.data());
  const std::size_t in_count = BytesIn(shape_) / sizeof(T), out_count = BytesOut(shape_) / sizeof(T);
  const bool is_root = shape_.rank == call.root;
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
      if (is_root && call.redop == RedOp::kAvg) Divide(call.datatype, output_.bytes(), shape_.nranks);
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
        for (int rank = 0; rank < shape_.nranks; ++rank)
          parts.push_back(in + static_cast<std::size_t>(rank) * call.count);
        options.setInputs(parts, call.count);
      }
      options.setOutput(out, out_count);
      options.setRoot(call.root);
      options.setTag(tag);
      return gloo::scatter(options);
    }
    case Operation::kSendRecv:
      return SendRecv(tag);
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
void GlooCall::AllReduce(T* in, T* out, std::size_t count, std::uint32_t tag) {
  gloo::AllreduceOptions options(context_);
  if (in != out) options.setInput(in, count);
  options.setOutput(out, count);
  options.setReduceFunction(ReduceOf(shape_.call.datatype, shape_.call.redop));
  options.setTag(tag);
  gloo::allreduce(options);
  if (shape_.call.redop == RedOp::kAvg)
    Divide(shape_.call.datatype, {reinterpret_cast<std::byte*>(out), count * sizeof(T)}, shape_.nranks);
}

template <class T>
void GlooCall::AllToAll(T* in, T* out, std::uint32_t tag) {
  const Call& call = shape_.call;
  const auto ranks = static_cast<std::size_t>(shape_.nranks);
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
                             ranks, static_cast<std::int64_t>(call.splits[static_cast<std::size_t>(shape_.rank)])));
  options.setTag(tag);
  gloo::alltoallv(options);
}

void GlooCall::SendRecv(std::uint32_t tag) {
  constexpr std::uint64_t kSlot = 1ULL << 62U;  // none of Gloo's own collectives
  const std::uint64_t slot = kSlot + tag;
  if (shape_.rank == shape_.call.root) {
    auto buffer = context_->createUnboundBuffer(input().data(), BytesIn(shape_));
    buffer->send(shape_.call.peer, slot);
    buffer->waitSend(patience_);
  } else if (shape_.rank == shape_.call.peer) {
    auto buffer = context_->createUnboundBuffer(output_.data(), BytesOut(shape_));
    buffer->recv(shape_.call.root, slot);
    buffer->waitRecv(patience_);
  }
}

/// A barrier moves no data of ours.
void GlooCall::FillOwnResult() {
  DataShape alone = shape_;
  alone.rank = 0;
  alone.nranks = 1;
  FillInput(alone, filled_, output_.bytes());
}

}  // namespace inquest
