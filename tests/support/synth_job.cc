// The lines of a synthetic job, spelled as NCCL, PyTorch and torchelastic spell them.
#include "tests/support/synth_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace inquest {
namespace {

using std::chrono::seconds;

constexpr auto kStart = std::chrono::sys_days(std::chrono::year(2031) / 4 / 5) + std::chrono::hours(6);
constexpr std::array<std::string_view, 6> kChatter = {
    "INFO staging buffer {} recycled", "loader: shard {} opened, 4096 samples", "worker heartbeat {} ok",
    "tokenizer cache hit rate 0.{}",   "INFO metrics flushed to events.{}",     "profiler window {} closed"};

struct Clock {
  int month, day, hour, minute, second, nanosecond;
};

Clock ClockAt(std::chrono::nanoseconds since_start) {
  const auto at = kStart + since_start;
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  return {static_cast<int>(static_cast<unsigned>(date.month())),
          static_cast<int>(static_cast<unsigned>(date.day())),
          static_cast<int>(time.hours().count()),
          static_cast<int>(time.minutes().count()),
          static_cast<int>(time.seconds().count()),
          static_cast<int>(time.subseconds().count())};
}

std::string IsoTime(std::chrono::nanoseconds since_start, std::string_view separator) {
  const Clock c = ClockAt(since_start);
  return fmt::format("2031-{:02}-{:02}{}{:02}:{:02}:{:02}", c.month, c.day, separator, c.hour, c.minute, c.second);
}

std::string_view SignalName(int signal) {
  switch (signal) {
    case 6:
      return "SIGABRT";
    case 9:
      return "SIGKILL";
    case 11:
      return "SIGSEGV";
    default:
      return "SIGTERM";
  }
}

}  // namespace

SynthJob::SynthJob(const SynthOptions& options)
    : options_(options), per_host_((options.ranks + options.hosts - 1) / options.hosts) {}

std::vector<int> SynthJob::AllRanks() const {
  std::vector<int> ranks(static_cast<std::size_t>(options_.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::string SynthJob::Host(int rank) const { return fmt::format("alder{:02}", 4 + HostNumber(rank)); }
std::int64_t SynthJob::Pid(int rank) const { return 41200 + 613 * HostNumber(rank) + LocalRank(rank); }
std::uint64_t SynthJob::Pointer(Comm comm, int rank) const {
  return 0x55d0c0000000 + static_cast<std::uint64_t>(rank) * 0x100000 + comm * 0x4e70;
}

SynthJob::Duration SynthJob::ClockOf(int host) const {
  const auto shift = shift_.find(host);
  return now_ + (shift == shift_.end() ? Duration() : shift->second);
}

void SynthJob::Write(int rank, int host, std::string text) {
  const Duration clock = ClockOf(host);
  const std::string collected = fmt::format("{}.{:09}Z", IsoTime(clock, "T"), ClockAt(clock).nanosecond);
  lines_.push_back({now_, rank, host, std::move(text), collected});
  now_ += std::chrono::microseconds(40);
}

void SynthJob::Print(int rank, std::string line) { Write(rank, HostNumber(rank), std::move(line)); }
void SynthJob::PrintAgent(int host, std::string line) { Write(-1, host, std::move(line)); }

void SynthJob::Chatter(int rank, int lines) {
  for (int i = 0; i < lines; ++i, ++chatter_)
    Print(rank, fmt::format(fmt::runtime(kChatter[static_cast<std::size_t>(chatter_) % kChatter.size()]), chatter_));
}

// ---- NCCL ------------------------------------------------------------------------------------------------------

SynthJob::Comm SynthJob::NewComm(std::vector<int> ranks) {
  comms_.push_back({std::move(ranks), 0x8f3d2ab4c1e90000 + 0x11 * comms_.size(), std::nullopt, 0, 0});
  return comms_.size() - 1;
}

SynthJob::Comm SynthJob::NewSplit(Comm parent, std::vector<int> ranks, int color) {
  const int earlier = static_cast<int>(std::count_if(
      comms_.begin(), comms_.end(), [&](const Group& g) { return g.parent == parent && g.color == color; }));
  comms_.push_back({std::move(ranks), 0x4c21d00000000000 + comms_.size(), parent, color, earlier + 1});
  return comms_.size() - 1;
}

std::string SynthJob::LifeLine(Comm comm, int rank, bool complete) const {
  const Group& group = comms_[comm];
  const NcclSpelling era = options_.nccl;
  const auto place = std::find(group.ranks.begin(), group.ranks.end(), rank) - group.ranks.begin();
  std::string out;
  if (era >= NcclSpelling::k2_29 && !complete && !group.parent) out += fmt::format("[Rank {}] ", place);
  if (era >= NcclSpelling::k2_21) out += group.parent ? "ncclCommSplit " : "ncclCommInitRank ";
  out += fmt::format("comm 0x{:x} rank {} nranks {} cudaDev {}", Pointer(comm, rank), place, group.ranks.size(),
                     LocalRank(rank));
  if (era == NcclSpelling::k2_4 || era >= NcclSpelling::k2_18) out += fmt::format(" nvmlDev {}", LocalRank(rank));
  if (era >= NcclSpelling::k2_10) out += fmt::format(" busId {:x}", (0x1b + 4 * LocalRank(rank)) << 12);
  if (group.parent && era >= NcclSpelling::k2_21) {
    out += fmt::format(" parent 0x{:x}", Pointer(*group.parent, rank));
    if (era >= NcclSpelling::k2_24)
      out += fmt::format(" {} {}", era >= NcclSpelling::k2_29 ? "childCount" : "splitCount", group.split);
    out += fmt::format(" color {} key {}", group.color, rank);
  }
  const bool id_printed = group.parent ? era == NcclSpelling::k2_21 : era >= NcclSpelling::k2_16;
  if (id_printed) out += fmt::format(" commId 0x{:x}", group.id);
  const bool glued = group.parent && !complete && era >= NcclSpelling::k2_23;
  return out + (glued ? "" : " ") + (complete ? "- Init COMPLETE" : "- Init START");
}

void SynthJob::InitStart(Comm comm, int rank) {
  if (options_.nccl >= NcclSpelling::k2_18) PrintNccl(rank, LifeLine(comm, rank, false));
}

void SynthJob::InitComplete(Comm comm, int rank) { PrintNccl(rank, LifeLine(comm, rank, true)); }

void SynthJob::Init(Comm comm) {
  const std::vector<int> ranks = comms_[comm].ranks;
  for (const int rank : ranks) InitStart(comm, rank);
  for (const int rank : ranks) InitComplete(comm, rank);
}

void SynthJob::Connect(Comm comm, int rank, std::string_view via, int channels) {
  const std::vector<int>& ranks = comms_[comm].ranks;
  const auto place = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  const std::size_t next = (place + 1) % ranks.size();
  for (int channel = 0; channel < channels; ++channel)
    PrintNccl(rank, fmt::format("Channel {:02}/0 : {}[{}] -> {}[{}] via {}", channel, place, LocalRank(rank), next,
                                LocalRank(ranks[next]), via));
}

void SynthJob::Call(Comm comm, int rank, const SynthCall& call) {
  const std::uint64_t buffer = 0x7f1c40000000 + static_cast<std::uint64_t>(rank) * 0x1000000;
  const bool pair = call.op == "Send" || call.op == "Recv";
  PrintNccl(rank, fmt::format("{}: opCount {:x} sendbuff {} recvbuff 0x{:x} count {} datatype {} op {} root {} comm "
                              "0x{:x} [nranks={}] stream 0x{:x}",
                              call.op, call.op_count, pair ? "(nil)" : fmt::format("0x{:x}", buffer), buffer,
                              call.count, call.datatype, call.redop, call.root, Pointer(comm, rank),
                              comms_[comm].ranks.size(), 0x55d0bf000000 + static_cast<std::uint64_t>(rank) * 0x2a0));
}

void SynthJob::CallAll(Comm comm, const SynthCall& call) {
  const std::vector<int> ranks = comms_[comm].ranks;
  for (const int rank : ranks) Call(comm, rank, call);
}

void SynthJob::Destroy(Comm comm, int rank) {
  PrintNccl(rank,
            fmt::format("comm 0x{:x} rank {} nranks {} cudaDev {} busId {:x} - Destroy COMPLETE", Pointer(comm, rank),
                        rank, comms_[comm].ranks.size(), LocalRank(rank), (0x1b + 4 * LocalRank(rank)) << 12));
}

void SynthJob::Abort(Comm comm, int rank) {
  PrintNccl(rank,
            fmt::format("comm 0x{:x} rank {} nranks {} cudaDev {} busId {:x} - Abort COMPLETE", Pointer(comm, rank),
                        rank, comms_[comm].ranks.size(), LocalRank(rank), (0x1b + 4 * LocalRank(rank)) << 12));
}

void SynthJob::PrintNccl(int rank, const std::string& message) {
  Print(rank,
        fmt::format("{}:{}:{} [{}] NCCL INFO {}", Host(rank), Pid(rank), Pid(rank) + 540, LocalRank(rank), message));
}

void SynthJob::Warn(int rank, std::string_view site, const std::string& message) {
  Print(rank, "");
  const std::string at =
      options_.nccl >= NcclSpelling::k2_29 ? fmt::format("[{}] ", IsoTime(ClockOf(HostNumber(rank)), " ")) : "";
  Print(rank, fmt::format("{}{}:{}:{} [{}] {} NCCL WARN {}", at, Host(rank), Pid(rank), Pid(rank) + 541,
                          LocalRank(rank), site, message));
}

// ---- PyTorch ---------------------------------------------------------------------------------------------------

std::string SynthJob::C10Prefix(int rank, std::string_view site) const {
  const Clock c = ClockAt(ClockOf(HostNumber(rank)));
  return fmt::format("[rank{}]:[E{}{:02} {:02}:{:02}:{:02}.{:09} {}] ", rank, c.month, c.day, c.hour, c.minute,
                     c.second, c.nanosecond, site);
}

std::string SynthJob::WorkText(const SynthWork& work) const {
  return fmt::format(
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, NumelIn={}, NumelOut={}, "
      "Timeout(ms)={}) ran for {} milliseconds before timing out.",
      work.seq, work.op, work.numel_in, work.numel_out, work.timeout_ms, work.timeout_ms + 43);
}

void SynthJob::TimeOut(int rank, const SynthWork& work, std::optional<int> group_rank) {
  Print(rank, fmt::format("{}[Rank {}] {}", C10Prefix(rank, "ProcessGroupNCCL.cpp:632"), group_rank.value_or(rank),
                          WorkText(work)));
}

void SynthJob::Status(int rank, const SynthStatus& status, std::optional<int> group_rank) {
  Print(rank, fmt::format("{}[PG ID {} PG GUID {}{} Rank {}]  failure detected by watchdog at work sequence id: {} PG "
                          "status: last enqueued work: {}, last completed work: {}",
                          C10Prefix(rank, "ProcessGroupNCCL.cpp:2268"), status.id, status.guid,
                          status.desc.empty() ? "" : "(" + status.desc + ")", group_rank.value_or(rank), status.failed,
                          status.enqueued, status.completed));
}

void SynthJob::QuoteTimeOut(int rank, const SynthWork& work) {
  const std::string quoted = fmt::format(
      "[PG ID 0 PG GUID 0(default_pg) Rank {}] Process group watchdog thread terminated with exception: [Rank {}] {}",
      rank, rank, WorkText(work));
  Print(rank, C10Prefix(rank, "ProcessGroupNCCL.cpp:1895") + quoted);
  Print(rank, "terminate called after throwing an instance of 'c10::DistBackendError'");
  Print(rank, "  what():  " + quoted);
}

void SynthJob::Raise(int rank, const std::string& type, const std::string& message, const std::string& file) {
  const std::string tag = fmt::format("[rank{}]: ", rank);
  Print(rank, tag + "Traceback (most recent call last):");
  Print(rank, fmt::format("{}  File \"/work/{}\", line 84, in <module>", tag, file));
  Print(rank, tag + "    main()");
  Print(rank, fmt::format("{}  File \"/work/{}\", line 61, in main", tag, file));
  Print(rank, tag + "    loss = step(batch)");
  Print(rank, fmt::format("{}{}: {}", tag, type, message));
}

void SynthJob::ElasticReport(const std::vector<SynthExit>& exits) {
  const int host = HostNumber(exits.front().rank);
  const Clock c = ClockAt(ClockOf(host));
  const std::string prefix =
      fmt::format("{:02}{:02} {:02}:{:02}:{:02}.{:06} {} torch/distributed/elastic/multiprocessing/api.py", c.month,
                  c.day, c.hour, c.minute, c.second, c.nanosecond / 1000000 * 1000, 40100 + host);
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const bool ended = std::any_of(exits.begin(), exits.end(), [&](const SynthExit& e) { return e.rank == rank; });
    if (HostNumber(rank) == host && !ended)
      PrintAgent(host, fmt::format("W{}:897] Sending process {} closing signal SIGTERM", prefix, Pid(rank)));
  }
  const SynthExit& root = exits.front();
  PrintAgent(host, fmt::format("E{}:869] failed (exitcode: {}) local_rank: {} (pid: {}) of binary: /usr/bin/python3",
                               prefix, root.code, LocalRank(root.rank), Pid(root.rank)));
  PrintAgent(host, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ");
  PrintAgent(host, std::string(60, '='));
  PrintAgent(host, "train.py FAILED");
  PrintAgent(host, std::string(60, '-'));
  const auto entry = [&](std::size_t index) {
    const SynthExit& exit = exits[index];
    PrintAgent(host, fmt::format("[{}]:", index));
    PrintAgent(host, fmt::format("  time      : {}", IsoTime(ClockOf(host), "_")));
    PrintAgent(host, fmt::format("  host      : {}.cluster.example", Host(exit.rank)));
    PrintAgent(host, fmt::format("  rank      : {} (local_rank: {})", exit.rank, LocalRank(exit.rank)));
    PrintAgent(host, fmt::format("  exitcode  : {} (pid: {})", exit.code, Pid(exit.rank)));
    PrintAgent(host, "  error_file: <N/A>");
    PrintAgent(host,
               exit.code < 0
                   ? fmt::format("  traceback : Signal {} ({}) received by PID {}", -exit.code, SignalName(-exit.code),
                                 Pid(exit.rank))
                   : "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html");
  };
  PrintAgent(host, "Failures:");
  if (exits.size() == 1) PrintAgent(host, "  <NO_OTHER_FAILURES>");
  for (std::size_t i = 1; i < exits.size(); ++i) entry(i);
  PrintAgent(host, std::string(60, '-'));
  PrintAgent(host, "Root Cause (first observed failure):");
  entry(0);
  PrintAgent(host, std::string(60, '='));
}

// ---- rendering -------------------------------------------------------------------------------------------------

std::string SynthJob::Render(const Line& line) const {
  switch (options_.launcher) {
    case Launcher::kNone:
      break;
    case Launcher::kKubectl:
      return line.collected + " " + line.text;
    case Launcher::kRankTag:
      if (line.rank < 0 || line.text.starts_with("[rank")) break;
      return fmt::format("[rank{}]:{}", line.rank, line.text);
    case Launcher::kSrun:
      if (line.rank < 0) break;
      return fmt::format("{:>{}}: {}", line.rank, fmt::formatted_size("{}", options_.ranks - 1), line.text);
    case Launcher::kSrunAgent:
      return fmt::format("{:>{}}: {}", line.host, fmt::formatted_size("{}", options_.hosts - 1), line.text);
    case Launcher::kTee:
      if (line.rank < 0) break;
      return fmt::format("[default{}]:{}", LocalRank(line.rank), line.text);
  }
  return line.text;
}

std::vector<std::string> SynthJob::Lines() const {
  std::vector<std::string> out;
  for (const Line& line : lines_) out.push_back(Render(line));
  return out;
}

std::string SynthJob::Interleaved() const {
  std::string out;
  for (const std::string& line : Lines()) out += line + "\n";
  return out;
}

std::vector<SynthFile> SynthJob::PerRank() const {
  std::map<std::string, std::string> files;
  for (const Line& line : lines_)
    files[line.rank < 0 ? fmt::format("agent.{}.log", line.host) : fmt::format("out.{:03}.log", line.rank)] +=
        Render(line) + "\n";
  std::vector<SynthFile> out;
  for (auto& [name, text] : files) out.push_back({name, std::move(text)});
  return out;
}

}  // namespace inquest
