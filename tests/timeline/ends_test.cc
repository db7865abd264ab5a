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

TEST_CASE("ends: nobody whom the launcher killed went by himself", "[ends]") {
  const std::string killed = "srun: error: node01: task 2: Killed\n";
  const auto torn_down = [](const std::string& text) {
    const Timeline timeline = JudgeText(text).timeline;
    std::vector<EventIndex> ended;
    for (EventIndex i = 0; i < timeline.events.size(); ++i)
      if (const auto* exit = std::get_if<ProcessExit>(&timeline.events[i].what); exit != nullptr && exit->signal == 9)
        ended.push_back(i);
    REQUIRE_FALSE(ended.empty());
    return AreOfTeardown(timeline, ended);
  };
  CHECK(torn_down(kExit + killed));
  CHECK(torn_down(kStep + killed));
  CHECK_FALSE(torn_down(killed + kExit));
}

}  // namespace ends_test
}  // namespace inquest
