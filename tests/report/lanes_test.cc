// The picture on a terminal: its width, its letters, whom it folds.
#include "report/lanes.h"

#include <algorithm>

#include "report/terminal.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"
#include "tests/support/sample_verdict.h"

namespace inquest {
namespace lanes_test {

std::string Drawn(const Timeline& timeline, const Verdict& verdict, int width, bool utf8, Color color = Color::kNever) {
  std::string out;
  RenderLanes(timeline, verdict, {.text = {.color = color, .width = width, .utf8 = utf8}, .tool_version = "0"},
              [&](std::string_view piece) { out += piece; });
  return out;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string Step(int rank, const char* clock, const char* what) {
  return std::string("2031-04-05 ") + clock + " [rank" + std::to_string(rank) + "]: " + what + "\n";
}

TEST_CASE("lanes: ranks that behave alike share a row, and who failed stands above", "[unit][lanes]") {
  std::string log;
  for (const char* const clock : {"12:00:00", "12:00:10", "12:00:20"})
    for (int rank = 0; rank < 8; ++rank) log += Step(rank, clock, "step 10 loss 0.5");
  for (const char* const line :
       {"Traceback (most recent call last):", "  File \"/job/train.py\", line 88, in step", "    loss = model(batch)",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB."})
    log += std::string("[rank5]: ") + line + "\n";
  const Judged judged = JudgeText(log);
  const std::string text = Drawn(judged.timeline, judged.verdict, 80, true);
  INFO(text);
  const std::vector<std::string> lines = LinesOf(text);
  const auto row = [&](std::string_view who) {
    return std::ranges::find_if(lines, [&](const std::string& line) { return line.starts_with(who); });
  };
  REQUIRE(row("rank 5 ") != lines.end());
  REQUIRE(row("ranks 0-4, 6, 7 ") != lines.end());
  CHECK(row("rank 5 ") < row("ranks 0-4, 6, 7 "));
  CHECK(row("rank 5 ")->find('M') != std::string::npos);
  CHECK(text.find("12:00:00") != std::string::npos);
  CHECK(text.find("M out of memory") != std::string::npos);
}

TEST_CASE("lanes: as wide as the terminal, in its letters, whatever a log says", "[unit][lanes]") {
  const Sample plain = MakeSample(), hostile = MakeHostileSample();
  for (const Sample* sample : {&plain, &hostile})
    for (const int width : {40, 80, 120}) {
      const std::string text = Drawn(sample->timeline, sample->verdict, width, true);
      CAPTURE(width, text);
      for (const std::string& line : LinesOf(text)) {
        CHECK(Columns(line) <= width);
        CHECK(Sanitize(line) == line);
      }
    }
  std::string ascii = Drawn(plain.timeline, plain.verdict, 100, false);
  const std::size_t rows = ascii.find("What followed");  // behind it stand the log's own words
  CHECK(std::ranges::all_of(ascii.substr(0, rows), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

TEST_CASE("lanes: nobody is known", "[unit][lanes]") {
  const Judged judged = JudgeText("");
  CHECK(Drawn(judged.timeline, judged.verdict, 80, true).find("nobody is known") != std::string::npos);
}

}  // namespace lanes_test
}  // namespace inquest
