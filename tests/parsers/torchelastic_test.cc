// What torchrun's agent says, in the four spellings of its logger, and the report at the end.
#include "tests/catch.h"
#include "tests/support/rows.h"

namespace inquest {

extern const Format kTorchelastic, kTraceback;
namespace torchelastic_test {

std::string Show(const ProcessExit& what) {
  std::string out = std::string(Name(what.reporter)) + ":";
  if (what.rank) out += " rank=" + std::to_string(what.rank->value);
  if (what.local_rank) out += " local=" + std::to_string(what.local_rank->value);
  if (what.host) out += " host=" + *what.host;
  if (what.pid) out += " pid=" + std::to_string(*what.pid);
  if (what.exit_code) out += " code=" + std::to_string(*what.exit_code);
  if (what.signal) out += " signal=" + std::to_string(*what.signal);
  return what.first_observed ? out + " first" : out;
}
std::string Show(const SignalSent& what) {
  return "send " + std::to_string(what.signal) + (what.pid ? " to " + std::to_string(*what.pid) : "");
}
std::string Show(const JobStopped& what) { return "stopped by " + std::string(Name(what.by)) + ": " + what.reason; }
std::string Show(const WorldSize& what) { return "world " + std::to_string(what.size); }
template <class T>
std::string Show(const T&) {
  return std::string(T::kKind);
}

std::string ShowAll(std::string_view text) {
  return ShowEvents(kTorchelastic, text, [](const auto& what) { return Show(what); });
}

template <std::size_t N>
void Check(const Row (&rows)[N]) {
  CheckRows(rows, ShowAll);
}

TEST_CASE("torchelastic: a child failed", "[torchelastic]") {
  Check({
      {"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 (pid: 41300) of "
       "binary: /usr/bin/python3",
       "torchelastic: local=1 pid=41300 signal=9 first"},
      {"[2031-04-05 06:07:08,123] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: 1) "
       "local_rank: 0 (pid: 7) of "
       "binary: python",
       "torchelastic: local=0 pid=7 code=1 first"},
      {"E0405 06:07:08.123000 140213377832768 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: "
       "137) local_rank: 3 (pid: "
       "44) of fn: main (start_method: spawn)",
       "torchelastic: local=3 pid=44 code=137 signal=9 first"},
      {"E0405 06:07:08.123000 4100 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: -11) "
       "local_rank: 2 (pid: 45) of "
       "binary: python",
       "torchelastic: local=2 pid=45 signal=11 first"},
      {"job failed (exitcode: unknown)", ""},
  });
}

TEST_CASE("torchelastic: signals", "[torchelastic]") {
  Check({
      {"WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 41299 closing signal SIGTERM",
       "send 15 to 41299"},
      {"W0405 06:07:08.000000 1 torch/distributed/elastic/multiprocessing/api.py:7] Closing process 41299 via signal "
       "SIGINT",
       "send 2 to 41299"},
      {"Unable to shutdown process 41299 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL",
       "send 9 to 41299"},
      {"Unable to shutdown process 41299 via 15, forcefully exiting via 9", "send 9 to 41299"},
      {"Received Signals.SIGTERM death signal, shutting down workers", "stopped by agent-signal: SIGTERM"},
      {"WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers",
       "stopped by agent-signal: SIGHUP"},
      {"Sending process 41299 a closing signal later", ""},
      {"the star sent its death signal", ""},
  });
}

TEST_CASE("torchelastic: groups and sizes", "[torchelastic]") {
  Check({{"  global_world_sizes=[16, 16]", "world 16"},
         {"  global_world_sizes=[0]", ""},
         {"  global_world_sizes=[1", ""}});
  for (const char* line :
       {"[default] Worker group FAILED. 2/3 attempts left; will restart worker group",
        "INFO:torch.distributed.elastic.agent.server.api:[default] Rendezvous complete for workers. Result:",
        "[2031-04-05 06:07:08,123] torch.distributed.elastic.x: [ERROR] no error file defined for parent"}) {
    CAPTURE(line);
    const Parsed parsed = ParseText(kTorchelastic, line);
    CHECK(parsed.events.empty());
    CHECK(parsed.claimed.size() == 1);
  }
}

constexpr const char* kReport = R"(torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2031-04-05_06:07:09
  host      : n17.cluster.local
  rank      : 9 (local_rank: 1)
  exitcode  : -15 (pid: 41300)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 41300
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2031-04-05_06:07:08
  host      : n17.cluster.local
  rank      : 8 (local_rank: 0)
  exitcode  : 1 (pid: 41299)
  error_file: /tmp/torchelastic_a/none_b/attempt_0/0/error.json
  traceback : Traceback (most recent call last):
============================================================
)";

TEST_CASE("torchelastic: the report at the end", "[torchelastic]") {
  CHECK(ShowAll(kReport) ==
        "torchelastic: rank=9 local=1 host=n17.cluster.local pid=41300 signal=15; "
        "torchelastic: rank=8 local=0 host=n17.cluster.local pid=41299 code=1 first");
  const auto events = ParseLines(kTorchelastic, kReport);
  REQUIRE(events.size() == 2);
  REQUIRE(events[1].at);
  CHECK(FormatTime(*events[1].at) == "2031-04-05T06:07:08");
  CHECK(events[1].where.line == 19);
  CHECK(ShowAll(std::string(kReport) + kReport).size() == 2 * ShowAll(kReport).size() + 2);
}

TEST_CASE("torchelastic: the report of older versions", "[torchelastic]") {
  CHECK(ShowAll("Root Cause:\n[0]:\n  time: 2031-04-05_06:07:08\n  rank: 5 (local_rank: 1)\n  exitcode: 1 (pid: 77)\n  "
                "error_file: <N/A>\n") == "torchelastic: rank=5 local=1 pid=77 code=1 first");
}

TEST_CASE("torchelastic: the first failure is named, though its entry was cut behind its rank", "[torchelastic]") {
  const std::string report = kReport;
  CHECK(ShowAll(report.substr(0, report.rfind("  exitcode"))) ==
        "torchelastic: rank=9 local=1 host=n17.cluster.local pid=41300 signal=15; "
        "torchelastic: rank=8 local=0 host=n17.cluster.local first");
  CHECK(ShowAll(report.substr(0, report.find("  exitcode"))).empty());  // one of several
  CHECK(ShowAll("Root Cause:\n[0]:\n  rank: 5 (local_rank: 1)\n  exitcode: 1\n") ==
        "torchelastic: rank=5 local=1 first");
}

TEST_CASE("torchelastic: a field cut from its number makes no event", "[torchelastic]") {
  CHECK(ShowAll("  rank      : 9 (local_rank: 1)\n  exitcode  : -1").empty());
  CHECK(ShowAll("  exitcode  : <N/A>").empty());
}

TEST_CASE("torchelastic: the launcher's exceptions tell of signals", "[torchelastic]") {
  const std::string frame = "  File \"r.py\", line 3, in f\n";
  const auto stopped = Only<JobStopped>(
      ParseLines(kTraceback,
                 frame + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 41 got signal: 15\n"));
  REQUIRE(stopped.size() == 1);
  CHECK(Show(stopped[0]) == "stopped by agent-signal: SIGTERM");
  const auto exits = Only<ProcessExit>(ParseLines(
      kTraceback,
      frame + "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL\n"));
  REQUIRE(exits.size() == 1);
  CHECK(Show(exits[0]) == "spawn: local=1 signal=9");
}

TEST_CASE("torchelastic: cut at every byte", "[torchelastic]") {
  const std::string text =
      std::string(
          "Sending process 41299 closing signal SIGTERM\nfailed (exitcode: -9) local_rank: 1 (pid: 41300) of\n") +
      kReport;
  for (std::size_t size = 0; size <= text.size(); ++size) ParseLines(kTorchelastic, text.substr(0, size));
}

}  // namespace torchelastic_test
}  // namespace inquest
