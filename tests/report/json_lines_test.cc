// Events for programs: the same that the picture shows, in order, and bounded where that is asked for.
#include <nlohmann/json.hpp>

#include "report/lane_events.h"
#include "report/report.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"
#include "tests/support/sample_verdict.h"

using namespace inquest;
using Json = nlohmann::json;

namespace json_lines_test {

std::vector<Json> Lines(const Timeline& timeline, const Verdict& verdict, std::optional<std::size_t> most = {}) {
  std::string text;
  RenderJsonLines(timeline, verdict, {.text = {}, .tool_version = "1.2.3", .timeline_events = most},
                  [&](std::string_view piece) { text += piece; });
  std::vector<Json> out;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    out.push_back(Json::parse(text.substr(at, text.find('\n', at) - at)));
  return out;
}

Lane LaneOf(std::uint32_t marks) {
  Lane lane;
  for (std::uint32_t i = 0; i < marks; ++i)
    lane.marks.push_back({PictureMark::Kind::kComplaint, std::to_string(i), i, i == 4});
  return lane;
}

TEST_CASE("states, marks and the end of a rank are lines, with times where they are known", "[unit][report]") {
  const Judged judged = JudgeText(
      "2031-04-05T12:00:00.5Z [rank3]: Setting up\n"
      "2031-04-05T12:01:00.25Z [rank3]: Traceback (most recent call last):\n"
      "2031-04-05T12:01:00.25Z [rank3]:   File \"train.py\", line 12, in main\n"
      "2031-04-05T12:01:00.25Z [rank3]: ValueError: bad \"shape\"\n");
  const std::vector<Json> lines = Lines(judged.timeline, judged.verdict);
  REQUIRE(lines.size() >= 2);
  CHECK(lines[0]["kind"] == "verdict");
  CHECK(lines[0]["cause"] == judged.verdict.cause);
  CHECK(lines[0]["job"]["start"] == "2031-04-05T12:00:00.5Z");
  CHECK(lines[0]["job"]["end"] == "2031-04-05T12:01:00.25Z");
  CHECK(lines[0]["job"]["attempt"]["number"] == 1);
  const auto raised = std::find_if(lines.begin(), lines.end(), [](const Json& line) { return line["kind"] == "mark"; });
  REQUIRE(raised != lines.end());
  CAPTURE(raised->dump());
  CHECK((*raised)["lane"] == "rank");
  CHECK((*raised)["rank"] == 3);
  CHECK((*raised)["state"] == "exception");
  CHECK((*raised)["what"] == "ValueError");
  CHECK((*raised)["begin"] == "2031-04-05T12:01:00.250Z");
  CHECK((*raised)["end"].is_null());
  CHECK((*raised)["line"] == 4);
  CHECK((*raised)["text"] == "ValueError: bad \"shape\"");
  CHECK((*raised)["attempt"] == 1);
}

TEST_CASE("without a zone there are seconds alone, without a clock neither", "[unit][report]") {
  const auto mark_of = [](const std::string& log) {
    const Judged judged = JudgeText(log);
    for (const Json& line : Lines(judged.timeline, judged.verdict))
      if (line["kind"] == "mark") return line;
    return Json();
  };
  const Json local =
      mark_of("2031-04-05 12:00:00 [rank3]: Setting up\n2031-04-05 12:01:30 [rank3]: ValueError: bad shape\n");
  CHECK(local["begin"].is_null());
  const Json none = mark_of(
      "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"train.py\", line 12, in main\n"
      "[rank3]: ValueError: bad shape\n");
  CHECK(none["begin"].is_null());
  CHECK(none["begin_s"].is_null());
  CHECK(none["placed"] == "by-place");
}

TEST_CASE("what followed from what stands in the document with the events, and in no other", "[unit][report]") {
  const Judged judged = JudgeText(
      "2031-04-05T12:00:00Z [rank0]: Traceback (most recent call last):\n"
      "2031-04-05T12:00:00Z [rank0]:   File \"train.py\", line 12, in main\n"
      "2031-04-05T12:00:00Z [rank0]: ValueError: bad shape\n"
      "2031-04-05T12:10:00Z [rank1]: [E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation "
      "timeout: "
      "WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600024 milliseconds "
      "before timing out.\n");
  const auto document = [&](std::size_t events) {
    std::string text;
    RenderJson(
        judged.timeline, judged.verdict, "1.2.3", [&](std::string_view piece) { text += piece; }, events);
    return Json::parse(text);
  };
  CHECK_FALSE(document(0).contains("links"));
  const Json with = document(10);
  REQUIRE(with["links"].size() == 1);
  CAPTURE(with["links"].dump());
  CHECK(with["links"][0]["from"]["line"] == 3);
  CHECK(with["links"][0]["to"]["line"] == 4);
  CHECK(with["links"][0]["from"]["order"] < with["links"][0]["to"]["order"]);
  CHECK_FALSE(with["links"][0]["why"].get<std::string>().empty());
}

TEST_CASE("of many events the cause stays, the first and the last", "[unit][report]") {
  const Lane lane = LaneOf(10);
  struct Row {
    std::optional<std::size_t> most;
    std::string kept;
    std::uint64_t left_out;
  };
  const Row rows[] = {{std::nullopt, "0123456789", 0},
                      {100, "0123456789", 0},
                      {5, "01489", 5},
                      {4, "0149", 6},
                      {2, "04", 8},
                      {1, "4", 9},
                      {0, "", 10}};
  for (const Row& row : rows) {
    CAPTURE(row.kept);
    const LaneEvents events = EventsOf(lane, row.most);
    std::string kept;
    for (const LaneEvent& event : events.rows) kept += event.what;
    CHECK(kept == row.kept);
    CHECK(events.left_out == row.left_out);
  }
}

TEST_CASE("hostile text stays in its line", "[unit][report]") {
  const Sample sample = MakeHostileSample();
  const std::vector<Json> lines = Lines(sample.timeline, sample.verdict);
  REQUIRE(lines.size() > 1);
  CHECK(lines[0]["culprits"].size() == 1);
  CHECK(Lines(sample.timeline, sample.verdict, 0).size() <= lines.size());
  CHECK(Lines({}, {}).size() == 1);
}

}  // namespace json_lines_test
