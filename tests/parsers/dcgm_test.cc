// Results of DCGM's diagnostic, as table and as JSON, of releases before and since 4.
#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

extern const Format kDcgmJson, kDcgmTable;
namespace dcgm_test {

std::string ShowAll(const Format& format, std::string_view text) {
  std::string out;
  for (const GpuDiag& diag : Only<GpuDiag>(ParseLines(format, text)))
    out += (out.empty() ? "" : "; ") + diag.test + (diag.gpu ? " of " + std::to_string(*diag.gpu) : "") +
           (diag.failed ? " failed" : " warned") + (diag.detail.empty() ? "" : ": " + diag.detail);
  return out;
}

std::string Row(std::string name, std::string result) {
  name.resize(25, ' ');
  result.resize(46, ' ');
  return "| " + name + " | " + result + " |\n";
}
const std::string kHead =
    "Successfully ran diagnostic for group.\n"
    "+---------------------------+------------------------------------------------+\n"
    "| Diagnostic                | Result                                         |\n"
    "+===========================+================================================+\n"
    "|-----  Metadata  ----------+------------------------------------------------|\n" +
    Row("DCGM Version", "3.3.5") + "+-----  Hardware  ----------+------------------------------------------------+\n";

TEST_CASE("dcgm: the table", "[dcgm]") {
  CHECK(ShowAll(kDcgmTable, kHead + Row("GPU Memory", "Pass - All") + Row("Diagnostic", "Skip - All")) == "");
  CHECK(ShowAll(kDcgmTable, kHead + Row("GPU Memory", "Fail - GPU: 3") +
                                Row("Warning", "GPU 3 had uncorrectable memory errors and mem") +
                                Row("", "test failed. Drain the GPU.") + Row("PCIe", "Pass - All")) ==
        "GPU Memory of 3 failed: GPU 3 had uncorrectable memory errors and memtest failed. Drain the GPU.");
  CHECK(ShowAll(kDcgmTable, kHead + Row("GPU Memory", "Pass - GPUs: 0, 1") + Row("", "Fail - GPUs: 2, 3")) ==
        "GPU Memory of 2 failed; GPU Memory of 3 failed");
  CHECK(ShowAll(kDcgmTable, kHead + Row("memory", "Fail") + Row("", "GPU0: Pass") + Row("", "GPU3: Fail") +
                                Row("Warning: GPU3", "There are 2 volatile DBE(s)") + Row("pcie", "Pass")) ==
        "memory of 3 failed: There are 2 volatile DBE(s)");
  CHECK(ShowAll(kDcgmTable, kHead + Row("Targeted Power", "Warn - GPU: 1")) == "Targeted Power of 1 warned");
  CHECK(ShowAll(kDcgmTable, kHead + Row("Error", "GPU 3 has uncorrectable memory errors and row") +
                                Row("", " remappings are pending")) ==
        "Error of 3 failed: GPU 3 has uncorrectable memory errors and row remappings are pending");
  CHECK(ShowAll(kDcgmTable, kHead + Row("PCIe", "Fail - GPU: 1") + Row("Error", "no bandwidth")) ==
        "PCIe of 1 failed: no bandwidth");
  CHECK(ShowAll(kDcgmTable, Row("GPU Memory", "Fail - GPU: 3")) == "");  // no diagnostic's table
}

TEST_CASE("dcgm: JSON", "[dcgm]") {
  const auto json = [](const std::string& name, const std::string& results) {
    return "{\"" + name +
           "\": {\"test_categories\": [{\"category\": \"Hardware\", \"tests\": [{\"name\": \"memory\", \"results\": [" +
           results + "]}]}], \"version\": \"4.2.3\"}}";
  };
  CHECK(
      ShowAll(
          kDcgmJson,
          json(
              "DCGM Diagnostic",
              R"({"entity_group":"GPU","entity_group_id":1,"entity_id":3,"status":"Fail","warnings":[{"warning":"There are 2 volatile DBE(s).","error_id":43}]})")) ==
      "memory of 3 failed: There are 2 volatile DBE(s).");
  CHECK(
      ShowAll(
          kDcgmJson,
          json(
              "DCGM GPU Diagnostic",
              R"({"gpu_ids":"3","status":"FAIL","warnings":["bad memory"]},{"gpu_id":"4","status":"Warn","warnings":"slow"})")) ==
      "memory of 3 failed: bad memory; memory of 4 warned: slow");
  CHECK(
      ShowAll(
          kDcgmJson,
          json(
              "DCGM Diagnostic",
              R"({"entity_group":"GPU","entity_id":3,"status":"Pass"},{"entity_group":"CPU","entity_id":0,"status":"Skip"})")) ==
      "");
  CHECK(ShowAll(kDcgmJson, json("DCGM Diagnostic", R"({"entity_group":"CPU","entity_id":0,"status":"Fail"})")) ==
        "memory failed");
  CHECK(ParseText(kDcgmJson, json("Other", "")).claimed.empty());
}

}  // namespace dcgm_test
}  // namespace inquest
