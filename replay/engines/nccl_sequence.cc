// Many calls of several communicators of NCCL, issued by one thread in the rank's own order, as the job's process did.
//
// A call is launched on its stream and nothing waits for it but what comes behind it there; the thread goes on, unless
// NCCL itself has to wait for others (it connects in first calls). How far each stream is, events behind every call
// tell. Buffers are one pair a stream, as large as its largest call or group of calls: what runs there runs one after
// the other. Of a call that all of its ranks ask for alike the data is filled in before it and verified behind it, by
// kernels on its own stream, which wait for nobody else; of the others no data would be right.
//
// From NCCL 2.22 on ranks connect in first calls, and the thread waits in them: two ranks whose first calls are of two
// communicators would wait for one another, although their streams would not. So every such call is made once before,
// one after the other in an order that all ranks have.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "replay/engines/lane.h"
#include "replay/engines/nccl_owner.h"
#include "replay/ops.h"

namespace inquest {
namespace {

/// cuMemAlloc's alignment, which the calls of a group have as well.
constexpr std::uint64_t Aligned(std::uint64_t bytes) { return (bytes + 255) / 256 * 256; }

class NcclSequence final : public NcclOwner {
 public:
  NcclSequence(const SessionSetup& setup, Store& store) : NcclOwner(setup, store), work_(*setup.sequence) {
    for (auto& steps : ByStream(work_.steps)) lanes_.push_back(std::make_unique<OwnLane>(std::move(steps)));
    before_.resize(work_.steps.size());
  }
  ~NcclSequence() override { EndRunner(); }

  StepState Begin(const Step& step) override {
    switch (step.phase) {
      case Phase::kLibsLoaded:
        return Run([this] { Load(); });
      case Phase::kDeviceSet:
        return Run([this] {
          SetDevice();
          for (const Call& call : work_.calls) CheckFloat8(call);
        });
      case Phase::kIdReceived:
        return Run([this] { ExchangeIds(); });
      case Phase::kCommInit:
        return Run([this] { InitAll(); });
      case Phase::kBuffersReady:
        return Run([this] { Allocate(); });
      case Phase::kWarmedUp:
        return Run([this] { WarmUp(); });
      case Phase::kRehearsed:
        return Run([this] { Rehearse(); });
      case Phase::kEnqueued:
        issued_ = 0;
        pass_ = step.iteration - 1;
        for (const auto& lane : lanes_) lane->begun = lane->completed = 0;
        Run([this] { Pass(); });
        return {};
      case Phase::kCompleted:
        return Poll();
      case Phase::kFinalized:
        return Run([this] { Finalize(); });
      default:
        return {};
    }
  }

  std::optional<WrongData> wrong_data() const override { return wrong_data_; }
  bool verifies() const override { return gpu_.why_host().empty(); }
  std::vector<std::string> Describe() const override {
    std::vector<std::string> lines = DescribeLibraries();
    if (!verifies())
      lines.push_back("the data of the sequence is not verified, since the driver cannot compile for the GPU: " +
                      gpu_.why_host());
    return lines;
  }
  void Corrupt() override {}
  SequenceProgress progress() const override {
    SequenceProgress progress;
    for (const auto& lane : lanes_) progress.push_back(lane->progress());
    return progress;
  }

 private:
  struct OwnLane : StreamLane {
    using StreamLane::StreamLane;
    cuda::Stream stream = nullptr;
    Buffers buffers;
  };

  DataShape ShapeOf(const SequenceStep& step) const {
    const std::vector<int>& ranks = work_.communicators[step.communicator].ranks;
    return {work_.calls[step.call], RankIn(step.communicator), static_cast<int>(ranks.size())};
  }
  /// In a group of calls each has a part of its stream's.
  Buffers BuffersOf(std::uint32_t step) const {
    const Buffers& all = lanes_[work_.steps[step].stream]->buffers;
    return {all.input + before_[step].first, all.output + before_[step].second};
  }
  int RankIn(std::uint32_t communicator) const { return work_.communicators[communicator].PlaceOf(setup_.rank); }

  /// What others wait for goes out before anything is waited for.
  void ExchangeIds() {
    const auto key = [&](std::size_t i) { return fmt::format("nccl-unique-id.{}", work_.communicators[i].id); };
    ids_.resize(work_.communicators.size());
    for (std::uint32_t i = 0; i < ids_.size(); ++i)
      if (RankIn(i) == 0) ids_[i] = MakeId(key(i), work_.communicators[i].ranks);
    for (std::uint32_t i = 0; i < ids_.size(); ++i)
      if (RankIn(i) != 0) ids_[i] = ReceiveId(key(i));
  }

  /// In one order on all ranks, so that none waits for one that waits for it.
  void InitAll() {
    for (std::uint32_t i = 0; i < ids_.size(); ++i)
      Init(RankIn(i), static_cast<int>(work_.communicators[i].ranks.size()), ids_[i]);
  }

  void Allocate() {
    gpu_.Prepare();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> sizes;
    std::uint64_t need = 0;
    for (const auto& lane : lanes_) {
      auto& [in, out] = sizes.emplace_back(0, 0);
      std::uint32_t batch = 0;
      std::pair<std::uint64_t, std::uint64_t> taken;
      for (const std::uint32_t step : lane->steps) {
        const DataShape shape = ShapeOf(work_.steps[step]);
        const std::uint32_t own = work_.steps[step].batch;
        if (own == 0 || own != batch) taken = {};
        batch = own;
        before_[step] = taken;
        taken.first += Aligned(BytesIn(shape));
        taken.second += Aligned(BytesOut(shape));
        in = std::max(in, taken.first);
        out = std::max(out, taken.second);
      }
      need += in + out;
    }
    if (const std::uint64_t free = gpu_.FreeBytes(); need > free)
      throw std::runtime_error(fmt::format("the buffers of one rank need {:.1f} GiB, and the GPU has {:.1f} GiB left",
                                           static_cast<double>(need) / (1ULL << 30U),
                                           static_cast<double>(free) / (1ULL << 30U)));
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i]->stream = gpu_.NewStream();
      lanes_[i]->buffers = {gpu_.Allocate(sizes[i].first), gpu_.Allocate(sizes[i].second)};
      gpu_.SetBytes(lanes_[i]->buffers.input, 0, sizes[i].first);
      gpu_.SetBytes(lanes_[i]->buffers.output, 0, sizes[i].second);
    }
    small_ = {gpu_.Allocate(sizeof(float)), gpu_.Allocate(sizeof(float))};
    gpu_.SetBytes(small_.input, 0, sizeof(float));
    faults_ = gpu_.Allocate(work_.steps.size() * sizeof(DataFaults));
    if (verifies()) {
      // The driver loads a kernel in its first launch, and may wait for all streams in that.
      const DataShape one{{.operation = Operation::kAllReduce, .count = 1}, 0, 1};
      gpu_.FillOn(gpu_.stream(), one, 1, small_.input);
      gpu_.VerifyOn(gpu_.stream(), one, 1, small_.output, faults_);
    }
    gpu_.MarkEnd();
    gpu_.AwaitEnd();
    for (std::size_t i = 0; i < work_.steps.size(); ++i) ended_.push_back(gpu_.NewEvent());
  }

  /// An all-reduce of one element on each, one after the other.
  void WarmUp() {
    for (std::uint32_t i = 0; i < ids_.size(); ++i) {
      const DataShape one{{.operation = Operation::kAllReduce, .count = 1},
                          RankIn(i),
                          static_cast<int>(work_.communicators[i].ranks.size())};
      Finish(Collective(one, small_, Comm(i), gpu_.stream()), "the warm-up");
      gpu_.MarkEnd();
      gpu_.AwaitEnd();
    }
  }

  /// Once each, where several are alike.
  void Rehearse() {
    std::map<std::tuple<std::uint32_t, int, int, std::uint32_t>, std::uint32_t> order;
    for (std::uint32_t i = 0; i < work_.steps.size(); ++i) {
      const SequenceStep& step = work_.steps[i];
      const Call& call = work_.calls[step.call];
      const bool pair = call.operation == Operation::kSendRecv;
      if (step.checked)
        order.emplace(std::tuple(work_.communicators[step.communicator].id, pair ? call.root : -1,
                                 pair ? call.peer : -1, step.number),
                      i);
    }
    std::vector<std::pair<std::uint32_t, Call>> made;
    for (const auto& [meeting, i] : order) {
      const SequenceStep& step = work_.steps[i];
      std::pair<std::uint32_t, Call> one{step.communicator, work_.calls[step.call]};
      one.second.in_place = false;  // which is each rank's own affair
      if (std::ranges::find(made, one) != made.end()) continue;
      made.push_back(std::move(one));
      Finish(Collective(ShapeOf(step), BuffersOf(i), Comm(step.communicator), gpu_.stream()), "the first of its calls");
      gpu_.MarkEnd();
      gpu_.AwaitEnd();
    }
  }

  bool IsVerified(std::uint32_t step) const { return work_.steps[step].checked && verifies(); }
  /// The same on all that meet in it, another in every pass.
  int PatternOfStep(const SequenceStep& step) const {
    constexpr std::uint64_t kPatterns = 1 << 30;
    const std::uint64_t unique =
        std::uint64_t{static_cast<std::uint32_t>(pass_)} * work_.communicators[step.communicator].span + step.number;
    return static_cast<int>(unique % kPatterns) + 1;
  }
  cuda::Pointer FaultsOf(std::uint32_t step) const { return faults_ + step * sizeof(DataFaults); }

  void FillFor(std::uint32_t index) const {
    const SequenceStep& step = work_.steps[index];
    const Buffers buffers = BuffersOf(index);
    const cuda::Stream stream = lanes_[step.stream]->stream;
    gpu_.SetBytes(stream, buffers.output, 0xA5, BytesOut(ShapeOf(step)));
    gpu_.FillOn(stream, ShapeOf(step), PatternOfStep(step), buffers.input);
  }
  void VerifyFor(std::uint32_t index) const {
    const SequenceStep& step = work_.steps[index];
    gpu_.VerifyOn(lanes_[step.stream]->stream, ShapeOf(step), PatternOfStep(step), BuffersOf(index).output,
                  FaultsOf(index));
  }
  /// After the pass, when what the calls behind it left is in the buffers: what a wrong element was is not known any
  /// more.
  void LookAtData() {
    wrong_data_.reset();
    for (std::uint32_t i = 0; i < work_.steps.size() && !wrong_data_; ++i) {
      if (!IsVerified(i)) continue;
      DataFaults faults;
      gpu_.Read(FaultsOf(i), sizeof(faults), &faults);
      if (faults.elements == 0) continue;
      const SequenceStep& step = work_.steps[i];
      const std::uint64_t bits = OutputElement(PatternOf(ShapeOf(step), PatternOfStep(step)), faults.first);
      std::byte wanted[sizeof(bits)];
      std::memcpy(wanted, &bits, sizeof(bits));
      wrong_data_ = WrongData{.elements = faults.elements,
                              .first = faults.first,
                              .wanted = ElementText(work_.calls[step.call].datatype, wanted),
                              .got = "something else",
                              .step = i};
    }
  }

  void Pass() {
    const std::vector<SequenceStep>& steps = work_.steps;
    for (std::uint32_t first = 0, end = 0; first < steps.size(); first = end) {
      for (end = first + 1; end < steps.size() && steps[first].batch != 0 && steps[end].batch == steps[first].batch;)
        ++end;
      issued_ = end;  // what NCCL may wait in is begun
      Waiting();
      const bool grouped = end > first + 1;
      for (std::uint32_t i = first; i < end; ++i)
        if (IsVerified(i)) FillFor(i);
      nccl::Status result = grouped ? library_.group_start() : nccl::Status::kSuccess;
      for (std::uint32_t i = first; i < end; ++i) {
        const nccl::Status one = Issue(i);
        if (result == nccl::Status::kSuccess && (!grouped || one != nccl::Status::kInProgress)) result = one;
      }
      if (grouped) {
        const nccl::Status all = library_.group_end();
        if (result == nccl::Status::kSuccess) result = all;
      }
      Finish(result, "a call of the sequence");
      for (std::uint32_t i = first; i < end; ++i)
        if (IsVerified(i)) VerifyFor(i);
      for (std::uint32_t i = first; i < end; ++i) gpu_.Record(ended_[i], lanes_[steps[i].stream]->stream);
      recorded_ = end;
    }
    for (std::size_t i = 0; i < steps.size(); ++i) gpu_.Await(ended_[i]);
    Waiting();
    recorded_ = 0;
    LookAtData();
  }

  nccl::Status Issue(std::uint32_t index) const {
    const SequenceStep& step = work_.steps[index];
    return Collective(ShapeOf(step), BuffersOf(index), Comm(step.communicator), lanes_[step.stream]->stream);
  }

  /// How far the streams are, whenever something is waited for.
  void Waiting() override {
    for (const auto& lane : lanes_) {
      std::uint32_t completed = lane->completed;
      while (completed < lane->steps.size() && lane->steps[completed] < recorded_ &&
             gpu_.IsPast(ended_[lane->steps[completed]]))
        ++completed;
      std::uint32_t begun = completed;
      if (completed < lane->steps.size() && lane->steps[completed] < issued_) {
        const std::uint32_t batch = work_.steps[lane->steps[completed]].batch;
        do ++begun;
        while (batch != 0 && begun < lane->steps.size() && work_.steps[lane->steps[begun]].batch == batch);
      }
      lane->begun = begun;
      lane->completed = completed;
    }
  }

  const SequenceWork work_;
  std::vector<nccl::UniqueId> ids_;  ///< by communicator
  std::vector<std::unique_ptr<OwnLane>> lanes_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> before_;  ///< by step: bytes of its group in front of it
  std::vector<cuda::Event> ended_;                               ///< by step
  Buffers small_;
  cuda::Pointer faults_ = 0;             ///< a DataFaults for each step
  std::optional<WrongData> wrong_data_;  ///< of the runner's thread; asked once the pass is over
  // of the runner's thread
  int pass_ = 0;
  std::uint32_t issued_ = 0;    ///< steps before are launched, or are being
  std::uint32_t recorded_ = 0;  ///< of steps before the event is in the stream, in this pass
};

}  // namespace

std::unique_ptr<Session> MakeNcclSequence(const SessionSetup& setup, Store& store) {
  return std::make_unique<NcclSequence>(setup, store);
}

}  // namespace inquest
