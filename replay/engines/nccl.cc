// The GPU engine: NCCL, as the failed job used it. The only door to it and to the driver, beside nccl_*: both are
// loaded at run time.
//
// Every call is made by one thread of the session, abort and destruction too, and it polls: the communicator is
// non-blocking (NCCL 2.14), so that each call returns ncclInProgress and ncclCommGetAsyncError tells when it is
// through; the stream is asked by events and never waited for. What hangs nevertheless hangs that thread alone. The
// worker's own threads go on telling the supervisor what it saw last.
#include <stdlib.h>
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "replay/engine.h"
#include "replay/engines/nccl_device.h"
#include "replay/engines/nccl_library.h"
#include "replay/engines/runner.h"
#include "replay/ops.h"

namespace inquest {
namespace {

constexpr const char* kIdKey = "nccl-unique-id";
constexpr std::uint64_t kWarmUpElements = 1024;
constexpr int kFirstWithFloat8 = 22400;

std::string Value(const std::map<std::string, std::string>& options, const std::string& key) {
  const auto found = options.find(key);
  return found == options.end() ? "" : found->second;
}

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
        return Run([this] { gpu_.AwaitBegin(); });
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
      lines.push_back(fmt::format("NCCL {} of {}", nccl::VersionText(library_.version), library_.path));
    if (!gpu_.description().empty()) lines.push_back(gpu_.description());
    if (!gpu_.why_host().empty())
      lines.push_back("the host fills and verifies the data, since the driver cannot compile for the GPU: " +
                      gpu_.why_host());
    if (setup_.call.operation == Operation::kBarrier)
      lines.emplace_back("the barrier is an all-reduce of one element, as PyTorch has it");
    else if (!setup_.call.in_place && IsInPlace(setup_.call))
      lines.emplace_back("input and output are one buffer, as PyTorch has it");
    return lines;
  }
  std::string async_error() const override {
    const nccl::Status state = seen_.load();
    return state == nccl::Status::kSuccess ? "" : Words(state);
  }
  void Abort() override {
    abort_ = true;
    runner_.Wake();
    // Where the owner hangs in a call this does as well, and the worker leaves without it.
    for (Life life = life_; life == Life::kAlive; life = life_) life_.wait(life);
  }
  void Corrupt() override { corrupt_ = true; }  // in Verify, on the thread that knows the device

 private:
  StepState Run(std::function<void()> job) {
    runner_.Begin(std::move(job));
    return {StepState::State::kPending, ""};
  }

  // ---- getting ready -------------------------------------------------------------------------------------------

  /// What a session sets up otherwise, or what would make calls wait. NCCL's files of settings fill in what is not set.
  static void ForgetSettings() {
    ::setenv("NCCL_COMM_BLOCKING", "0", 1);  // goes before the configuration
    ::unsetenv("NCCL_COMM_ID");              // the store hands out the id
    ::unsetenv("CUDA_LAUNCH_BLOCKING");
  }

  void Load() {
    ForgetSettings();
    Result<nccl::Library> library = nccl::LoadLibrary(Value(setup_.options, "library"));
    if (!library) throw std::runtime_error(library.error().message);
    library_ = *std::move(library);
    gpu_.Open();
  }

  void SetDevice() {
    gpu_.Choose(OwnDevice());
    CheckFloat8();
  }

  /// By its address where the plan names one, else by its number.
  int OwnDevice() const {
    const int count = gpu_.Count();
    if (const std::string address = Value(setup_.options, "bus-id"); !address.empty()) {
      for (int device = 0; device < count; ++device)
        if (gpu_.IsAt(device, address)) return device;
      throw std::runtime_error(fmt::format("rank {} belongs on GPU {}, which is not among the {} that can be seen here",
                                           setup_.rank, address, count));
    }
    const std::string asked = Value(setup_.options, "device");
    const bool only = count == 1 && !Value(setup_.options, "device-or-only").empty();
    const int device = only ? 0 : asked.empty() ? setup_.rank : std::atoi(asked.c_str());
    if (device < 0 || device >= count)
      throw std::runtime_error(
          fmt::format("rank {} wants GPU {}, and there {} {}; --share-gpu puts several ranks on one", setup_.rank,
                      device, count == 1 ? "is" : "are", count));
    return device;
  }

  /// Before anyone is asked to communicate. Of a GPU before Hopper NCCL refuses the arithmetic alone (2.28.9,
  /// enqueue.cc).
  void CheckFloat8() const {
    const Call& call = setup_.call;
    if (call.datatype != Datatype::kFloat8E4M3 && call.datatype != Datatype::kFloat8E5M2) return;
    if (library_.version < kFirstWithFloat8)
      throw std::runtime_error(fmt::format("NCCL {} has no {}; 2.24 is the first that has",
                                           nccl::VersionText(library_.version), Name(call.datatype)));
    if (RowOf(call.operation).needs_redop && gpu_.capability() < 90)
      throw std::runtime_error(
          fmt::format("NCCL reduces {} on GPUs of compute capability 9.0 and later, and {} has {}.{}",
                      Name(call.datatype), gpu_.description(), gpu_.capability() / 10, gpu_.capability() % 10));
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
    nccl::Config config;
    life_ = Life::kAlive;
    const nccl::Status result = library_.init(&made_, setup_.nranks, id_, setup_.rank, &config);
    comm_ = made_;
    Finish(result, "ncclCommInitRankConfig");
  }

  /// PyTorch's all_reduce, broadcast and reduce have one buffer; its barrier is an all-reduce. Sends and receives
  /// cannot have one.
  static bool IsInPlace(const Call& call) {
    switch (call.operation) {
      case Operation::kAllReduce:
      case Operation::kReduce:
        // All ranks hand in the average itself: a call that does nothing would leave what is right.
        return call.redop != RedOp::kAvg;
      case Operation::kBroadcast:
      case Operation::kBarrier:
        return true;
      case Operation::kAllToAll:
        return false;
      default:
        return call.in_place;
    }
  }

  void Allocate() {
    const std::uint64_t in = BytesIn(shape_), out = BytesOut(shape_), free = gpu_.FreeBytes();
    const bool shared = IsInPlace(shape_.call);
    const std::uint64_t need = shared ? std::max(in, out) : in + out;
    if (need > free)
      throw std::runtime_error(fmt::format("the buffers of one rank need {:.1f} GiB, and the GPU has {:.1f} GiB left",
                                           static_cast<double>(need) / (1ULL << 30U),
                                           static_cast<double>(free) / (1ULL << 30U)));
    output_memory_ = gpu_.Allocate(shared ? std::max(in, out) : out);
    input_memory_ = shared ? output_memory_ : gpu_.Allocate(in);
    gpu_.Prepare();
  }

  struct Buffers {
    cuda::Pointer input = 0, output = 0;
  };
  /// Where the buffers of a call begin that is no larger than the session's.
  Buffers BuffersOf(const DataShape& shape) const {
    Buffers buffers{input_memory_, output_memory_};
    if (input_memory_ != output_memory_) return buffers;
    // In place, the smaller buffer is this rank's part of the larger one.
    const std::uint64_t in = BytesIn(shape), out = BytesOut(shape),
                        part = static_cast<std::uint64_t>(setup_.rank) * std::min(in, out);
    if (in < out) buffers.input += part;
    if (in > out) buffers.output += part;
    return buffers;
  }

  /// The same operation on little data: from NCCL 2.22 on ranks connect in the first call of an operation. What only
  /// large calls connect, the first iteration does.
  void WarmUp() {
    DataShape small = shape_;
    small.call.count = std::min(small.call.count, kWarmUpElements);
    for (std::uint64_t& split : small.call.splits) split = std::min(split, kWarmUpElements);
    gpu_.SetBytes(BuffersOf(small).input, 0, BytesIn(small));
    Finish(Collective(small), "the warm-up");
    gpu_.MarkEnd();
    gpu_.AwaitEnd();
  }

  // ---- one iteration -------------------------------------------------------------------------------------------

  void Fill() {
    const Buffers buffers = BuffersOf(shape_);
    gpu_.SetBytes(buffers.output, 0xA5, BytesOut(shape_));  // in place, the input goes over its part of it
    gpu_.Fill(shape_, step_.iteration, buffers.input);
  }

  void Enqueue() {
    gpu_.MarkBegin();
    Finish(Collective(shape_), "the call");
    gpu_.MarkEnd();
  }

  void Complete() {
    gpu_.AwaitEnd();
    time_ = gpu_.Elapsed();
  }

  void Verify() {
    const cuda::Pointer output = BuffersOf(shape_).output;
    if (corrupt_ && BytesOut(shape_) > 0) gpu_.SetBytes(output + BytesOut(shape_) / 2, 0x41, 1);
    const DataFaults faults = gpu_.Verify(shape_, step_.iteration, output);
    wrong_data_.reset();
    if (faults.elements == 0) return;
    const std::size_t bytes = BytesOf(shape_.call.datatype);
    std::byte got[sizeof(std::uint64_t)] = {}, wanted[sizeof(std::uint64_t)] = {};
    gpu_.Read(output + faults.first * bytes, bytes, got);
    const std::uint64_t bits = OutputElement(PatternOf(shape_, step_.iteration), faults.first);
    std::memcpy(wanted, &bits, sizeof(bits));
    wrong_data_ = WrongData{.elements = faults.elements,
                            .first = faults.first,
                            .wanted = ElementText(shape_.call.datatype, wanted),
                            .got = ElementText(shape_.call.datatype, got)};
  }

  void Finalize() {
    if (life_ != Life::kAlive) return;
    Finish(library_.finalize(Comm()), "ncclCommFinalize");
    library_.destroy(std::exchange(comm_, nullptr));
    Gone();
  }

  static std::byte* At(cuda::Pointer pointer) { return reinterpret_cast<std::byte*>(pointer); }

  /// What PyTorch calls for each operation. Sends and receives of one group, so that none waits for another.
  nccl::Status Collective(const DataShape& shape) {
    const Call& call = shape.call;
    const auto type = nccl::TypeOf(call.datatype);
    const auto redop = nccl::ReductionOf(call.redop);
    const std::size_t count = call.count, bytes = BytesOf(call.datatype);
    const Buffers buffers = BuffersOf(shape);
    std::byte *const input = At(buffers.input), *const output = At(buffers.output);
    const cuda::Stream stream = gpu_.stream();
    const nccl::Comm comm = Comm();
    switch (call.operation) {
      case Operation::kBroadcast:
        return library_.broadcast(setup_.rank == call.root ? input : output, output, count, type, call.root, comm,
                                  stream);
      case Operation::kAllReduce:
      case Operation::kBarrier:
        return library_.all_reduce(input, output, count, type, redop, comm, stream);
      case Operation::kReduce:
        return library_.reduce(input, output, count, type, redop, call.root, comm, stream);
      case Operation::kAllGather:
        return library_.all_gather(input, output, count, type, comm, stream);
      case Operation::kReduceScatter:
        return library_.reduce_scatter(input, output, count, type, redop, comm, stream);
      case Operation::kSendRecv:
        if (setup_.rank == call.root) return library_.send(input, count, type, call.peer, comm, stream);
        if (setup_.rank == call.peer) return library_.recv(output, count, type, call.root, comm, stream);
        return nccl::Status::kSuccess;
      default:
        break;
    }
    const bool all = call.operation == Operation::kAllToAll, is_root = setup_.rank == call.root;
    const bool sends_parts = all || (call.operation == Operation::kScatter && is_root),
               gets_parts = all || (call.operation == Operation::kGather && is_root);
    nccl::Status result = library_.group_start();
    const auto add = [&](nccl::Status next) {
      if (result == nccl::Status::kSuccess && next != nccl::Status::kInProgress) result = next;
    };
    const std::size_t own = all && !call.splits.empty() ? call.splits[static_cast<std::size_t>(setup_.rank)] : count;
    std::size_t sent = 0;
    for (int peer = 0; peer < setup_.nranks; ++peer) {
      const std::size_t part = all && !call.splits.empty() ? call.splits[static_cast<std::size_t>(peer)] : count;
      if (sends_parts) add(library_.send(input + sent * bytes, part, type, peer, comm, stream));
      if (gets_parts)
        add(library_.recv(output + static_cast<std::size_t>(peer) * own * bytes, own, type, peer, comm, stream));
      sent += part;
    }
    if (call.operation == Operation::kGather) add(library_.send(input, count, type, call.root, comm, stream));
    if (call.operation == Operation::kScatter) add(library_.recv(output, count, type, call.root, comm, stream));
    const nccl::Status end = library_.group_end();
    return result == nccl::Status::kSuccess ? end : result;
  }

  // ---- polling -------------------------------------------------------------------------------------------------

  std::string Words(nccl::Status result) const {
    return fmt::format("{} ({})", library_.error_string(result), static_cast<int>(result));
  }
  void CheckNccl(nccl::Status result, std::string_view what) const {
    if (result == nccl::Status::kSuccess) return;
    const char* const words = library_.last_error(comm_);
    const std::string last = words == nullptr ? "" : words;
    throw std::runtime_error(fmt::format("{}: {}{}{}", what, Words(result), last.empty() ? "" : ": ", last));
  }

  /// Until a call that returned ncclInProgress is through.
  void Finish(nccl::Status result, std::string_view what) {
    for (Backoff backoff; result == nccl::Status::kInProgress; backoff.Wait()) {
      AbortIfAsked();
      result = Ask();
    }
    CheckNccl(result, what);
  }

  // ---- the communicator's owner --------------------------------------------------------------------------------
  // From 2.26 on ncclCommGetAsyncError finishes what a group has begun, so that two threads must not call it at once;
  // nor may one that asks meet one that aborts or destroys. The runner's thread alone does any of it, and leaves what
  // it saw for the others.

  nccl::Comm Comm() const {
    if (comm_ == nullptr) throw std::runtime_error("the communicator was aborted");
    return comm_;
  }

  nccl::Status Ask() {
    nccl::Status async = nccl::Status::kSuccess;
    const nccl::Status asked = library_.async_error(Comm(), &async);
    const nccl::Status state = asked == nccl::Status::kSuccess ? async : asked;
    seen_ = state == nccl::Status::kInProgress ? nccl::Status::kSuccess : state;
    return state;
  }

  void AbortIfAsked() {
    if (!abort_) return;
    if (comm_ != nullptr) library_.abort(std::exchange(comm_, nullptr));
    Gone();
    throw std::runtime_error("the communicator was aborted");
  }

  void Gone() {
    life_ = Life::kGone;
    life_.notify_all();
  }

  /// While the GPU is waited for: an error of the communicator ends that.
  void Look() {
    AbortIfAsked();
    const nccl::Status state = Ask();
    if (state != nccl::Status::kInProgress) CheckNccl(state, "asynchronous error");
  }

  /// Between two steps.
  void LookIdly() {
    if (life_ != Life::kAlive) return;
    try {
      AbortIfAsked();
      if (comm_ != nullptr) Ask();
    } catch (const std::exception&) {
      // the next step says it
    }
  }

  SessionSetup setup_;
  DataShape shape_;
  inquest::Store& store_;
  Step step_;
  nccl::Library library_;
  cuda::Gpu gpu_{[this] { Look(); }};
  nccl::UniqueId id_{};
  nccl::Comm comm_ = nullptr;  ///< of the runner's thread, as all that is said of the owner
  /// NCCL's own thread stores into this until the communicator exists, even past an abort (2.14.3, init.cc); a worker
  /// never deletes its session.
  nccl::Comm made_ = nullptr;
  enum class Life : int { kNone, kAlive, kGone };
  std::atomic<Life> life_ = Life::kNone;
  std::atomic<bool> abort_ = false;
  std::atomic<nccl::Status> seen_ = nccl::Status::kSuccess;  ///< the last error that the owner was told of
  cuda::Pointer input_memory_ = 0, output_memory_ = 0;       ///< one and the same in place
  std::optional<WrongData> wrong_data_;
  std::optional<std::chrono::nanoseconds> time_;
  std::atomic<bool> corrupt_ = false;
  Runner runner_{"NCCL", [](std::string words) { return words; }, [this] { LookIdly(); }};  ///< last: it ends first
};

std::unique_ptr<Session> MakeNccl(const SessionSetup& setup, inquest::Store& store) {
  return std::make_unique<NcclSession>(setup, store);
}

Result<EngineProbe> ProbeNccl(const std::map<std::string, std::string>& options) {
  // The driver first: where there is none, no libnccl helps.
  const Result<cuda::Driver> driver = cuda::LoadDriver();
  if (!driver) return driver.error();
  const Result<nccl::Library> library = nccl::LoadLibrary(Value(options, "library"));
  if (!library) return library.error();
  int count = 0;
  (void)driver->device_count(&count);  // LoadDriver has asked it
  return EngineProbe{.version = fmt::format("NCCL {} of {}, {} GPU{}", nccl::VersionText(library->version),
                                            library->path, count, count == 1 ? "" : "s"),
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
