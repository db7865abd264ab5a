// The GPU engine: NCCL, as the failed job used it. The only door to CUDA and NCCL, beside nccl_*.
//
// Every call is made by one thread of the session, which polls: the communicator is non-blocking (NCCL 2.14), so that
// each call returns ncclInProgress and ncclCommGetAsyncError tells when it is through; the stream is asked by events
// and never waited for. What hangs nevertheless hangs that thread alone. The worker's own threads go on telling the
// supervisor.
#include <cuda_runtime.h>
#include <nccl.h>
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <stdexcept>

#include "replay/engine.h"
#include "replay/engines/nccl_check.h"
#include "replay/engines/nccl_library.h"
#include "replay/engines/runner.h"
#include "replay/ops.h"

namespace inquest {
namespace {

using std::chrono::microseconds;

constexpr const char* kIdKey = "nccl-unique-id";
constexpr std::uint64_t kAlignment = 256;  ///< cudaMalloc's

/// The head of ncclConfig_t as of 2.14, which every later release takes: it copies no more than `size` bytes.
struct Config2_14 {
  std::size_t size = sizeof(Config2_14);
  unsigned magic = 0xcafebeef, version = 21400;
  int blocking = 0;
};

std::string Value(const std::map<std::string, std::string>& options, const std::string& key) {
  const auto found = options.find(key);
  return found == options.end() ? "" : found->second;
}

void CheckCuda(cudaError_t error, std::string_view what) {
  if (error != cudaSuccess)
    throw std::runtime_error(
        fmt::format("{}: CUDA error {} ({})", what, static_cast<int>(error), cudaGetErrorString(error)));
}

/// Sleeps a little longer each time, from 50 us to 5 ms.
class Backoff {
 public:
  void Wait() {
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, microseconds(5000));
  }

 private:
  microseconds pause_{50};
};

class NcclSession final : public Session {
 public:
  NcclSession(const SessionSetup& setup, inquest::Store& store)
      : setup_(setup), shape_{setup.call, setup.rank, setup.nranks}, store_(store) {}

  StepState Begin(const Step& step) override {
    step_ = step;
    switch (step.phase) {
      case Phase::kLibsLoaded:
        return Run([this] { Load(); });
      case Phase::kDeviceSet:
        return Run([this] { SetDevice(); });
      case Phase::kIdReceived:
        return Run([this] { ExchangeId(); });
      case Phase::kCommInit:
        return Run([this] { Init(); });
      case Phase::kBuffersReady:
        return Run([this] { Allocate(); });
      case Phase::kWarmedUp:
        return Run([this] { WarmUp(); });
      case Phase::kDescriptorAgreed:
        return Run([this] { Fill(); });
      case Phase::kEnqueued:
        return Run([this] { Enqueue(); });
      case Phase::kStarted:
        return Run([this] { Await(begun_); });
      case Phase::kCompleted:
        return Run([this] { Complete(); });
      case Phase::kVerified:
        return Run([this] { Verify(); });
      case Phase::kFinalized:
        return Run([this] { Finalize(); });
      default:
        return {};
    }
  }
  StepState Poll() override { return runner_.state(); }

  std::optional<WrongData> wrong_data() const override { return wrong_data_; }
  std::optional<std::chrono::nanoseconds> device_time() const override { return time_; }
  std::vector<std::string> Describe() const override {
    std::vector<std::string> lines;
    if (library_.version > 0)
      lines.push_back(fmt::format("NCCL {} of {}", NcclVersionText(library_.version), library_.path));
    if (!device_name_.empty()) lines.push_back(device_name_);
    if (setup_.call.operation == Operation::kBarrier)
      lines.emplace_back("the barrier is an all-reduce of one element, as PyTorch has it");
    return lines;
  }
  std::string async_error() const override {
    const ncclComm_t comm = comm_.load();
    if (comm == nullptr) return {};
    ncclResult_t state = ncclSuccess;
    if (library_.async_error(comm, &state) != ncclSuccess || state == ncclSuccess || state == ncclInProgress) return {};
    return Words(state);
  }
  void Abort() override {
    if (const ncclComm_t comm = comm_.exchange(nullptr); comm != nullptr) library_.abort(comm);
  }
  void Corrupt() override { corrupt_ = true; }  // in Verify, on the thread that knows the device

 private:
  StepState Run(std::function<void()> job) {
    runner_.Begin(std::move(job));
    return {StepState::State::kPending, ""};
  }

  // ---- getting ready -------------------------------------------------------------------------------------------

  void Load() {
    Result<NcclLibrary> library = LoadNccl(Value(setup_.options, "library"));
    if (!library) throw std::runtime_error(library.error().message);
    library_ = *std::move(library);
  }

  void SetDevice() {
    int count = 0;
    CheckCuda(cudaGetDeviceCount(&count), "counting the GPUs");
    const std::string asked = Value(setup_.options, "device");
    const bool only = count == 1 && !Value(setup_.options, "device-or-only").empty();
    const int device = only ? 0 : asked.empty() ? setup_.rank : std::atoi(asked.c_str());
    if (device < 0 || device >= count)
      throw std::runtime_error(
          fmt::format("rank {} wants GPU {}, and there {} {}; --share-gpu puts several ranks on one", setup_.rank,
                      device, count == 1 ? "is" : "are", count));
    CheckCuda(cudaSetDevice(device), "choosing the GPU");
    CheckCuda(cudaFree(nullptr), "making the CUDA context");
    char bus_id[32] = "";
    cudaDeviceProp properties{};
    CheckCuda(cudaGetDeviceProperties(&properties, device), "asking the GPU for its name");
    CheckCuda(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), device), "asking the GPU for its address");
    device_name_ = fmt::format("GPU {}: {} at {}", device, properties.name, bus_id);
  }

  void ExchangeId() {
    if (setup_.rank == 0) {
      CheckNccl(library_.get_unique_id(&id_), "ncclGetUniqueId");
      store_.Set(kIdKey, std::string(id_.internal, sizeof(id_.internal)));
      return;
    }
    const auto bytes = store_.Get(kIdKey, setup_.patience);
    if (!bytes || bytes->size() != sizeof(id_.internal))
      throw std::runtime_error("rank 0 has not sent the id of the communicator");
    std::memcpy(id_.internal, bytes->data(), sizeof(id_.internal));
  }

  void Init() {
    Config2_14 config;
    ncclComm_t comm = nullptr;
    const ncclResult_t result =
        library_.init(&comm, setup_.nranks, id_, setup_.rank, reinterpret_cast<ncclConfig_t*>(&config));
    comm_ = comm;
    Finish(result, "ncclCommInitRankConfig");
  }

  void Allocate() {
    const std::uint64_t in = BytesIn(shape_), out = BytesOut(shape_);
    std::size_t free = 0, total = 0;
    CheckCuda(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
    if (shape_.call.operation == Operation::kAllToAll) shape_.call.in_place = false;  // sends and receives cannot
    const bool shared = shape_.call.in_place;
    const std::uint64_t need = shared ? std::max(in, out) : in + out;
    if (need > free)
      throw std::runtime_error(fmt::format("the buffers of one rank need {:.1f} GiB, and the GPU has {:.1f} GiB left",
                                           static_cast<double>(need) / (1ULL << 30U),
                                           static_cast<double>(free) / (1ULL << 30U)));
    output_ = Device(shared ? std::max(in, out) : out);
    input_ = shared ? output_ : Device(in);
    // In place, the smaller buffer is this rank's part of the larger one.
    const std::uint64_t part = static_cast<std::uint64_t>(setup_.rank) * std::min(in, out);
    if (shared && in < out) input_ += part;
    if (shared && in > out) output_ += part;
    CheckCuda(cudaHostAlloc(reinterpret_cast<void**>(&faults_), sizeof(DeviceFaults), cudaHostAllocMapped),
              "allocating pinned memory");
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    CheckCuda(cudaEventCreate(&begun_), "making an event");
    CheckCuda(cudaEventCreate(&ended_), "making an event");
  }

  std::byte* Device(std::uint64_t bytes) {
    void* pointer = nullptr;
    CheckCuda(cudaMalloc(&pointer, std::max<std::uint64_t>(bytes, kAlignment)), "allocating the GPU's memory");
    return static_cast<std::byte*>(pointer);
  }

  void WarmUp() {
    std::byte* scratch = Device(kAlignment);
    CheckCuda(cudaMemsetAsync(scratch, 0, kAlignment, stream_), "clearing the warm-up's buffer");
    Finish(library_.all_reduce(scratch, scratch, 1, ncclFloat32, ncclSum, comm_, stream_),
           "the warm-up's ncclAllReduce");
    CheckCuda(cudaEventRecord(ended_, stream_), "recording an event");
    Await(ended_);
  }

  // ---- one iteration -------------------------------------------------------------------------------------------

  void Fill() {
    if (!shape_.call.in_place)
      CheckCuda(cudaMemsetAsync(output_, 0xA5, BytesOut(shape_), stream_), "spoiling the output");
    CheckCuda(FillInputOnDevice(shape_, step_.iteration, input_, stream_), "filling the input");
    CheckCuda(cudaEventRecord(ended_, stream_), "recording an event");
    Await(ended_);
  }

  void Enqueue() {
    CheckCuda(cudaEventRecord(begun_, stream_), "recording an event");
    Finish(Collective(), "the call");
    CheckCuda(cudaEventRecord(ended_, stream_), "recording an event");
  }

  void Complete() {
    Await(ended_);
    float took = 0;  // in milliseconds
    CheckCuda(cudaEventElapsedTime(&took, begun_, ended_), "reading the time");
    time_ = std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(took) * 1e6));
  }

  void Verify() {
    if (corrupt_ && BytesOut(shape_) > 0)
      CheckCuda(cudaMemsetAsync(output_ + BytesOut(shape_) / 2, 0x41, 1, stream_), "spoiling a byte");
    *faults_ = {};
    CheckCuda(VerifyOutputOnDevice(shape_, step_.iteration, output_, faults_, stream_), "verifying the output");
    CheckCuda(cudaEventRecord(ended_, stream_), "recording an event");
    Await(ended_);
    wrong_data_.reset();
    if (faults_->elements == 0) return;
    const std::size_t bytes = BytesOf(shape_.call.datatype);
    std::byte got[sizeof(std::uint64_t)] = {}, wanted[sizeof(std::uint64_t)] = {};
    CheckCuda(cudaMemcpy(got, output_ + faults_->first * bytes, bytes, cudaMemcpyDeviceToHost),
              "reading the wrong element");
    const std::uint64_t bits = OutputElement(PatternOf(shape_, step_.iteration), faults_->first);
    std::memcpy(wanted, &bits, sizeof(bits));
    wrong_data_ = WrongData{.elements = faults_->elements,
                            .first = faults_->first,
                            .wanted = ElementText(shape_.call.datatype, wanted),
                            .got = ElementText(shape_.call.datatype, got)};
  }

  void Finalize() {
    const ncclComm_t comm = comm_.load();
    if (comm == nullptr) return;
    Finish(library_.finalize(comm), "ncclCommFinalize");
    comm_ = nullptr;
    library_.destroy(comm);
  }

  /// What PyTorch calls for each operation. Sends and receives of one group, so that none waits for another.
  ncclResult_t Collective() {
    const Call& call = shape_.call;
    const auto type = static_cast<ncclDataType_t>(call.datatype);
    const auto redop = static_cast<ncclRedOp_t>(call.redop);
    const std::size_t count = call.count, bytes = BytesOf(call.datatype);
    switch (call.operation) {
      case Operation::kBroadcast:
        return library_.broadcast(setup_.rank == call.root ? input_ : output_, output_, count, type, call.root, comm_,
                                  stream_);
      case Operation::kAllReduce:
      case Operation::kBarrier:
        return library_.all_reduce(input_, output_, count, type, redop, comm_, stream_);
      case Operation::kReduce:
        return library_.reduce(input_, output_, count, type, redop, call.root, comm_, stream_);
      case Operation::kAllGather:
        return library_.all_gather(input_, output_, count, type, comm_, stream_);
      case Operation::kReduceScatter:
        return library_.reduce_scatter(input_, output_, count, type, redop, comm_, stream_);
      case Operation::kSendRecv:
        if (setup_.rank == call.root) return library_.send(input_, count, type, call.peer, comm_, stream_);
        if (setup_.rank == call.peer) return library_.recv(output_, count, type, call.root, comm_, stream_);
        return ncclSuccess;
      default:
        break;
    }
    const bool all = call.operation == Operation::kAllToAll, is_root = setup_.rank == call.root;
    const bool sends_parts = all || (call.operation == Operation::kScatter && is_root),
               gets_parts = all || (call.operation == Operation::kGather && is_root);
    ncclResult_t result = library_.group_start();
    const auto add = [&](ncclResult_t next) {
      if (result == ncclSuccess && next != ncclInProgress) result = next;
    };
    const std::size_t own = all && !call.splits.empty() ? call.splits[static_cast<std::size_t>(setup_.rank)] : count;
    std::size_t sent = 0;
    for (int peer = 0; peer < setup_.nranks; ++peer) {
      const std::size_t part = all && !call.splits.empty() ? call.splits[static_cast<std::size_t>(peer)] : count;
      if (sends_parts) add(library_.send(input_ + sent * bytes, part, type, peer, comm_, stream_));
      if (gets_parts)
        add(library_.recv(output_ + static_cast<std::size_t>(peer) * own * bytes, own, type, peer, comm_, stream_));
      sent += part;
    }
    if (call.operation == Operation::kGather) add(library_.send(input_, count, type, call.root, comm_, stream_));
    if (call.operation == Operation::kScatter) add(library_.recv(output_, count, type, call.root, comm_, stream_));
    const ncclResult_t end = library_.group_end();
    return result == ncclSuccess ? end : result;
  }

  // ---- polling -------------------------------------------------------------------------------------------------

  std::string Words(ncclResult_t result) const {
    return fmt::format("{} ({})", library_.error_string(result), static_cast<int>(result));
  }
  std::string LastError() const {
    const char* words = library_.last_error(comm_.load());
    return words == nullptr ? "" : words;
  }

  void CheckNccl(ncclResult_t result, std::string_view what) const {
    if (result == ncclSuccess) return;
    const std::string last = LastError();
    throw std::runtime_error(fmt::format("{}: {}{}{}", what, Words(result), last.empty() ? "" : ": ", last));
  }

  /// Until a call that returned ncclInProgress is through.
  void Finish(ncclResult_t result, std::string_view what) {
    for (Backoff backoff; result == ncclInProgress; backoff.Wait()) {
      const ncclComm_t comm = comm_.load();
      if (comm == nullptr) throw std::runtime_error(fmt::format("{} was aborted", what));
      ncclResult_t state = ncclSuccess;
      const ncclResult_t asked = library_.async_error(comm, &state);
      result = asked == ncclSuccess ? state : asked;
    }
    CheckNccl(result, what);
  }

  /// Until the stream is past an event, or the communicator reports an error.
  void Await(cudaEvent_t event) {
    for (Backoff backoff;; backoff.Wait()) {
      const cudaError_t state = cudaEventQuery(event);
      if (state == cudaSuccess) return;
      if (state != cudaErrorNotReady) CheckCuda(state, "waiting for the GPU");
      const ncclComm_t comm = comm_.load();
      if (comm == nullptr) throw std::runtime_error("the communicator was aborted");
      ncclResult_t async = ncclSuccess;
      if (library_.async_error(comm, &async) == ncclSuccess && async != ncclInProgress)
        CheckNccl(async, "asynchronous error");
    }
  }

  SessionSetup setup_;
  DataShape shape_;
  inquest::Store& store_;
  Step step_;
  NcclLibrary library_;
  std::string device_name_;
  ncclUniqueId id_{};
  std::atomic<ncclComm_t> comm_ = nullptr;
  std::byte *input_ = nullptr, *output_ = nullptr;
  DeviceFaults* faults_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begun_ = nullptr, ended_ = nullptr;
  std::optional<WrongData> wrong_data_;
  std::optional<std::chrono::nanoseconds> time_;
  std::atomic<bool> corrupt_ = false;
  Runner runner_{"NCCL"};  ///< last: it ends first
};

std::unique_ptr<Session> MakeNccl(const SessionSetup& setup, inquest::Store& store) {
  return std::make_unique<NcclSession>(setup, store);
}

Result<EngineProbe> ProbeNccl(const std::map<std::string, std::string>& options) {
  const Result<NcclLibrary> library = LoadNccl(Value(options, "library"));
  if (!library) return library.error();
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    return Error{fmt::format("no GPU can be used: {}",
                             error == cudaSuccess ? "the driver finds none" : cudaGetErrorString(error)),
                 "run it on a node of the job, or use --engine gloo, which needs none", ""};
  }
  return EngineProbe{.version = fmt::format("NCCL {} of {}, {} GPU{}", NcclVersionText(library->version), library->path,
                                            count, count == 1 ? "" : "s"),
                     .tests = "",
                     .nccl = library->version};
}

}  // namespace

extern const Engine kNccl;
const Engine kNccl{.name = "nccl",
                   .library = "NCCL, on GPUs",
                   .tests = "NCCL tests the GPUs, their links and the fabric that it chooses.",
                   .missing = "",
                   .make = MakeNccl,
                   .probe = ProbeNccl};

}  // namespace inquest
