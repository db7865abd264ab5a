// What a bundle's manifest says was not collected.
#include "collect/manifest.h"
#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

extern const Format kBundleManifest;
namespace bundle_manifest_test {

TEST_CASE("bundle-manifest: what was not collected, and nothing else", "[bundle-manifest]") {
  Manifest manifest{.hostname = "node07.example.org", .time = "2031-04-05T12:00:00Z", .tool_version = "1", .items = {}};
  manifest.items.push_back({.name = "dmesg.txt",
                            .command = {"dmesg"},
                            .source = {},
                            .problem = {},
                            .kept = true,
                            .exit_code = 0,
                            .signal = {}});
  manifest.items.push_back({.name = "nvidia-smi.txt",
                            .command = {"nvidia-smi"},
                            .source = {},
                            .problem = "stopped after 30 s",
                            .kept = true,
                            .exit_code = {},
                            .signal = 9,
                            .timed_out = true});
  const auto events = ParseLines(kBundleManifest, RenderManifest(manifest));
  REQUIRE(events.size() == 1);
  const auto missing = Only<NotCollected>(events);
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].name == "nvidia-smi.txt");
  CHECK(missing[0].reason == "stopped after 30 s");
  CHECK(events[0].text == "nvidia-smi.txt: stopped after 30 s");
  REQUIRE(events[0].origin.host);
  CHECK(events[0].origin.host->value == "node07");
}

TEST_CASE("bundle-manifest: forms of the file", "[bundle-manifest]") {
  struct Row {
    const char* text;
    bool ours;
    std::size_t missing;
  };
  const Row rows[] = {
      {R"({"schema": "inquest-bundle-1", "items": []})", true, 0},
      {R"({"schema": "inquest-bundle-2", "more": 1, "items": [{"name": "a", "problem": "b"}, {"name": 1, "problem": "b"}, 7, {"problem": "c"}]})",
       true, 1},
      {R"({"schema": "inquest-bundle-1"})", false, 0},
      {R"({"schema": "inquest-verdict-1", "items": [{"name": "inquest-bundle-", "problem": "b"}]})", false, 0},
      {R"({"schema": "inquest-bundle-1", "items": [{"name": "a", "problem": "b"})", false, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Parsed parsed = ParseText(kBundleManifest, row.text);
    CHECK(!parsed.claimed.empty() == row.ours);
    CHECK(parsed.events.size() == row.missing);
  }
}

}  // namespace bundle_manifest_test
}  // namespace inquest
