// What of an environment may leave the node.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace inquest {

/// `NAME=value` lines, sorted: variables of the job's own libraries and launcher, with what could be a secret masked.
/// All others are only counted.
std::string PublicEnvironment(std::span<const std::string_view> entries);

/// The same text with every word masked that looks like a secret, or like `password=...`.
std::string MaskSecrets(std::string_view text);

}  // namespace inquest
