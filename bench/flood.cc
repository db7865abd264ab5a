// Crash loops and floods of what is new, in the spelling of the programs that print them.
#include "bench/flood.h"

#include "bench/chatter.h"
#include "bench/collectives.h"

namespace inquest::bench {
namespace {

constexpr std::uint64_t kMessages = 300;  ///< of training, between a start and its end

void WriteException(const Job& job, LogWriter& log) {
  const auto rank = static_cast<std::uint64_t>(job.culprit);
  const auto head = [&]() -> LogWriter& { return log.Text("[rank").Decimal(rank).Text("]: "); };
  head().Text("Traceback (most recent call last):\n");
  head().Text("  File \"/workspace/train/pretrain.py\", line 412, in <module>\n");
  head().Text("    main()\n");
  head().Text("  File \"/workspace/train/pretrain.py\", line 388, in main\n");
  head().Text("    loss = train_step(model, next(batches), optimizer)\n");
  head().Text("  File \"/workspace/train/data.py\", line 97, in __next__\n");
  head().Text("    raise RuntimeError(f\"shard {shard} is shorter than its index says\")\n");
  head().Text("RuntimeError: shard ").Decimal(1000 + job.attempt % 9000).Text(" is shorter than its index says\n");
}

void WriteReport(const Job& job, int host, LogWriter& log) {
  const Clock clock = ClockOf(job, 20);
  const std::uint64_t agent = job.Pid(host * Job::kPerHost) - 60;
  const int first =
      host * Job::kPerHost == job.culprit && job.RanksOnHost(host) > 1 ? job.culprit + 1 : host * Job::kPerHost;
  log.Text(
      "Traceback (most recent call last):\n  File \"/usr/local/bin/torchrun\", line 8, in <module>\n    "
      "sys.exit(main())\n");
  log.Text(
      "  File \"/usr/local/lib/python3.11/dist-packages/torch/distributed/launcher/api.py\", line 268, in "
      "launch_agent\n    raise ChildFailedError(\n");
  log.Text(
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
      "\n============================================================\n");
  log.Text(
      "/workspace/train/pretrain.py FAILED\n------------------------------------------------------------\nFailures:\n  "
      "<NO_OTHER_FAILURES>\n");
  log.Text(
      "------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n  "
      "time      : 2031-");
  log.Decimal(clock.month, 2)
      .Text("-")
      .Decimal(clock.day, 2)
      .Text("_")
      .Decimal(clock.hour, 2)
      .Text(":")
      .Decimal(clock.minute, 2)
      .Text(":")
      .Decimal(clock.second, 2);
  log.Text("\n  host      : ");
  WriteHost(job, first, log);
  log.Text("\n  rank      : ")
      .Decimal(static_cast<std::uint64_t>(first))
      .Text(" (local_rank: ")
      .Decimal(static_cast<std::uint64_t>(job.LocalRank(first)));
  log.Text(")\n  exitcode  : -6 (pid: ")
      .Decimal(job.Pid(first))
      .Text(")\n  error_file: <N/A>\n  traceback : Signal 6 (SIGABRT) received by PID ")
      .Decimal(job.Pid(first));
  log.Text("\n============================================================\n");
  log.Text("I")
      .Decimal(clock.month, 2)
      .Decimal(clock.day, 2)
      .Text(" ")
      .Decimal(clock.hour, 2)
      .Text(":")
      .Decimal(clock.minute, 2)
      .Text(":")
      .Decimal(clock.second, 2)
      .Text(".104000 ")
      .Decimal(agent);
  log.Text(" torch/distributed/elastic/agent/server/api.py:879] [default] Worker group FAILED. ")
      .Decimal(job.attempt % 100)
      .Text("/100 attempts left; will restart worker group\n");
}

/// One line a call, of the kind `number` modulo their count; all numbers in it are of that line alone.
class NewLine {
 public:
  NewLine(const Job& job, LogWriter& log) : job_(job), log_(log), random_(job.seed ^ 0xf100d) {}

  void Write(std::uint64_t number) {
    constexpr void (NewLine::*kKinds[])() = {&NewLine::TimeOut, &NewLine::Status,  &NewLine::Completion,
                                             &NewLine::Xid,     &NewLine::Raised,  &NewLine::Exit,
                                             &NewLine::Init,    &NewLine::Warning, &NewLine::OutOfMemory,
                                             &NewLine::Killed,  &NewLine::Signal,  &NewLine::Refused};
    number_ = number;
    (this->*kKinds[number % std::size(kKinds)])();
  }

 private:
  std::uint64_t Rank() const { return number_ % 60000; }
  std::uint64_t Pid() const { return 1000 + number_ % 4000000; }
  void Host() { log_.Text("node").Decimal(number_ / 3, 3); }
  void Nccl() {
    Host();
    log_.Text(":").Decimal(Pid()).Text(":").Decimal(Pid() + 411).Text(" [").Decimal(number_ % 8).Text("] ");
  }
  void C10(std::uint64_t line) {
    Job moment = job_;
    moment.attempt = number_ / 900;
    const Clock clock = ClockOf(moment, number_ % 900);
    log_.Text("[rank")
        .Decimal(Rank())
        .Text("]:[E")
        .Decimal(clock.month)
        .Decimal(clock.day, 2)
        .Text(" ")
        .Decimal(clock.hour, 2)
        .Text(":")
        .Decimal(clock.minute, 2)
        .Text(":")
        .Decimal(clock.second, 2);
    log_.Text(".").Decimal(random_.Below(1000000000), 9).Text(" ProcessGroupNCCL.cpp:").Decimal(line).Text("] ");
  }
  void Kernel() {
    log_.Text("Feb 19 ")
        .Decimal(number_ / 3600 % 24, 2)
        .Text(":")
        .Decimal(number_ / 60 % 60, 2)
        .Text(":")
        .Decimal(number_ % 60, 2)
        .Text(" ");
    Host();
    log_.Text(" kernel: [").Decimal(number_).Text(".").Decimal(random_.Below(1000000), 6).Text("] ");
  }

  void TimeOut() {
    C10(607);
    log_.Text("[Rank ")
        .Decimal(Rank())
        .Text("] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=")
        .Decimal(number_)
        .Text(", OpType=ALLREDUCE, NumelIn=")
        .Decimal(1 + random_.Below(1 << 30));
    log_.Text(", NumelOut=")
        .Decimal(1 + random_.Below(1 << 30))
        .Text(", Timeout(ms)=600000) ran for ")
        .Decimal(600000 + random_.Below(900))
        .Text(" milliseconds before timing out.\n");
  }
  void Status() {
    C10(2252);
    log_.Text("[PG ID ")
        .Decimal(number_)
        .Text(" PG GUID ")
        .Decimal(number_)
        .Text("(mesh_")
        .Decimal(number_)
        .Text(") Rank ")
        .Decimal(Rank())
        .Text("]  failure detected by watchdog at work sequence id: ")
        .Decimal(number_);
    log_.Text(" PG status: last enqueued work: ")
        .Decimal(number_)
        .Text(", last completed work: ")
        .Decimal(number_ - 1)
        .Text("\n");
  }
  void Completion() {
    Nccl();
    log_.Text("transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.")
        .Decimal(number_ / 65536 % 256)
        .Text(".")
        .Decimal(number_ / 256 % 256)
        .Text(".")
        .Decimal(number_ % 256);
    log_.Text("<")
        .Decimal(1024 + random_.Below(60000))
        .Text("> with status=12 opcode=0 len=0 vendor err 129 (Send) localGid fe80::")
        .Hex(number_)
        .Text(" remoteGids fe80::")
        .Hex(number_ + 1)
        .Text(" hca mlx5_")
        .Decimal(number_ % 9)
        .Text("\n");
  }
  void Xid() {
    Kernel();
    log_.Text("NVRM: Xid (PCI:")
        .Decimal(number_ / 65536 % 10000, 4)
        .Text(":")
        .Decimal(number_ / 256 % 90 + 10)
        .Text(":00): 79, pid=")
        .Decimal(Pid())
        .Text(", name=python3, GPU has fallen off the bus.\n");
  }
  void Raised() {
    log_.Text("[rank")
        .Decimal(Rank())
        .Text("]: ValueError: sample ")
        .Decimal(number_)
        .Text(" of shard ")
        .Hex(random_.Next())
        .Text(" has ")
        .Decimal(random_.Below(1 << 20))
        .Text(" tokens\n");
  }
  void Exit() {
    log_.Text("E0219 04:10:")
        .Decimal(number_ % 60, 2)
        .Text(".")
        .Decimal(random_.Below(1000000), 6)
        .Text(" ")
        .Decimal(Pid())
        .Text(" torch/distributed/elastic/multiprocessing/api.py:833] failed (exitcode: -6) local_rank: ");
    log_.Decimal(number_ % 8).Text(" (pid: ").Decimal(Pid() + 7).Text(") of binary: /usr/bin/python3\n");
  }
  void Init() {
    Nccl();
    log_.Text("NCCL INFO ncclCommInitRank comm 0x")
        .Hex(0x55d000000000 + number_ * 4096)
        .Text(" rank ")
        .Decimal(number_ % 64)
        .Text(" nranks 64 cudaDev ")
        .Decimal(number_ % 8)
        .Text(" nvmlDev ")
        .Decimal(number_ % 8);
    log_.Text(" busId 1b000 commId 0x").Hex(random_.Next()).Text(" - Init COMPLETE\n");
  }
  void Warning() {
    Nccl();
    log_.Text("misc/socket.cc:")
        .Decimal(number_ % 1000)
        .Text(" NCCL WARN socketProgress: Connection closed by remote peer ");
    Host();
    log_.Text("<").Decimal(1024 + random_.Below(60000)).Text(">\n");
  }
  void OutOfMemory() {
    log_.Text("[rank")
        .Decimal(Rank())
        .Text("]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ")
        .Fixed(random_.Below(8000), 2)
        .Text(" GiB. GPU ")
        .Decimal(number_ % 8)
        .Text(" has a total capacity of 79.10 GiB of which ");
    log_.Fixed(random_.Below(100000), 2)
        .Text(" MiB is free. Process ")
        .Decimal(Pid())
        .Text(" has 78.50 GiB memory in use.\n");
  }
  void Killed() {
    Kernel();
    log_.Text("Out of memory: Killed process ")
        .Decimal(Pid())
        .Text(" (python3) total-vm:")
        .Decimal(random_.Below(1 << 30))
        .Text("kB, anon-rss:")
        .Decimal(random_.Below(1 << 30))
        .Text("kB, file-rss:0kB, shmem-rss:0kB, UID:1000\n");
  }
  void Signal() {
    log_.Text("srun: error: ");
    Host();
    log_.Text(": task ").Decimal(Rank()).Text(": Aborted (core dumped)\n");
  }
  void Refused() {
    log_.Text("[W219 04:10:")
        .Decimal(number_ % 60, 2)
        .Text(".")
        .Decimal(random_.Below(1000000000), 9)
        .Text(" socket.cpp:752] [c10d] The client socket cannot be initialized to connect to [");
    Host();
    log_.Text("]:29500 (errno: 97 - Address family not supported by protocol).\n");
  }

  Job job_;
  LogWriter& log_;
  Random random_;
  std::uint64_t number_ = 0;
};

}  // namespace

void WriteCrashLoop(Job job, std::uint64_t bytes, LogWriter& log) {
  Chatter chatter(job);
  do {
    Collectives collectives(job);
    chatter.WriteStart(log);
    collectives.WriteInit(log);
    for (std::uint64_t i = 0; i < kMessages; ++i)
      chatter.Write(bytes <= log.bytes() ? 999999
                                         : static_cast<std::uint64_t>(static_cast<double>(log.bytes()) /
                                                                      static_cast<double>(bytes) * 1e6),
                    log);
    WriteException(job, log);
    WriteFailure(job, Work{184467 + job.attempt, "ALLREDUCE", 33554432, 33554432}, log);
    for (int host = 0; host * Job::kPerHost < job.ranks; ++host) WriteReport(job, host, log);
    ++job.attempt;
  } while (log.good() && log.bytes() < bytes);
}

void WriteAllNew(const Job& job, std::uint64_t bytes, LogWriter& log) {
  NewLine line(job, log);
  for (std::uint64_t number = 1; log.good() && log.bytes() < bytes; ++number) line.Write(number);
}

}  // namespace inquest::bench
