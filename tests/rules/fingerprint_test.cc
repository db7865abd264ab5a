// One name for the same failure: over ranks, hosts, pids, times, addresses and folders; another for another place.
#include <set>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace fingerprint_test {

struct Run {
  std::string host = "node07", folder = "/home/ada/run-41", time = "2031-04-05 12:01:05", rank = "3", pid = "2113",
              line = "88", bytes = "3.91", type = "ValueError";
};

std::string Raised(const Run& run) {
  return run.time + " starting on " + run.host + "\n[rank" + run.rank + "]: Traceback (most recent call last):\n[rank" +
         run.rank + "]:   File \"" + run.folder + "/train.py\", line " + run.line + ", in train_step\n[rank" +
         run.rank + "]:     loss = step(batch)\n[rank" + run.rank + "]: " + run.type + ": bad batch " + run.bytes +
         " at 0x7f" + run.pid + "\n" + "E0405 12:01:06.000000 " + run.pid +
         " torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: " + run.rank +
         " (pid: " + run.pid + ") of binary: /usr/bin/python3\n";
}

std::string TimedOut(const Run& run, const std::string& op) {
  return "[rank" + run.rank + "]:[E405 12:12:02.972012180 ProcessGroupNCCL.cpp:607] [Rank " + run.rank +
         "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + run.line + ", OpType=" + op +
         ", NumelIn=4194304, NumelOut=4194304, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n";
}

std::vector<Run> Elsewhere() {
  std::vector<Run> runs(7);
  runs[1].host = "gpu-a-15";
  runs[2].folder = "/scratch/job9";
  runs[3].time = "2032-12-31 01:02:03";
  runs[4].rank = "11";
  runs[5].pid = "990017";
  runs[6].bytes = "17.02";
  return runs;
}

TEST_CASE("fingerprint: the same failure has one name, wherever it was", "[fingerprint]") {
  std::set<std::string> raised, waited;
  for (const Run& run : Elsewhere()) {
    raised.insert(JudgeText(Raised(run)).verdict.fingerprint);
    waited.insert(JudgeText(TimedOut(run, "ALLREDUCE")).verdict.fingerprint);
  }
  CHECK(raised.size() == 1);
  CHECK(raised.begin()->size() == 16);
  CHECK(waited.size() == 1);
  CHECK(*waited.begin() != *raised.begin());
}

TEST_CASE("fingerprint: another place, exception or operation is another failure", "[fingerprint]") {
  std::set<std::string> names;
  Run other_line, other_type;
  other_line.line = "91";
  other_type.type = "KeyError";
  for (const Run& run : {Run(), other_line, other_type}) names.insert(JudgeText(Raised(run)).verdict.fingerprint);
  for (const char* const op : {"ALLREDUCE", "_ALLGATHER_BASE"})
    names.insert(JudgeText(TimedOut({}, op)).verdict.fingerprint);
  CHECK(names.size() == 5);
}

}  // namespace fingerprint_test
}  // namespace inquest
