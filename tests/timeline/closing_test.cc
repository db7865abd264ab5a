// Figures behind loops that are through, and last words that begin something.
#include <fmt/format.h>

#include <algorithm>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace closing_test {

std::string Bar(int at, int of, int seconds, const std::string& front) {
  return fmt::format("{}: {:3}%|###       | {}/{} [{:02}:{:02}<01:00, 1.25s/it]\n", front, at * 100 / of, at, of,
                     seconds / 60, seconds % 60);
}

std::string Bars(int to, int seconds_each = 2, const std::string& front = "fit") {
  std::string out;
  for (int at = 10; at <= to; at += 10) out += Bar(at, 100, at * seconds_each, front);
  return out;
}

/// As a terminal gets them: one line, drawn again and again.
std::string Overwritten(std::string bars) {
  std::replace(bars.begin(), bars.end() - 1, '\n', '\r');
  return bars;
}

std::string Rows(int to, int of) {
  std::string out;
  for (int epoch = 1; epoch <= to; ++epoch) out += fmt::format("Epoch {}/{} loss 0.{}\n", epoch, of, 90 - epoch);
  return out;
}

bool EndsWell(const std::string& text) { return JudgeText(text).verdict.outcome == Outcome::kHealthy; }

const std::string kFigures = "threshold (on val)=0.4713\n";

TEST_CASE("closing: figures behind the only bar, which is full", "[course]") {
  CHECK(EndsWell(Bars(100) + kFigures));
  CHECK(JudgeText(Bars(100) + kFigures).verdict.confidence < 0.7);
  CHECK_FALSE(EndsWell(Bars(90) + kFigures));
  CHECK_FALSE(EndsWell(Bars(100) + Bars(100) + kFigures));
}

TEST_CASE("closing: a full bar that took minutes, and nothing behind it", "[course]") {
  CHECK(EndsWell(Bars(100)));
  CHECK(EndsWell(Overwritten(Bars(100))));
  CHECK_FALSE(EndsWell(Bars(100, 1)));
  const std::string warning = "/srv/a.py:192: FutureWarning: choose a method, as of 1.17\n  result = anderson(dev)\n";
  CHECK(EndsWell(Bars(100) + warning + warning));
  CHECK_FALSE(EndsWell(Bars(90) + warning));
  CHECK_FALSE(EndsWell(Bars(100) + "  result = anderson(dev)\n"));
  CHECK_FALSE(EndsWell(Bars(100) + Bars(100)));
  CHECK_FALSE(EndsWell(Bars(100, 2, "Loading checkpoint shards")));
  CHECK_FALSE(EndsWell(Bars(100, 2, "Tokenizing")));
}

TEST_CASE("closing: rows that came to the number they count up to", "[course]") {
  CHECK(EndsWell(Rows(30, 30) + kFigures));
  CHECK_FALSE(EndsWell(Rows(29, 30) + kFigures));
  CHECK_FALSE(EndsWell(Rows(15, 30) + Rows(14, 30) + kFigures));
}

TEST_CASE("closing: what was printed before, is of a step, or complains, closes nothing", "[course]") {
  CHECK_FALSE(EndsWell(Bars(50) + kFigures + Bars(100) + kFigures));
  CHECK_FALSE(EndsWell(Bars(100) + "now at 12/50 with 0.31\n"));
  CHECK_FALSE(EndsWell(Bars(100) + "cannot write: 0.31\n"));
  CHECK(EndsWell(Bars(100) + "mean corruption error: 18.31\n"));
}

TEST_CASE("closing: who says behind an end what it does next has not ended", "[course]") {
  const std::string done = Rows(30, 30) + "Training finished\nAll done\n";
  CHECK(EndsWell(done));
  CHECK(EndsWell(done + "Cleaning up...\n"));
  CHECK_FALSE(EndsWell(done + "working on file runs/2.tar ...\n"));
}

}  // namespace closing_test
}  // namespace inquest
