// SARIF: one result at the line that proves it, or none; addresses of files are addresses whatever their names are.
#include <nlohmann/json.hpp>

#include "report/report.h"
#include "tests/catch.h"
#include "tests/support/sample_verdict.h"

using namespace inquest;
using Json = nlohmann::json;

namespace sarif_test {

Json Render(const Sample& sample) {
  std::string text;
  RenderSarif(sample.timeline, sample.verdict, {.text = {}, .tool_version = "1.2.3"},
              [&](std::string_view piece) { text += piece; });
  return Json::parse(text)["runs"][0];
}

TEST_CASE("a cause is one result at its line, with the other lines beside it", "[unit][report]") {
  Sample sample = MakeSample();
  sample.verdict.fingerprint = "5d0a9c5f3be1c7e2";
  const Json run = Render(sample);
  CHECK(run["tool"]["driver"] == Json::parse(R"({"name": "inquest", "version": "1.2.3", "rules": [
            {"id": "gpu-fault", "shortDescription": {"text": "GPU hardware fault"}},
            {"id": "gpu-off-bus", "shortDescription": {"text": "A GPU fell off the bus."}}]})"));
  REQUIRE(run["results"].size() == 1);
  const Json& result = run["results"][0];
  CHECK(result["ruleId"] == "gpu-fault");
  CHECK(result["level"] == "error");
  CHECK(result["message"]["text"] ==
        sample.verdict.summary +
            " Culprit: rank 28 on node07 (pid 2028, GPU 4, 0000:4e:00.0): its GPU fell off "
            "the bus");
  CHECK(result["locations"][0]["physicalLocation"] ==
        Json::parse(R"({"artifactLocation": {"uri": "node07-kern.log"}, "region": {"startLine": 212, "snippet":
            {"text": "NVRM: Xid (PCI:0000:4e:00): 79, pid=2113, GPU has fallen off the bus."}}})"));
  REQUIRE(result["relatedLocations"].size() == 1);
  CHECK(result["relatedLocations"][0]["message"]["text"] == "symptom of rank 3");
  CHECK(result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 31);
  CHECK(result["partialFingerprints"] ==
        Json{{"inquest/v1", "5d0a9c5f3be1c7e2"}, {"primaryLocationLineHash", "5d0a9c5f3be1c7e2:1"}});
  CHECK(result["properties"]["retry"] == "elsewhere");
  CHECK(run["properties"]["fingerprint"] == "5d0a9c5f3be1c7e2");
  CHECK(run["properties"]["job"]["attempt"] == Json::parse(R"({"number": 1, "of": 1})"));
  CHECK(run["properties"]["job"]["hosts"] == Json::parse(R"(["node00", "node07"])"));
}

TEST_CASE("an undecided job is a warning at what was read, and a healthy one no result", "[unit][report]") {
  Sample sample = MakeSample();
  sample.verdict.outcome = Outcome::kUndecided;
  sample.verdict.evidence.clear();
  const Json result = Render(sample)["results"][0];
  CHECK(result["level"] == "warning");
  CHECK(result["locations"] == Json::parse(R"([{"physicalLocation": {"artifactLocation": {"uri": "job.log"}}}])"));
  sample.verdict.outcome = Outcome::kHealthy;
  CHECK(Render(sample)["results"] == Json::array());
  CHECK(Render(sample)["tool"]["driver"]["rules"] == Json::array());
}

TEST_CASE("paths become references, and messages hold no link of a log", "[unit][report]") {
  struct Row {
    std::string path, uri;
  };
  const Row rows[] = {{"run-42/job.log", "run-42/job.log"},
                      {"./job.log", "job.log"},
                      {"/data/run 42/job.log", "file:///data/run%2042/job.log"},
                      {"bundle.tar.zst:node07/dmesg.txt", "bundle.tar.zst%3Anode07/dmesg.txt"},
                      {"javascript:alert(1)", "javascript%3Aalert%281%29"},
                      {"a?b#c%41\n\xff\xc3\xbc", "a%3Fb%23c%2541%0A%FF%C3%BC"},
                      {"../x", "../x"},
                      {"-", "-"}};
  Sample sample = MakeSample();
  for (const Row& row : rows) {
    CAPTURE(row.path);
    sample.timeline.inputs[1].path = row.path;
    const Json place = Render(sample)["results"][0]["locations"][0]["physicalLocation"];
    CHECK(place["artifactLocation"]["uri"] == row.uri);
  }
  sample.verdict.summary = "see [here](https://evil.example) a\nb";
  sample.verdict.culprits.clear();
  CHECK(Render(sample)["results"][0]["message"]["text"] ==
        "see [here] (https://evil.example) a\xe2\x90\x8a"
        "b");
}

}  // namespace sarif_test
