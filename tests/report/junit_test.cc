// JUnit's XML: what each outcome is there, whole, and nothing that XML forbids.
#include "report/report.h"
#include "tests/catch.h"
#include "tests/support/sample_verdict.h"

using namespace inquest;

namespace junit_test {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string Render(const Sample& sample) {
  return RenderJunit(sample.timeline, sample.verdict, {.text = {}, .tool_version = "1.2.3"});
}

TEST_CASE("a cause that was found is a failed test", "[unit][report]") {
  Sample sample = MakeSample();
  sample.verdict.fingerprint = "5d0a9c5f3be1c7e2";
  sample.verdict.exclude_hosts = {"node07"};
  CHECK(Render(sample) ==
        R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="inquest" tests="1" failures="1" errors="0" time="0">
  <testsuite name="inquest" tests="1" failures="1" errors="0" skipped="0" time="0">
    <properties>
      <property name="job_hosts" value="node00, node07"/>
      <property name="attempt" value="1 of 1"/>
      <property name="cause" value="gpu-fault"/>
      <property name="confidence" value="0.93"/>
      <property name="signature" value="gpu-off-bus"/>
      <property name="fingerprint" value="5d0a9c5f3be1c7e2"/>
      <property name="culprits" value="rank 28 on node07 (pid 2028, GPU 4, 0000:4e:00.0): its GPU fell off the bus"/>
      <property name="hosts" value="node07"/>
      <property name="exclude_hosts" value="node07"/>
      <property name="retry" value="elsewhere"/>
      <property name="version" value="1.2.3"/>
    </properties>
    <testcase classname="inquest" name="the job ended well" time="0">
      <failure type="gpu-fault" message="GPU 0000:4e:00 of node07 fell off the bus at 12:01:01. Rank 28 on it never entered ALLREDUCE #4410, in which the other 63 ranks timed out.">
Culprit:
  rank 28 on node07 (pid 2028, GPU 4, 0000:4e:00.0): its GPU fell off the bus

Evidence:
  node07-kern.log:212: NVRM: Xid (PCI:0000:4e:00): 79, pid=2113, GPU has fallen off the bus.
  job.log:31: [rank3]:[E405 12:11:05.123456789 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4410, OpType=ALLREDUCE, NumelIn=253440000, NumelOut=253440000, Timeout(ms)=600000) ran for 600043 milliseconds before timing out.

What to do:
  Drain the node, run the job elsewhere, then reset the GPU. node07# nvidia-smi --gpu-reset -i 0000:4e:00.0

Collect:
  nvidia-smi -q of the host

Also possible:
  pcie-fault (20 %): a bad riser looks the same
</failure>
    </testcase>
  </testsuite>
</testsuites>
)");
}

TEST_CASE("an undecided job is an error of the test, and a healthy one passes it", "[unit][report]") {
  Sample sample = MakeSample();
  sample.verdict.outcome = Outcome::kUndecided;
  sample.verdict.cause = "unknown";
  CHECK(Has(Render(sample), R"(failures="0" errors="1")"));
  CHECK(Has(Render(sample), R"(<error type="unknown" message="GPU)"));
  CHECK_FALSE(Has(Render(sample), "What to do"));
  sample.verdict = {};
  sample.verdict.outcome = Outcome::kHealthy;
  sample.verdict.cause = "healthy";
  CHECK(Has(Render(sample), R"(failures="0" errors="0")"));
  CHECK(Has(Render(sample), R"(time="0"></testcase>)"));
}

TEST_CASE("what XML forbids or would obey is shown", "[unit][report]") {
  const std::string xml = Render(MakeHostileSample());
  CHECK_FALSE(Has(xml, "<script"));
  CHECK_FALSE(Has(xml, "]]>"));
  for (const char c : xml) REQUIRE((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
  CHECK(Has(xml, "&lt;script&gt;alert(1)&lt;/script&gt;"));
}

}  // namespace junit_test
