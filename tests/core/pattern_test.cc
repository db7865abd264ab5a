// Expressions over the bytes of logs: captures, broken UTF-8, numbers, and what is refused.
#include "core/pattern.h"

#include <string>

#include "core/event.h"
#include "tests/catch.h"

namespace inquest {
namespace pattern_test {

TEST_CASE("captures are views by index and by name", "[pattern]") {
  const Pattern pattern(R"(rank (?P<rank>\d+)(?: on (?P<host>\S+))?(x*))");
  CHECK(pattern.group_names() == std::vector<std::string>{"", "rank", "host", ""});
  const std::string text = "lost rank 12 on cn7";
  const auto match = pattern.Search(text);
  REQUIRE(match);
  CHECK(match->text(0) == "rank 12 on cn7");
  CHECK(match->number(1) == 12);
  CHECK(match->text(2).data() == text.data() + 16);
  const auto without = pattern.Search("rank 12");
  REQUIRE(without);
  CHECK_FALSE(without->has(2));
  CHECK(without->has(3));
  CHECK_FALSE(without->has(9));
  CHECK(without->text(9).empty());
  CHECK_FALSE(pattern.Search("rank none"));
  CHECK(Pattern("^$").Matches({}));
}

TEST_CASE("what every match holds is known of an expression, or nothing is", "[pattern]") {
  struct Row {
    const char* expression;
    const char* literal;
  };
  for (const Row& row : {Row{R"(NVRM: Xid \(PCI:(\S+)\): (\d+), (.*))", "NVRM: Xid (PCI:"}, Row{"ab?cd", "cd"},
                         Row{"abc*", "ab"}, Row{"abc+d", "abc"}, Row{"abc{0,3}de", "ab"}, Row{"a|bcd", ""},
                         Row{"(?:x|y)abc(?:z|)?", "abc"}, Row{"(?i)abc", ""}, Row{"ab(?i:cd)", ""},
                         Row{"(?s)abc", "abc"}, Row{"(?P<info>i)abc", "abc"}, Row{R"(\babc\b\w+)", "abc"},
                         Row{R"(a\.bc\x41)", ""}, Row{R"(\Qa.b\E)", ""}, Row{R"([^]abc]de[[:alpha:]\]]fgh)", "fgh"},
                         Row{R"(ab[(]cd(e\)f[)])ghi)", "ghi"}, Row{"abc{", "abc{"}, Row{"abc(", ""}, Row{"", ""}}) {
    CAPTURE(row.expression);
    CHECK(RequiredLiteral(row.expression) == row.literal);
  }
}

TEST_CASE("a match is the first in the text, wherever what it begins with stands", "[pattern]") {
  struct Row {
    const char *expression, *text, *match;
  };
  for (const Row& row :
       {Row{R"(ran for (\d+) ms)", "ran for x, ran for 7 ms, ran for 8 ms", "ran for 7 ms"},
        Row{R"(abc+d)", "abd abbcd abccd", "abccd"}, Row{R"(abcx?\d)", "abcx abcy abc abc abc abc abcx1 abc2", "abcx1"},
        Row{R"(aaa+b)", "aaaaaac aaaab", "aaaab"}, Row{R"(rank\b.)", "ranks rank 3", "rank "},
        Row{R"(^rank (\d))", "rank 3", "rank 3"}, Row{R"(^rank (\d))", " rank 3", ""}, Row{R"(^\d+x)", "12x", "12x"},
        Row{R"(^\d*x)", "x", "x"}, Row{R"(^ab?c)", "ac", "ac"}, Row{R"(^abc|def)", "xdef", "def"},
        Row{R"(^(?:a|b)c)", "bc", "bc"}, Row{R"((?i)^abc)", "ABC", "ABC"}, Row{R"(^(?i)abc)", "ABC", "ABC"},
        Row{R"((?m)^abc$)", "x\nabc", "abc"}, Row{R"(\Qabc\E\d)", "abc1", "abc1"}, Row{R"(abc\x41)", "abcA", "abcA"},
        Row{R"(abc$)", "abc abc", "abc"}, Row{R"(^$)", "", ""}}) {
    CAPTURE(row.expression, row.text);
    const auto match = Pattern(row.expression).Search(row.text);
    CHECK((match ? match->text(0) : std::string_view()) == row.match);
    CHECK(Pattern(row.expression).Matches(row.text) == match.has_value());
  }
}

TEST_CASE("numbers are whole, in range, or absent", "[pattern]") {
  const Pattern pattern(R"(n=(\S*))");
  struct Row {
    const char* text;
    std::optional<std::int64_t> number;
  };
  for (const Row& row :
       {Row{"n=7", 7}, Row{"n=-7", -7}, Row{"n=9223372036854775807", INT64_MAX}, Row{"n=9223372036854775808", {}},
        Row{"n=7ms", {}}, Row{"n=", {}}, Row{"n=+7", {}}, Row{"n=0x10", {}}}) {
    CAPTURE(row.text);
    CHECK(pattern.Search(row.text)->number(1) == row.number);
  }
}

TEST_CASE("text is bytes: broken UTF-8 matches, and literals outside ASCII do", "[pattern]") {
  CHECK(Pattern("peer .* status=12").Matches("peer \xff\xfe\x80 status=12"));
  const Pattern bar(R"(\d+%\|(?:█|▉)+ *\|)");
  CHECK(bar.Matches("Train:  20%|██▉  |"));
  CHECK_FALSE(bar.Matches("Train:  20%|##   |"));
  CHECK(Pattern(R"(^\w+$)").Matches("rank_3"));
  CHECK_FALSE(Pattern(R"(^\w+$)").Matches("caf\xc3\xa9"));
}

TEST_CASE("a bad expression of a user is an Error", "[pattern]") {
  for (const char* expression : {"(", "a{2,1}", "(?P<x>a", "(?=a)", "[█▉]", "█+", "a[^]é]", "é?", "é{2}"}) {
    CAPTURE(expression);
    const auto compiled = Pattern::Compile(expression);
    REQUIRE_FALSE(compiled.has_value());
    CHECK_FALSE(compiled.error().message.empty());
  }
  for (const char* expression : {"", "a█b", "(?:█)+", R"(\[█\])", "[]a]é", "[^]a]é", "(?i)timeout"}) {
    CAPTURE(expression);
    CHECK(Pattern::Compile(expression).has_value());
  }
}

TEST_CASE("names of bases, components and kinds", "[event]") {
  CHECK(Name(Basis::kAssumed) == "assumed");
  CHECK(Name(Basis::kGiven) == "given");
  CHECK(Name(Component::kNccl) == "nccl");
  CHECK(Name(Component::kSmi) == "smi");
  CHECK(KindOf(CommInit{}) == "comm-init");
  CHECK(KindOf(GpuProcess{}) == "gpu-process");
}

TEST_CASE("an event cites at most kCitedBytes and no half character", "[event]") {
  for (std::size_t lead = 0; lead < 4; ++lead) {
    std::string text(lead, 'a');
    while (text.size() < kCitedBytes + 64) text += "█";
    Record record;
    record.text = text;
    record.where = {1, 2, 3};
    record.origin.pid = 41;
    const Event event = EventFrom(record, WorldSize{8});
    CHECK(event.text.size() <= kCitedBytes);
    CHECK((event.text.size() - lead) % 3 == 0);
    CHECK(event.where == record.where);
    CHECK(event.origin.pid == 41);
    CHECK(KindOf(event.what) == "world-size");
  }
  const std::string broken(2 * kCitedBytes, '\x80');
  Record record;
  record.text = broken;
  CHECK(EventFrom(record, WorldSize{1}).text.size() == kCitedBytes);
}

}  // namespace pattern_test
}  // namespace inquest
