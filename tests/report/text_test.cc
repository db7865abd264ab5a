// The text report: one screen, sanitised, ranks folded, commands whole.
#include <algorithm>

#include "replay/infer.h"
#include "report/report.h"
#include "report/terminal.h"
#include "tests/catch.h"
#include "tests/support/sample_verdict.h"

using namespace inquest;

namespace text_test {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

constexpr const char* kReplay = "inquest replay --op all-reduce --count 253440000 --ranks 64";

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("sanitised text holds nothing that a terminal obeys or hides", "[unit][report]") {
  struct Row {
    std::string name, in, out;
  };
  const Row rows[] = {
      {"plain", "abc", "abc"},
      {"colour", "a\x1b[1;31mb\x1b[0mc", "abc"},
      {"unfinished colour", "a\x1b[1;3", "a"},
      {"lone escape", "a\x1b", "a"},
      {"hyperlink", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
      {"title, ended by BEL", "\x1b]0;mine\arest", "rest"},
      {"an unfinished string hides nothing", "\x1b]0;secret rest", "0;secret rest"},
      {"device control", "\x1bP1$r\x1b\\x", "x"},
      {"character set", "\x1b(0lq", "lq"},
      {"C1 control sequence",
       "a\xc2\x9b"
       "31mb",
       "ab"},
      {"C1 string",
       "a\xc2\x9d"
       "0;t\xc2\x9c"
       "b",
       "ab"},
      {"bytes of no UTF-8", "a\xff\xc3(b", "a\xef\xbf\xbd\xef\xbf\xbd(b"},
      {"overlong", "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"surrogate", "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
      {"right-to-left override",
       "a\xe2\x80\xae"
       "b",
       "ab"},
      {"zero-width space and byte-order mark",
       "a\xe2\x80\x8b\xef\xbb\xbf"
       "b",
       "ab"},
      {"tag characters",
       "a\xf3\xa0\x81\x81"
       "b",
       "ab"},
      {"line and tab", "a\tb\nc\rd", "a b c d"},
      {"letters stay", "ünï 漢字 \xf0\x9f\x92\xa5", "ünï 漢字 \xf0\x9f\x92\xa5"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(Sanitize(row.in) == row.out);
    CHECK(Sanitize(Sanitize(row.in)) == Sanitize(row.in));
  }
  CHECK(Sanitize(std::string("a\0b", 3)) == "ab");
}

TEST_CASE("text is cut and wrapped by columns", "[unit][report]") {
  CHECK(Columns("漢字a") == 5);
  CHECK(Columns("e\xcc\x81") == 1);
  CHECK(Cut("abcdef", 6) == "abcdef");
  CHECK(Cut("abcdefg", 6) == "abcde…");
  CHECK(Cut("漢字漢字", 6) == "漢字…");
  CHECK(Wrap("one two three", 8, 9) == std::vector<std::string>{"one two", "three"});
  CHECK(Wrap("onelongword x", 5, 9) == std::vector<std::string>{"onelo", "ngwor", "d x"});
  CHECK(Wrap("one two three four", 8, 2) == std::vector<std::string>{"one two", "three f…"});
  CHECK(Wrap("", 8, 2) == std::vector<std::string>{""});
}

TEST_CASE("the report says cause, culprit, evidence, ranks and what to type", "[unit][report]") {
  Sample sample = MakeSample();
  sample.verdict.replay_helps = true;
  const std::string text = RenderText(
      sample.timeline, sample.verdict,
      {.text = {.color = Color::kNever, .width = 100, .whole = true}, .tool_version = "0", .replay_command = kReplay});
  CAPTURE(text);
  for (const std::string_view part :
       {"FAILED  gpu-fault: GPU hardware fault (confidence 93 %)",
        "Culprit  rank 28 on node07 (pid 2028, GPU 4, 0000:4e:00.0): its GPU fell off the bus",
        "Restart  yes, on other nodes", "node07-kern.log:212", "job.log:31",
        "0-27, 29-63 waiting in ALLREDUCE #4410 since 12:01:05", "28 never entered it; last seen in ALLREDUCE #4409",
        "node07# nvidia-smi --gpu-reset -i 0000:4e:00.0", "nvidia-smi -q of the host",
        "$ inquest replay --op all-reduce --count 253440000 --ranks 64",
        "pcie-fault (20 %): a bad riser looks the same", "Read 2 files, 4.9 KiB, 49 lines; 10 B damaged."}) {
    CAPTURE(part);
    CHECK(Has(text, part));
  }
  CHECK(Has(text,
            "  job.log:31           12:11:05  rank 3   …Watchdog caught collective operation timeout: WorkNCCL(S…\n"));
  CHECK(Lines(text).size() <= 40);
  for (const std::string& line : Lines(text)) CHECK(Columns(line) <= 100);
  CHECK_FALSE(Has(text, "\x1b"));
}

TEST_CASE("a report fits one screen, and says that there is more", "[unit][report]") {
  Sample sample = MakeSample();
  sample.verdict.replay_helps = true;
  Remedy long_one = sample.verdict.remedies[0];
  for (int i = 0; i < 300; ++i) long_one.text += " and look";
  sample.verdict.remedies.push_back(long_one);
  for (const int width : {80, 120}) {
    const auto render = [&](bool whole) {
      return RenderText(sample.timeline, sample.verdict,
                        {.text = {.color = Color::kNever, .width = width, .whole = whole},
                         .tool_version = "0",
                         .replay_command = kReplay});
    };
    const std::string brief = render(false), whole = render(true);
    CAPTURE(brief, whole);
    int rows = 0;  // of a terminal, where a long command goes on in the next one
    for (const std::string& line : Lines(brief)) rows += std::max(1, (Columns(line) + width - 1) / width);
    CHECK(rows <= 24);
    CHECK(brief.ends_with("; -v shows the rest.\n"));
    CHECK(whole.ends_with("damaged.\n"));
    for (const char* const part : {"FAILED", "Culprit", "Restart", "Evidence", "What to do", "Collect next"}) {
      CHECK(Has(brief, part));
      CHECK(Has(whole, part));
    }
    CHECK_FALSE(Has(brief, "and look and look"));
    std::string unwrapped = whole;  // advice is never cut
    for (std::size_t at = unwrapped.find('\n'); at != std::string::npos; at = unwrapped.find('\n', at))
      unwrapped.replace(at, std::min(unwrapped.find_first_not_of(" \n", at), unwrapped.size()) - at, " ");
    CHECK(Has(unwrapped, long_one.text));
  }
}

TEST_CASE("how sure the verdict is, and when a symptom came, are never cut away", "[unit][report]") {
  Sample sample = MakeSample();
  sample.verdict.title = "Ranks called different collectives in one process group of many";
  Finding told;
  told.rule = "told";
  told.claim = "A launcher ended the remaining workers after another one of them had failed";
  told.citations = {sample.verdict.evidence[1]};
  told.times = 7;
  sample.verdict.findings.push_back(told);
  sample.verdict.evidence[0].where.input = 0;
  sample.timeline.inputs[0].path = "a-folder-with-a-long-name/of-a-job.log";  // a row of its own
  sample.verdict.evidence[0].at = std::nullopt;
  sample.verdict.evidence[0].rank = std::nullopt;
  const std::string text =
      RenderText(sample.timeline, sample.verdict,
                 {.text = {.color = Color::kNever, .width = 80, .whole = true}, .tool_version = "0"});
  CAPTURE(text);
  CHECK(Lines(text)[0].ends_with(" (93 %)"));
  CHECK(Has(text, "  7 x A launcher ended the remaining workers after another one …, first 12:11:05\n"));
  for (const std::string& line : Lines(text)) CHECK_FALSE(line.ends_with(' '));
}

TEST_CASE("whether to start again is said however many are blamed, and hosts of one blame are one row",
          "[unit][report]") {
  Sample sample = MakeSample();
  const auto text = [&](bool whole) {
    return RenderText(
        sample.timeline, sample.verdict,
        {.text = {.color = Color::kNever, .width = 80, .whole = whole}, .tool_version = "0", .replay_command = {}});
  };
  const Culprit first = sample.verdict.culprits.front();
  for (int i = 0; i < 30; ++i) {
    sample.verdict.culprits.push_back(first);
    sample.verdict.culprits.back().why = "another reason " + std::to_string(i);
  }
  CHECK(Has(text(false), "\nRestart  yes, on other nodes"));
  CHECK_FALSE(Has(text(false), "\n\nRestart"));
  sample.verdict.culprits.clear();
  CHECK(Has(text(false), "\n\nRestart  yes, on other nodes"));
  CHECK(Has(text(true), "\n\nRestart  yes, on other nodes"));
  for (const char* const host : {"node07", "node08"}) {
    Culprit alone;
    alone.host = host;
    alone.why = "took docker0";
    sample.verdict.culprits.push_back(alone);
  }
  CHECK(Has(text(false), "\nCulprit  hosts node07, node08: took docker0\nRestart  "));
}

TEST_CASE("what stands on several days has its date", "[unit][report]") {
  Sample sample = MakeSample();
  const auto text = [&] {
    return RenderText(sample.timeline, sample.verdict,
                      {.text = {.color = Color::kNever, .width = 100}, .tool_version = "0"});
  };
  CHECK_FALSE(Has(text(), "2031-04-05 12:11:05"));
  sample.verdict.evidence[1].at->at += std::chrono::hours(24);
  CHECK(Has(text(), "2031-04-05 12:11:05"));
  CHECK(Has(text(), "2031-04-06 12:11:05"));
}

TEST_CASE("colour is added only where asked for, and changes no word", "[unit][report]") {
  const Sample sample = MakeSample();
  const std::string plain =
      RenderText(sample.timeline, sample.verdict,
                 {.text = {.color = Color::kNever, .width = 100}, .tool_version = "0", .replay_command = kReplay});
  const std::string colored =
      RenderText(sample.timeline, sample.verdict,
                 {.text = {.color = Color::kAlways, .width = 100}, .tool_version = "0", .replay_command = kReplay});
  CHECK(Has(colored, "\x1b[1;31mFAILED\x1b[0m"));
  std::vector<std::string> stripped;
  for (const std::string& line : Lines(colored)) stripped.push_back(Sanitize(line));
  CHECK(stripped == Lines(plain));
}

TEST_CASE("an undecided verdict says so and leads with what to collect", "[unit][report]") {
  Sample sample = MakeSample();
  sample.verdict.outcome = Outcome::kUndecided;
  sample.verdict.cause = "unknown";
  sample.verdict.title = "Not decided by the evidence";
  sample.verdict.replay_helps = true;
  sample.verdict.culprits.clear();
  const std::string text =
      RenderText(sample.timeline, sample.verdict, {.text = {}, .tool_version = "0", .replay_command = kReplay});
  CAPTURE(text);
  CHECK(text.starts_with("UNDECIDED  Not decided by the evidence\n"));
  REQUIRE(Has(text, "Collect this"));
  CHECK(text.find("Collect this") < text.find("Candidates"));
  CHECK(text.find("Candidates") < text.find("Evidence"));
  CHECK_FALSE(Has(text, "nvidia-smi --gpu-reset"));
  CHECK(Has(text, "inquest replay"));
}

TEST_CASE("a healthy verdict is short", "[unit][report]") {
  Sample sample = MakeSample();
  sample.verdict = {.outcome = Outcome::kHealthy,
                    .cause = "healthy",
                    .title = "The job ended well",
                    .summary = "All 64 ranks ended well.",
                    .confidence = 0.9,
                    .rule = {},
                    .culprits = {},
                    .collective = {},
                    .evidence = {},
                    .remedies = {},
                    .collect_next = {},
                    .warnings = {},
                    .retry = Retry::kNo,
                    .fingerprint = {},
                    .replay_helps = false,
                    .exclude_hosts = {},
                    .alternatives = {},
                    .findings = {},
                    .attempts = {},
                    .lifelines = {}};
  sample.timeline.ranks.clear();
  const std::string text = RenderText(sample.timeline, sample.verdict, {});
  CAPTURE(text);
  CHECK(text.starts_with("HEALTHY  The job ended well (confidence 90 %)\nAll 64 ranks ended well.\n"));
  CHECK(Lines(text).size() <= 5);
}

TEST_CASE("hostile log text harms neither terminal nor shell", "[unit][report]") {
  const Sample sample = MakeHostileSample();
  const std::string command_line = CommandLine(PlanFrom(sample.timeline, {.collective = *sample.verdict.collective}));
  const std::string text =
      RenderText(sample.timeline, sample.verdict,
                 {.text = {.color = Color::kNever, .width = 100}, .tool_version = "0", .replay_command = command_line});
  CAPTURE(text);
  CHECK(Lines(text).size() <= 45);
  for (const std::string& line : Lines(text)) {
    CHECK(Sanitize(line) == line);
    const std::size_t command = line.find("$ ");
    if (command != std::string::npos && line.find_first_not_of(' ') == command) CHECK_FALSE(Has(line, "rm -rf"));
  }
  CHECK_FALSE(Has(text, "inquest replay"));  // the operation is none that we know
}

TEST_CASE("hundreds of culprits, lines and states still fit one screen", "[unit][report]") {
  Sample sample = MakeSample();
  for (int i = 0; i < 300; ++i) {
    sample.verdict.culprits.push_back(
        {.rank = {}, .host = "node" + std::to_string(i), .pid = {}, .gpu_index = {}, .bus_id = {}, .why = "same"});
    sample.verdict.evidence.push_back(sample.verdict.evidence[1]);
    sample.verdict.remedies.push_back(sample.verdict.remedies[0]);
    sample.verdict.collect_next.push_back("more");
    sample.verdict.alternatives.push_back(sample.verdict.alternatives[0]);
    sample.timeline.ranks[static_cast<std::size_t>(i % 64)].final_state = "exited with " + std::to_string(i);
  }
  const std::string text =
      RenderText(sample.timeline, sample.verdict,
                 {.text = {.color = Color::kNever, .width = 80}, .tool_version = "0", .replay_command = kReplay});
  CAPTURE(text);
  CHECK(Lines(text).size() <= 60);
}

}  // namespace text_test
