// Five ways in which one rank ends a job.
#include "tests/property/scenarios.h"

namespace inquest {
namespace {

using namespace std::chrono_literals;

const SynthWork kWork{.seq = 4410, .numel_in = 253440000, .numel_out = 253440000};

void BeginTraining(SynthJob& job) {
  for (const int rank : job.AllRanks()) {
    job.Print(rank, "args: world_size=" + std::to_string(job.ranks()) + " backend=nccl");
    job.Chatter(rank, 2);
  }
  job.Init(job.NewComm(job.AllRanks()));
  job.Wait(3600s);
  for (const int rank : job.AllRanks()) job.Chatter(rank, 3);
}

void OthersTimeOut(SynthJob& job, int culprit) {
  job.Wait(600s);
  for (const int rank : job.AllRanks()) {
    if (rank == culprit) continue;
    job.TimeOut(rank, kWork);
    job.Status(rank, {.failed = 4410, .enqueued = 4411, .completed = 4409});
    job.Wait(2ms);
  }
  for (const int rank : job.AllRanks())
    if (rank != culprit) job.QuoteTimeOut(rank, kWork);
}

void RankAbsent(SynthJob& job, int culprit) {
  BeginTraining(job);
  OthersTimeOut(job, culprit);
}

void OutOfMemory(SynthJob& job, int culprit) {
  BeginTraining(job);
  job.Raise(culprit, "torch.OutOfMemoryError",
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.20 GiB "
            "is free.");
  OthersTimeOut(job, culprit);
}

void OwnException(SynthJob& job, int culprit) {
  BeginTraining(job);
  job.Raise(culprit, "KeyError", "'labels'", "dataset.py");
  OthersTimeOut(job, culprit);
}

void SegmentationFault(SynthJob& job, int culprit) {
  BeginTraining(job);
  job.ElasticReport({{culprit, -11}});
}

void DifferentCall(SynthJob& job, int culprit) {
  const auto comm = job.NewComm(job.AllRanks());
  job.Init(comm);
  for (std::uint64_t step = 0; step < 20; ++step)
    for (const int rank : job.AllRanks())
      job.Call(comm, rank, {.count = rank == culprit && step == 17 ? 4095u : 4096u, .op_count = step});
}

}  // namespace

const std::vector<Scenario>& Scenarios() {
  static const std::vector<Scenario> kScenarios = {
      {"one rank never came", "rank-absent", false, &RankAbsent},
      {"one rank ran out of memory", "cuda-oom", false, &OutOfMemory},
      {"one rank raised an exception", "python-exception", false, &OwnException},
      {"one rank crashed", "native-crash", true, &SegmentationFault},
      {"one rank called with another size", "collective-mismatch", false, &DifferentCall},
  };
  return kScenarios;
}

}  // namespace inquest
