// Where a log says something, as reports name it.
#pragma once

#include <cstdint>
#include <string>

namespace inquest {

/// Where a log says it.
struct SourceLine {
  std::string path;
  std::uint64_t line = 0;
};

}  // namespace inquest
