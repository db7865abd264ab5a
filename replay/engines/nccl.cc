// The GPU engine: NCCL, as the failed job used it. The only door to it and to the driver, beside nccl_*: both are
// loaded at run time.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "replay/engines/nccl_owner.h"
#include "replay/ops.h"

namespace inquest {
namespace {

constexpr const char* kIdKey = "nccl-unique-id";
constexpr std::uint64_t kWarmUpElements = 1024;

class NcclSession final : public NcclOwner {
 public:
  NcclSession(const SessionSetup& setup, inquest::Store& store)
      : NcclOwner(setup, store), shape_{setup.call, setup.rank, setup.nranks} {}
  ~NcclSession() override { EndRunner(); }

  StepState Begin(const Step& step) override {
    step_ = step;
    switch (step.phase) {
      case Phase::kLibsLoaded:
        return Run([this] { Load(); });
      case Phase::kDeviceSet:
        return Run([this] {
          SetDevice();
          CheckFloat8(setup_.call);
        });
      case Phase::kIdReceived:
        return Run([this] { ExchangeId(); });
      case Phase::kCommInit:
        return Run([this] { Init(setup_.rank, setup_.nranks, id_); });
      case Phase::kBuffersReady:
        return Run([this] { Allocate(); });
      case Phase::kWarmedUp:
        return Run([this] { WarmUp(); });
      case Phase::kRehearsed:
        return Run([this] { Rehearse(); });
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

  std::optional<WrongData> wrong_data() const override { return wrong_data_; }
  std::optional<std::chrono::nanoseconds> device_time() const override { return time_; }
  std::vector<std::string> Describe() const override {
    std::vector<std::string> lines = DescribeLibraries();
    if (!gpu_.why_host().empty())
      lines.push_back("the host fills and verifies the data, since the driver cannot compile for the GPU: " +
                      gpu_.why_host());
    if (setup_.call.operation == Operation::kBarrier)
      lines.emplace_back("the barrier is an all-reduce of one element, as PyTorch has it");
    else if (!setup_.call.in_place && IsInPlace(setup_.call))
      lines.emplace_back("input and output are one buffer, as PyTorch has it");
    return lines;
  }
  void Corrupt() override { corrupt_ = true; }  // in Verify, on the thread that knows the device

 private:
  void ExchangeId() {
    std::vector<int> all(static_cast<std::size_t>(setup_.nranks));
    std::iota(all.begin(), all.end(), 0);
    id_ = setup_.rank == 0 ? MakeId(kIdKey, all) : ReceiveId(kIdKey);
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

  /// The same operation on little data: from NCCL 2.22 on ranks connect in the first call of an operation, and for each
  /// algorithm in the first that is large enough for it. That one is a step of its own, since it is worth knowing
  /// whether little data comes through.
  void WarmUp() {
    DataShape small = shape_;
    small.call.count = std::min(small.call.count, kWarmUpElements);
    for (std::uint64_t& split : small.call.splits) split = std::min(split, kWarmUpElements);
    MakeOnce(small, "the warm-up");
  }

  void Rehearse() {
    const std::vector<std::uint64_t>& splits = shape_.call.splits;
    const std::uint64_t most = splits.empty() ? shape_.call.count : *std::ranges::max_element(splits);
    if (most > kWarmUpElements) MakeOnce(shape_, "the first call of its size");  // else it was the warm-up
  }

  void MakeOnce(const DataShape& shape, std::string_view what) {
    const Buffers buffers = BuffersOf(shape);
    gpu_.SetBytes(buffers.input, 0, BytesIn(shape));
    Finish(Collective(shape, buffers, Comm(0), gpu_.stream()), what);
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
    Finish(Collective(shape_, BuffersOf(shape_), Comm(0), gpu_.stream()), "the call");
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

  DataShape shape_;
  Step step_;
  nccl::UniqueId id_{};
  cuda::Pointer input_memory_ = 0, output_memory_ = 0;  ///< one and the same in place
  std::optional<WrongData> wrong_data_;
  std::optional<std::chrono::nanoseconds> time_;
  std::atomic<bool> corrupt_ = false;
};

std::unique_ptr<Session> MakeNccl(const SessionSetup& setup, inquest::Store& store) {
  if (setup.sequence) return MakeNcclSequence(setup, store);
  return std::make_unique<NcclSession>(setup, store);
}

Result<EngineProbe> ProbeNccl(const std::map<std::string, std::string>& options) {
  // The driver first: where there is none, no libnccl helps.
  const Result<cuda::Driver> driver = cuda::LoadDriver();
  if (!driver) return driver.error();
  const Result<nccl::Library> library = nccl::LoadLibrary(OptionValue(options, "library"));
  if (!library) return library.error();
  int count = 0;
  (void)driver->device_count(&count);  // LoadDriver has asked it
  // Of MIG instances a process sees one, and each worker its own.
  const std::string list = OptionValue(options, "CUDA_VISIBLE_DEVICES");
  const int instances = list.starts_with("MIG-") ? static_cast<int>(std::ranges::count(list, ',')) + 1 : 0;
  return EngineProbe{.version = fmt::format("NCCL {} of {}, {} GPU{}", nccl::VersionText(library->version),
                                            library->path, count, count == 1 ? "" : "s"),
                     .tests = "",
                     .nccl = library->version,
                     .gpus = std::max(count, instances)};
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
