// Who went first, and who was made to.
#include "timeline/ends.h"

#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace ends_test {

std::string First(const std::string& text) {
  static const std::map<FirstEnd::How, std::string> kWords = {{FirstEnd::How::kTold, "told"},
                                                              {FirstEnd::How::kOnlyError, "only error"},
                                                              {FirstEnd::How::kUnstopped, "not stopped"},
                                                              {FirstEnd::How::kEarliest, "earliest"}};
  std::string out;
  for (const FirstEnd& end : FirstToEnd(JudgeText(text).timeline))
    out += fmt::format("{}{} {}", out.empty() ? "" : "; ", end.rank.value, kWords.at(end.how));
  return out;
}

std::string Stopped(int from, int to) {
  std::string out;
  for (int task = from; task < to; ++task) out += fmt::format("srun: error: node01: task {}: Terminated\n", task);
  return out;
}

const std::string kStep = "slurmstepd: error: *** STEP 88123.0 ON node01 CANCELLED AT 2031-04-05T06:07:08 ***\n";
const std::string kSegv = "srun: error: node01: task 3: Segmentation fault (core dumped)\n";
const std::string kExit = "srun: error: node02: task 5: Exited with exit code 1\n";

TEST_CASE("ends: in the order in which one launcher tells of them, where they differ", "[ends]") {
  CHECK(First(kSegv + kExit) == "3 earliest");
  CHECK(First(kExit + kSegv) == "5 earliest");
  // Of two that end alike the order says nothing, unless the step was ended between them.
  const std::string other = "srun: error: node01: task 1: Exited with exit code 1\n", third = kSegv;
  CHECK(First(kExit + other + third) == "1 earliest; 5 earliest");
  CHECK(First(kExit + kStep + other + third) == "5 earliest");
}

TEST_CASE("ends: who did not have to be stopped was gone", "[ends]") {
  CHECK(First(kStep + Stopped(0, 4) + Stopped(5, 10)) == "4 not stopped");
  CHECK(First(kStep + Stopped(0, 10)).empty());
  CHECK(First(kStep + Stopped(0, 2) + Stopped(3, 5)).empty());  // so few may be a part of them
}

/// Whether those that a SIGKILL ended were made to.
bool TornDown(const std::string& text) {
  const Timeline timeline = JudgeText(text).timeline;
  std::vector<EventIndex> ended;
  for (EventIndex i = 0; i < timeline.events.size(); ++i)
    if (const auto* exit = std::get_if<ProcessExit>(&timeline.events[i].what); exit != nullptr && exit->signal == 9)
      ended.push_back(i);
  REQUIRE_FALSE(ended.empty());
  return AreOfTeardown(timeline, ended);
}

TEST_CASE("ends: nobody whom the launcher killed went by himself", "[ends]") {
  const std::string killed = "srun: error: node01: task 2: Killed\n";
  CHECK(TornDown(kExit + killed));
  CHECK(TornDown(kStep + killed));
  CHECK_FALSE(TornDown(killed + kExit));
}

TEST_CASE("ends: one launch of Hydra's ends each rank once, whatever is printed between", "[ends]") {
  const auto framed = [](int rank, const std::string& signal) {
    return fmt::format(
        "={}\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK {} PID {} RUNNING AT icx0417\n"
        "=   KILLED BY SIGNAL: {}\n={}\n\n",
        std::string(82, '='), rank, 88120 + rank, signal, std::string(82, '='));
  };
  std::string between;
  for (int cell = 0; cell < 40; ++cell) between += fmt::format("cells {} are swept\n", cell);
  const std::string killed = framed(0, "9 (Killed)"), crashed = framed(2, "11 (Segmentation fault)");
  CHECK(TornDown(killed + between + crashed));
  CHECK(TornDown(crashed + between + killed));
  // Of a rank that ended before: another launch, in which nobody crashed.
  CHECK_FALSE(TornDown(framed(0, "11 (Segmentation fault)") + between + killed));
}

}  // namespace ends_test
}  // namespace inquest
