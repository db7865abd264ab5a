// What was done to all lines of a log after it was written: found, undone, and every byte accounted for; and logs to
// which nothing was done.
#include "parsers/restored_log.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include "parsers/envelope.h"

#include "tests/catch.h"

namespace inquest {
namespace restoration_test {

struct Read {
  std::string text;
  std::uint64_t removed = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> lines;
};

/// As it is read with a head and rooms of these sizes; nullopt: nothing was found to be done to it.
std::optional<Read> Restored(std::string_view bytes, std::size_t head, std::size_t room) {
  std::string_view rest = bytes.substr(std::min(head, bytes.size()));
  auto restoration = Restoration::Find(bytes, true);
  if (!restoration) return std::nullopt;
  RestoredReader reader(std::move(*restoration), std::string(bytes.substr(0, head)), rest.empty(),
                        [&](char* to, std::size_t most) {
                          const std::size_t got = rest.copy(to, most);
                          rest.remove_prefix(got);
                          return got;
                        });
  Read out;
  std::string part(room, '\0');
  while (true) {
    const std::size_t got = reader.Fill(part.data(), room);
    out.text.append(part, 0, got);
    const Removed removed = reader.TakeRemoved();
    out.removed += removed.claimed;
    for (const Removed::Lines& lines : removed.lines) out.lines.emplace_back(lines.line, lines.count);
    if (got < room) return out;
  }
}

const std::string kLog =
    "loading shards\n"
    "[rank1]: Traceback (most recent call last):\n"
    "[rank1]:   File \"/srv/train.py\", line 88, in step\n"
    "[rank1]:     loss.backward()\n"
    "[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
    "node07:4123:4177 [1] NCCL INFO comm 0x55 rank 1 nranks 8 cudaDev 1 busId 4e000 - Abort COMPLETE\n"
    "3 of 8 done\n"
    "4 of 8 done\n";

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

template <class Change>
std::string Each(Change change) {
  std::string out;
  std::size_t number = 0;
  for (const std::string& line : Lines(kLog)) out += change(++number, line) + "\n";
  return out;
}

/// Without what Peel() takes off again.
std::string WithoutHeads(std::string_view text) {
  std::string out;
  for (const std::string& line : Lines(text))
    out += (line.starts_with(kRestoredHead) ? line.substr(line.find(kRestoredHead, 1) + 1) : line) + "\n";
  return out;
}

TEST_CASE("what stands in front of every line is taken off", "[restoration]") {
  const auto number = [](std::size_t n) { return std::to_string(n); };
  const std::pair<const char*, std::string> kRows[] = {
      {"grep -n", Each([&](std::size_t n, const std::string& line) { return number(n) + ":" + line; })},
      {"grep -n -C",
       Each([&](std::size_t n, const std::string& line) { return number(n) + (n == 5 ? ":" : "-") + line; })},
      {"grep -Hn",
       Each([&](std::size_t n, const std::string& line) { return "logs/job.out:" + number(n) + ":" + line; })},
      {"grep -H", Each([&](std::size_t, const std::string& line) { return "logs/job.out:" + line; })},
      {"cat -n", Each([&](std::size_t n, const std::string& line) { return "     " + number(n) + "\t" + line; })},
      {"numbers in a column",
       Each([&](std::size_t n, const std::string& line) { return "  " + number(n) + " | " + line; })},
      {"stern", Each([&](std::size_t, const std::string& line) { return "trainer-0 pytorch " + line; })},
      {"stern, another template",
       Each([&](std::size_t, const std::string& line) { return "trainer-0 pytorch | " + line; })},
      {"kubetail", Each([&](std::size_t, const std::string& line) { return "[trainer-0] " + line; })},
      {"arrow", Each([&](std::size_t, const std::string& line) { return "node07> " + line; })},
      {"GitLab", Each([&](std::size_t n, const std::string& line) {
         return "2031-04-05T06:07:0" + number(n) + ".000000Z 01O " + line;
       })},
      {"Jenkins", Each([&](std::size_t n, const std::string& line) {
         return "[2031-04-05T06:07:0" + number(n) + ".000Z] " + line;
       })},
      {"ts", Each([&](std::size_t n, const std::string& line) { return "Apr  5 06:07:0" + number(n) + " " + line; })},
      {"syslog", Each([&](std::size_t n, const std::string& line) {
         return "Apr  5 06:07:0" + number(n) + " node07 train.sh[41]: " + line;
       })},
      {"RFC 5424", Each([&](std::size_t n, const std::string& line) {
         return "<14>1 2031-04-05T06:07:0" + number(n) + "Z node07 train 41 - - " + line;
       })},
      {"CloudWatch, tail", Each([&](std::size_t n, const std::string& line) {
         return "2031-04-05T06:07:0" + number(n) + "+00:00 pytorch/trainer/4f1e " + line;
       })},
      {"quoted", Each([&](std::size_t, const std::string& line) { return "> " + line; })},
      {"indented", Each([&](std::size_t, const std::string& line) { return "    " + line; })},
      {"quoted, of grep -n",
       Each([&](std::size_t n, const std::string& line) { return "> " + number(n) + ":" + line; })},
  };
  for (const auto& [name, text] : kRows) {
    CAPTURE(name);
    const auto whole = Restored(text, text.size(), 1 << 20);
    REQUIRE(whole);
    CHECK(WithoutHeads(whole->text) == kLog);
    CHECK(whole->text.size() + whole->removed == text.size());
    CHECK(whole->lines.empty());
    for (const std::size_t room : {1U, 7U, 64U}) CHECK(Restored(text, 11, room)->text == whole->text);
  }
}

TEST_CASE("objects of collectors become the lines in them", "[restoration]") {
  const auto quoted = [](const std::string& line) {
    std::string out;
    for (const char c : line) out += c == '"' ? std::string("\\\"") : std::string(1, c);
    return out;
  };
  const std::pair<const char*, std::string> kRows[] = {
      {"fluent-bit", Each([&](std::size_t n, const std::string& line) {
         return R"({"@timestamp":"2031-04-05T06:07:0)" + std::to_string(n) + R"(Z","log":")" + quoted(line) +
                R"(\n","stream":"stderr","kubernetes":{"pod_name":"trainer-0","host":"node07"}})";
       })},
      {"Loki", Each([&](std::size_t n, const std::string& line) {
         return R"({"labels":{"pod":"trainer-0"},"line":")" + quoted(line) + R"(","timestamp":"2031-04-05T06:07:0)" +
                std::to_string(n) + R"(Z"})";
       })},
      {"CloudWatch", Each([&](std::size_t n, const std::string& line) {
         return R"({"timestamp":193311882)" + std::to_string(n) + R"(000,"message":")" + quoted(line) + R"("})";
       })},
      {"Elasticsearch", Each([&](std::size_t, const std::string& line) {
         return R"({"_index":"f","_source":{"@timestamp":"2031-04-05T06:07:08Z","message":")" + quoted(line) + R"("}})";
       })},
  };
  std::string scratch;
  for (const auto& [name, text] : kRows) {
    CAPTURE(name);
    const auto whole = Restored(text, text.size(), 1 << 20);
    REQUIRE(whole);
    CHECK(WithoutHeads(whole->text) == kLog);
    CHECK(whole->text.size() + whole->removed == text.size());
    CHECK(Peel(Lines(whole->text)[0], scratch).at.has_value());
    CHECK(Restored(text, 11, 7)->text == whole->text);
  }
}

TEST_CASE("an array of a collector's entries becomes the lines in them, where they stood", "[restoration]") {
  std::string text = "{\n    \"events\": [\n";
  for (const std::string& line : Lines("one\ntwo\nthree\n"))
    text +=
        "        {\n            \"timestamp\": 1933118828000,\n            \"message\": \"" + line + "\"\n        },\n";
  const auto read = Restored(text, text.size(), 4096);
  REQUIRE(read);
  CHECK(read->text == "one\ntwo\nthree\n");
  CHECK(read->lines == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 4}, {1, 3}, {2, 3}, {3, 1}});
  CHECK(read->text.size() + read->removed == text.size());
}

TEST_CASE("hosts and writers are told apart where there are several", "[restoration]") {
  std::string text;
  std::size_t number = 0;
  for (const std::string& line : Lines(kLog + kLog))
    text += R"({"kubernetes":{"pod_name":"trainer-)" + std::to_string(++number % 2) +
            R"("},"time":"2031-04-05T06:07:08Z","message":"step )" + std::to_string(line.size()) + "\"}\n";
  const auto read = Restored(text, text.size(), 4096);
  REQUIRE(read);
  std::string scratch;
  const Peeled first = Peel(Lines(read->text)[0], scratch);
  REQUIRE(first.origin.host);
  CHECK(first.origin.host->value == "trainer-1");
}

TEST_CASE("lines cut at a width are joined, and counted", "[restoration]") {
  for (const std::size_t width : {80U, 120U}) {
    std::string text;
    std::vector<std::string> pieces;
    std::string log = kLog;
    for (int i = 0; i < 4; ++i)
      log +=
          "node07:4123:4177 [1] NCCL INFO comm 0x55 rank 1 nranks 8 cudaDev 1 busId 4e000 - Abort COMPLETE, and some "
          "words more than fit in a line of a terminal " +
          std::to_string(i) + "\n";
    for (const std::string& line : Lines(log))
      for (std::size_t at = 0; at < std::max<std::size_t>(line.size(), 1); at += width)
        text += line.substr(at, width) + "\n";
    const auto read = Restored(text, text.size(), 4096);
    CAPTURE(width);
    REQUIRE(read);
    CHECK(read->text == log);
    CHECK(read->text.size() + read->removed == text.size());
    std::uint64_t dropped = 0;
    for (const auto& [line, count] : read->lines) dropped += count;
    CHECK(dropped == Lines(text).size() - Lines(log).size());
    CHECK(Restored(text, 11, 7)->text == log);
  }
}

TEST_CASE("a log as it was printed is left alone", "[restoration]") {
  std::string labels, records, logging, table, padded, kernel, docker, data, steps;
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i), two = std::to_string(10 + i);
    labels += n + ": loading shard " + two + "\n";
    records += R"({"time":"2031-04-05T06:07:)" + two + R"(Z","level":"info","message":"step","loss":2.1})" + "\n";
    logging += "2031-04-05 06:07:" + two + ",123 INFO trainer: step " + two + "\n";
    table += "| " + two + " " + std::string(74, 'x') + " |\n";
    padded +=
        fmt::format("{:<30}{:<20}{:>30}\n", std::string(1, "qwertyuiopas"[i]) + "_proj.weight", "bfloat16", 4096 + i);
    kernel += "[Sat Apr  5 06:07:" + two + " 2031] NVRM: Xid (PCI:0000:4e:00): 79, GPU has fallen off the bus.\n";
    docker += R"({"log":"step )" + two + R"(\n","stream":"stdout","time":"2031-04-05T06:07:)" + two + "Z\"}\n";
    data += R"({"role":"user","message":"RuntimeError: CUDA out of memory, why?","id":)" + two + "}\n";
    steps += "step " + std::to_string(100 + i) +
             " loss 2.41 grad norm 0.8 samples/s 12.2 tokens 4021144 lr 3.00e-04 mem 70.1 GB eta 1:02:03\n";
  }
  const std::pair<const char*, std::string> kRows[] = {
      {"as it was printed", kLog},  {"srun -l", labels}, {"a program's records", records},
      {"logging", logging},         {"a table", table},  {"a table that is padded", padded},
      {"the kernel's log", kernel}, {"docker", docker},  {"lines of one length", steps}};
  for (const auto& [name, text] : kRows) {
    CAPTURE(name);
    CHECK(!Restoration::Find(text, true));
  }
  const auto read = Restored(data, data.size(), 4096);
  REQUIRE(read);
  CHECK(read->text.empty());  // what data quotes is no log
  CHECK(read->removed == data.size());
}

TEST_CASE("escape sequences are taken out whole", "[restoration]") {
  struct Row {
    const char* line;
    EscapeSpelling spelling;
    const char* expected;
  };
  const Row kRows[] = {
      {"\x1b[31mred\x1b[0m", EscapeSpelling::kByte, "red"},
      {"out of \x1b[01;31m\x1b[Kmemory\x1b[m\x1b[K", EscapeSpelling::kByte, "out of memory"},
      {"\x1b[38:2::1:2:3mrank\x1b[m", EscapeSpelling::kByte, "rank"},
      {"\x1b]0;train\x07step", EscapeSpelling::kByte, "step"},
      {"\x1b]8;;file:///a\x1b\\a\x1b]8;;\x1b\\ b", EscapeSpelling::kByte, "a b"},
      {"\x1b(B\x1b[?25lstep\x1b=", EscapeSpelling::kByte, "step"},
      {"cut \x1b[3", EscapeSpelling::kByte, "cut "},
      {"cut \x1b", EscapeSpelling::kByte, "cut "},
      {"^[[31mred^[[0m [^]", EscapeSpelling::kCaret, "red [^]"},
      {"#033[31mred#033[0m#011x #03", EscapeSpelling::kOctal, "red\tx #03"},
      {"\\x1b[31mred\\033[0m", EscapeSpelling::kSlash, "red"},
      {"[31mred[0m [3/8] [m]", EscapeSpelling::kGone, "red [3/8] ]"},
      {"\x9b"
       "31mred\x9bm",
       EscapeSpelling::kC1, "red"},
      {"[rank3] 100%", EscapeSpelling::kGone, "[rank3] 100%"},
      {"dense_0 [missing ranks: 0]", EscapeSpelling::kGone, "dense_0 [missing ranks: 0]"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.line);
    std::string out;
    AppendWithoutEscapes(row.line, row.spelling, out);
    CHECK(out == row.expected);
  }
}

}  // namespace restoration_test
}  // namespace inquest
