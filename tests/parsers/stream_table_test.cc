// The table of an input's writers: each has one stream, and beyond a number that no job has the new ones share one.
#include <algorithm>

#include "parsers/stream_table.h"
#include "tests/catch.h"

namespace inquest {

TEST_CASE("streams: a writer keeps its stream however many come", "[streams]") {
  StreamTable streams;
  CHECK(streams.Find("1") == nullptr);
  std::vector<Stream*> first;
  for (int i = 0; i < 1000; ++i) first.push_back(&streams.At(std::to_string(i)));
  for (int i = 0; i < 1000; ++i) {
    CAPTURE(i);
    CHECK(streams.Find(std::to_string(i)) == first[static_cast<std::size_t>(i)]);
    CHECK(&streams.At(std::to_string(i)) == first[static_cast<std::size_t>(i)]);
  }
  CHECK(streams.Find("1000") == nullptr);
  const auto all = streams.InOrder();
  REQUIRE(all.size() == 1000);
  CHECK(std::ranges::is_sorted(all, {}, &Stream::key));
  streams.Clear();
  CHECK(streams.Find("1") == nullptr);
  CHECK(streams.InOrder().empty());
}

TEST_CASE("streams: a log that invents a writer a line costs no memory for each", "[streams]") {
  constexpr int kWriters = 1 << 17, kMost = 1 << 16;
  StreamTable streams;
  for (int i = 0; i < kWriters; ++i) streams.At(std::to_string(i));
  CHECK(streams.InOrder().size() == kMost + 1);
  CHECK(streams.At("0").key == "0");
  CHECK(streams.Find(std::to_string(kWriters - 1)) == nullptr);
  CHECK(&streams.At("one more") == streams.Find(""));
}

}  // namespace inquest
