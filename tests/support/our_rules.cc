// The rules of this source tree, and the sieve that the program holds for them.
#include "tests/support/our_rules.h"

#include <memory>
#include <utility>
#include <variant>

#include "parsers/formats.h"
#include "rules/sought.h"
#include "tests/catch.h"

namespace inquest {

const RuleBook& OurRules() {
  static const RuleBook kBook = [] {
    auto loaded = LoadRules(INQUEST_SOURCE_DIR "/rules", nullptr);
    if (const auto* errors = std::get_if<RuleErrors>(&loaded)) {
      for (const Error& error : *errors) UNSCOPED_INFO(error.where + ": " + error.message + "; " + error.hint);
      FAIL("the rules do not load");
    }
    return std::move(std::get<RuleBook>(loaded));
  }();
  return kBook;
}

const Sieve& OurSieve() {
  static const std::unique_ptr<Sieve> kSieve = [] {
    auto loaded = LoadSieve(EmbeddedSieve(), SoughtBy(OurRules(), Marks().marks));
    if (!loaded) FAIL(loaded.error().message);
    return std::move(*loaded);
  }();
  return *kSieve;
}

}  // namespace inquest
