// What files that a user names are called in a bundle.
#include "collect/files.h"

#include <utility>

#include "tests/catch.h"

using namespace inquest;

TEST_CASE("names in a bundle are relative, printable and not hidden", "[unit][collect]") {
  const std::pair<const char*, const char*> rows[] = {
      {"/var/log/kern.log", "var/log/kern.log"},
      {"logs/rank0.log", "logs/rank0.log"},
      {"./a//b", "a/b"},
      {"../../etc/x", "etc/x"},
      {".cache/.torch/x", "_cache/_torch/x"},
      {"a\x1b[31m\nb", "a_[31m_b"},
      {"n\xc3\xa4me", "n\xc3\xa4me"},
      {"..", "unnamed"},
      {"", "unnamed"},
  };
  for (const auto& [path, name] : rows) {
    CAPTURE(path);
    CHECK(NameInBundle(path) == name);
  }
}
