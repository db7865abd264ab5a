// The job token and what is proved with it. The only door to Nettle; no cryptography of our own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"

namespace inquest {

inline constexpr std::size_t kDigestBytes = 32;
/// Shorter tokens are refused: a listener on the network could try them all.
inline constexpr std::size_t kLeastTokenBytes = 16;

/// HMAC-SHA256, kDigestBytes long.
std::string Hmac(std::string_view key, std::string_view text);
/// Takes the same time wherever they differ.
bool SameBytes(std::string_view a, std::string_view b);
/// kDigestBytes that nobody can guess.
std::string RandomBytes();

/// The token as a file or variable has it, without the end of its line.
Result<std::string> TokenFrom(std::string text, std::string_view source);

}  // namespace inquest
