// Each of the smaller detectors: a job that has it, and its nearest look-alike that has not.
#include "rules/detectors.h"

#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace detectors_test {

using namespace std::chrono_literals;

bool Speaks(const std::string& text, std::string_view rule) {
  const Judged judged = JudgeText(text);
  const Finding* finding = FindFinding(judged.verdict, rule);
  return finding != nullptr;
}

TEST_CASE("detectors: every finding has its file, and every file its detector", "[detectors]") {
  const RuleBook& book = BuiltInRules();
  for (const Error& error : CheckFindings(book)) FAIL_CHECK(error.where + ": " + error.message);
  std::set<std::string_view> ids, rules;
  for (const Detector* detector : Detectors()) {
    CHECK(ids.insert(detector->id).second);
    CHECK_FALSE(detector->summary.empty());
    CHECK_FALSE(detector->findings.empty());
    for (const FindingRow& row : detector->findings) CHECK(rules.insert(row.id).second);
  }
  for (const std::string_view rule : rules) CHECK(book.FindRule(rule) == nullptr);
  CHECK(book.findings.size() == rules.size());
  for (const FindingRule& rule : book.findings) {
    CAPTURE(rule.id);
    CHECK(rules.contains(rule.id));
    CHECK((rule.cause.empty() || book.FindCause(rule.cause) != nullptr));
    for (const Grade& grade : rule.grades)
      CHECK((grade.by_catalogue || (grade.confidence > 0 && grade.confidence < 1)));
  }
}

// ---- the desync report -----------------------------------------------------------------------------------------

SynthJob WithDesyncReport(const std::vector<std::string>& report) {
  SynthJob job({.ranks = 6, .hosts = 1});
  for (const int rank : {0, 2, 3, 4}) job.TimeOut(rank, {.seq = 4711});
  for (const std::string& line : report) job.Print(3, line);
  return job;
}

TEST_CASE("desync: ranks that never joined", "[detectors]") {
  const Judged judged = JudgeText(WithDesyncReport({"\t - [3] Timeout at collective: ALLREDUCE, #4711",
                                                    "\t - To our best knowledge, ranks [1, 5] are the lagging ranks "
                                                    "that caused this timeout. They never joined any collectives"})
                                      .Interleaved());
  CHECK(judged.verdict.rule == "desync-ranks-behind");
  CHECK(judged.verdict.cause == "rank-absent");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{1, 5});
  REQUIRE(judged.verdict.collective);
  CHECK(judged.verdict.collective->seq == 4711);
}

TEST_CASE("desync: two operations at one number", "[detectors]") {
  const Judged judged =
      JudgeText(WithDesyncReport({"\t - [3] Timeout at collective: ALLREDUCE, #4711",
                                  "\t - Snapshot of ranks' latest states:", "\t   #4711 started ranks:",
                                  "\t     [0, 2, 3, 4] started ALLREDUCE", "\t     [1] started BROADCAST"})
                    .Interleaved());
  CHECK(FindFinding(judged.verdict, "desync-two-operations") != nullptr);
  CHECK(judged.verdict.cause == "collective-mismatch");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{1});
}

TEST_CASE("desync: two operations at two numbers", "[detectors]") {
  const auto text = [](const std::string& lower) {
    return "\t - [0] Timeout at collective: ALLREDUCE, #101\n\t   - [2] joined but didn't finish collective #100 "
           "(count from 1)\n"
           "\t   #100 started ranks:\n\t     [2] started " +
           lower + "\n\t   #101 started ranks:\n\t     [0, 1, 3] started ALLREDUCE\n";
  };
  const Judged mismatch = JudgeText(text("BROADCAST"));
  CHECK(mismatch.verdict.cause == "collective-mismatch");
  CHECK(CulpritRanks(mismatch.verdict) == std::set<int>{2});
  const Judged late = JudgeText(text("ALLREDUCE"));
  CHECK(late.verdict.cause == "rank-absent");
  CHECK(CulpritRanks(late.verdict) == std::set<int>{2});
}

TEST_CASE("desync: all have started one operation", "[detectors]") {
  const std::string text =
      WithDesyncReport({"\t - [3] Timeout at collective: ALLREDUCE, #4711", "\t - Snapshot of ranks' latest states:",
                        "\t   #4711 started ranks:", "\t     [0, 1, 2, 3, 4, 5] started ALLREDUCE"})
          .Interleaved();
  CHECK_FALSE(Speaks(text, "desync-two-operations"));
  CHECK_FALSE(Speaks(text, "desync-ranks-behind"));
}

// ---- communicators half begun ----------------------------------------------------------------------------------

SynthJob Begun(const std::vector<int>& started, const std::vector<int>& completed) {
  SynthJob job({.ranks = 8, .hosts = 2});
  for (const int rank : job.AllRanks()) job.Chatter(rank, 2);
  const auto comm = job.NewComm(job.AllRanks());
  for (const int rank : started) job.InitStart(comm, rank);
  for (const int rank : completed) job.InitComplete(comm, rank);
  for (const int rank : job.AllRanks()) job.Chatter(rank, 2);
  return job;
}

TEST_CASE("init incomplete: one rank never began the communicator", "[detectors]") {
  const Judged judged = JudgeText(Begun({0, 1, 2, 3, 4, 6, 7}, {}).Interleaved());
  const Finding* finding = FindFinding(judged.verdict, "init-incomplete");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause == "rank-absent");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{5});
  REQUIRE_FALSE(finding->citations.empty());
  for (const Citation& citation : finding->citations) CHECK(citation.text.find("Init START") != std::string::npos);
}

TEST_CASE("init incomplete: what looks like it", "[detectors]") {
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7}, seven = {0, 1, 2, 3, 4, 6, 7};
  CHECK_FALSE(Speaks(Begun(all, {}).Interleaved(), "init-incomplete"));  // all began: nobody is missing
  CHECK_FALSE(Speaks(Begun(seven, seven).Interleaved(),
                     "init-incomplete"));  // it was completed, so the missing lines are elsewhere
  CHECK_FALSE(Speaks(Begun({2}, {}).Interleaved(), "init-incomplete"));  // a log of one rank
}

// ---- nothing moves ---------------------------------------------------------------------------------------------

std::string AllWait(const SynthWork& work, std::chrono::seconds apart, int waiting = 4) {
  SynthJob job({.ranks = 4, .hosts = 1});
  for (const int rank : job.AllRanks()) job.Print(rank, "args: world_size=4");
  job.Wait(700s);
  for (int rank = 0; rank < waiting; ++rank) {
    job.TimeOut(rank, work);
    job.Wait(apart);
  }
  return job.Interleaved();
}

TEST_CASE("nothing moves: all are in, together, and no byte arrives", "[detectors]") {
  const Judged judged = JudgeText(AllWait({.seq = 1}, 0s));
  const Finding* finding = FindFinding(judged.verdict, "all-in-nothing-moves");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause == "p2p-transport");
  CHECK(finding->strength == Strength::kHint);  // which part of the transport it is the log does not say
  CHECK(CulpritRanks(judged.verdict).empty());
}

TEST_CASE("nothing moves: no layer is named that the topology contradicts", "[detectors]") {
  const auto cause = [](int hosts) {
    SynthJob job({.ranks = 4, .hosts = hosts});
    job.Init(job.NewComm(job.AllRanks()));
    job.Wait(700s);
    for (const int rank : job.AllRanks()) job.TimeOut(rank, {.seq = 1});
    const Judged judged = JudgeText(job.Interleaved());
    const Finding* finding = FindFinding(judged.verdict, "all-in-nothing-moves");
    return finding == nullptr ? std::string() : finding->cause;
  };
  CHECK(cause(4) == "peer-unreachable");  // each rank has a host of its own
  CHECK(cause(2) == "p2p-transport");
}

TEST_CASE("nothing moves: what looks like it", "[detectors]") {
  CHECK_FALSE(Speaks(AllWait({.seq = 1}, 0s, 3), "all-in-nothing-moves"));  // one is missing
  CHECK_FALSE(Speaks(AllWait({.seq = 1}, 60s), "all-in-nothing-moves"));    // they came minutes apart
  CHECK_FALSE(Speaks(AllWait({.seq = 1, .numel_in = 40'000'000'000, .numel_out = 40'000'000'000}, 0s),
                     "all-in-nothing-moves"));  // as many bytes take their time
}

// ---- exceptions ------------------------------------------------------------------------------------------------

TEST_CASE("exceptions: one that nobody has a name for", "[detectors]") {
  SynthJob job({.ranks = 4, .hosts = 1});
  job.Raise(3, "KeyError", "'labels'", "dataset.py");
  const Judged judged = JudgeText(job.Interleaved());
  const Finding* finding = FindFinding(judged.verdict, "uncaught-exception");
  REQUIRE(finding != nullptr);
  CHECK(judged.verdict.cause == "python-exception");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{3});
  CHECK(finding->claim.find("KeyError") != std::string::npos);
  CHECK(finding->claim.find("dataset.py:61") != std::string::npos);
}

TEST_CASE("exceptions: what tells of another's end is no cause", "[detectors]") {
  for (const std::string type :
       {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "subprocess.CalledProcessError",
        "KeyboardInterrupt", "torch.distributed.DistBackendError", "BrokenPipeError"}) {
    CAPTURE(type);
    SynthJob job({.ranks = 4, .hosts = 1});
    job.Raise(3, type, "something ended");
    CHECK_FALSE(Speaks(job.Interleaved(), "uncaught-exception"));
  }
}

TEST_CASE("exceptions: one that was caught is a hint at most", "[detectors]") {
  SynthJob job({.ranks = 4, .hosts = 1});
  job.Raise(3, "KeyError", "'labels'", "dataset.py");
  for (int step = 10; step < 40; ++step)
    job.Print(3, fmt::format("[rank3]: step {}: loss 3.2011, time 251.12ms", step));
  const Judged judged = JudgeText(job.Interleaved());
  const Finding* finding = FindFinding(judged.verdict, "uncaught-exception");
  CHECK((finding == nullptr || finding->strength == Strength::kHint));
  CHECK(judged.verdict.cause != "python-exception");
}

TEST_CASE("exceptions: one that a signature names is that signature's", "[detectors]") {
  SynthJob job({.ranks = 4, .hosts = 1});
  job.Raise(2, "torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB.");
  const Judged judged = JudgeText(job.Interleaved());
  CHECK(judged.verdict.cause == "cuda-oom");
  CHECK(CulpritRanks(judged.verdict) == std::set<int>{2});
}

TEST_CASE("exceptions: the only one that ended with an error raised it", "[detectors]") {
  const std::string raised =
      "Traceback (most recent call last):\n  File \"data.py\", line 9, in load\nKeyError: 'labels'\n";
  const auto ranks = [&](const std::string& report) { return CulpritRanks(JudgeText(raised + report).verdict); };
  CHECK(ranks("srun: error: n17: task 3: Exited with exit code 1\n") == std::set<int>{3});
  CHECK(ranks("srun: error: n17: tasks 3-4: Exited with exit code 1\n").empty());
  const std::string agent =
      "[2031-04-05 06:07:08,123] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: 1) "
      "local_rank: 0 (pid: 41) of binary: /usr/bin/python\n";
  CHECK(ranks(agent + "srun: error: n17: task 3: Exited with exit code 1\n").count(3) == 0);
  CHECK(CulpritRanks(JudgeText("-- Process 1 terminated with the following error:\n" + raised).verdict) ==
        std::set<int>{1});
}

TEST_CASE("exceptions: the only one that the others waited for raised it", "[detectors]") {
  const std::string raised = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
  const auto waited = [](int rank) {
    return fmt::format(
        "[rank{0}]:[E405 06:37:09.123456789 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=4411, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=1800000) ran "
        "for 1800088 milliseconds before timing out.\n",
        rank);
  };
  const std::string four = "[2031-04-05 06:07:08,123] [INFO] [launch.py:163:main] dist_world_size=4\n";
  const auto ranks = [&](const std::string& text) { return CulpritRanks(JudgeText(text).verdict); };
  CHECK(ranks(four + raised + waited(0) + waited(1) + waited(3)) == std::set<int>{2});
  CHECK(ranks(four + raised + waited(0) + waited(1)).empty());
  CHECK(ranks(raised + waited(0)).empty());  // of how many nothing says
}

TEST_CASE("exceptions: what the driver and the parent raise for another", "[detectors]") {
  const Judged ray = JudgeText(
      "Traceback (most recent call last):\n  File \"main.py\", line 3, in main\nray.exceptions.RayTaskError(KeyError): "
      "ray::train() (pid=41)\n"
      "  File \"data.py\", line 9, in load\nKeyError: 'labels'\n");
  CHECK(ray.verdict.summary.find("data.py:9") != std::string::npos);
  const auto raised = [](const char* end) {
    return std::string("Traceback (most recent call last):\n  File \"/a/main.py\", line 2, in main\n") + end;
  };
  CHECK_FALSE(
      Speaks(raised("ray.exceptions.RayTaskError(CalledProcessError): ray::train() (pid=41)\n"), "uncaught-exception"));
  CHECK_FALSE(Speaks(raised("subprocess.CalledProcessError: Command '['/usr/bin/python3', 'train.py']' returned "
                            "non-zero exit status 1.\n"),
                     "uncaught-exception"));
  CHECK_FALSE(
      Speaks("Traceback (most recent call last):\n  File \"/env/torch/multiprocessing/spawn.py\", line 118, in join\n  "
             "  raise Exception(msg)\nException: \n",
             "uncaught-exception"));
  CHECK_FALSE(
      Speaks("Traceback (most recent call last):\n  File \"/usr/lib/python3.12/multiprocessing/connection.py\", line "
             "399, in _recv\n    raise EOFError\nEOFError\n",
             "uncaught-exception"));
}

TEST_CASE("exceptions: a rule that only hints leaves the exception to decide", "[detectors]") {
  CHECK(JudgeText("RuntimeError: it broke\n").verdict.cause == "python-exception");
  CHECK(JudgeText("RuntimeError: it broke\nTraining completed.\n").verdict.cause == "python-exception");
  CHECK(JudgeText("RuntimeError: it broke\nstep 3 loss 1.2\nstep 4 loss 1.1\nTraining completed.\n").verdict.cause ==
        "healthy");
}

// ---- exits -----------------------------------------------------------------------------------------------------

TEST_CASE("exits: signals that say something, with the rank that the agent names", "[detectors]") {
  const struct {
    int code;
    const char* rule;
    const char* cause;
  } rows[] = {{-11, "ended-by-sigsegv", "native-crash"},
              {-9, "ended-by-sigkill", "host-oom"},
              {-7, "ended-by-sigbus", "shm-exhausted"}};
  for (const auto& row : rows) {
    CAPTURE(row.code);
    SynthJob job({.ranks = 8, .hosts = 2});
    job.ElasticReport({{6, row.code}, {4, -15}});
    const Judged judged = JudgeText(job.Interleaved());
    CHECK(FindFinding(judged.verdict, row.rule) != nullptr);
    CHECK(judged.verdict.cause == row.cause);
    CHECK(CulpritRanks(judged.verdict) == std::set<int>{6});
    CHECK(judged.verdict.culprits.at(0).host == job.Host(6));
  }
}

TEST_CASE("exits: signals that follow from something else", "[detectors]") {
  SynthJob aborted({.ranks = 4, .hosts = 1});
  for (const int rank : aborted.AllRanks()) aborted.TimeOut(rank, {});
  aborted.ElasticReport({{2, -6}});
  CHECK_FALSE(Speaks(aborted.Interleaved(), "ended-by-sigabrt"));
  SynthJob told({.ranks = 4, .hosts = 1});
  told.ElasticReport({{2, 1}, {1, -15}});
  CHECK_FALSE(Speaks(told.Interleaved(), "ended-by-sigterm"));
}

// ---- nvidia-smi ------------------------------------------------------------------------------------------------

struct SmiProcess {
  int gpu, pid, memory_mib;
  const char* name = "/opt/venv/bin/python";
};

std::string Smi(int gpus, const std::vector<SmiProcess>& processes, int watts, int utilization,
                const char* mig = "Disabled") {
  std::string out =
      "+-----------------------------------------------------------------------------+\n"
      "| NVIDIA-SMI 525.60.13    Driver Version: 525.60.13    CUDA Version: 12.0     |\n"
      "|-------------------------------+----------------------+----------------------+\n"
      "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
      "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |\n"
      "|                               |                      |               MIG M. |\n"
      "|===============================+======================+======================|\n";
  for (int gpu = 0; gpu < gpus; ++gpu) {
    int used = 3;
    for (const SmiProcess& process : processes) used += process.gpu == gpu ? process.memory_mib : 0;
    const bool busy = used > 1024;
    out += fmt::format("|   {}  NVIDIA A100-SXM...  On   | 00000000:{:02X}:00.0 Off |                    0 |\n", gpu,
                       0x1b + gpu);
    out += fmt::format("| N/A   41C    P0   {:3}W / 400W |{:6}MiB / 81920MiB |    {:3}%      Default |\n",
                       busy ? watts : 61, used, busy ? utilization : 0);
    out += fmt::format("|                               |                      |             {:>8} |\n", mig);
    out += "+-------------------------------+----------------------+----------------------+\n";
  }
  out +=
      "\n+-----------------------------------------------------------------------------+\n"
      "| Processes:                                                                  |\n"
      "|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |\n"
      "|        ID   ID                                                   Usage      |\n"
      "|=============================================================================|\n";
  for (const SmiProcess& process : processes)
    out += fmt::format("|    {}   N/A  N/A  {:8}      C   {:<28}{:8}MiB |\n", process.gpu, process.pid, process.name,
                       process.memory_mib);
  return out + "+-----------------------------------------------------------------------------+\n";
}

TEST_CASE("devices: two processes work on one GPU while another stands idle", "[detectors]") {
  const Judged judged = JudgeText(Smi(2, {{0, 4101, 30000}, {0, 4102, 29000}, {1, 4102, 410}}, 300, 80));
  const Finding* finding = FindFinding(judged.verdict, "processes-share-gpu");
  REQUIRE(finding != nullptr);
  CHECK(judged.verdict.cause == "device-mapping");
  REQUIRE(judged.verdict.culprits.size() == 1);
  CHECK(judged.verdict.culprits[0].pid == 4102);
  CHECK(judged.verdict.culprits[0].gpu_index == 0);
}

TEST_CASE("devices: what looks like a crowd on one GPU", "[detectors]") {
  CHECK_FALSE(Speaks(Smi(2, {{0, 4101, 30000}, {1, 4102, 29000}}, 300, 80), "processes-share-gpu"));
  CHECK_FALSE(Speaks(Smi(2, {{0, 4101, 30000}, {1, 4102, 29000}, {0, 4102, 410}, {1, 4101, 410}}, 300, 80),
                     "processes-share-gpu"));  // contexts for peer access
  CHECK_FALSE(Speaks(Smi(2, {{0, 4101, 30000}, {0, 4102, 29000}, {1, 4102, 410}}, 300, 80, "Enabled"),
                     "processes-share-gpu"));  // shared on purpose
  CHECK_FALSE(Speaks(Smi(2, {{0, 4101, 30000}, {0, 977, 2900, "/usr/bin/dashboard"}, {1, 4102, 30000}}, 300, 80),
                     "processes-share-gpu"));
}

TEST_CASE("devices: every GPU spins in a collective, or works", "[detectors]") {
  const std::vector<SmiProcess> one_each = {{0, 4101, 30000}, {1, 4102, 30000}};
  CHECK(Speaks(Smi(2, one_each, 110, 100), "all-gpus-spin"));
  CHECK_FALSE(Speaks(Smi(2, one_each, 370, 100), "all-gpus-spin"));
  CHECK_FALSE(Speaks(Smi(2, one_each, 110, 40), "all-gpus-spin"));
  CHECK_FALSE(Speaks(Smi(2, {{0, 4101, 30000}}, 110, 100), "all-gpus-spin"));
}

TEST_CASE("devices: barrier() guesses a device that is another rank's", "[detectors]") {
  const auto text = [](int guessed) {
    SynthJob job({.ranks = 2, .hosts = 1});
    for (const int rank : {0, 1})
      job.Print(rank,
                fmt::format("Process rank: {}, device: cuda:{}, n_gpu: 1, distributed training: True", rank, rank));
    job.Print(1, fmt::format("[rank1]:[W405 06:07:08.123456789 ProcessGroupNCCL.cpp:4561] [PG ID 0 PG GUID 0 Rank 1]  "
                             "using GPU {} to perform barrier as devices used by this "
                             "process are currently unknown. This can potentially cause a hang if this rank to GPU "
                             "mapping is incorrect.",
                             guessed));
    return job.Interleaved();
  };
  CHECK(Speaks(text(0), "guessed-device-differs"));
  CHECK_FALSE(Speaks(text(1), "guessed-device-differs"));
}

// ---- silence ---------------------------------------------------------------------------------------------------

SynthJob SetUp(std::string_view via) {
  SynthJob job({.ranks = 4, .hosts = 1});
  const auto comm = job.NewComm(job.AllRanks());
  for (const int rank : job.AllRanks()) job.InitStart(comm, rank);
  for (const int rank : job.AllRanks()) job.Connect(comm, rank, via, 2);
  for (const int rank : job.AllRanks()) job.InitComplete(comm, rank);
  return job;
}

TEST_CASE("silence: set up over peer-to-peer, and then nothing", "[detectors]") {
  const Judged judged = JudgeText(SetUp("P2P/IPC").Interleaved());
  const Finding* finding = FindFinding(judged.verdict, "silence-after-init");
  REQUIRE(finding != nullptr);
  CHECK(finding->strength == Strength::kHint);
}

TEST_CASE("silence: what looks like it", "[detectors]") {
  CHECK_FALSE(Speaks(SetUp("NET/IB/0/GDRDMA").Interleaved(), "silence-after-init"));
  SynthJob trained = SetUp("P2P/IPC");
  trained.Print(0, "step 500: loss 3.2011, time 251.12ms");
  CHECK_FALSE(Speaks(trained.Interleaved(), "silence-after-init"));
  SynthJob failed = SetUp("P2P/IPC");
  failed.Raise(1, "KeyError", "'labels'");
  CHECK_FALSE(Speaks(failed.Interleaved(), "silence-after-init"));
  SynthJob closed = SetUp("P2P/IPC");
  for (const int rank : closed.AllRanks()) closed.Destroy(0, rank);
  CHECK_FALSE(Speaks(closed.Interleaved(), "silence-after-init"));
}

}  // namespace detectors_test
}  // namespace inquest
