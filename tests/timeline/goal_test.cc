// A last row that counts what the configuration gave as the end of the run.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace goal_test {

std::string Epochs(int from, int to) {
  std::string out;
  for (int epoch = from; epoch <= to; ++epoch)
    out += fmt::format("epoch {} loss 0.{}1 time 41.{}\n", epoch, 90 - epoch, epoch);
  return out;
}

/// A test and a checkpoint behind each epoch.
std::string Tested(int from, int to) {
  std::string out;
  for (int epoch = from; epoch <= to; ++epoch)
    out += fmt::format("epoch {} train loss 0.{}1\nepoch {} test acc 4.{}\ncheckpoint of epoch {} written\n", epoch,
                       90 - epoch, epoch, epoch, epoch);
  return out;
}

bool EndsWell(const std::string& text) { return JudgeText(text).verdict.outcome == Outcome::kHealthy; }

const std::string kTwelve = "Namespace(lr=0.1, epochs=12, warmup_epochs=2)\n";
const std::string kFromZero = "Namespace(lr=0.1, epochs=12, start_epoch=0)\n";

TEST_CASE("goal: the last of the epochs that the configuration asks for", "[course]") {
  CHECK(EndsWell(kTwelve + Epochs(1, 12)));
  CHECK(JudgeText(kTwelve + Epochs(1, 12)).verdict.confidence < 0.7);
  CHECK_FALSE(EndsWell(kTwelve + Epochs(1, 11)));
  CHECK_FALSE(EndsWell(Epochs(1, 12)));
  CHECK_FALSE(EndsWell("Namespace(lr=0.1, warmup_epochs=12)\n" + Epochs(1, 12)));
}

TEST_CASE("goal: a counter that begins at 0 ends one below, where that is said", "[course]") {
  CHECK(EndsWell(kFromZero + Epochs(0, 11)));
  CHECK_FALSE(EndsWell(kTwelve + Epochs(0, 11)));
  CHECK_FALSE(EndsWell(kFromZero + Epochs(0, 10)));
}

TEST_CASE("goal: what followed every other epoch follows the last", "[course]") {
  const std::string whole = kTwelve + Tested(1, 12);
  CHECK(EndsWell(whole));
  CHECK_FALSE(EndsWell(whole.substr(0, whole.rfind("checkpoint"))));
  CHECK_FALSE(EndsWell(whole.substr(0, whole.rfind("epoch 12 test"))));
}

TEST_CASE("goal: two numbers for one thing are none, and trouble behind the row counts", "[course]") {
  CHECK_FALSE(EndsWell(kTwelve + "Namespace(lr=0.1, epochs=40)\n" + Epochs(1, 12)));
  CHECK_FALSE(EndsWell(kTwelve + Epochs(1, 12) + "RuntimeError: the file is there already\n"));
  CHECK_FALSE(EndsWell(kTwelve + Epochs(1, 12) + "step 14 loss 0.31\nstep 15 loss 0.30\nstep 16 loss 0.30\n"));
}

TEST_CASE("goal: steps of an epoch are no epochs", "[course]") {
  std::string rows;
  for (int epoch = 10; epoch <= 12; ++epoch)
    for (int step = 100; step <= 400; step += 100)
      rows += fmt::format("epoch {} step {}/500 loss 0.4{}\n", epoch, step, step / 100);
  CHECK_FALSE(EndsWell(kTwelve + rows));
}

TEST_CASE("goal: where several ranks write, all that count came there", "[course]") {
  const JobFolder whole({{"rank0.log", kTwelve + Epochs(1, 12)}, {"rank1.log", Epochs(1, 12)}});
  CHECK(AnalyzePaths({whole.path()}).verdict.outcome == Outcome::kHealthy);
  const JobFolder cut({{"rank0.log", kTwelve + Epochs(1, 12)}, {"rank1.log", Epochs(1, 9)}});
  CHECK(AnalyzePaths({cut.path()}).verdict.outcome != Outcome::kHealthy);
}

/// A bar that is drawn anew, on one line.
std::string BarOf(std::string_view loop, int of, int minutes) {
  std::string out;
  for (int count = 1; count <= of; ++count)
    out += fmt::format("\r{}: {:3}%|####      | {}/{} [{:02}:00<{:02}:00,  1.93s/it]", loop, count * 100 / of, count,
                       of, count * minutes / of, (of - count) * minutes / of);
  return out + "\n";
}

TEST_CASE("goal: the bar that counted longest is full, and nothing follows", "[course]") {
  std::string head;
  for (const char letter : std::string_view("abcdefghijkl"))
    head += fmt::format("module {0}{0}{0} is on the device\n", letter);
  CHECK(EndsWell(head + BarOf("Valid", 8, 4) + BarOf("Train", 40, 50)));
  CHECK_FALSE(EndsWell(head + BarOf("Valid", 8, 4) + BarOf("Train", 40, 50).substr(0, 2000) + "\n"));
  CHECK_FALSE(EndsWell(head + BarOf("Tokenizing", 40, 50)));
}

TEST_CASE("goal: how much follows a row of a long log nobody knows, and its last lines are weighed", "[course]") {
  std::string log = "OPTIMIZATION:\n  BATCH_SIZE: 16\n  EPOCHS: 12\n";
  for (int epoch = 1; epoch <= 12; ++epoch) {
    for (int step = 100; step <= 18000; step += 100)
      log += fmt::format("01/02/2031 23:10:27 - INFO - Epoch: [{}], step: [{}], lr: 0.00001, batch_loss: 0.{}\n", epoch,
                         step, step % 97);
    log += fmt::format("01/02/2031 23:10:28 - INFO - ** Epoch [{}] done! Training loss: 0.0{} **\n", epoch, 90 - epoch);
    log += fmt::format("01/02/2031 23:10:29 - INFO - ** Eval at Epoch [{}]! Eval Results: **\n", epoch);
    log += fmt::format("01/02/2031 23:10:29 - INFO - Retrieval: 0.8{} @ R1, 0.98{} @ R5\n", epoch + 10, epoch % 7);
    log += fmt::format("01/02/2031 23:10:29 - INFO - Saving trained model to ./exp/checkpoint-{}. **\n", epoch);
  }
  CHECK(EndsWell(log));
  CHECK_FALSE(EndsWell(log.substr(0, log.rfind("01/02/2031 23:10:28"))));
}

TEST_CASE("goal: a bar in its rich form", "[course]") {
  const auto drawn = [](int to) {
    std::string out;
    for (int row = 0; row < 12; ++row)
      out += fmt::format("Reward of fold {} is {}.5\n", std::string(1, static_cast<char>('a' + row)), row);
    for (int minute = 1; minute <= to; ++minute)
      out += fmt::format(" {:3}% {} {},000/40,000  [ 0:{:02}:00 < 0:{:02}:00 , 641 it/s ]\n", minute * 100 / 40,
                         std::string(20, '='), minute, minute, 40 - minute);
    return out;
  };
  CHECK(EndsWell(drawn(40)));
  CHECK_FALSE(EndsWell(drawn(39)));
}

}  // namespace goal_test
}  // namespace inquest
