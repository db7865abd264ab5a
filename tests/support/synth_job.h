// A job of n ranks on h hosts, whose logs a test writes in a few calls and renders as its users would have kept them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inquest {

/// NCCL releases from which on the lines of a communicator's life are spelled anew.
enum class NcclSpelling : std::uint8_t { k2_4, k2_10, k2_16, k2_18, k2_21, k2_23, k2_24, k2_29 };

/// What stands in front of every line. kRankTag: `[rankN]:`, and not twice where the line has it of its own. kSrun:
/// srun -l starts the ranks. kSrunAgent: srun -l starts one torchrun a host, so that its number is the host's.
enum class Launcher : std::uint8_t { kNone, kRankTag, kSrun, kSrunAgent, kTee, kKubectl };

struct SynthOptions {
  int ranks = 8;
  int hosts = 1;
  NcclSpelling nccl = NcclSpelling::k2_21;
  Launcher launcher = Launcher::kNone;
};

/// A call as NCCL prints it with NCCL_DEBUG_SUBSYS=COLL.
struct SynthCall {
  std::string op = "AllReduce";
  std::uint64_t count = 1048576;
  int datatype = 7, redop = 0, root = 0;
  std::uint64_t op_count = 0;
};

/// The operation in which a watchdog gave up.
struct SynthWork {
  std::int64_t seq = 100;
  std::string op = "ALLREDUCE";
  std::int64_t numel_in = 1048576, numel_out = 1048576, timeout_ms = 600000;
};

/// Where a rank's process group stands; the fields of PyTorch 2.6's status line.
struct SynthStatus {
  std::string id = "0", guid = "0", desc = "default_pg";
  std::int64_t failed = 100, enqueued = 100, completed = 99;
};

/// How a worker ended, as torchelastic's agent reports it.
struct SynthExit {
  int rank = 0;
  int code = -9;
};

struct SynthFile {
  std::string name, text;
};

class SynthJob {
 public:
  using Comm = std::size_t;
  using Duration = std::chrono::nanoseconds;

  explicit SynthJob(const SynthOptions& options);

  int ranks() const { return options_.ranks; }
  std::vector<int> AllRanks() const;
  int LocalRank(int rank) const { return rank % per_host_; }
  int HostNumber(int rank) const { return rank / per_host_; }
  std::string Host(int rank) const;
  std::int64_t Pid(int rank) const;
  /// Device pointers differ from rank to rank; so do those of communicators.
  std::uint64_t Pointer(Comm comm, int rank) const;
  std::uint64_t CommId(Comm comm) const { return comms_[comm].id; }

  /// Lines written from here on carry a later time.
  void Wait(Duration duration) { now_ += duration; }
  /// The host's clock is wrong by so much in lines written from here on; their true order stays.
  void ShiftClock(int host, Duration shift) { shift_[host] = shift; }

  void Print(int rank, std::string line);
  /// A line of the host's launcher, which has no rank.
  void PrintAgent(int host, std::string line);
  /// `lines` lines that say nothing about any failure, different each time.
  void Chatter(int rank, int lines);

  /// A communicator of these ranks; nothing is printed yet.
  Comm NewComm(std::vector<int> ranks);
  Comm NewSplit(Comm parent, std::vector<int> ranks, int color);
  /// Nothing where the release prints no START.
  void InitStart(Comm comm, int rank);
  void InitComplete(Comm comm, int rank);
  /// Every rank of it starts, then every rank completes.
  void Init(Comm comm);
  /// `channels` lines `Channel 00/0 : 1[1] -> 2[2] via P2P/IPC` to the next rank of the ring.
  void Connect(Comm comm, int rank, std::string_view via, int channels);
  void Call(Comm comm, int rank, const SynthCall& call);
  void CallAll(Comm comm, const SynthCall& call);
  void Destroy(Comm comm, int rank);
  void Abort(Comm comm, int rank);
  void PrintNccl(int rank, const std::string& message);
  void Warn(int rank, std::string_view site, const std::string& message);

  /// `[Rank g] Watchdog caught collective operation timeout`; g, the rank in its group, is the rank if left out.
  void TimeOut(int rank, const SynthWork& work, std::optional<int> group_rank = std::nullopt);
  void Status(int rank, const SynthStatus& status, std::optional<int> group_rank = std::nullopt);
  /// The quotations that follow a time-out: "terminated with exception" and `what():`.
  void QuoteTimeOut(int rank, const SynthWork& work);
  /// A traceback as Python's excepthook prints it, `[rankN]: ` in front of each line.
  void Raise(int rank, const std::string& type, const std::string& message, const std::string& file = "train.py");
  /// "failed (exitcode: ...)", SIGTERM to the host's other workers, and the report; the first exit is the root cause.
  void ElasticReport(const std::vector<SynthExit>& exits);

  /// All lines as they were written in time, with what the launcher puts in front.
  std::vector<std::string> Lines() const;
  std::string Interleaved() const;
  /// One file a rank, `out.<n>.log`, and `agent.<host>.log` where a launcher spoke.
  std::vector<SynthFile> PerRank() const;

 private:
  struct Line {
    Duration at;
    int rank, host;               ///< rank -1: the host's launcher
    std::string text, collected;  ///< `collected`: the time that a collector notes
  };
  struct Group {
    std::vector<int> ranks;
    std::uint64_t id = 0;
    std::optional<Comm> parent;
    int color = 0, split = 0;
  };

  void Write(int rank, int host, std::string text);
  Duration ClockOf(int host) const;
  std::string C10Prefix(int rank, std::string_view site) const;
  std::string LifeLine(Comm comm, int rank, bool complete) const;
  std::string Render(const Line& line) const;
  std::string WorkText(const SynthWork& work) const;

  SynthOptions options_;
  int per_host_;
  Duration now_{};
  std::map<int, Duration> shift_;
  std::vector<Line> lines_;
  std::vector<Group> comms_;
  int chatter_ = 0;
};

}  // namespace inquest
