// The JSON Schemas of what the program prints, as docs/ has them.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace inquest {

/// By what `inquest schema` calls them: `verdict` of --format json, `events` of a line of --format jsonl, `triage` of
/// what `inquest triage` prints with either, `evidence` of `inquest evidence --format json`, `replay` of `inquest
/// replay --format json`.
std::span<const std::pair<std::string_view, std::string_view>> Schemas();

}  // namespace inquest
