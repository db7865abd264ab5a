// Fuzz target: any bytes as a log, from the scanner to the JSON document.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "parsers/formats.h"
#include "parsers/scan.h"
#include "parsers/utf16.h"
#include "report/report.h"
#include "rules/decide.h"
#include "rules/rule_book.h"
#include "rules/sought.h"
#include "timeline/builder.h"

namespace inquest {
namespace {

struct Rules {
  RuleBook book = Deserialize(EmbeddedRules());
  std::unique_ptr<Sieve> sieve = MakeSieve(book);

  static std::unique_ptr<Sieve> MakeSieve(const RuleBook& book) {
    auto sieve = LoadSieve(EmbeddedSieve(), SoughtBy(book, Marks().marks));
    INQUEST_CHECK(sieve);
    return std::move(*sieve);
  }
};

void Run(std::string_view log) {
  static const Rules kRules;
  TimelineBuilder builder;
  const InputRead read = ScanText(log, *kRules.sieve, ScanOptions{.threads = 1, .block_bytes = 4096}, builder);
  INQUEST_CHECK(read.tally.bytes == log.size() || IsUtf16(log));  // of which the characters are counted
  INQUEST_CHECK(read.tally.claimed + read.tally.plain + read.tally.damaged == read.tally.bytes);

  InputSummary summary{.path = "fuzz.log",
                       .bytes = read.tally.bytes,
                       .lines = read.tally.lines,
                       .claimed = read.tally.claimed,
                       .plain = read.tally.plain,
                       .damaged = read.tally.damaged,
                       .kinds = read.kinds};
  Timeline timeline = builder.Build({std::move(summary)});
  const Verdict verdict = Decide(timeline, kRules.book);
  INQUEST_CHECK(!verdict.cause.empty());
  const std::string document = RenderJson(timeline, verdict, "fuzz");
  INQUEST_CHECK(!document.empty() && document.back() == '\n');
  INQUEST_CHECK(!RenderText(timeline, verdict, ReportContext{}).empty());
}

}  // namespace
}  // namespace inquest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  inquest::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
