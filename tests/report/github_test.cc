// Annotations of a workflow: each is one command, whatever the log says, and there are few.
#include <algorithm>

#include "report/report.h"
#include "tests/catch.h"
#include "tests/support/sample_verdict.h"

using namespace inquest;

namespace github_test {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string Render(const Sample& sample) {
  return RenderGithub(sample.timeline, sample.verdict, {.text = {}, .tool_version = "1.2.3"});
}

TEST_CASE("the verdict and the lines that prove it are annotations", "[unit][report]") {
  CHECK(
      Render(MakeSample()) ==
      "::error file=node07-kern.log,line=212,title=gpu-fault%3A GPU hardware fault (93 %25)::GPU 0000:4e:00 of node07 "
      "fell "
      "off the bus at 12:01:01. Rank 28 on it never entered ALLREDUCE #4410, in which the other 63 ranks timed "
      "out.%0ACulprit: rank 28 on node07 (pid 2028, GPU 4, 0000:4e:00.0): its GPU fell off the bus%0ARestart: yes, on "
      "other nodes; keep the culprit out%0ATo do: Drain the node, run the job elsewhere, then reset the GPU.%0A  "
      "node07# nvidia-smi --gpu-reset -i 0000:4e:00.0%0ARun: on node00, node07\n"
      "::error file=node07-kern.log,line=212,title=rank 28::NVRM: Xid (PCI:0000:4e:00): 79, pid=2113, GPU has fallen "
      "off the bus.\n"
      "::notice file=job.log,line=31,title=rank 3::[rank3]:[E405 12:11:05.123456789 ProcessGroupNCCL.cpp:616] [Rank 3] "
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4410, OpType=ALLREDUCE, NumelIn=253440000, "
      "NumelOut=253440000, Timeout(ms)=600000) ran for 600043 milliseconds before timing out.\n");
}

TEST_CASE("nothing of a log is a command", "[unit][report]") {
  Sample sample = MakeSample();
  sample.timeline.inputs[1].path = "a,line=1::error\n::b%0A:c";
  sample.verdict.summary = "::stop-commands::x\n::set-output name=a::b %0A ##[error]c ##vso[d] ###[e]";
  sample.verdict.warnings = {"::add-mask::x\r\n::error::y"};
  sample.verdict.evidence[1].text = "##[group]a";
  const std::string text = Render(sample);
  CAPTURE(text);
  CHECK(Has(text, "::error file=a%2Cline=1%3A%3Aerror\xe2\x90\x8a%3A%3Ab%250A%3Ac,line=212,title="));
  CHECK(Has(text, "::::stop-commands::x\xe2\x90\x8a::set-output name=a::b %250A # #[error]c # #vso[d] # # #[e]%0A"));
  CHECK(Has(text, "\n::warning title=doubtful::::add-mask::x\xe2\x90\x8d\xe2\x90\x8a::error::y\n"));
  CHECK(Has(text, "::# #[group]a\n"));
  CHECK_FALSE(Has(text, "##"));
  for (std::size_t at = text.find('\n'); at + 1 < text.size(); at = text.find('\n', at + 1)) {
    const std::string_view line = std::string_view(text).substr(at + 1);
    CHECK((line.starts_with("::error file=") || line.starts_with("::warning title=") ||
           line.starts_with("::notice file=")));
  }
}

TEST_CASE("there are ten at most, and standard input is no file", "[unit][report]") {
  Sample sample = MakeSample();
  for (int i = 0; i < 40; ++i) sample.verdict.evidence.push_back(sample.verdict.evidence[1]);
  sample.timeline.inputs[0].path = "-";
  const std::string text = Render(sample);
  CHECK(std::count(text.begin(), text.end(), '\n') == 10);
  CHECK(Has(text, "::notice title=rank 3::"));
  sample.verdict = {};
  sample.verdict.outcome = Outcome::kHealthy;
  sample.verdict.title = "The job ended well";
  CHECK(Render(sample) == "::notice title=The job ended well::%0ARun: on node00, node07\n");
}

}  // namespace github_test
