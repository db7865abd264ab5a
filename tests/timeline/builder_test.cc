// Events to timeline: who is who, what is kept, whose year it is, who waited in what.
#include "timeline/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace builder_test {

using namespace std::chrono_literals;

Timeline Of(const SynthJob& job) { return JudgeText(job.Interleaved()).timeline; }

const ProcessRow* FindProcess(const Timeline& timeline, const std::string& host, std::int64_t pid) {
  for (const ProcessRow& row : timeline.processes)
    if (row.host == host && row.pid == pid) return &row;
  return nullptr;
}

/// `3 (derived)`; `-` where it is not known.
std::string Show(const std::optional<Known<GlobalRank>>& rank) {
  return rank ? fmt::format("{} ({})", rank->value.value, Name(rank->basis)) : "-";
}

std::vector<EventIndex> Warnings(const Timeline& timeline) {
  std::vector<EventIndex> out;
  for (EventIndex i = 0; i < timeline.events.size(); ++i)
    if (std::holds_alternative<NcclWarn>(timeline.events[i].what)) out.push_back(i);
  return out;
}

constexpr const char* kSocket = "misc/socket.cc:484";

// ---- who is who ------------------------------------------------------------------------------------------------

TEST_CASE("timeline: a process has the rank that it has in the communicator that spans the job", "[timeline]") {
  SynthJob job({.ranks = 8, .hosts = 2});
  job.Init(job.NewComm(job.AllRanks()));
  const auto pair = job.NewComm({6, 2});
  job.Init(pair);
  job.Warn(6, kSocket, "Connect to 10.9.0.6<52388> failed : Connection refused");
  const Timeline timeline = Of(job);
  for (const int rank : job.AllRanks()) {
    const ProcessRow* row = FindProcess(timeline, job.Host(rank), job.Pid(rank));
    REQUIRE(row != nullptr);
    CHECK(Show(row->rank) == fmt::format("{} (derived)", rank));
    CHECK(row->cuda_dev == job.LocalRank(rank));
    CHECK(row->nvml_dev == job.LocalRank(rank));
    CHECK(row->bus_id == fmt::format("0000:{:02x}:00.0", 0x1b + 4 * job.LocalRank(rank)));
  }
  CHECK(timeline.hosts == std::vector<std::string>{job.Host(0), job.Host(7)});
  REQUIRE(Warnings(timeline).size() == 1);
  const Event& warning = timeline.events[Warnings(timeline)[0]];
  CHECK(Show(timeline.RankOf(warning)) == "6 (derived)");
  CHECK(timeline.HostOf(warning) == job.Host(6));
}

TEST_CASE("timeline: a launcher's rank beats the communicator's", "[timeline]") {
  SynthJob job({.ranks = 4, .hosts = 1, .launcher = Launcher::kRankTag});
  job.Init(job.NewComm({3, 2, 1, 0}));  // built in another order than the job's
  const Timeline timeline = Of(job);
  for (const int rank : job.AllRanks())
    CHECK(Show(FindProcess(timeline, job.Host(rank), job.Pid(rank))->rank) == fmt::format("{} (envelope)", rank));
}

TEST_CASE("timeline: a communicator smaller than the job names no ranks of it", "[timeline]") {
  SynthJob job({.ranks = 4, .hosts = 1});
  job.Print(0, "args: world_size=16");
  job.Init(job.NewComm(job.AllRanks()));
  const Timeline timeline = Of(job);
  REQUIRE(timeline.world_size);
  CHECK(timeline.world_size->value == 16);
  CHECK(Show(FindProcess(timeline, job.Host(2), job.Pid(2))->rank) == "-");
}

TEST_CASE("timeline: a process that drives several GPUs is no single rank", "[timeline]") {
  std::string text;
  for (int rank = 0; rank < 4; ++rank)
    text += fmt::format(
        "alder04:41200:41777 [{}] NCCL INFO ncclCommInitAll comm 0x55d0c{}000000 rank {} nranks 4 cudaDev {} nvmlDev "
        "{} busId 1b000 commId 0x77 - Init COMPLETE\n",
        rank, rank, rank, rank, rank);
  const Timeline timeline = JudgeText(text).timeline;
  REQUIRE(timeline.processes.size() == 1);
  CHECK(Show(timeline.processes[0].rank) == "-");
  REQUIRE(timeline.communicators.size() == 1);
  CHECK(timeline.communicators[0].members.size() == 4);
}

TEST_CASE("timeline: of the GPUs that nccl-tests lists for one process the first stands for it", "[timeline]") {
  const Timeline timeline =
      JudgeText(
          "# Using devices\n"
          "#  Rank  0 Group  0 Pid  41200 on    alder04 device  0 [0000:1b:00] NVIDIA L40S\n"
          "#  Rank  1 Group  0 Pid  41200 on    alder04 device  1 [0000:1f:00] NVIDIA L40S\n"
          "alder04:41200:41200 [0] allocator.cc:79 NCCL WARN Cuda failure 711 'peer mapping resources exhausted'\n")
          .timeline;
  const ProcessRow* process = FindProcess(timeline, "alder04", 41200);
  REQUIRE(process != nullptr);
  CHECK(process->cuda_dev == 0);
}

TEST_CASE("timeline: torchelastic's report names the rank of a pid", "[timeline]") {
  SynthJob job({.ranks = 8, .hosts = 2});
  job.Warn(6, kSocket, "Connect to 10.9.0.6<52388> failed : Connection refused");
  job.Warn(5, kSocket, "Connect to 10.9.0.6<52388> failed : Connection refused");
  job.ElasticReport({{6, -9}});
  const Timeline timeline = Of(job);
  const auto warnings = Warnings(timeline);
  REQUIRE(warnings.size() == 2);
  CHECK(Show(timeline.RankOf(timeline.events[warnings[0]])) == "6 (observed)");
  CHECK(Show(timeline.RankOf(timeline.events[warnings[1]])) == "-");
  REQUIRE(FindProcess(timeline, job.Host(6), job.Pid(6)) != nullptr);
  CHECK(FindProcess(timeline, job.Host(6), job.Pid(6))->local_rank == LocalRank{2});
  REQUIRE(timeline.FindRank(GlobalRank{6}) != nullptr);
  CHECK(timeline.FindRank(GlobalRank{6})->final_state == "killed by SIGKILL");
}

TEST_CASE("timeline: one pid on two hosts is two processes", "[timeline]") {
  const Timeline timeline =
      JudgeText(
          "alder04:977:979 [0] NCCL INFO comm 0x1000 rank 0 nranks 2 cudaDev 0 busId 1b000 - Init COMPLETE\n"
          "birch09:977:979 [0] NCCL INFO comm 0x1000 rank 1 nranks 2 cudaDev 0 busId 1b000 - Init COMPLETE\n")
          .timeline;
  REQUIRE(timeline.processes.size() == 2);
  CHECK(Show(FindProcess(timeline, "alder04", 977)->rank) == "0 (derived)");
  CHECK(Show(FindProcess(timeline, "birch09", 977)->rank) == "1 (derived)");
  REQUIRE(timeline.communicators.size() == 1);
}

TEST_CASE("timeline: hosts that are called by addresses are told apart", "[timeline]") {
  const auto report = [](const char* host, int rank) {
    return fmt::format(
        "  time      : 2031-04-05_06:07:0{1}\n  host      : {0}\n  rank      : {1} (local_rank: 0)\n"
        "  exitcode  : 1 (pid: 41)\n  error_file: <N/A>\n",
        host, rank);
  };
  const Timeline timeline =
      JudgeText("train.py FAILED\nFailures:\n" + report("10.244.1.7", 0) + report("10.244.2.9", 8)).timeline;
  CHECK(timeline.hosts == std::vector<std::string>{"10.244.1.7", "10.244.2.9"});
  REQUIRE(FindProcess(timeline, "10.244.1.7", 41) != nullptr);
  CHECK(Show(FindProcess(timeline, "10.244.1.7", 41)->rank) == "0 (observed)");
  REQUIRE(FindProcess(timeline, "10.244.2.9", 41) != nullptr);
  CHECK(Show(FindProcess(timeline, "10.244.2.9", 41)->rank) == "8 (observed)");
}

TEST_CASE("timeline: [rankN]: is the job's rank, [Rank n] the group's", "[timeline]") {
  SynthJob job({.ranks = 8, .hosts = 1});
  job.TimeOut(5, {}, 2);
  const Timeline tagged = Of(job);
  REQUIRE(tagged.collectives.size() == 1);
  CHECK(tagged.collectives[0].waiters.at(0).rank == GlobalRank{5});
  CHECK(tagged.collectives[0].waiters.at(0).group_rank == GroupRank{2});
  CHECK(tagged.collectives[0].waiters.at(0).known.basis == Basis::kEnvelope);

  std::string untagged_text = job.Interleaved();
  untagged_text.erase(0, std::string("[rank5]:").size());
  const Timeline untagged = JudgeText(untagged_text).timeline;
  REQUIRE(untagged.collectives.size() == 1);
  CHECK(untagged.collectives[0].waiters.at(0).rank == GlobalRank{2});
  CHECK(untagged.collectives[0].waiters.at(0).known.basis == Basis::kDerived);
}

TEST_CASE("timeline: how large the job is, and how that is known", "[timeline]") {
  const auto size_of = [](const SynthJob& job) {
    const Timeline timeline = Of(job);
    return timeline.world_size ? fmt::format("{} ({})", timeline.world_size->value, Name(timeline.world_size->basis))
                               : std::string("-");
  };
  const SynthOptions four{.ranks = 4, .hosts = 1};
  SynthJob silent(four), said(four), largest(four), parts(four), agent(four);
  silent.Chatter(0, 3);
  CHECK(size_of(silent) == "-");
  said.Print(0, "args: world_size=2");
  said.Print(1, "args: world_size=64");
  said.Init(said.NewComm(said.AllRanks()));
  CHECK(size_of(said) == "64 (observed)");
  largest.Init(largest.NewComm({0, 1}));
  largest.Init(largest.NewComm(largest.AllRanks()));
  CHECK(size_of(largest) == "4 (derived)");
  parts.Call(parts.NewComm(parts.AllRanks()), 0, {});  // no birth seen: it may be any group
  CHECK(size_of(parts) == "-");
  agent.ElasticReport({{2, -9}});
  CHECK(size_of(agent) == "4 (derived)");
}

TEST_CASE("timeline: versions, each once", "[timeline]") {
  const Timeline timeline = JudgeText(
                                "NCCL version 2.21.5+cuda12.4\nalder04:1:2 [0] NCCL INFO NCCL version "
                                "2.27.7+cuda12.4\nNCCL version 2.21.5+cuda12.4\n")
                                .timeline;
  CHECK(timeline.versions.at("nccl") == std::vector<std::string>{"2.21.5", "2.27.7"});
  CHECK(timeline.versions.at("cuda") == std::vector<std::string>{"12.4"});
}

// ---- what is kept ----------------------------------------------------------------------------------------------

TEST_CASE("timeline: of many repetitions the first ones and the last stay", "[timeline]") {
  SynthJob job({.ranks = 2, .hosts = 1});
  for (int i = 0; i < 500; ++i) job.Warn(0, kSocket, fmt::format("Connect to 10.9.0.6<52388> failed : try {}", i));
  job.Warn(1, kSocket, "Connect to 10.9.0.6<52388> failed : another process says it");
  job.Warn(0, "misc/socket.cc:500", "Connect to 10.9.0.6<52388> failed : another place says it");
  const Timeline timeline = Of(job);
  std::vector<std::string> texts;
  for (const EventIndex i : Warnings(timeline))
    texts.push_back(std::get<NcclWarn>(timeline.events[i].what).text.substr(36));
  REQUIRE(texts.size() > 4);
  CHECK(texts.size() < 50);
  CHECK(texts.front() == "try 0");
  CHECK(texts[texts.size() - 3] == "try 499");
  CHECK(texts[texts.size() - 2] == "another process says it");
  CHECK(texts[texts.size() - 1] == "another place says it");
}

TEST_CASE("timeline: the last words of each rank, and the lines around a telling one", "[timeline]") {
  SynthJob job({.ranks = 3, .hosts = 1, .launcher = Launcher::kRankTag});
  for (int i = 0; i < 5; ++i) job.Print(2, fmt::format("words of rank 2: {}", i));
  for (int i = 0; i < 2; ++i) job.Print(0, fmt::format("before {}", i));
  job.Warn(0, kSocket, "Connect to 10.9.0.6<52388> failed : Connection refused");
  for (int i = 0; i < 5; ++i) job.Print(1, fmt::format("words of rank 1: {}", i));
  const Timeline timeline = Of(job);
  const auto has = [&](const std::string& text) {
    return std::count_if(timeline.events.begin(), timeline.events.end(), [&](const Event& event) {
      return event.text == text && std::holds_alternative<LogMessage>(event.what);
    });
  };
  CHECK(has("words of rank 2: 4") == 1);
  CHECK(has("words of rank 1: 4") == 1);
  CHECK(has("before 1") == 1);
  CHECK(std::is_sorted(timeline.events.begin(), timeline.events.end(),
                       [](const Event& a, const Event& b) { return a.where < b.where; }));
  REQUIRE(timeline.FindRank(GlobalRank{2}) != nullptr);
  CHECK(timeline.events[*timeline.FindRank(GlobalRank{2})->last_event].text == "words of rank 2: 4");
}

TEST_CASE("timeline: connections are counted over blocks", "[timeline]") {
  SynthJob job({.ranks = 2, .hosts = 1});
  const auto comm = job.NewComm(job.AllRanks());
  for (int round = 0; round < 3; ++round) {
    job.Connect(comm, 0, "P2P/IPC", 8);
    job.Chatter(0, 7000);
  }
  REQUIRE(job.Interleaved().size() > 2 * kLineCap);
  const Timeline timeline = JudgeText(job.Interleaved(), {.threads = 2, .block_bytes = kLineCap}).timeline;
  std::vector<std::uint64_t> counts;
  for (const Event& event : timeline.events)
    if (const auto* via = std::get_if<ChannelsVia>(&event.what)) counts.push_back(via->count);
  CHECK(counts == std::vector<std::uint64_t>{24});
}

TEST_CASE("timeline: a communicator's member points at the line of its birth", "[timeline]") {
  SynthJob job({.ranks = 4, .hosts = 2});
  for (const int rank : job.AllRanks()) job.Chatter(rank, 4);
  const auto all = job.NewComm(job.AllRanks());
  job.Init(all);
  for (const int rank : job.AllRanks()) job.Chatter(rank, 4);
  const auto begun = job.NewComm({0, 1});
  for (const int rank : {0, 1}) job.InitStart(begun, rank);
  job.Chatter(3, 20);
  const Timeline timeline = Of(job);
  REQUIRE(timeline.communicators.size() == 2);
  for (const CommunicatorRow& row : timeline.communicators)
    for (const CommunicatorRow::Member& member : row.members) {
      REQUIRE(member.init_event);
      REQUIRE(*member.init_event < timeline.events.size());
      const auto* init = std::get_if<CommInit>(&timeline.events[*member.init_event].what);
      REQUIRE(init != nullptr);
      CHECK(init->rank == member.rank);
      CHECK(init->nranks == row.nranks);
      CHECK(init->complete == member.completed);
    }
}

// ---- clocks ----------------------------------------------------------------------------------------------------

std::string TimeOfTraceback(const std::string& text, EventIndex nth) {
  const Timeline timeline = JudgeText(text).timeline;
  for (const Event& event : timeline.events)
    if (std::holds_alternative<WorkTimedOut>(event.what) && nth-- == 0) return event.at ? FormatTime(*event.at) : "-";
  return "none";
}

std::string Watchdog(const std::string& month_day, const std::string& time, int seq) {
  return fmt::format(
      "[rank3]:[E{} {}.123456789 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum={}, OpType=ALLREDUCE, NumelIn=8, "
      "NumelOut=8, Timeout(ms)=600000) ran for 600043 milliseconds before timing out.\n",
      month_day, time, seq);
}

std::string Dated(const std::string& date) {
  return "[" + date + " 06:07:08] alder04:41234:41777 [3] misc/socket.cc:484 NCCL WARN Connect failed\n";
}

TEST_CASE("timeline: lines without a year get that of the dated lines", "[timeline]") {
  CHECK(TimeOfTraceback(Watchdog("405", "06:07:08", 1), 0) == "04-05T06:07:08");
  CHECK(TimeOfTraceback(Dated("2031-04-05") + Watchdog("405", "06:07:08", 1), 0).starts_with("2031-04-05T06:07:08"));
  CHECK(TimeOfTraceback(Watchdog("405", "06:07:08", 1) + Dated("2031-04-05"), 0).starts_with("2031-04-05T06:07:08"));
}

TEST_CASE("timeline: New Year's Eve", "[timeline]") {
  const std::string text = Dated("2031-12-31") + Watchdog("1231", "23:59:58", 1) + Watchdog("101", "00:00:03", 2) +
                           Dated("2032-01-01") + Watchdog("101", "07:00:00", 3);
  CHECK(TimeOfTraceback(text, 0).starts_with("2031-12-31"));
  CHECK(TimeOfTraceback(text, 1).starts_with("2032-01-01"));
  CHECK(TimeOfTraceback(text, 2).starts_with("2032-01-01"));
  CHECK(TimeOfTraceback(Dated("2032-01-01") + Watchdog("1231", "23:59:58", 1), 0).starts_with("2031-12-31"));
}

TEST_CASE("timeline: what is before what", "[timeline]") {
  const auto at = [](int second, std::chrono::nanoseconds resolution = 1ms) {
    Timestamp time;
    time.at = std::chrono::sys_days(std::chrono::year(2031) / 4 / 5) + std::chrono::seconds(second);
    time.resolution = resolution;
    return time;
  };
  Timeline timeline;
  const auto add = [&](std::uint32_t input, std::uint64_t line, std::optional<Timestamp> time) {
    Event event;
    event.where = {input, line, line * 10};
    event.at = time;
    timeline.events.push_back(std::move(event));
    return static_cast<EventIndex>(timeline.events.size() - 1);
  };
  const EventIndex early = add(0, 1, at(10)), late = add(0, 2, at(20)), other_late = add(1, 1, at(20)),
                   coarse = add(1, 2, at(20, 1s)), timeless = add(0, 3, std::nullopt),
                   stranger = add(1, 3, std::nullopt), backwards = add(0, 4, at(5));
  CHECK(timeline.Order(early, late) == std::partial_ordering::less);
  CHECK(timeline.Order(late, early) == std::partial_ordering::greater);
  CHECK(timeline.Order(early, other_late) == std::partial_ordering::less);
  CHECK(timeline.Order(late, other_late) == std::partial_ordering::equivalent);
  CHECK(timeline.Order(other_late, coarse) == std::partial_ordering::less);  // one file: the lines decide
  CHECK(timeline.Order(late, timeless) == std::partial_ordering::less);
  CHECK(timeline.Order(late, stranger) == std::partial_ordering::unordered);
  CHECK(timeline.Order(late, late) == std::partial_ordering::equivalent);
  CHECK(timeline.Order(backwards, early) == std::partial_ordering::less);  // times before lines
}

// ---- who waited in what ----------------------------------------------------------------------------------------

TEST_CASE("timeline: waiters are matched by group and number, quotations are no second wait", "[timeline]") {
  SynthJob job({.ranks = 6, .hosts = 1});
  job.Wait(700s);
  for (const int rank : {4, 0, 2}) {
    job.TimeOut(rank, {.seq = 31}, rank / 2);
    job.Status(rank, {.id = "2", .guid = "3", .desc = "mesh_dp", .failed = 31, .enqueued = 33, .completed = 30},
               rank / 2);
  }
  for (const int rank : {1, 3}) {
    job.TimeOut(rank, {.seq = 31, .op = "BROADCAST"});
    job.Status(rank, {.failed = 31, .enqueued = 31, .completed = 30});
  }
  for (const int rank : {4, 0, 2}) job.QuoteTimeOut(rank, {.seq = 31});
  const Timeline timeline = Of(job);
  REQUIRE(timeline.collectives.size() == 2);
  const CollectiveRow& row = timeline.collectives[0];
  CHECK(timeline.groups[row.group].name == "3");
  CHECK(timeline.groups[row.group].desc == "mesh_dp");
  REQUIRE(row.waiters.size() == 3);
  CHECK(row.waiters[0].rank == GlobalRank{0});
  CHECK(row.waiters[1].rank == GlobalRank{2});
  CHECK(row.waiters[2].group_rank == GroupRank{2});
  CHECK(row.work.op == "ALLREDUCE");
  CHECK(timeline.collectives[1].work.op == "BROADCAST");
  CHECK(timeline.groups[timeline.collectives[1].group].desc == "default_pg");
  const auto& member = timeline.groups[row.group].members.at(GlobalRank{4});
  CHECK(member.failed_work == 31);
  CHECK(member.last_enqueued == 33);
  CHECK(member.last_completed == 30);
  REQUIRE(timeline.FindRank(GlobalRank{4}) != nullptr);
  CHECK(timeline.FindRank(GlobalRank{4})->last_collective == "ALLREDUCE #31 (timed out)");
  CHECK(timeline.FindRank(GlobalRank{4})->final_state == "timed out");
}

TEST_CASE("timeline: a row's operation is that of most of its waiters", "[timeline]") {
  SynthJob job({.ranks = 5, .hosts = 1});
  for (const int rank : job.AllRanks()) {
    job.TimeOut(rank, {.op = "ALLREDUCE", .numel_in = rank < 2 ? 7 : 8});
    job.Status(rank, {});
  }
  const Timeline timeline = Of(job);
  REQUIRE(timeline.collectives.size() == 1);
  CHECK(timeline.collectives[0].waiters.size() == 5);
  CHECK(timeline.collectives[0].work.numel_in == 8);
}

TEST_CASE("timeline: how long somebody has waited", "[timeline]") {
  SynthJob job({.ranks = 3, .hosts = 1});
  job.Wait(3600s);
  for (const int rank : {2, 0, 1}) {
    job.TimeOut(rank, {});
    job.Wait(5s);
  }
  const Timeline timeline = Of(job);
  REQUIRE(timeline.collectives.size() == 1);
  const auto& waiters = timeline.collectives[0].waiters;
  REQUIRE(waiters.size() == 3);
  REQUIRE(waiters[2].enqueued_at);
  CHECK(FormatClock(*waiters[2].at) == "07:00:00");
  CHECK(FormatClock(*waiters[2].enqueued_at) == "06:49:59");  // 600.043 s earlier
  CHECK(waiters[0].enqueued_at->at - waiters[2].enqueued_at->at == 5s);
  CHECK(waiters[2].ran_ms == 600043);
}

TEST_CASE("timeline: what was enqueued first comes first", "[timeline]") {
  SynthJob job({.ranks = 2, .hosts = 1});
  job.Wait(3600s);
  job.TimeOut(0, {.seq = 9, .timeout_ms = 60000});
  job.Status(0, {.id = "1", .guid = "1", .desc = "mesh_tp", .failed = 9, .enqueued = 9, .completed = 8});
  job.Wait(10s);
  job.TimeOut(1, {.seq = 7, .timeout_ms = 600000});
  job.Status(1, {.id = "2", .guid = "2", .desc = "mesh_dp", .failed = 7, .enqueued = 7, .completed = 6});
  const Timeline timeline = Of(job);
  REQUIRE(timeline.collectives.size() == 2);
  CHECK(timeline.collectives[0].work.seq == SeqId{7});
}

TEST_CASE("timeline: ranks folded into ranges", "[timeline]") {
  CHECK(FoldRanks(RankSet()).empty());
  CHECK(FoldRanks({3}) == "3");
  CHECK(FoldRanks({4, 3}) == "3, 4");
  CHECK(FoldRanks({0, 1, 2, 2, 5, 7, 8, 9}) == "0-2, 5, 7-9");
}

}  // namespace builder_test
}  // namespace inquest
