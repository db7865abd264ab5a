// What a container runtime wrapped and cut: the text that it becomes, however it arrives, and what of it is removed.
#include "parsers/container_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "parsers/block.h"
#include "tests/catch.h"
#include "tests/support/container.h"
#include "tests/support/read_through.h"

namespace inquest {
namespace container_log_test {

struct Read {
  std::string text;
  Removed removed;
  std::uint64_t lines = 0;  ///< removed
  std::string Lines() const {
    std::string out;
    for (const auto& [line, count] : removed.lines) out += fmt::format("{}+{} ", line, count);
    return out;
  }
};

Read ReadAll(std::string_view input, std::size_t head, std::size_t room) {
  Read read;
  read.text = ReadThrough<ContainerReader>(input, head, room, [&](ContainerReader& reader) {
    const Removed removed = reader.TakeRemoved();
    for (const Removed::Lines& lines : removed.lines) {
      auto& all = read.removed.lines;
      if (all.empty() || all.back().line != lines.line) all.push_back({lines.line, 0});
      all.back().count += lines.count;
      read.lines += lines.count;
    }
    read.removed.claimed += removed.claimed;
    read.removed.damaged += removed.damaged;
  });
  const auto ends = [](std::string_view text) {
    return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  };
  CHECK(read.text.size() + read.removed.claimed + read.removed.damaged == input.size());
  CHECK(ends(read.text) + read.lines == ends(input));
  return read;
}

const std::string kTime = "2031-04-05T06:07:08.1Z ";
std::string Out(std::string_view rest) { return kTime + "stdout " + std::string(rest) + "\n"; }
std::string Err(std::string_view rest) { return kTime + "stderr " + std::string(rest) + "\n"; }
std::string Docker(std::string_view text, std::string_view stream = "stderr") {
  return fmt::format("{{\"log\":\"{}\",\"stream\":\"{}\",\"time\":\"2031-04-05T06:07:08.1Z\"}}\n", text, stream);
}

TEST_CASE("a line that a container runtime cut is whole again", "[unit][container]") {
  const std::string chunk(kDockerChunk, 'a'), short_of_it(kDockerChunk - 1, 'a');
  const struct Row {
    std::string input, text, removed;
  } rows[] = {
      {Err("P one ") + Err("P two ") + Err("F three") + Err("F four"), Err("P one two three") + Err("F four"), "1+2 "},
      // Two streams, each with a line of its own, and whole lines between.
      {Err("P one ") + Out("P uno ") + Out("F due") + Err("F two") + Out("F tre"),
       Err("P one two") + Out("P uno due") + Out("F tre"), "2+2 "},
      {Err("P one ") + Out("F uno") + "no runtime's\n" + Err("F two") + Out("F due"),
       Err("P one two") + Out("F uno") + "no runtime's\n" + Out("F due"), "3+1 "},
      // Parts of different streams are no line.
      {Err("P one ") + Out("P uno ") + Out("F due"), Err("P one ") + Out("P uno due"), "2+1 "},
      {Err("P:a:b one ") + Err("F:a:b two"), Err("P:a:b one two"), "1+1 "},
      {Err("P one\r") + Err("F "), Err("P one\r"), "1+1 "},
      // Words that only begin with the letter.
      {Err("F x") + Err("Part one") + Err("Full two"), Err("F x") + Err("Part one") + Err("Full two"), ""},
      // The input ends in the middle: of a line, of a part.
      {Err("P one ") + Err("P two"), Err("P one two"), "1+1 "},
      {Err("P one ") + kTime + "stderr F tw", Err("P one tw"), ""},
      {Err("F one") + kTime + "stderr P tw", Err("F one") + kTime + "stderr P tw", ""},
      {Docker("one \\\"1\\\" \\u003c\\u00e9\\ttwo\\n"), Err("F one \"1\" <\xc3\xa9\ttwo"), ""},
      {Docker(chunk) + Docker("uno\\n", "stdout") + Docker("two\\n") + Docker("three\\n"),
       Err("F " + chunk + "two") + Out("F uno") + Err("F three"), "2+1 "},
      // Docker cuts at 16 KiB and nowhere else: this is the end of a stream, and then the container was started again.
      {Docker(short_of_it) + Docker("two\\n"), Err("F " + short_of_it) + Err("F two"), ""},
      {Docker("one\\r\\n") + "{\"log\":\"tor\n", Err("F one") + "{\"log\":\"tor\n", ""},
      {"{\"log\":\"one\\n\",\"stream\":\"stderr\",\"attrs\":{\"tag\":\"a\"},\"time\":\"2031-04-05T06:07:08.1Z\"}\n",
       Err("F one"), ""},
      {Docker("one\\n") + "{\"log\":\"two\\n\",\"stream\":\"stderr\"}\n",
       Err("F one") + "{\"log\":\"two\\n\",\"stream\":\"stderr\"}\n", ""},
      {Docker("one\\ntwo\\n"), Docker("one\\ntwo\\n"), ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.input.substr(0, 200));
    for (const std::size_t room : {std::size_t{1}, std::size_t{100}, std::size_t{1} << 20})
      for (std::size_t head = 0; head <= std::min<std::size_t>(row.input.size(), 300); head += 7) {
        const Read read = ReadAll(row.input, head, room);
        CHECK(read.text == row.text);
        CHECK(read.Lines() == row.removed);
        CHECK(read.removed.damaged == 0);
      }
  }
}

TEST_CASE("what a container runtime wrote is known by a line near its head", "[unit][container]") {
  CHECK(IsContainerLog(Err("F x")));
  CHECK(IsContainerLog("==> 0.log <==\n2031-04-05T06:07:08.123456789+01:00 stdout P x\n"));
  CHECK(IsContainerLog(Docker("x\\n")));
  CHECK_FALSE(IsContainerLog(""));
  CHECK_FALSE(IsContainerLog("2031-04-05T06:07:08.1Z loss 2.5\n{\"log\":\"x\"}\n"));
  CHECK_FALSE(IsContainerLog("stdout F x\n"));
}

TEST_CASE("a line of parts is cut where any line is, and what follows it is read", "[unit][container]") {
  const std::string part(8000, 'x');
  std::string input = Err("F one");
  const std::string head = input;
  for (std::size_t size = 0; size < 3 * kLineCap; size += part.size()) input += Err("P " + part);
  input += Err("F end") + Err("F two");
  std::string first;
  for (const std::size_t room : {std::size_t{4096}, kLineCap, 4 * kLineCap}) {
    const Read read = ReadAll(input, room, room);
    CHECK(read.text.size() > head.size() + kLineCap);
    CHECK(read.text.size() < head.size() + kLineCap + 2 * part.size());
    CHECK(read.text.starts_with(head));
    CHECK(read.text.ends_with("x\n" + Err("F two")));
    CHECK(read.removed.damaged > kLineCap);
    if (first.empty()) first = read.text;
    CHECK(read.text == first);
  }
}

TEST_CASE("a progress bar that never ends its line is read to its end", "[unit][container]") {
  std::string input, bars;
  for (int i = 0; i < 40'000; ++i) {
    input += Err(fmt::format("P \r{}%|####|", i));
    bars += fmt::format("\r{}%|####|", i);
  }
  input += Err("F ");
  for (const std::size_t room : {std::size_t{4096}, 4 * kLineCap}) {
    const Read read = ReadAll(input, room, room);
    CHECK(read.removed.damaged == 0);
    std::string all;
    for (std::size_t at = 0, end = 0; at < read.text.size(); at = end + 1) {
      end = read.text.find('\n', at);
      CHECK(end - at < kLineCap + 100);
      all += read.text.substr(at + sizeof("2031-04-05T06:07:08.1Z stderr P ") - 1,
                              end - at - sizeof("2031-04-05T06:07:08.1Z stderr P ") + 1);
    }
    CHECK(all == bars);
  }
}

TEST_CASE("a line that goes on too late is given up", "[unit][container]") {
  for (const bool late : {false, true}) {
    std::string input = Err("P one "), between;
    while (between.size() < (late ? 1100u : 900u) * 1024) between += Out("F uno");
    input += between + Err("F two");
    for (const std::size_t room : {std::size_t{1000}, std::size_t{100'000}}) {
      const Read read = ReadAll(input, room, room);
      CHECK(read.text == (late ? input : Err("P one two") + between));
    }
  }
}

TEST_CASE("two streams whose lines are always open keep their places", "[unit][container]") {
  std::mt19937 random(20310405);
  std::vector<std::string> lines;
  for (int i = 0; i < 3000; ++i) lines.push_back(fmt::format("line {} {}", i, std::string(random() % 3000, 'y')));
  for (const std::size_t chunk : {std::size_t{1} << 20, std::size_t{700}, std::size_t{100}}) {
    const Wrapped wrapped = Wrap(lines, Runtime::kCri, chunk, random);
    std::string text = ReadAll(wrapped.cut, 300'000, 70'000).text;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) text[text.find(" std", at) + 8] = 'F';
    CHECK(text == wrapped.whole);
  }
}

}  // namespace container_log_test
}  // namespace inquest
