// Pickles as data: each opcode, what is refused, and what is cut or broken.
#include "parsers/pickle.h"

#include <fmt/format.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "tests/catch.h"

namespace inquest {
namespace pickle_test {

using namespace std::literals;
using Kind = DataValue::Kind;

/// As Python prints it, but for tuples and sets, which are lists here; `!` behind what is torn.
std::string Show(const DataValue& value, int depth = 0) {
  if (depth > 6) return "...";
  switch (value.kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.number != 0 ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.number);
    case Kind::kFloat:
      return fmt::format("{}", value.real);
    case Kind::kText:
      return fmt::format("'{}'", value.str());
    default:
      break;
  }
  const bool dict = value.kind == Kind::kDict;
  std::string out(1, dict ? '{' : '[');
  for (std::uint32_t i = 0; i < value.node->size; ++i)
    out += (i == 0 ? "" : dict && i % 2 != 0 ? ": " : ", ") + Show(value.node->items[i], depth + 1);
  return out + (dict ? '}' : ']') + (value.node->torn ? "!" : "");
}

struct Made {
  std::string shown, problem;
};
Made Read(std::string_view bytes, std::size_t pool_bytes = 1 << 20) {
  DataPool pool(pool_bytes);
  const PickleRead read = ReadPickle(bytes, pool);
  return {Show(read.root), read.problem};
}

TEST_CASE("pickle: each opcode that data needs", "[unit][pickle]") {
  const struct {
    std::string bytes;
    const char* shown;
  } rows[] = {
      {"N."s, "None"},
      {"\210."s, "True"},
      {"\211."s, "False"},
      {"I00\n."s, "False"},
      {"I01\n."s, "True"},
      {"I-7\n."s, "-7"},
      {"I0\n."s, "0"},
      {"L-1933040000000000000L\n."s, "-1933040000000000000"},
      {"L12\n."s, "12"},
      {"F1.5\n."s, "1.5"},
      {"F-1e-3\n."s, "-0.001"},
      {"K\377."s, "255"},
      {"M,\001."s, "300"},
      {"Jp\021\001\000."s, "70000"},
      {"J\373\377\377\377."s, "-5"},
      {"\213\002\000\000\000,\001."s, "300"},
      {"G?\370\000\000\000\000\000\000."s, "1.5"},
      {"G\277\360\000\000\000\000\000\000."s, "-1"},
      {"S'ab'\n."s, "'ab'"},
      {"S\"ab\"\n."s, "'ab'"},
      {"Vab\n."s, "'ab'"},
      {"U\002ab."s, "'ab'"},
      {"T\002\000\000\000ab."s, "'ab'"},
      {"X\002\000\000\000ab."s, "'ab'"},
      {"X\000\000\000\000."s, "''"},
      {"\214\002ab."s, "'ab'"},
      {"\215\002\000\000\000\000\000\000\000ab."s, "'ab'"},
      {"C\002ab."s, "'ab'"},
      {"B\002\000\000\000ab."s, "'ab'"},
      {"\216\002\000\000\000\000\000\000\000ab."s, "'ab'"},
      {"]."s, "[]"},
      {"}."s, "{}"},
      {")."s, "[]"},
      {"\217."s, "[]"},
      {"(K\001K\002l."s, "[1, 2]"},
      {"(l."s, "[]"},
      {"(K\001K\002t."s, "[1, 2]"},
      {"(K\001K\002d."s, "{1: 2}"},
      {"K\001\205."s, "[1]"},
      {"K\001K\002\206."s, "[1, 2]"},
      {"K\001K\002K\003\207."s, "[1, 2, 3]"},
      {"]K\001a."s, "[1]"},
      {"](K\001K\002e."s, "[1, 2]"},
      {"](e."s, "[]"},
      {"}K\001K\002s."s, "{1: 2}"},
      {"}(K\001K\002K\003K\004u."s, "{1: 2, 3: 4}"},
      {"}(u."s, "{}"},
      {"\217(K\001\220."s, "[1]"},
      {"(K\001\221."s, "[1]"},
      // What was put into the memo is the same afterwards, what it holds by then.
      {"]q\000h\000\206."s, "[[], []]"},
      {"]q\000K\001ah\000\206."s, "[[1], [1]]"},
      {"]r\000\000\000\000j\000\000\000\000\206."s, "[[], []]"},
      {"]p0\ng0\n\206."s, "[[], []]"},
      {"]\224h\000\206."s, "[[], []]"},
      {"K\001\2240K\002\2240h\000h\001\206."s, "[1, 2]"},
      {"K\001q\0000K\002q\0000h\000."s, "2"},
      {"K\001K\0020."s, "1"},
      {"K\001(K\002K\0031."s, "1"},
      {"K\001(0."s, "1"},
      {"K\0012\206."s, "[1, 1]"},
      {"\200\004\225\001\000\000\000\000\000\000\000N."s, "None"},
      {"N.what stands behind the end is not looked at"s, "None"},
      {"]q\000h\000a."s, "[[[[[[[...]]]]]]]"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.bytes);
    const Made made = Read(row.bytes);
    CHECK(made.shown == row.shown);
    CHECK(made.problem.empty());
  }
}

TEST_CASE("pickle: integers of each length", "[unit][pickle]") {
  for (int size = 0; size <= 9; ++size)
    for (const std::int64_t number : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{-2}, std::int64_t{100},
                                      std::int64_t{1} << (8 * std::max(size - 1, 0) % 64),
                                      -(std::int64_t{1} << (8 * std::max(size - 1, 0) % 64))}) {
      const bool fits = size >= 8 || (size > 0 && number >= -(std::int64_t{1} << (8 * size - 1)) &&
                                      number < std::int64_t{1} << (8 * size - 1));
      if (!fits) continue;
      CAPTURE(size, number);
      std::string bytes = "\212"s + static_cast<char>(size);
      for (int i = 0; i < size; ++i) bytes += static_cast<char>(i < 8 ? number >> (8 * i) : number < 0 ? -1 : 0);
      const Made made = Read(bytes + ".");
      CHECK(made.shown == (size > 8 ? "None" : std::to_string(number)));
      CHECK(made.problem.empty());
    }
  CHECK(Read("\212\000."s).shown == "0");
}

TEST_CASE("pickle: what Python writes in each protocol", "[unit][pickle]") {
  const struct {
    int protocol;
    std::string bytes;
  } rows[] = {
      {0,
       "(dp0\012Vversion\012p1\012V2.4\012p2\012sVentries\012p3\012(lp4\012(dp5\012Vid\012p6\012I7\012sVt\012p7"
       "\012(I1\012Vx\012p8\012Ntp9\012sVf\012p10\012F1.5\012sVbig\012p11\012L1933040000000000000L\012sVneg\012p12"
       "\012I-5\012sVb\012p13\012I01\012sVm\012p14\012I300\012sVj\012p15\012I70000\012sVl\012p16\012(lp17\012(lp18"
       "\012asVe\012p19\012(tsVpair\012p20\012(I1\012I2\012tp21\012sVone\012p22\012(I3\012tp23\012sVfour\012p24"
       "\012(I1\012I2\012I3\012I4\012tp25\012sag5\012as."s},
      {1,
       "}q\000(X\007\000\000\000versionq\001X\003\000\000\0002.4q\002X\007\000\000\000entriesq\003]q\004(}q\005(X"
       "\002\000\000\000idq\006K\007X\001\000\000\000tq\007(K\001X\001\000\000\000xq\010Ntq\011X\001\000\000\000fq"
       "\012G?\370\000\000\000\000\000\000X\003\000\000\000bigq\013L1933040000000000000L\012X\003\000\000\000negq"
       "\014J\373\377\377\377X\001\000\000\000bq\015I01\012X\001\000\000\000mq\016M,\001X\001\000\000\000jq\017Jp"
       "\021\001\000X\001\000\000\000lq\020]q\021]q\022aX\001\000\000\000eq\023)X\004\000\000\000pairq\024(K\001K"
       "\002tq\025X\003\000\000\000oneq\026(K\003tq\027X\004\000\000\000fourq\030(K\001K\002K\003K\004tq\031uh\005"
       "eu."s},
      {2,
       "\200\002}q\000(X\007\000\000\000versionq\001X\003\000\000\0002.4q\002X\007\000\000\000entriesq\003]q\004(}"
       "q\005(X\002\000\000\000idq\006K\007X\001\000\000\000tq\007K\001X\001\000\000\000xq\010N\207q\011X\001\000"
       "\000\000fq\012G?\370\000\000\000\000\000\000X\003\000\000\000bigq\013\212\010\000\000\237h\243\211\323\032"
       "X\003\000\000\000negq\014J\373\377\377\377X\001\000\000\000bq\015\210X\001\000\000\000mq\016M,\001X\001"
       "\000\000\000jq\017Jp\021\001\000X\001\000\000\000lq\020]q\021]q\022aX\001\000\000\000eq\023)X\004\000\000"
       "\000pairq\024K\001K\002\206q\025X\003\000\000\000oneq\026K\003\205q\027X\004\000\000\000fourq\030(K\001K"
       "\002K\003K\004tq\031uh\005eu."s},
      {3,
       "\200\003}q\000(X\007\000\000\000versionq\001X\003\000\000\0002.4q\002X\007\000\000\000entriesq\003]q\004(}"
       "q\005(X\002\000\000\000idq\006K\007X\001\000\000\000tq\007K\001X\001\000\000\000xq\010N\207q\011X\001\000"
       "\000\000fq\012G?\370\000\000\000\000\000\000X\003\000\000\000bigq\013\212\010\000\000\237h\243\211\323\032"
       "X\003\000\000\000negq\014J\373\377\377\377X\001\000\000\000bq\015\210X\001\000\000\000mq\016M,\001X\001"
       "\000\000\000jq\017Jp\021\001\000X\001\000\000\000lq\020]q\021]q\022aX\001\000\000\000eq\023)X\004\000\000"
       "\000pairq\024K\001K\002\206q\025X\003\000\000\000oneq\026K\003\205q\027X\004\000\000\000fourq\030(K\001K"
       "\002K\003K\004tq\031uh\005eu."s},
      {4,
       "\200\004\225\261\000\000\000\000\000\000\000}\224(\214\007version\224\214\0032.4\224\214\007entries\224]"
       "\224(}\224(\214\002id\224K\007\214\001t\224K\001\214\001x\224N\207\224\214\001f\224G?\370\000\000\000\000"
       "\000\000\214\003big\224\212\010\000\000\237h\243\211\323\032\214\003neg\224J\373\377\377\377\214\001b\224"
       "\210\214\001m\224M,\001\214\001j\224Jp\021\001\000\214\001l\224]\224]\224a\214\001e\224)\214\004pair\224K"
       "\001K\002\206\224\214\003one\224K\003\205\224\214\004four\224(K\001K\002K\003K\004t\224uh\005eu."s},
      {5,
       "\200\005\225\261\000\000\000\000\000\000\000}\224(\214\007version\224\214\0032.4\224\214\007entries\224]"
       "\224(}\224(\214\002id\224K\007\214\001t\224K\001\214\001x\224N\207\224\214\001f\224G?\370\000\000\000\000"
       "\000\000\214\003big\224\212\010\000\000\237h\243\211\323\032\214\003neg\224J\373\377\377\377\214\001b\224"
       "\210\214\001m\224M,\001\214\001j\224Jp\021\001\000\214\001l\224]\224]\224a\214\001e\224)\214\004pair\224K"
       "\001K\002\206\224\214\003one\224K\003\205\224\214\004four\224(K\001K\002K\003K\004t\224uh\005eu."s},
  };
  const std::string entry =
      "{'id': 7, 't': [1, 'x', None], 'f': 1.5, 'big': 1933040000000000000, 'neg': -5, 'b': True, 'm': 300, "
      "'j': 70000, 'l': [[]], 'e': [], 'pair': [1, 2], 'one': [3], 'four': [1, 2, 3, 4]}";
  for (const auto& row : rows) {
    CAPTURE(row.protocol);
    const Made made = Read(row.bytes);
    CHECK(made.shown == "{'version': '2.4', 'entries': [" + entry + ", " + entry + "]}");
    CHECK(made.problem.empty());
    CHECK(IsPickle(row.bytes) == (row.protocol >= 2));
    for (std::size_t cut = 0; cut < row.bytes.size(); ++cut) {
      CAPTURE(cut);
      const Made torn = Read(row.bytes.substr(0, cut));
      CHECK(torn.problem == fmt::format("cut after {} bytes, in the middle of the dump", cut));
    }
  }
}

TEST_CASE("pickle: what would call something is refused by its name, with what came before", "[unit][pickle]") {
  const struct {
    char code;
    const char* name;
  } rows[] = {
      {'c', "GLOBAL"},  {'R', "REDUCE"},        {'b', "BUILD"},          {'i', "INST"},
      {'o', "OBJ"},     {'\201', "NEWOBJ"},     {'\222', "NEWOBJ_EX"},   {'\223', "STACK_GLOBAL"},
      {'P', "PERSID"},  {'Q', "BINPERSID"},     {'\202', "EXT1"},        {'\203', "EXT2"},
      {'\204', "EXT4"}, {'\226', "BYTEARRAY8"}, {'\227', "NEXT_BUFFER"}, {'\230', "READONLY_BUFFER"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.name);
    const Made made = Read("\200\002}(U\001aK\001U\001b"s + row.code + "os\nsystem\n)R.");
    CHECK(made.problem == fmt::format("{} at byte 12 would call what the file names, which is refused", row.name));
    CHECK(made.shown == "{'a': 1}!");
  }
  CHECK(Read("\200\002cposix\nsystem\n(U\004trueR."s).problem ==
        "GLOBAL at byte 2 would call what the file names, which is refused");
}

TEST_CASE("pickle: what is none", "[unit][pickle]") {
  const struct {
    std::string bytes;
    const char* problem;
  } rows[] = {
      {"."s, "no pickle from byte 0 on (opcode 0x2e)"},
      {"0"s, "no pickle from byte 0 on (opcode 0x30)"},
      {"2"s, "no pickle from byte 0 on (opcode 0x32)"},
      {"e"s, "no pickle from byte 0 on (opcode 0x65)"},
      {"1"s, "no pickle from byte 0 on (opcode 0x31)"},
      {"(e"s, "no pickle from byte 1 on (opcode 0x65)"},
      {"K\001(K\002e"s, "no pickle from byte 5 on (opcode 0x65)"},
      {"}(K\001u"s, "no pickle from byte 4 on (opcode 0x75)"},
      {"(K\001d"s, "no pickle from byte 3 on (opcode 0x64)"},
      {"a"s, "no pickle from byte 0 on (opcode 0x61)"},
      {"K\001K\002a"s, "no pickle from byte 4 on (opcode 0x61)"},
      {"K\001K\002K\003s"s, "no pickle from byte 6 on (opcode 0x73)"},
      {"K\001\206"s, "no pickle from byte 2 on (opcode 0x86)"},
      {"h\000"s, "no pickle from byte 0 on (opcode 0x68)"},
      {"q\000"s, "no pickle from byte 0 on (opcode 0x71)"},
      {"]px\n"s, "no pickle from byte 1 on (opcode 0x70)"},
      // A mark of which the values below were taken.
      {"K\001K\002(\206t"s, "no pickle from byte 6 on (opcode 0x74)"},
      // Numbers of a memo count up: one that leaps would cost memory that the file does not have.
      {"]r\377\377\377\177."s, "no pickle from byte 1 on (opcode 0x72)"},
      {"]r\000\001\000\000."s, "no pickle from byte 1 on (opcode 0x72)"},
      {"\200\006N."s, "no pickle from byte 0 on (opcode 0x80)"},
      {"\213\377\377\377\377."s, "no pickle from byte 0 on (opcode 0x8b)"},
      {"\377"s, "no pickle from byte 0 on (opcode 0xff)"},
      {"X\377\377\377\377ab"s, "cut after 7 bytes, in the middle of the dump"},
      {"\215\377\377\377\377\377\377\377\377ab"s, "cut after 11 bytes, in the middle of the dump"},
      {std::string(1001, '('), "larger than what is held of one dump; read up to byte 1000"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.bytes);
    CHECK(Read(row.bytes).problem == row.problem);
  }
}

TEST_CASE("pickle: as deep as marks go, and no deeper than the pool", "[unit][pickle]") {
  std::string nested = "]";
  for (int i = 0; i < 999; ++i) nested += "(]";
  for (int i = 0; i < 999; ++i) nested += "e";
  CHECK(Read(nested + ".").problem.empty());
  std::string deep;  // without marks nothing bounds it, and nothing recurses
  for (int i = 0; i < 20000; ++i) deep += "]";
  for (int i = 1; i < 20000; ++i) deep += "a";
  CHECK(Read(deep + ".", 1 << 24).problem.empty());

  std::string lists = "](";
  for (int i = 0; i < 100000; ++i) lists += "]";
  const Made made = Read(lists + "e.", 1 << 20);
  CHECK(made.problem.starts_with("larger than what is held of one dump; read up to byte "));
  CHECK(made.shown.ends_with("!"));
}

TEST_CASE("pickle: where it is cut, all around it is torn and what was whole stays", "[unit][pickle]") {
  const struct {
    std::string bytes;
    const char* shown;
  } rows[] = {
      {"}(U\001a](K\001K\002"s, "{'a': [1, 2]!}!"},
      {"}(U\001a](K\001eU\001b"s, "{'a': [1]}!"},
      {"}(U\001aK"s, "{}!"},
      {"](}(U\001aK\001u}(U\001aK\002U\001b"s, "[{'a': 1}, {'a': 2}!]!"},
      {"](K\001K\002(K\003K\004"s, "[1, 2]!"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.bytes);
    CHECK(Read(row.bytes).shown == row.shown);
  }
}

/// Lists in a few forms, over and over, put into the memo and changed afterwards; `between` stands in each list's
/// begin.
std::string ListsOverAndOver(unsigned seed, std::string_view between) {
  std::mt19937 random(seed);
  const auto one_of = [&](unsigned count) { return static_cast<unsigned>(random() % count); };
  std::string out = "](";
  unsigned memo = 0;
  for (int i = 0; i < 60; ++i) {
    const auto list = [&](auto& self, unsigned depth) -> void {
      out += "]" + std::string(between) + "(";
      const unsigned kind = one_of(3);
      for (unsigned k = 0; k < (kind == 0 ? 1 : kind * 12); ++k) out += "K"s + static_cast<char>(one_of(2));
      if (depth == 0 && one_of(3) == 0) self(self, 1);
      if (memo > 0 && one_of(2) == 0) out += "h"s + static_cast<char>(one_of(memo));
      if (one_of(8) == 0 && memo < 200) out += "q"s + static_cast<char>(memo++);  // what was pushed last
      out += "e";
    };
    list(list, 0);
    switch (one_of(8)) {
      case 0:
        if (memo < 200) out += "q"s + static_cast<char>(memo++);
        break;
      case 1:
        if (memo > 0) out += "q"s + static_cast<char>(one_of(memo));  // another value under a number that was used
        break;
      case 2:
        out += "K\007a";
        break;
      case 3:
        out += "(K\010K\011e";
        break;
      case 4:
        out += "2(K\012e";
        break;
      default:
        break;
    }
  }
  return out + "e." + std::string(40, 'N');
}

TEST_CASE("pickle: a list that comes again in the same bytes is read as if it were the first", "[unit][pickle]") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    const Made again = Read(ListsOverAndOver(seed, "")), each_by_itself = Read(ListsOverAndOver(seed, "N0"));
    CHECK(again.shown == each_by_itself.shown);
    CHECK(again.problem == each_by_itself.problem);
  }
}

TEST_CASE("pickle: known by its head", "[unit][pickle]") {
  for (const std::string& head :
       {"\200\002}("s, "\200\002]q"s, "\200\004\225\001"s, "\200\005\225\001"s, "\200\003cx"s})
    CHECK(IsPickle(head));
  for (const std::string& head : {""s, "\200\002"s, "\200\006}("s, "\200\001}("s, "\200\002 a line"s, "{\"version\""s})
    CHECK_FALSE(IsPickle(head));
}

}  // namespace pickle_test
}  // namespace inquest
