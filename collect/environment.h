// What of an environment may leave the node.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace inquest {

/// `NAME=value` lines, sorted: variables of the job's own libraries and launcher, with what could be a secret masked.
/// All others are only counted.
std::string PublicEnvironment(std::span<const std::string_view> entries);

/// A path with every part masked that looks like a secret: files are named in environments too.
std::string MaskPath(std::string_view path);

/// The same text with every word masked that looks like a secret, or like `password=...`, or stands behind `Bearer` or
/// `-p`.
std::string MaskSecrets(std::string_view text);

}  // namespace inquest
