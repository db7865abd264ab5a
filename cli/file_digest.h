// SHA-256 of files. The program's only door to it.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"

namespace inquest {

struct Digest {
  std::uint64_t bytes = 0;
  std::string hex;  ///< 64 digits, lower case
};
Result<Digest> Sha256OfFile(const std::string& path);

}  // namespace inquest
