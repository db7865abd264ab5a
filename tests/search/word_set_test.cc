// Which of several literals a line holds.
#include "search/word_set.h"

#include <array>
#include <string>

#include "tests/catch.h"

namespace inquest {
namespace word_set_test {

TEST_CASE("a set of words finds each of them wherever it stands", "[word_set]") {
  static constexpr std::array<std::string_view, 7> kWords = {
      "timeout", "Timeout at", "time", "out of memory", "\xe2\x96\x88\xe2\x96\x88", "aaaa", "Timeout at collective: "};
  const WordSet set(kWords);
  for (const std::string front : {"", "x", "tim", "Timeout a", "aaa ", "a long front that holds none of them, "})
    for (const std::string back : {"", "s", " it is", "aaa", ", and more of it"})
      for (std::size_t i = 0; i < kWords.size(); ++i) {
        const std::string text = front + std::string(kWords[i]) + back;
        CAPTURE(text);
        std::uint64_t expected = 0;
        for (std::size_t other = 0; other < kWords.size(); ++other)
          if (text.find(kWords[other]) != std::string::npos) expected |= std::uint64_t{1} << other;
        CHECK(set.In(text) == expected);
      }
  CHECK(set.In("") == 0);
  CHECK(set.In("tim") == 0);
  CHECK(set.Of({"timeout", "time"}) == 5);
}

}  // namespace word_set_test
}  // namespace inquest
