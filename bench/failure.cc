// What the survivors of a job print when one rank stays away: the watchdog's chain, the abort, the launcher.
#include <array>

#include "bench/job.h"

namespace inquest::bench {
namespace {

constexpr std::string_view kFrames221 =
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f6c5e1b9f86 in "
    "/opt/conda/lib/python3.11/site-packages/torch/lib/libc10.so)\n"
    "frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<std::chrono::duration<long, std::ratio<1l, "
    "1000l> > >) + 0x1d2 (0x7f6c5f4c88d2 in /opt/conda/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so)\n"
    "frame #2: c10d::ProcessGroupNCCL::watchdogHandler() + 0x233 (0x7f6c5f4cf313 in "
    "/opt/conda/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so)\n"
    "frame #3: c10d::ProcessGroupNCCL::ncclCommWatchdog() + 0x10c (0x7f6c5f4d16fc in "
    "/opt/conda/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so)\n"
    "frame #4: <unknown function> + 0xdbbf4 (0x7f6cad0b0bf4 in /opt/conda/bin/../lib/libstdc++.so.6)\n"
    "frame #5: <unknown function> + 0x94ac3 (0x7f6caf294ac3 in /usr/lib/x86_64-linux-gnu/libc.so.6)\n"
    "frame #6: <unknown function> + 0x126850 (0x7f6caf326850 in /usr/lib/x86_64-linux-gnu/libc.so.6)\n\n";
constexpr std::string_view kFrames227 =
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x7f21a8b785e8 in "
    "/usr/local/lib/python3.12/dist-packages/torch/lib/libc10.so)\n"
    "frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<std::chrono::duration<long, std::ratio<1l, "
    "1000l> > >) + 0x247 (0x7f214d5c9a6d in /usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so)\n"
    "frame #2: c10d::ProcessGroupNCCL::Watchdog::runLoop() + 0x1591 (0x7f214d5cb7f0 in "
    "/usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so)\n"
    "frame #3: c10d::ProcessGroupNCCL::Watchdog::run() + 0x13d (0x7f214d5cc07d in "
    "/usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so)\n"
    "frame #4: <unknown function> + 0xecdb4 (0x7f21a8fdcdb4 in /usr/lib/x86_64-linux-gnu/libstdc++.so.6)\n"
    "frame #5: <unknown function> + 0x9caa4 (0x7f21ab09caa4 in /usr/lib/x86_64-linux-gnu/libc.so.6)\n"
    "frame #6: __clone + 0x44 (0x7f21ab129c6c in /usr/lib/x86_64-linux-gnu/libc.so.6)\n\n";

/// One rank's lines; `late_ms` is how long after the first rank it noticed.
class Survivor {
 public:
  Survivor(const Job& job, const Work& work, int rank, std::uint64_t late_ms, LogWriter& log)
      : job_(job), work_(work), rank_(static_cast<std::uint64_t>(rank)), late_ms_(late_ms), log_(log) {}

  void Write() {
    const bool old = job_.era == Era::kNccl221;
    Head(old ? 607 : 685);
    Caught();
    log_.Text("\n");
    Head(old ? 1664 : 2252);
    Group();
    if (old) {
      log_.Text(" Exception (either an error or timeout) detected by watchdog at work: ").Decimal(work_.seq);
      log_.Text(", last enqueued NCCL work: ")
          .Decimal(work_.seq)
          .Text(", last completed NCCL work: ")
          .Decimal(work_.seq - 1)
          .Text(".\n");
      Head(1709);
      Group();
      log_.Text(" Timeout at NCCL work: ").Decimal(work_.seq).Text(", last enqueued NCCL work: ").Decimal(work_.seq);
      log_.Text(", last completed NCCL work: ").Decimal(work_.seq - 1).Text(".\n");
    } else {
      log_.Text("  failure detected by watchdog at work sequence id: ").Decimal(work_.seq);
      log_.Text(" PG status: last enqueued work: ")
          .Decimal(work_.seq)
          .Text(", last completed work: ")
          .Decimal(work_.seq - 1)
          .Text("\n");
      Head(732);
      log_.Text(
          "Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. You can "
          "enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.\n");
    }
    RankHead(old ? 621 : 739);
    log_.Text(
        "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU "
        "operations might run on corrupted/incomplete data.\n");
    RankHead(old ? 627 : 745);
    log_.Text("To avoid data inconsistency, we are taking the entire process down.\n");
    Head(old ? 1515 : 2068);
    Terminated();
    log_.Text("terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  ");
    Terminated();
  }

 private:
  void Head(std::uint64_t line) {
    const std::uint64_t ms = 43 + late_ms_;
    const Clock clock = ClockOf(job_, ms / 1000);
    log_.Text("[rank").Decimal(rank_).Text("]:[E").Decimal(clock.month).Decimal(clock.day, 2).Text(" ");
    log_.Decimal(clock.hour, 2).Text(":").Decimal(clock.minute, 2).Text(":").Decimal(clock.second, 2).Text(".");
    log_.Decimal((ms * 7919 + rank_ * 104729) % 1000, 3).Decimal(ms * 1299709 % 1000000, 6);
    log_.Text(" ProcessGroupNCCL.cpp:").Decimal(line).Text("] ");
  }
  void RankHead(std::uint64_t line) {
    Head(line);
    log_.Text("[Rank ").Decimal(rank_).Text("] ");
  }
  void Group() {
    log_.Text(job_.era == Era::kNccl221 ? "[PG 0 (default_pg) Rank " : "[PG ID 0 PG GUID 0(default_pg) Rank ")
        .Decimal(rank_)
        .Text("]");
  }
  void Caught() {
    log_.Text("[Rank ")
        .Decimal(rank_)
        .Text("] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=")
        .Decimal(work_.seq);
    log_.Text(", OpType=")
        .Text(work_.op)
        .Text(", NumelIn=")
        .Decimal(work_.numel_in)
        .Text(", NumelOut=")
        .Decimal(work_.numel_out);
    log_.Text(", Timeout(ms)=600000) ran for ")
        .Decimal(600000 + 43 + late_ms_ % 900)
        .Text(" milliseconds before timing out.");
  }
  void Terminated() {
    Group();
    log_.Text(" Process group watchdog thread terminated with exception: ");
    Caught();
    const bool old = job_.era == Era::kNccl221;
    log_.Text("\nException raised from checkTimeout at ")
        .Text(old ? "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:609"
                  : "/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:688");
    log_.Text(" (most recent call first):\n").Text(old ? kFrames221 : kFrames227);
  }

  const Job& job_;
  const Work& work_;
  std::uint64_t rank_, late_ms_;
  LogWriter& log_;
};

void WriteLauncher(const Job& job, int host, LogWriter& log) {
  const int first = host * Job::kPerHost == job.culprit && job.RanksOnHost(host) > 1 ? host * Job::kPerHost + 1
                                                                                     : host * Job::kPerHost;
  const auto head = [&](char severity, std::uint64_t line) {
    const Clock clock = ClockOf(job, 12 + static_cast<std::uint64_t>(host) % 40);
    log.Text(std::string_view(&severity, 1)).Decimal(clock.month, 2).Decimal(clock.day, 2).Text(" ");
    log.Decimal(clock.hour, 2).Text(":").Decimal(clock.minute, 2).Text(":").Decimal(clock.second, 2).Text(".");
    log.Decimal(static_cast<std::uint64_t>(host) * 37 % 1000, 3)
        .Text("000 ")
        .Decimal(job.Pid(host * Job::kPerHost) - 60);
    log.Text(" torch/distributed/elastic/multiprocessing/api.py:").Decimal(line).Text("] ");
  };
  for (int local = 0; local < job.RanksOnHost(host); ++local) {
    const int rank = host * Job::kPerHost + local;
    if (rank == first) continue;
    head('W', job.era == Era::kNccl221 ? 858 : 900);
    log.Text("Sending process ").Decimal(job.Pid(rank)).Text(" closing signal SIGTERM\n");
  }
  head('E', job.era == Era::kNccl221 ? 833 : 874);
  log.Text("failed (exitcode: ")
      .Text(first == job.culprit ? "-15" : "-6")
      .Text(") local_rank: ")
      .Decimal(static_cast<std::uint64_t>(job.LocalRank(first)));
  log.Text(" (pid: ").Decimal(job.Pid(first)).Text(") of binary: /usr/bin/python3\n");
}

}  // namespace

Clock ClockOf(const Job& job, std::uint64_t later) {
  constexpr std::uint64_t kBegin = (18 * 24 + 4) * 3600 + 600, kAttempt = 900;  // 19 February, ten past four
  const std::uint64_t at = kBegin + job.attempt * kAttempt + later, days = at / 86400;
  return {2 + days / 28 % 11, 1 + days % 28, at / 3600 % 24, at / 60 % 60, at % 60};
}

void WriteHost(const Job& job, int rank, LogWriter& log) {
  log.Text("node").Decimal(static_cast<std::uint64_t>(job.HostOf(rank)) + 1, 3);
}

void WriteFailure(const Job& job, const Work& work, LogWriter& log) {
  Random random(job.seed ^ 0x5eed);
  std::uint64_t late_ms = 0;
  for (int rank = 0; rank < job.ranks; ++rank) {
    if (rank == job.culprit) continue;
    Survivor(job, work, rank, late_ms % 3000, log).Write();
    late_ms += random.Below(400);
  }
  for (int host = 0; host * Job::kPerHost < job.ranks; ++host) WriteLauncher(job, host, log);
}

}  // namespace inquest::bench
