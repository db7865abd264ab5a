// Many calls of several communicators of NCCL, issued by one thread in the rank's own order, as the job's process did.
//
// A call is launched on its stream and nothing waits for it but what comes behind it there; the thread goes on, unless
// NCCL itself has to wait for others (it connects in first calls). How far each stream is, events behind every call
// tell. Buffers are one pair a stream, as large as its largest call: what runs there runs one after the other. They
// hold zeros, and nothing is verified: where calls differ, no data would be right.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <utility>

#include "replay/engines/lane.h"
#include "replay/engines/nccl_owner.h"
#include "replay/ops.h"

namespace inquest {
namespace {

class NcclSequence final : public NcclOwner {
 public:
  NcclSequence(const SessionSetup& setup, Store& store) : NcclOwner(setup, store), work_(*setup.sequence) {
    for (auto& steps : ByStream(work_.steps)) lanes_.push_back(std::make_unique<OwnLane>(std::move(steps)));
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
      case Phase::kEnqueued:
        issued_ = 0;
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

  std::optional<WrongData> wrong_data() const override { return std::nullopt; }
  std::vector<std::string> Describe() const override {
    std::vector<std::string> lines = DescribeLibraries();
    lines.emplace_back("of a sequence the data is not verified");
    return lines;
  }
  void Corrupt() override {}
  SequenceProgress progress() const override {
    SequenceProgress progress;
    for (const auto& lane : lanes_) progress.push_back(lane->progress());
    return progress;
  }

 private:
  struct OwnLane : Lane {
    using Lane::Lane;
    cuda::Stream stream = nullptr;
    Buffers buffers;
  };

  DataShape ShapeOf(const SequenceStep& step) const {
    const std::vector<int>& ranks = work_.communicators[step.communicator].ranks;
    return {work_.calls[step.call], RankIn(step.communicator), static_cast<int>(ranks.size())};
  }
  int RankIn(std::uint32_t communicator) const { return work_.communicators[communicator].PlaceOf(setup_.rank); }

  /// What others wait for goes out before anything is waited for.
  void ExchangeIds() {
    const auto key = [&](std::size_t i) { return fmt::format("nccl-unique-id.{}", work_.communicators[i].id); };
    ids_.resize(work_.communicators.size());
    for (std::uint32_t i = 0; i < ids_.size(); ++i)
      if (RankIn(i) == 0) ids_[i] = MakeId(key(i));
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
      for (const std::uint32_t step : lane->steps) {
        const DataShape shape = ShapeOf(work_.steps[step]);
        in = std::max(in, BytesIn(shape));
        out = std::max(out, BytesOut(shape));
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

  void Pass() {
    const std::vector<SequenceStep>& steps = work_.steps;
    for (std::uint32_t first = 0, end = 0; first < steps.size(); first = end) {
      for (end = first + 1; end < steps.size() && steps[first].batch != 0 && steps[end].batch == steps[first].batch;)
        ++end;
      issued_ = end;  // what NCCL may wait in is begun
      Waiting();
      const bool grouped = end > first + 1;
      nccl::Status result = grouped ? library_.group_start() : nccl::Status::kSuccess;
      for (std::uint32_t i = first; i < end; ++i) {
        const nccl::Status one = Issue(steps[i]);
        if (result == nccl::Status::kSuccess && (!grouped || one != nccl::Status::kInProgress)) result = one;
      }
      if (grouped) {
        const nccl::Status all = library_.group_end();
        if (result == nccl::Status::kSuccess) result = all;
      }
      Finish(result, "a call of the sequence");
      for (std::uint32_t i = first; i < end; ++i) gpu_.Record(ended_[i], lanes_[steps[i].stream]->stream);
      recorded_ = end;
    }
    for (std::size_t i = 0; i < steps.size(); ++i) gpu_.Await(ended_[i]);
    Waiting();
    recorded_ = 0;
  }

  nccl::Status Issue(const SequenceStep& step) const {
    const OwnLane& lane = *lanes_[step.stream];
    return Collective(ShapeOf(step), lane.buffers, Comm(step.communicator), lane.stream);
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
  std::vector<cuda::Event> ended_;  ///< by step
  Buffers small_;
  // of the runner's thread
  std::uint32_t issued_ = 0;    ///< steps before are launched, or are being
  std::uint32_t recorded_ = 0;  ///< of steps before the event is in the stream, in this pass
};

}  // namespace

std::unique_ptr<Session> MakeNcclSequence(const SessionSetup& setup, Store& store) {
  return std::make_unique<NcclSequence>(setup, store);
}

}  // namespace inquest
