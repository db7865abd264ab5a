// What the last lines of a log weigh where nobody tells how it ended.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace farewell_test {

/// A program that says what it is about, and counts without saying of how many.
std::string Work(int rounds) {
  std::string out = "device: cuda:0\nreading 512 records\nmodel with 1,590,276 weights\n";
  for (int round = 1; round <= rounds; ++round)
    out += fmt::format("round {} fit={:.4f} held out={:.4f}\n", round, 2.0 / round, 2.1 / round);
  return out;
}

std::string Epochs(int to, int of) {
  std::string out;
  for (int epoch = 1; epoch <= to; ++epoch) out += fmt::format("Epoch {}/{} loss 0.{}\n", epoch, of, 90 - epoch);
  return out;
}

std::string Bars(int to, const std::string& front) {
  std::string out;
  for (int at = 10; at <= to; at += 10)
    out += fmt::format("{}: {:3}%|###       | {}/100 [00:{:02}<00:59, 1.25s/it]\n", front, at, at, at / 2);
  return out;
}

const std::string kResults = "\n== results ==\nbest round 18, held out 0.1050\nmean over the folds 0.1050 +- 0.0031\n";

Verdict Judge(const std::string& text) { return JudgeText(text).verdict; }
bool EndsWell(const std::string& text) { return Judge(text).outcome == Outcome::kHealthy; }

TEST_CASE("farewell: results, what was saved, how long it took", "[farewell]") {
  for (const std::string_view end : {
           "best round 18, held out 0.1050\nsaved to out/best.npz\n",
           "\n== results ==\n  precision 0.91\n  recall    0.88\ntotal time 71.2 s\n",
           "评估完成\n结果已保存到 out/scores.txt\n",
           "wrote 512 predictions to out/pred.txt\nfinished in 12.3 seconds\n",
       }) {
    INFO(end);
    CHECK(EndsWell(Work(20) + std::string(end)));
  }
  const Verdict verdict = Judge(Work(20) + kResults);
  CHECK(verdict.outcome == Outcome::kHealthy);
  CHECK(verdict.confidence < 0.7);
  REQUIRE_FALSE(verdict.evidence.empty());
  CHECK(verdict.evidence.front().text == "mean over the folds 0.1050 +- 0.0031");
}

TEST_CASE("farewell: what was cut off is not through", "[farewell]") {
  CHECK_FALSE(EndsWell(Work(20)));
  for (const std::string_view end : {
           "round 21, step 3/40 loss 0.31\n",
           "Starting evaluation of the held-out records ...\n",
           "loading the test set\n",
           "result 0.91, could not write it: no space\n",
           "INFO:     127.0.0.1:51422 - \"GET /health HTTP/1.1\" 200 OK\n",
       }) {
    INFO(end);
    CHECK_FALSE(EndsWell(Work(20) + std::string(end)));
  }
}

TEST_CASE("farewell: a loop that is not through, by its bar or by what the configuration says", "[farewell]") {
  CHECK(EndsWell(Epochs(30, 30) + kResults));
  std::string rows;
  for (int epoch = 1; epoch <= 30; ++epoch) rows += fmt::format("Epoch {}: loss 0.{}\n", epoch, 90 - epoch);
  CHECK(EndsWell(rows + kResults));
  CHECK_FALSE(EndsWell("Namespace(epochs=60, lr=0.1)\n" + rows + kResults));
  CHECK_FALSE(EndsWell(Epochs(29, 30)));
  CHECK(EndsWell(Work(8) + Bars(100, "fit") + kResults));
  CHECK_FALSE(EndsWell(Work(8) + Bars(90, "fit")));
  CHECK_FALSE(EndsWell(Work(8) + Bars(100, "Loading checkpoint shards")));
  CHECK_FALSE(EndsWell(Work(8) + Bars(100, "Tokenizing")));
}

TEST_CASE("farewell: a batch system's lines and warnings of Python's are not the last words", "[farewell]") {
  const std::string end = "best round 18, held out 0.1050\nsaved to out/best.npz\n";
  const std::string warning = "/srv/a.py:192: FutureWarning: choose a method, as of 1.17\n  result = anderson(dev)\n";
  CHECK(EndsWell(Work(20) + end + warning + warning));
  CHECK_FALSE(EndsWell(Work(20) + warning + warning));
  CHECK_FALSE(EndsWell(Work(20) + "\n\nPS:\n\nRead file <train.err> for stderr output of this job.\n"));
}

TEST_CASE("farewell: a few lines are no log of a job, and a server that is up has not ended", "[farewell]") {
  CHECK_FALSE(EndsWell("read 12 records\nsaved to out/best.npz\nfinished in 12.3 seconds\n"));
  CHECK_FALSE(EndsWell(Work(20) + "INFO:     Application startup complete.\nUvicorn running on http://0.0.0.0:8000\n"));
}

TEST_CASE("farewell: of several logs none may look cut off", "[farewell]") {
  const auto judge = [](const std::string& a, const std::string& b) {
    const JobFolder folder({{"a.log", a}, {"b.log", b}});
    return AnalyzePaths(folder.Files()).verdict.outcome;
  };
  CHECK(judge(Work(20) + kResults, Work(20) + kResults) == Outcome::kHealthy);
  CHECK(judge(Work(20) + kResults, Work(20) + "step 3/40 loss 0.31\n") == Outcome::kUndecided);
}

TEST_CASE("farewell: who says behind an end what it does next has not ended", "[farewell]") {
  const std::string done = Epochs(30, 30) + "Training finished\nAll done\n";
  CHECK(EndsWell(done));
  CHECK(EndsWell(done + "Cleaning up...\n"));
  CHECK_FALSE(EndsWell(done + "working on file runs/first/ep150.pth.tar ...\n"));
}

}  // namespace farewell_test
}  // namespace inquest
