// The comment: nothing in it that a log wrote is markup, names somebody or links anywhere; it is short, and whole.
#include "report/markdown_text.h"
#include "report/report.h"
#include "tests/catch.h"
#include "tests/support/sample_verdict.h"

using namespace inquest;

namespace markdown_test {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string Render(const Sample& sample) {
  return RenderMarkdown(sample.timeline, sample.verdict,
                        {.text = {}, .tool_version = "1.2.3", .replay_command = "inquest replay --ranks 64"});
}

TEST_CASE("running text of a log is text of a comment and nothing else", "[unit][report]") {
  struct Row {
    std::string name, in, out;
  };
  const Row rows[] = {
      {"plain", "rank 5 on node07: 95 % (12:11:05), 0000:5d:00.0", "rank 5 on node07: 95 % (12:11:05), 0000:5d:00.0"},
      {"mention", "cc @octo-org/all a@b.example", "cc @&#8203;octo-org/all a@&#8203;b.example"},
      {"issues", "ALLREDUCE #4410 o/r#1 GH-26 !7 %8 ~9 &10 $11",
       "ALLREDUCE #&#8203;4410 o/r#&#8203;1 GH-&#8203;26 !&#8203;7 %&#8203;8 \\~&#8203;9 &amp;&#8203;10 "
       "<span>$</span>11"},
      {"links", "http://x.example WWW.x.example [a](b) ![c](d) <http://e>",
       "http:&#8203;//x.example W&#8203;WW.x.example \\[a\\](b) !\\[c\\](d) &lt;http:&#8203;//e&gt;"},
      {"markup", "**a** _b_ `c` ~~d~~ \\ <b>&amp;",
       "\\*\\*a\\*\\* \\_b\\_ \\`c\\` \\~\\~&#8203;d\\~\\~ \\\\ &lt;b&gt;&amp;&#8203;amp;"},
      {"emoji", "done :tada: std::string", "done :&#8203;tada: std::string"},
      {"list", "- a", "&#8203;- a"},
      {"numbered list", "1. a", "&#8203;1. a"},
      {"a number", "7.9 KiB", "7.9 KiB"},
      {"heading", "# a", "&#8203;# a"},
      {"quick action", "/close", "&#8203;/close"},
      {"lines and colour", "a\n\n/close \x1b[31mred\x1b[0m", "a  /close red"},
      {"direction",
       "a\xe2\x80\xae"
       "b",
       "ab"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(EscapeMarkdown(row.in) == row.out);
  }
}

TEST_CASE("what is quoted stands in a span or a fence that nothing in it ends", "[unit][report]") {
  CHECK(CodeSpan("job.log:3") == "`job.log:3`");
  CHECK(CodeSpan("a `b` ``c``") == "``` a `b` ``c`` ```");
  CHECK(CodeSpan("") == "` `");
  CHECK(CodeSpan("a\nb\xe2\x80\xae") ==
        "`a\xe2\x90\x8a"
        "b<U+202E>`");
  CHECK(Fenced("x", "text", "  ") == "  ```text\n  x\n  ```\n");
  CHECK(Fenced("```\n````", "", "") == "`````\n```\xe2\x90\x8a````\n`````\n");
}

TEST_CASE("a comment says what the text does, with commands to copy", "[unit][report]") {
  const std::string comment = Render(MakeSample());
  CAPTURE(comment);
  for (const std::string_view part :
       {"<!-- inquest: gpu-fault - -->\n\n### FAILED: GPU hardware fault\n\n`gpu-fault`, 93 % sure. Restart: yes, on "
        "other "
        "nodes; keep the culprit out.\n\nGPU 0000:4e:00 of node07 fell off the bus",
        "**Culprit**\n\n- **rank 28 on node07 (pid 2028, GPU 4, 0000:4e:00.0)**: its GPU fell off the bus\n\n",
        "- `node07-kern.log:212`, 2031-04-05T12:11:05Z, rank 28, **first cause**\n  ```text\n  NVRM: Xid "
        "(PCI:0000:4e:00): "
        "79, pid=2113, GPU has fallen off the bus.\n  ```\n- `job.log:31`, 2031-04-05T12:11:05Z, rank 3\n",
        "1. Drain the node, run the job elsewhere, then reset the GPU.\n\n    on node07, as root; takes away what "
        "others may "
        "still use: look first:\n\n    ```sh\n    nvidia-smi --gpu-reset -i 0000:4e:00.0\n    ```\n",
        "**Collect next, if that does not settle it**\n\n- nvidia-smi -q of the host\n\n",
        "- `pcie-fault` (20 %): a bad riser looks the same\n",
        "<details><summary>Read 2 files, 4.9 KiB, 49 lines; 10 B damaged</summary>\n\n- `job.log`: 4.0 KiB, 40 "
        "lines\n- `node07-kern.log`: ",
        "\n\n</details>\n\n<sub>inquest 1.2.3</sub>\n"}) {
    CAPTURE(part);
    CHECK(Has(comment, part));
  }
}

TEST_CASE("a comment is never too long, and says what it lacks", "[unit][report]") {
  Sample sample = MakeHostileSample();
  Verdict& verdict = sample.verdict;
  for (int i = 0; i < 100; ++i) {
    Culprit culprit = verdict.culprits[0];
    culprit.rank.reset();
    culprit.pid.reset();
    culprit.why = std::to_string(i) + std::string(100'000, '@');
    verdict.culprits.push_back(culprit);
    verdict.evidence.push_back(verdict.evidence[0]);
    verdict.evidence.back().text = std::string(1024, '`');
    verdict.remedies.push_back(verdict.remedies[0]);
    verdict.remedies.back().command = std::string(3000, '`');
    verdict.collect_next.push_back(std::string(100'000, '\xcc'));
    verdict.warnings.push_back(std::string(5000, '#'));
    sample.timeline.inputs.push_back({.path = std::string(4000, '_'), .kinds = {}});
  }
  for (int i = 0; i < 100'000; ++i) verdict.summary += "\xcc\x81";  // columns do not count these
  const std::string comment = Render(sample);
  CHECK(comment.size() < 60'000);
  CHECK(Has(comment, "Not shown here: "));
  CHECK(Has(comment, "of 102 inputs"));
  CHECK(comment.ends_with("<sub>inquest 1.2.3</sub>\n"));
}

TEST_CASE("an empty verdict is a comment", "[unit][report]") {
  const std::string comment = RenderMarkdown({}, {}, {.text = {}, .tool_version = ""});
  CHECK(Has(comment, "### UNDECIDED"));
  CHECK_FALSE(Has(comment, "details"));
}

}  // namespace markdown_test
