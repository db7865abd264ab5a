// The filter against a plain search, for literals of all lengths at all places.
#include "search/window_filter.h"

#include <algorithm>
#include <random>

#include "tests/catch.h"

using namespace inquest;

namespace window_filter_test {

using Lines = std::vector<std::pair<std::size_t, std::size_t>>;

WindowFilter FilterOf(const std::vector<std::string>& literals, Code code) {
  std::vector<WindowFilter::Literal> planned;
  for (const std::string& literal : literals) planned.push_back({Fold(literal), RarestWindows(Fold(literal))});
  return WindowFilter(planned, code);
}

Lines Found(const WindowFilter& filter, std::string_view block) {
  std::vector<WindowFilter::Line> lines;
  filter.FindLines(block, lines);
  Lines out;
  for (const WindowFilter::Line& line : lines) out.emplace_back(line.begin, line.end);
  return out;
}

Lines PlainlyFound(const std::vector<std::string>& literals, std::string_view block) {
  Lines out;
  for (std::size_t begin = 0; begin < block.size();) {
    const std::size_t end = std::min(block.find_first_of("\r\n", begin), block.size());
    const std::string line = Fold(block.substr(begin, end - begin));
    if (std::any_of(literals.begin(), literals.end(),
                    [&](const std::string& literal) { return line.find(Fold(literal)) != std::string::npos; }))
      out.emplace_back(begin, end);
    begin = end + 1;
  }
  return out;
}

const Code kCodes[] = {BestCode(), Code::kPortable};

TEST_CASE("a literal is found wherever it stands in a block of any size", "[rules]") {
  const std::vector<std::string> literals = {"zsh: ", "Killed", "Aborted", "bus error", "Floating point exception"};
  for (const Code code : kCodes) {
    const WindowFilter filter = FilterOf(literals, code);
    for (const std::string& literal : literals)
      for (std::size_t before = 0; before < 70; ++before)
        for (std::size_t behind = 0; behind < 40; ++behind) {
          const std::string block = std::string(before, '.') + literal + std::string(behind, '.');
          if (Found(filter, block) == Lines{{0, block.size()}}) continue;
          CAPTURE(literal, before, behind);
          FAIL("not found");
        }
  }
}

TEST_CASE("a found line is the literal's own, ended by either line end", "[rules]") {
  const std::vector<std::string> literals = {"Killed", "a longer one"};
  for (const Code code : kCodes) {
    const WindowFilter filter = FilterOf(literals, code);
    CHECK(Found(filter, "").empty());
    CHECK(Found(filter, "Kil\nled Kil\rled").empty());
    CHECK(Found(filter, "Killed\nKilled\r\nKilled") == Lines{{0, 6}, {7, 13}, {15, 21}});
    CHECK(Found(filter, "x\rkilled, KILLED\ra LONGER one\n\n") == Lines{{2, 16}, {17, 29}});
    CHECK(Found(FilterOf({}, code), "Killed").empty());
  }
}

TEST_CASE("random literals in random lines: all that a plain search finds, and nothing else", "[rules]") {
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random()) % limit; };
  const auto text = [&](std::size_t size) {
    std::string out;
    for (; size > 0; --size) out += "abAB cd\xc3\xe9"[below(9)];
    return out;
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> literals;
    for (std::size_t i = 1 + below(40); i > 0; --i) literals.push_back(text(kShortestLiteral + below(14)));
    std::string block;
    for (std::size_t line = below(400); line > 0; --line) {
      block += text(below(60));
      if (below(4) == 0) block += literals[below(literals.size())] + text(below(12));
      block += "\n\n\r"[below(3)];
    }
    block.resize(block.size() - below(block.size() + 1) / 8);
    CAPTURE(round, literals, block.size());
    for (const Code code : kCodes) CHECK(Found(FilterOf(literals, code), block) == PlainlyFound(literals, block));
  }
}

TEST_CASE("a block of many chunks", "[rules]") {
  const std::vector<std::string> literals = {"Segmentation fault", "srun: "};
  std::string block;
  for (int i = 0; i < 30000; ++i) block += i % 997 == 0 ? "srun: a task\n" : "step 12 loss 3.4567\n";
  for (const Code code : kCodes) CHECK(Found(FilterOf(literals, code), block) == PlainlyFound(literals, block));
}

}  // namespace window_filter_test
