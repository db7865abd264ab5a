// The JSON Schemas of what the program prints, as docs/ has them.
#pragma once

#include <string_view>

namespace inquest {

/// Of `--format json`.
std::string_view VerdictSchema();
/// Of `inquest replay --format json`.
std::string_view ReplaySchema();

}  // namespace inquest
