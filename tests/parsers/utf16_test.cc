// Text in UTF-16: what it becomes, wherever it is cut, and that a log in it gives the events of the same log in UTF-8.
#include "parsers/utf16.h"

#include <string>

#include "tests/catch.h"
#include "tests/support/read_through.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace utf16_test {

using namespace std::string_literals;

std::string Utf16Of(std::string_view ascii, bool big_endian) {
  std::string out = big_endian ? "\xfe\xff" : "\xff\xfe";
  for (const char c : ascii) big_endian ? (out += '\0') += c : (out += c) += '\0';
  return out;
}

TEST_CASE("UTF-16 becomes UTF-8, cut anywhere", "[unit][utf16]") {
  struct Row {
    std::string bytes, text;
  };
  for (const Row& row :
       {Row{Utf16Of("loss 2.5\r\n", false), "loss 2.5\r\n"}, Row{Utf16Of("loss 2.5\n", true), "loss 2.5\n"},
        Row{"\xff\xfe"s, ""}, Row{"\xff\xfe\xe9\x00\x88\x25"s, "\xc3\xa9\xe2\x96\x88"},
        Row{"\xfe\xff\xd8\x3d\xde\x80"s, "\xf0\x9f\x9a\x80"},
        // Half pairs, and an odd last byte.
        Row{"\xff\xfe\x3d\xd8x\x00"s, "\xef\xbf\xbdx"}, Row{"\xff\xfe\x80\xde"s, "\xef\xbf\xbd"},
        Row{"\xff\xfe\x3d\xd8"s, "\xef\xbf\xbd"}, Row{"\xff\xfex\x00y"s, "x\xef\xbf\xbd"}}) {
    CAPTURE(row.text);
    REQUIRE(IsUtf16(row.bytes));
    for (std::size_t head = 2; head <= row.bytes.size(); ++head)
      for (const std::size_t room : {1U, 2U, 3U, 64U})
        CHECK(ReadThrough<Utf16Reader>(row.bytes, head, room) == row.text);
  }
  CHECK_FALSE(IsUtf16("\xef\xbb\xbfloss"));
  CHECK_FALSE(IsUtf16("\xff"));
}

TEST_CASE("a log in UTF-16 gives the verdict of the same log in UTF-8", "[unit][utf16]") {
  std::string log;
  for (int i = 0; i < 20'000; ++i) log += "step " + std::to_string(i) + " loss 2.5\r\n";
  log += "RuntimeError: CUDA error: uncorrectable ECC error encountered\r\n";
  const JobFolder folder({{"plain.log", log}, {"little.log", Utf16Of(log, false)}, {"big.log", Utf16Of(log, true)}});
  const Analysis plain = AnalyzePaths({folder.path() + "/plain.log"});
  REQUIRE(plain.verdict.cause == "gpu-fault");
  for (const std::string name : {"little.log", "big.log"}) {
    CAPTURE(name);
    const Analysis wide = AnalyzePaths({folder.path() + "/" + name});
    CHECK(wide.verdict.cause == plain.verdict.cause);
    REQUIRE(wide.timeline.inputs.size() == 1);
    CHECK(wide.timeline.inputs[0].bytes == log.size());
    CHECK(wide.timeline.inputs[0].lines == plain.timeline.inputs[0].lines);
  }
}

}  // namespace utf16_test
}  // namespace inquest
