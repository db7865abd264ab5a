// What links could do once, in a file: `inquest replay --save-baseline`.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "replay/speeds.h"

namespace inquest {

/// One JSON document, `inquest-speeds-1`; ASCII, ends in a newline.
std::string SpeedsDocument(const Speeds& speeds, std::string_view tool_version);
/// Fails where it is none of ours, or holds what no measurement gives: a negative time, a rank that is not there.
Result<Speeds> ReadSpeeds(const std::string& text, const std::string& path);

}  // namespace inquest
