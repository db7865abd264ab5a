// The sieve loses nothing: what RE2 confirms on a line, the sieve reports on that line, whatever stands around it.
#include "search/hs_sieve.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>

#include "core/pattern.h"
#include "parsers/formats.h"
#include "rules/rule_book.h"
#include "rules/sought.h"
#include "search/packed_sieve.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"

using namespace inquest;

namespace sieve_test {

std::unique_ptr<Sieve> Sieved(const RuleBook& book) {
  auto compiled = CompileSieve(SoughtBy(book, Marks().marks));
  if (!compiled) FAIL(compiled.error().message);
  return std::move(*compiled);
}

/// One rule in eight: what is compiled several times is compiled under sanitizers.
RuleBook Some() {
  RuleBook book;
  for (std::size_t i = 0; i < BuiltInRules().rules.size(); i += 8) book.rules.push_back(BuiltInRules().rules[i]);
  return book;
}

RuleBook BookOf(const std::vector<std::string>& expressions) {
  RuleBook book;
  for (const std::string& expression : expressions) book.rules.emplace_back().text = expression;
  return book;
}

bool IsSieved(const Rule& rule) { return rule.at != Activity::kTraining && rule.scope.empty(); }

/// (line, id): what the sieve reports.
std::set<std::pair<std::size_t, std::uint32_t>> Reported(const Sieve& sieve, const std::string& block) {
  std::vector<Sieve::Hit> hits;
  sieve.MakeScanner()->Scan(block, hits);
  std::set<std::pair<std::size_t, std::uint32_t>> out;
  std::vector<std::size_t> ends;
  for (std::size_t at = block.find('\n'); at != std::string::npos; at = block.find('\n', at + 1)) ends.push_back(at);
  for (const Sieve::Hit& hit : hits) {
    REQUIRE(hit.end <= block.size());
    const auto line = std::lower_bound(ends.begin(), ends.end(), hit.end == 0 ? 0 : hit.end - 1);
    out.emplace(static_cast<std::size_t>(line - ends.begin()), hit.id);
  }
  return out;
}

/// (line, id): what RE2 and a plain search for marks find.
std::set<std::pair<std::size_t, std::uint32_t>> Confirmed(const RuleBook& book, const std::vector<std::string>& lines) {
  std::set<std::pair<std::size_t, std::uint32_t>> out;
  const auto& marks = Marks().marks;
  for (std::uint32_t id = 0; id < book.rules.size(); ++id) {
    if (!IsSieved(book.rules[id])) continue;
    const auto pattern = Pattern::Compile(book.rules[id].text);
    REQUIRE(pattern);
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (pattern.value().Matches(lines[i])) out.emplace(i, id);
  }
  for (std::size_t mark = 0; mark < marks.size(); ++mark)
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (lines[i].find(marks[mark]) != std::string::npos)
        out.emplace(i, static_cast<std::uint32_t>(book.rules.size() + mark));
  return out;
}

void CheckNothingLost(const Sieve& sieve, const RuleBook& book, const std::vector<std::string>& lines) {
  std::string block;
  for (const std::string& line : lines) block += line + '\n';
  const auto reported = Reported(sieve, block);
  for (const auto& [line, id] : Confirmed(book, lines)) {
    if (reported.contains({line, id})) continue;
    CAPTURE(lines[line], id,
            id < book.rules.size() ? book.rules[id].file : std::string(Marks().marks[id - book.rules.size()]));
    FAIL_CHECK("lost");
  }
}

class Mutator {
 public:
  /// Part of the sample, other case, a byte more or less, something before and behind it.
  std::string Mutate(std::string line) {
    static const std::string_view kChatter =
        "iteration 100/500 | loss: 2.345 | time 0.123 | lr 1e-05 [rank0]: saving the model ";
    for (std::size_t times = Below(3); times > 0 && !line.empty(); --times) {
      char& byte = line[Below(line.size())];
      switch (Below(4)) {
        case 0:
          byte = static_cast<char>(byte ^ 0x20);
          break;
        case 1:
          line.erase(Below(line.size()), 1);
          break;
        case 2:
          line.insert(Below(line.size()), 1, "aZ0 :[\t"[Below(7)]);
          break;
        default:
          line.erase(0, Below(line.size()) / 3);
          break;
      }
    }
    // A flipped bit may make a line end or a byte that is no text.
    for (char& byte : line) byte = byte < 0x20 && byte != '\t' ? '.' : byte;
    return std::string(kChatter.substr(0, Below(kChatter.size()))) + line + std::string(kChatter.substr(0, Below(9)));
  }

 private:
  std::size_t Below(std::size_t limit) { return static_cast<std::size_t>(random_()) % limit; }
  std::mt19937 random_{11};
};

bool IsAscii(const std::string& line) {
  return std::all_of(line.begin(), line.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

/// Every sample of every rule and a mutation of it; of these every `step`-th.
std::vector<std::string> Lines(std::size_t step) {
  std::vector<std::string> all, lines;
  Mutator mutator;
  for (const Rule& rule : BuiltInRules().rules)
    for (const auto* samples : {&rule.match, &rule.differ})
      for (const std::string& sample : *samples) {
        all.push_back(sample);
        // RE2 counts characters where libhs counts bytes: a repeat that is bounded may differ.
        if (IsAscii(sample)) all.push_back(mutator.Mutate(sample));
      }
  for (std::size_t i = 0; i < all.size(); i += step) lines.push_back(all[i]);
  return lines;
}

/// Bytes where a packed sieve may lie: at a multiple of 64, and not of 128 if `odd`.
class Placed {
 public:
  explicit Placed(std::string_view bytes, bool odd = false)
      : size_(bytes.size()),
        odd_(odd),
        memory_(std::aligned_alloc(128, (bytes.size() + 2 * 128) / 128 * 128), std::free) {
    bytes.copy(begin(), size_);
  }
  std::string_view view() const { return {begin(), size_}; }

 private:
  char* begin() const { return static_cast<char*>(memory_.get()) + (odd_ ? 64 : 0); }
  std::size_t size_;
  bool odd_;
  std::unique_ptr<void, void (*)(void*)> memory_;
};

TEST_CASE("no sample and no mutation of one loses a confirmed hit", "[rules][slow]") {
  CheckNothingLost(BuiltInSieve(), BuiltInRules(), Lines(1));
}

TEST_CASE("a line alone is searched as among others", "[rules][slow]") {
  const std::vector<std::string> lines = Lines(1);
  const auto confirmed = Confirmed(BuiltInRules(), lines);
  for (auto at = confirmed.begin(); at != confirmed.end();) {
    const std::size_t line = at->first;
    const auto reported = Reported(BuiltInSieve(), lines[line] + '\n');
    for (; at != confirmed.end() && at->first == line; ++at) {
      CAPTURE(lines[line], at->second);
      CHECK(reported.contains({0, at->second}));
    }
  }
}

TEST_CASE("one sample in some, or its mutation, loses no confirmed hit", "[rules]") {
  CheckNothingLost(BuiltInSieve(), BuiltInRules(), Lines(37));
}

TEST_CASE("an extended sieve reports what a compiled one does", "[rules]") {
  const RuleBook base = Some();
  const auto bytes = PackSieve(SoughtBy(base, Marks().marks));
  REQUIRE(bytes);
  RuleBook book = base;
  book.rules.erase(book.rules.begin() + 5);  // all numbers behind it change
  book.rules[7].text = "the words of a rule that replaces ours";
  Rule& added = *book.rules.insert(book.rules.begin() + 20, book.rules[0]);
  added.id = "another";
  added.text = "FeatureStoreError: shard [a-z]+ unavailable";
  std::string block = "x the words of a rule that replaces ours\ny FeatureStoreError: shard q unavailable\n";
  for (const Rule& rule : base.rules)
    for (const std::string& sample : rule.match) block += sample + '\n';
  const Placed placed(bytes.value());
  const auto extended = ExtendSieve(placed.view(), SoughtBy(base, Marks().marks), SoughtBy(book, Marks().marks));
  REQUIRE(extended);
  const auto reported = Reported(*extended.value(), block);
  CHECK(reported == Reported(*Sieved(book), block));
  CHECK(reported.contains({0, 7}));
  CHECK(reported.contains({1, 20}));
  CHECK(extended.value()->first_mark_id() == book.rules.size());
  const auto anew = ExtendSieve("no sieve", SoughtBy(base, Marks().marks), SoughtBy(book, Marks().marks));
  REQUIRE(anew);
  CHECK(Reported(*anew.value(), block) == reported);
}

TEST_CASE("an expression without a literal is searched everywhere", "[rules]") {
  const RuleBook book = BookOf({R"(\d{3}-\d{4})", "watchdog gave up", R"(^[a-z]+$)", R"(E\d+|F\d+)"});
  const std::unique_ptr<Sieve> sieve = Sieved(book);
  CheckNothingLost(*sieve, book, {"call 555-1234", "the watchdog gave up", "letters", "nothing HERE", "E17"});
  CHECK(Reported(*Sieved(BookOf({R"(\d{3}-\d{4})"})), "1\n555-1234\n").contains({1, 0}));
}

TEST_CASE("a match stays within its line", "[rules]") {
  const RuleBook book =
      BookOf({R"(first half[^|]*second half)", R"(third half\s+fourth half)", R"(\W\D[ab]{2}\s[^x]zz)"});
  const std::unique_ptr<Sieve> sieve = Sieved(book);
  CHECK(Reported(*sieve, "first half\nsecond half\nthird half\nfourth half\n::aa\n zz\n").empty());
  CHECK(Reported(*sieve, "first half second half\nthird half \t fourth half\n::aa  zz") ==
        std::set<std::pair<std::size_t, std::uint32_t>>{{0, 0}, {1, 1}, {2, 2}});
}

TEST_CASE("what may be left out at an end of an expression is not looked for", "[rules]") {
  const struct {
    std::string expression, line, other;
  } rows[] = {
      {R"(gave up: \d+)", "gave up: 1234", "gave up: none"},
      {R"(gave up(?: on (?P<peer>\S+))?)", "gave up on alder04", "gave it up"},
      {R"(gave up .*$)", "gave up on all of them", "gave up"},
      {R"(gave (?:up|in on [a-z]{1,9}|out[^\n]*))", "gave in on them", "gave in on 9"},
      {R"((?:watchdog|agent) gave(?: up)?(?: now| at \d*)?)", "agent gave up at 17", "they gave up"},
      {R"(gave up [ab]{2,4})", "gave up ab", "gave up a"},
      {R"([Gg]ave (?:up)+)", "gave upup", "gave in"},
  };
  for (const auto& [expression, line, other] : rows) {
    CAPTURE(expression);
    const std::unique_ptr<Sieve> sieve = Sieved(BookOf(std::vector{expression}));
    std::vector<Sieve::Hit> hits;
    sieve->MakeScanner()->Scan(line + "\n" + other + "\n", hits);
    REQUIRE(hits.size() == 1);
    CHECK(hits[0].end <= line.size());
  }
}

TEST_CASE("a loaded sieve reports what a compiled one does", "[rules]") {
  const RuleBook book = Some();
  const auto bytes = PackSieve(SoughtBy(book, Marks().marks));
  REQUIRE(bytes);
  std::string block;
  for (const Rule& rule : book.rules)
    for (const std::string& sample : rule.match) block += sample + '\n';
  const auto reported = Reported(*Sieved(book), block);
  for (const bool odd : {false, true}) {
    CAPTURE(odd);
    const Placed placed(bytes.value(), odd);
    const auto loaded = LoadSieve(placed.view(), SoughtBy(book, Marks().marks));
    REQUIRE(loaded);
    CHECK(Unpack(placed.view()));
    CHECK(!Unpack(placed.view().substr(1)));
    CHECK(Reported(*loaded.value(), block) == reported);
  }
}

TEST_CASE("a sieve packed for another libhs is compiled anew", "[rules]") {
  const RuleBook book = BookOf({"watchdog gave up"});
  auto bytes = PackSieve(SoughtBy(book, {}));
  REQUIRE(bytes);
  bytes.value()[64 + 4] ^= 1;  // of the version, behind the magic number of the first database
  const Placed placed(bytes.value());
  CHECK(!Unpack(placed.view()));
  const auto loaded = LoadSieve(placed.view(), SoughtBy(book, {}));
  REQUIRE(loaded);
  CHECK(Reported(*loaded.value(), "watchdog gave up\n").size() == 1);
}

TEST_CASE("bytes that do not load are compiled anew", "[rules]") {
  const RuleBook book = BookOf({"watchdog gave up", R"(\d{3}-\d{4})"});
  const auto bytes = PackSieve(SoughtBy(book, {}));
  REQUIRE(bytes);
  const Placed placed(bytes.value());
  const std::size_t whole = bytes.value().size();
  for (std::size_t size = 0; size < whole; size += size + 200 < whole ? whole / 50 : 1) {
    CAPTURE(size);
    CHECK(!Unpack(placed.view().substr(0, size)));
    const auto loaded = LoadSieve(placed.view().substr(0, size), SoughtBy(book, {}));
    REQUIRE(loaded);
    CHECK(Reported(*loaded.value(), "watchdog gave up\ncall 555-1234\n").size() == 2);
  }
}

}  // namespace sieve_test
