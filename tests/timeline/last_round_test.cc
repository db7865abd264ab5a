// The last row of a loop whose rows say of how many they are.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace last_round_test {

bool EndsWell(const std::string& text) { return JudgeText(text).verdict.outcome == Outcome::kHealthy; }

/// Rows that say of how many they are, the figures behind them.
std::string Headed(int from, int to, int of) {
  std::string out;
  for (int epoch = from; epoch <= to; ++epoch)
    out += fmt::format("Epoch {}/{}:\nTrain - Loss: 0.{}1\nVal - Loss: 0.{}7 | Acc: 0.{}\n", epoch, of, 90 - epoch,
                       95 - epoch, 40 + epoch);
  return out;
}

TEST_CASE("last round: the last row of all, with as much behind it as behind the one before", "[course]") {
  const std::string whole = Headed(1, 30, 30);
  CHECK(EndsWell(whole));
  CHECK(JudgeText(whole).verdict.confidence < 0.7);
  CHECK_FALSE(EndsWell(Headed(1, 29, 30)));
  CHECK_FALSE(EndsWell(whole.substr(0, whole.rfind("Val"))));
  CHECK_FALSE(
      EndsWell(whole + "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nKeyError: 1\n"));
}

TEST_CASE("last round: what most rounds printed is missed in the last, where some of their heads are not kept",
          "[course]") {
  const auto tokens = [](int epoch) {
    std::string out;
    for (int line = 0; line < 10; ++line)
      out += fmt::format("tokens {} seen by worker {}\n", epoch * 977 + line, line % 3);
    return out;
  };
  std::string log;
  for (int epoch = 1; epoch <= 30; ++epoch) {
    log += fmt::format("Epoch {}/30:\n", epoch) + tokens(epoch);
    log += fmt::format("Train - Loss: 0.{}1 | Acc: 0.{}2\n", 95 - epoch, 40 + epoch);
    if (epoch < 30) log += tokens(epoch) + fmt::format("Val - Loss: 0.{}1 | Acc: 0.{}2\n", 96 - epoch, 39 + epoch);
  }
  CHECK_FALSE(EndsWell(log));
}

TEST_CASE("last round: a loop that came to its end before is within another", "[course]") {
  CHECK_FALSE(EndsWell(Headed(1, 5, 5) + Headed(1, 5, 5) + Headed(1, 5, 5)));
  CHECK_FALSE(EndsWell("[Step 1/3] Completed.\n[Step 2/3] Completed.\n[Step 3/3] Running the tuner ...\nseeded\n"));
}

/// Rows that close their rounds, as pix2pix prints them; a checkpoint every fifth round.
std::string Closed(int from, int to, int of) {
  std::string out;
  for (int epoch = from; epoch <= to; ++epoch) {
    out += fmt::format("learning rate 0.000{}000 -> 0.000{}000\n", epoch % 7, epoch % 6);
    for (int iters = 100; iters <= 400; iters += 100)
      out += fmt::format("(epoch: {}, iters: {}, time: 0.07{}, data: 0.010) G_GAN: 0.8{}9 D_real: 0.7{}3\n", epoch,
                         iters, iters / 100, epoch % 10, iters / 100);
    if (epoch % 5 == 0) out += fmt::format("saving the model at the end of epoch {}, iters {}\n", epoch, epoch * 400);
    out += fmt::format("End of epoch {} / {} \t Time Taken: 2{} sec\n", epoch, of, epoch % 10);
  }
  return out;
}

TEST_CASE("last round: a row that closes its round has nothing behind it", "[course]") {
  CHECK(EndsWell(Closed(1, 40, 40)));
  CHECK_FALSE(EndsWell(Closed(1, 39, 40)));
  const std::string last = Closed(41, 41, 41);
  CHECK_FALSE(EndsWell(Closed(1, 40, 41) + last.substr(0, last.rfind("End of epoch"))));
  // What heads its round, cut off there.
  const std::string headed = Headed(1, 30, 30);
  CHECK_FALSE(EndsWell(headed.substr(0, headed.rfind("Train"))));
}

/// `rows` of one loop within another, each of which counts both.
std::string Twice(std::string_view row, int epochs, int of, int steps, int from) {
  std::string out = "Using device cuda\nLoaded 2140 pairs\n";
  for (int epoch = from; epoch < epochs + from; ++epoch)
    for (int step = 1; step <= steps; ++step)
      out += fmt::format(fmt::runtime(row), epoch, of, step, steps, epoch * 100 + step) + "\n";
  return out;
}

TEST_CASE("last round: all that the row counts is at its end", "[course]") {
  constexpr std::string_view kNamed = "Epoch [{}/{}], Step [{}/{}], Loss: 0.{}";
  constexpr std::string_view kBare = "[{}/{}][{}/{}]\tLoss_D: 0.{}\tLoss_G: 0.91";
  constexpr std::string_view kOnce = "Epoch:[{}/{}]({}/{}), Reward: 0.{}, Fmt: 1.00";
  CHECK(EndsWell(Twice(kNamed, 5, 5, 12, 1)));
  CHECK(EndsWell(Twice(kBare, 5, 5, 12, 1)));
  CHECK(EndsWell(Twice(kBare, 5, 5, 12, 0)));
  CHECK(EndsWell(Twice(kOnce, 1, 1, 40, 1)));
  // One of two rounds; the last but one; a part of the last.
  CHECK_FALSE(EndsWell(Twice(kOnce, 1, 2, 40, 1)));
  CHECK_FALSE(EndsWell(Twice(kNamed, 4, 5, 12, 1)));
  CHECK_FALSE(EndsWell(Twice(kBare, 4, 5, 12, 0)));
  const std::string whole = Twice(kNamed, 5, 5, 12, 1);
  CHECK_FALSE(EndsWell(whole.substr(0, whole.rfind("Epoch"))));
}

TEST_CASE("last round: rows within it are at their end too", "[course]") {
  const auto run = [](int epochs, int steps_of_last) {
    std::string out = "Using device cuda\nLoaded 2140 pairs\n";
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      out += fmt::format("Epoch {}/8\n", epoch);
      for (int step = 1; step <= (epoch == epochs ? steps_of_last : 10); ++step)
        out += fmt::format("  step {}/10 loss 0.{}{}\n", step, 90 - epoch, step % 10);
    }
    return out;
  };
  CHECK(EndsWell(run(8, 10)));
  CHECK_FALSE(EndsWell(run(8, 9)));
  CHECK_FALSE(EndsWell(run(7, 10)));
}

}  // namespace last_round_test
}  // namespace inquest
