// Moments as logs print them, read and printed again.
#include "core/time.h"

#include "tests/catch.h"

namespace inquest {
namespace time_test {

using Date = Timestamp::Date;

TEST_CASE("ParseTime reads every spelling", "[time]") {
  struct Row {
    const char* text;
    const char* printed;  ///< what FormatTime makes of it
    std::size_t size;
    Date date;
    bool zone_known;
  };
  const Row rows[] = {
      {"2029-11-03T21:14:05Z rest", "2029-11-03T21:14:05Z", 20, Date::kFull, true},
      {"2029-11-03T21:14:05.123456789Z", "2029-11-03T21:14:05.123456789Z", 30, Date::kFull, true},
      {"2029-11-03T21:14:05.12345678912Z", "2029-11-03T21:14:05.123456789Z", 32, Date::kFull, true},
      {"2029-11-03T21:14:05.1+08:00 x", "2029-11-03T13:14:05.1Z", 27, Date::kFull, true},
      {"2029-11-03T21:14:05-0330", "2029-11-04T00:44:05Z", 24, Date::kFull, true},
      {"2029-11-03 21:14:05 +0000 x", "2029-11-03T21:14:05Z", 25, Date::kFull, true},
      {"2029-11-03 21:14:05 UTC", "2029-11-03T21:14:05Z", 23, Date::kFull, true},
      {"2029-11-03 21:14:05,250] x", "2029-11-03T21:14:05.250", 23, Date::kFull, false},
      {"2029-11-03 21:14:05", "2029-11-03T21:14:05", 19, Date::kFull, false},
      {"2029-11-03 21:14:05 -1 left", "2029-11-03T21:14:05", 19, Date::kFull, false},
      {"2029/11/03 21:14:05.5 x", "2029-11-03T21:14:05.5", 21, Date::kFull, false},
      {"11-03 21:14:05 [core.py]", "11-03T21:14:05", 14, Date::kNoYear, false},
      {"Nov  3 21:14:05 node4", "11-03T21:14:05", 15, Date::kNoYear, false},
      {"Nov 13 21:14:05.000250 node4", "11-13T21:14:05.000250", 22, Date::kNoYear, false},
      {"Feb 29 21:14:05 2029", "02-29T21:14:05", 15, Date::kNoYear, false},
      {"Sat Nov  3 21:14:05 2029[1,2]", "2029-11-03T21:14:05", 24, Date::kFull, false},
      {"Sat Nov  3 21:14:05 UTC 2029", "2029-11-03T21:14:05Z", 28, Date::kFull, true},
      {"Sat Nov  3 21:14:05", "11-03T21:14:05", 19, Date::kNoYear, false},
      {"21:14:05", "21:14:05", 8, Date::kNone, false},
      {"21:14:05.040 x", "21:14:05.040", 12, Date::kNone, false},
      {"23:59:60", "00:00:00", 8, Date::kNone, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto parsed = ParseTime(row.text);
    REQUIRE(parsed);
    CHECK(FormatTime(parsed->time) == row.printed);
    CHECK(parsed->size == row.size);
    CHECK(parsed->time.date == row.date);
    CHECK(parsed->time.zone_known == row.zone_known);
  }
}

TEST_CASE("ParseTime leaves what is no time", "[time]") {
  for (const char* text : {"",
                           "2029",
                           "2029-11-03",
                           "2029-11-03T21:14",
                           "2029-13-03T21:14:05Z",
                           "2029-02-30 21:14:05",
                           "2029-11-03T24:14:05Z",
                           "9999-11-03T21:14:05Z",
                           "0000-11-03T21:14:05Z",
                           "21:14",
                           "21:14:05:aa:bb:cc",
                           "21:14:055",
                           "121:14:05",
                           "3:40:16<14:52:25",
                           "Nov 31 21:14:05",
                           "Now  3 21:14:05",
                           "Nov  3",
                           "Saturday Nov 3",
                           "21-14:05:06",
                           "13-01 21:14:05"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseTime(text));
  }
}

TEST_CASE("ParseTime survives a cut at any byte", "[time]") {
  for (const std::string_view whole :
       {"2029-11-03T21:14:05.123456789+08:00", "Sat Nov  3 21:14:05 UTC 2029", "11-03 21:14:05.5"}) {
    for (std::size_t size = 0; size <= whole.size(); ++size) {
      const std::string exact(whole.substr(0, size));
      const auto parsed = ParseTime(exact);
      CHECK((!parsed || parsed->size <= size));
    }
  }
}

TEST_CASE("c10 heads have no year, no padding and no fraction", "[time]") {
  struct Row {
    const char* text;
    const char* printed;
  };
  for (const Row& row : {Row{"219 04:05:06.123456789 ProcessGroupNCCL.cpp:607]", "02-19T04:05:06"},
                         Row{"1206 23:59:59.999999999 x", "12-06T23:59:59"}, Row{"101 00:00:00.5", "01-01T00:00:00"}}) {
    CAPTURE(row.text);
    const auto parsed = ParseC10Time(row.text);
    REQUIRE(parsed);
    CHECK(FormatTime(parsed->time) == row.printed);
    CHECK(parsed->time.resolution == std::chrono::seconds(1));
  }
  CHECK(ParseC10Time("219 04:05:06.123456789 x")->size == 22);
  for (const char* text : {"", "19 04:05:06", "1306 04:05:06", "231 04:05:06.1", "21904:05:06", "rocess 04:05:06"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseC10Time(text));
  }
}

TEST_CASE("Python's glog heads count milliseconds, glog's own microseconds", "[time]") {
  const auto python = ParseGlogTime("0405 06:07:08.123000 140 torch/x.py:1]");
  REQUIRE(python);
  CHECK(FormatTime(python->time) == "04-05T06:07:08.123");
  CHECK(python->size == 20);
  const auto glog = ParseGlogTime("0405 06:07:08.123456 140");
  REQUIRE(glog);
  CHECK(FormatTime(glog->time) == "04-05T06:07:08.123456");
  CHECK_FALSE(ParseGlogTime("405 06:07:08.123000"));
}

TEST_CASE("FormatClock prints the time of day alone", "[time]") {
  CHECK(FormatClock(ParseTime("2029-11-03T21:14:05.999Z")->time) == "21:14:05");
}

}  // namespace time_test
}  // namespace inquest
