// error.json of a worker under @record: an exception, and the exit code where there is one.
#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

extern const Format kElasticErrorFile;
namespace elastic_error_file_test {

constexpr const char* kFile =
    R"({"message": {"message": "ValueError: bad \"shape\"", "extraInfo": {"py_callstack": "Traceback (most recent call last):\n  File \"/opt/x/lib/python3.9/site-packages/torch/e.py\", line 9, in wrapper\n    return f()\n  File \"train.py\", line 31, in step\n    raise ValueError(text)\nValueError: bad \"shape\"\n", "timestamp": "1932904028"}, "errorCode": -11}})";

TEST_CASE("elastic-error-file: an exception with its stack", "[elastic-error-file]") {
  const auto events = ParseLines(kElasticErrorFile, kFile);
  REQUIRE(events.size() == 2);
  const auto raised = Only<ExceptionRaised>(events);
  REQUIRE(raised.size() == 1);
  CHECK(raised[0].type == "ValueError");
  CHECK(raised[0].message == "bad \"shape\"");
  CHECK(raised[0].frame == "train.py:31 in step");
  CHECK(raised[0].stack.size() == 2);
  REQUIRE(events[0].at);
  CHECK(FormatTime(*events[0].at) == "2031-04-02T13:47:08Z");
  CHECK(events[0].text == "ValueError: bad \"shape\"");
  const auto exits = Only<ProcessExit>(events);
  REQUIRE(exits.size() == 1);
  CHECK(exits[0].signal == 11);
  CHECK_FALSE(exits[0].exit_code);
}

TEST_CASE("elastic-error-file: forms of the file", "[elastic-error-file]") {
  struct Row {
    const char* text;
    std::size_t exceptions, exits;
  };
  const Row rows[] = {
      {R"({"message": {"message": "KeyError: 'x'", "extraInfo": {"timestamp": 1932904028}}})", 1, 0},
      {R"({"message": {"message": "KeyError: 'x'", "errorCode": 1}})", 1, 1},
      {R"({"message": "SignalException: Process 4 got signal: 15", "extraInfo": {"timestamp": "1"}})", 1, 0},
      {R"({"message": {"message": "what is this", "extraInfo": {}}})", 1, 0},
      // Not ours: other JSON, JSON lines, a cut file.
      {R"({"message": "hello"})", 0, 0},
      {R"({"message": {"text": "x", "extraInfo": {}}})", 0, 0},
      {R"({"message": 4, "extraInfo": {}})", 0, 0},
      {"[1, 2]", 0, 0},
      {"{\"message\": {\"message\": \"E: x\", \"extraInfo\": {}}}\n{\"message\": {\"message\": \"E: x\", "
       "\"extraInfo\": {}}}",
       0, 0},
      {"", 0, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Parsed parsed = ParseText(kElasticErrorFile, row.text);
    CHECK(Only<ExceptionRaised>(parsed.events).size() == row.exceptions);
    CHECK(Only<ProcessExit>(parsed.events).size() == row.exits);
    CHECK(parsed.claimed.empty() == (row.exceptions == 0));
  }
}

TEST_CASE("elastic-error-file: cut at every byte", "[elastic-error-file]") {
  const std::string text = kFile;
  for (std::size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    CHECK(ParseText(kElasticErrorFile, text.substr(0, size)).claimed.empty());
  }
}

}  // namespace elastic_error_file_test
}  // namespace inquest
